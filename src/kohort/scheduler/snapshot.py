"""The state of a scheduler as one JSON document: what it knows, and why each root waits. It can be loaded again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kohort.scheduler.core import Core
from kohort.scheduler.model import DisruptionBudget, GroupObject, Node, Pod, Workload
from kohort.scheduler.settings import Settings

Json = dict[str, Any]


class Keep:
    """The objects as they came, for the snapshot: decoded to what the scheduler reads."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}

    def put(self, kind: str, key: str, obj: Any) -> None:
        self.objects.setdefault(kind, {})[key] = obj

    def drop(self, kind: str, key: str) -> None:
        self.objects.get(kind, {}).pop(key, None)


def take(core: Core, keep: Keep) -> Json:
    objects = {kind: [msgspec.to_builtins(one) for one in found.values()] for kind, found in keep.objects.items()}
    return {
        "schedulerNames": sorted(core.settings.names),
        "objects": objects,
        "pending": [
            {"key": one.key, "queue": one.where, "reason": one.reason, "detail": one.detail, "pods": one.pods}
            for one in core.pending()
        ],
        "assumed": {member.pod.key: member.node for member in core.world.members.values() if member.assumed},
        "reservations": [
            {
                "root": kept.owner,
                "priority": kept.priority,
                "held": kept.held,
                "nodes": sorted(kept.nodes().values()),
            }
            for kept in core.world.reservations
        ],
        "holding": core.holding.root,
    }


def load(snapshot: Json, settings: Settings | None = None, stamp: Callable[[], str] = lambda: "") -> Core:
    """A scheduler that knows what the snapshot says."""
    chosen = settings or Settings(names=frozenset(snapshot["schedulerNames"]))
    core = Core(chosen, stamp)
    objects, world = snapshot["objects"], core.world
    for body in objects.get("nodes", ()):
        world.set_node(msgspec.convert(body, Node))
    for body in objects.get("namespaces", ()):
        world.set_namespace(body["metadata"]["name"], body["metadata"].get("labels") or {})
    for name, put in (("storageclasses", world.set_storage_class), ("persistentvolumes", world.set_volume)):
        for body in objects.get(name, ()):
            put(body["metadata"]["name"], body)
    for body in objects.get("persistentvolumeclaims", ()):
        world.set_claim(f"{body['metadata']['namespace']}/{body['metadata']['name']}", body)
    for kind, composite in (("compositepodgroups", True), ("podgroups", False)):
        for body in objects.get(kind, ()):
            world.set_group(msgspec.convert(body, GroupObject), composite=composite)
    for body in objects.get("workloads", ()):
        world.set_workload(msgspec.convert(body, Workload))
    for body in objects.get("poddisruptionbudgets", ()):
        world.set_budget(msgspec.convert(body, DisruptionBudget))
    for body in objects.get("pods", ()):
        world.set_pod(msgspec.convert(body, Pod))
    return core
