"""What a scheduler knows as one JSON document, and back: for `/debug/state`, and for questions asked later.

It holds API objects, cut to the fields that the scheduler reads, and why each root waits. `kohort explain --state FILE`
loads it; so does anything else that wants to decide on the same cluster again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

import msgspec

from kohort.grouping.settings import extended
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.sources import all_sources, read_kinds

Json = dict[str, Any]
VERSION: Final = 1


class SnapshotError(ValueError):
    """A document that is not a snapshot."""


class ObjectStore:
    """The objects as they came, by source and key."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}

    def put(self, name: str, key: str, obj: Any) -> None:
        self.objects.setdefault(name, {})[key] = obj

    def drop(self, name: str, key: str) -> None:
        self.objects.get(name, {}).pop(key, None)


def dump(core: SchedulerCore, store: ObjectStore) -> Json:
    """Times of `pending` are the scheduler's own clock; what is decided but not bound yet is in `assumed`."""
    objects = {name: [msgspec.to_builtins(one) for one in found.values()] for name, found in store.objects.items()}
    return {
        "version": VERSION,
        "schedulerNames": sorted(core.settings.names),
        "objects": objects,
        "pending": [asdict(one) for one in core.pending()],
        "assumed": {member.pod.key: member.node for member in core.cache.members.values() if member.assumed},
        "reservations": [
            {
                "root": kept.owner,
                "priority": kept.priority,
                "held": kept.backfill,
                "nodes": sorted(kept.nodes().values()),
            }
            for kept in core.cache.reservations
        ],
        "holding": core.backfill.root,
    }


def load(
    snapshot: object, settings: SchedulerSettings | None = None, stamp: Callable[[], str] = lambda: ""
) -> SchedulerCore:
    """A scheduler that knows what the snapshot says."""
    if not isinstance(snapshot, dict) or not isinstance(snapshot.get("objects"), dict):
        raise SnapshotError(
            "not a snapshot: a JSON object with version and objects is wanted, as /debug/state gives it"
        )
    if snapshot.get("version") != VERSION:
        raise SnapshotError(f"version: found {snapshot.get('version')!r}, {VERSION} is known")
    chosen = settings or SchedulerSettings(names=frozenset(snapshot.get("schedulerNames") or ()))
    core = SchedulerCore(chosen, stamp)
    grouping, _ = extended(chosen.grouping, snapshot["objects"].get("groupingrules") or ())
    sources = all_sources(grouping)
    core.cache.companion.readable(read_kinds((one for one in sources if one.name in snapshot["objects"]), grouping))
    for source in sources:
        for number, body in enumerate(snapshot["objects"].get(source.name) or ()):
            try:
                source.put(core, msgspec.convert(body, source.decode))
            except (msgspec.ValidationError, KeyError, TypeError) as wrong:
                raise SnapshotError(f"objects.{source.name}[{number}]: {wrong}") from wrong
    return core
