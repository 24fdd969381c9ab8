"""What is shown as one: a tree of groups, or the pods of one controller, or a pod that is alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from kohort.api.scheduling.ranks import rank_of
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import FINISHED, Condition, ObjectMeta, Owner, Pod
from kohort.scheduler.trees import BrokenChain, Group, PodInfo

HIGHEST: Final = 8  # owners above one another; a circle of them ends here


class ThingStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    conditions: list[Condition] | None = None


class Thing(msgspec.Struct, rename="camel"):
    """An object that may own pods or groups: a TrainJob, a JobSet, a Job..."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    status: ThingStatus = msgspec.field(default_factory=ThingStatus)


@dataclass(frozen=True, slots=True)
class Name:
    """An object; without a namespace, that of the unit."""

    api_version: str
    kind: str
    name: str
    uid: str = ""


@dataclass(slots=True, eq=False)
class Unit:
    id: int
    key: str
    namespace: str
    owners: tuple[Owner, ...]  # of its topmost group, or of its pods
    kind: str
    name: str
    pods: dict[str, Pod] = field(default_factory=dict)  # by uid


class Owners:
    """Who owns whom, as far as it may be read."""

    def __init__(self) -> None:
        self._things: dict[str, Thing] = {}

    def put(self, thing: Thing) -> None:
        self._things[thing.metadata.uid] = thing

    def drop(self, thing: Thing) -> None:
        self._things.pop(thing.metadata.uid, None)

    def get(self, uid: str) -> Thing | None:
        return self._things.get(uid)

    def chain(self, owners: Iterable[Owner]) -> list[Name]:
        """From the topmost owner down to the one that is named first."""
        found: list[Name] = []
        above = _controller(owners)
        while above is not None and len(found) < HIGHEST and all(one.uid != above.uid for one in found):
            found.append(Name(above.api_version, above.kind, above.name, above.uid))
            thing = self._things.get(above.uid)
            above = _controller(thing.metadata.owner_references or ()) if thing is not None else None
        return found[::-1]


def _controller(owners: Iterable[Owner]) -> Owner | None:
    every = list(owners)
    return next((one for one in every if one.controller), every[0] if every else None)


class Units:
    """Every pod belongs to one unit at a time; units without pods are gone."""

    def __init__(self, core: SchedulerCore) -> None:
        self._core = core
        self._by_key: dict[str, Unit] = {}
        self._of_pod: dict[str, Unit] = {}
        self._ids = 0
        self.by_id: dict[int, Unit] = {}

    def of(self, uid: str) -> Unit | None:
        return self._of_pod.get(uid)

    def put(self, pod: Pod) -> set[Unit]:
        """The units that this changes."""
        uid = pod.metadata.uid
        before = self._of_pod.get(uid)
        # Groups are removed when their workload has ended: its pods stay where they were.
        now = before if before is not None and pod.status.phase in FINISHED else self._unit(pod)
        touched = {now}
        if before is not None and before is not now:
            touched.add(before)
            self._leave(before, uid)
        now.pods[uid] = pod
        self._of_pod[uid] = now
        return touched

    def drop(self, uid: str) -> set[Unit]:
        before = self._of_pod.pop(uid, None)
        if before is None:
            return set()
        self._leave(before, uid)
        return {before}

    def regroup(self, keys: Iterable[str]) -> set[Unit]:
        """After groups have changed: their pods may belong elsewhere now."""
        touched: set[Unit] = set()
        for key in keys:
            group = self._core.cache.trees.get(key)
            if group is None:
                continue
            for below in group.walk():
                for uid in (*below.pending, *below.placed, *below.finished):
                    unit = self._of_pod.get(uid)
                    if unit is not None and uid in unit.pods:
                        touched |= self.put(unit.pods[uid])
        return touched

    def root(self, unit: Unit) -> tuple[Group | PodInfo | BrokenChain, PodInfo | None] | None:
        """What the scheduler decides about; of several single pods, one that waits."""
        cache = self._core.cache
        group = cache.trees.get(unit.key)
        member = next((one for uid in unit.pods if (one := cache.members.get(uid)) is not None and not one.node), None)
        if group is not None and group.spec is not None:
            root = cache.trees.root(group)
            if not isinstance(root, BrokenChain) or member is not None:
                return (root, member) if root is not None else None
        if member is None:
            member = next((one for uid in unit.pods if (one := cache.members.get(uid)) is not None), None)
        if member is None:
            return None
        return cache.root(member) or member, member

    def _leave(self, unit: Unit, uid: str) -> None:
        unit.pods.pop(uid, None)
        if not unit.pods:
            self._by_key.pop(unit.key, None)
            self.by_id.pop(unit.id, None)

    def _unit(self, pod: Pod) -> Unit:
        trees, key, owners = self._core.cache.trees, pod.group, pod.metadata.owner_references or ()
        if key is not None:
            group = trees.get(key)
            root = trees.root(group) if group is not None else None
            if isinstance(root, Group) and root.spec is not None:
                return self._make(root.key, pod, root.spec.owners, root.spec.kind, root.spec.name)
            return self._make(key, pod, tuple(owners), "PodGroup", key.split("/")[1])
        owner = _controller(owners)
        if owner is None:
            return self._make(f"pod/{pod.metadata.uid}", pod, (), "Pod", pod.metadata.name)
        return self._make(f"owner/{owner.uid}", pod, tuple(owners), owner.kind, owner.name)

    def _make(self, key: str, pod: Pod, owners: tuple[Owner, ...], kind: str, name: str) -> Unit:
        found = self._by_key.get(key)
        if found is None:
            self._ids += 1
            found = Unit(self._ids, key, pod.metadata.namespace or "default", owners, kind, name)
            self._by_key[key] = self.by_id[found.id] = found
        found.owners, found.kind, found.name = owners, kind, name
        return found


def rank(labels: Mapping[str, str] | None) -> str:
    """Which of its group a pod is; empty where it does not say."""
    found = rank_of(labels, {}) if labels else None
    return str(found[-1]) if found else ""
