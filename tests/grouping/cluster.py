"""A simulated API with operators' objects on it, and with pods shaped as those operators make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml
from tests.scheduler.short import create
from tests.scheduler.sim import SETTINGS, SPACE, Sim

from kohort.grouping.model import Kind
from kohort.grouping.settings import Grouping
from kohort.scheduler.model import Owning
from kohort.scheduler.rootstatus import RootStatus, root_status
from kohort.scheduler.settings import SchedulerSettings

Json = dict[str, Any]
SAMPLES = Path(__file__).parent / "samples"
OURS = replace(SETTINGS, names=frozenset({"kohort"}))


def sample(name: str) -> list[Json]:
    """The documents of a sample manifest."""
    return [one for one in yaml.safe_load_all((SAMPLES / f"{name}.yaml").read_text()) if one]


@dataclass
class Cluster(Sim):
    """`unread`: kinds that may not be read."""

    settings: SchedulerSettings = OURS
    unread: tuple[str, ...] = ()
    things: dict[tuple[str, str], Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._readable()

    def _readable(self) -> None:
        kinds = {one for one in self.settings.grouping.reads if one.name not in self.unread}
        self.core.cache.companion.readable(kinds, set(self.settings.grouping.reads) - kinds)

    def restart(self) -> None:
        """What pods rest on is listed before them."""
        pods, self.objects["pod"] = self.objects["pod"], {}
        super().restart()
        self._readable()
        for body in self.things.values():
            self._tell(body)
        self.objects["pod"] = pods
        for name in pods:
            self.tell("pod", name)

    # ---- objects

    def own(self, body: Json) -> Json:
        """An object that pods rest on comes, or changes."""
        meta = body["metadata"]
        meta.setdefault("uid", f"{body['kind']}-{meta['name']}".lower())
        meta["namespace"] = SPACE
        self.things[body["kind"], meta["name"]] = body
        self._tell(body)
        return body

    def _tell(self, body: Json) -> None:
        if body["kind"] in self.unread:
            return
        kind = Kind(body["apiVersion"].rpartition("/")[0], body["kind"])
        self.core.cache.companion.put(kind, msgspec.convert(body, Owning), body["apiVersion"])

    def nodes(self, number: int, cpu: str = "4", **labels: str) -> None:
        first = len(self.objects["node"])
        for one in range(first, first + number):
            create(self, {"node": f"n{one}", "cpu": cpu, "labels": labels})

    def pod(
        self,
        name: str,
        owner: Json | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """A pod for Kohort that asks for one cpu."""
        meta: Json = {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
        if owner is not None:
            meta["ownerReferences"] = [reference(owner)]
        spec = {
            "schedulerName": "kohort",
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            "priority": 0,
            **more,
        }
        self.put("pod", name, {"metadata": meta, "spec": spec, "status": {"phase": ""}})

    # ---- looking

    def told(self, pod: str) -> str:
        found = self.condition("pod", pod, "PodScheduled")
        return str(found["message"]) if found is not None else ""

    def later(self, seconds: float = 60.0) -> None:
        """What is not ready is looked at twice, and then again."""
        for _ in range(3):
            self.write(self.core.notices(self.now))
            self.settle(seconds)
        self.write(self.core.notices(self.now))

    def tree(self) -> dict[str, tuple[int | None, str | None]]:
        """Groups that rules made: their minimum, and the group above."""
        made = {one.key: one.spec for one in self.core.cache.trees if one.spec is not None and one.spec.rule}
        above = {key: made[one.parent].name if one.parent in made else None for key, one in made.items()}
        return {one.name: (one.minimum, above[key]) for key, one in sorted(made.items())}

    def status(self, pod: str) -> RootStatus:
        cache = self.core.cache
        member = cache.members[cache.names[f"{SPACE}/{pod}"]]
        root = cache.root(member)
        return root_status(self.core, member if root is None else root, member)


def reference(owner: Json) -> Json:
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
        "controller": True,
    }  # fmt: skip


def settings(**grouping: Any) -> SchedulerSettings:
    return replace(OURS, grouping=replace(Grouping(), **grouping))
