"""Parts of a workload that its operator makes once earlier ones run: workers after their leader, executors after their
driver, Jobs in order.

If parts started as they come, two such workloads on a full cluster could each hold half of what they need, and wait for
the other for ever. So a part is placed together with those that follow it, as if their pods were there, and their room
is held (`Reservations`, under the key of the group that they will be) until they come. What is held follows from what
runs and what owners say, so a scheduler that starts anew holds the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from kohort.place.demand import PendingPod
from kohort.place.diagnosis import count
from kohort.place.reservations import Reservation
from kohort.scheduler.model import GroupSpec, LaterPart, ObjectMeta, Pod, PodSpec, shown
from kohort.scheduler.trees import Group, PodInfo

if TYPE_CHECKING:
    from kohort.scheduler.cache import SchedulerCache

_MOST: Final = 10_000  # pods of a part that are looked at: anybody can write a number
_NAMED: Final = 3  # parts in a message
Seats = Mapping[str, tuple[PendingPod, str]]  # pod -> itself, and its node


class _Template(msgspec.Struct):
    metadata: ObjectMeta | None = None
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class LaterParts:
    """Of all workloads. A part that was held room for, or was there, is settled for as long as its first one runs."""

    def __init__(self, cache: SchedulerCache) -> None:
        self._cache = cache
        self._settled: dict[str, dict[str, None]] = {}  # root -> parts
        self._held: set[str] = set()  # parts
        self._root_of: dict[str, str] = {}  # part that is settled -> root

    def missing(self, root: Group) -> list[Group]:
        """Groups that follow a root and must find room with it; none of them is in a tree."""
        spec = root.spec
        if spec is None or not spec.later:
            return []
        return [made for part in spec.later if part.key not in self._root_of and (made := self._group(root, part))]

    def hold(self, root: Group, priority: int, seats: Seats) -> None:
        """A root runs, or is about to: what follows it has these seats."""
        spec = root.spec
        assert spec is not None, root.key
        for part in spec.later:
            if self._adopt(part.key, root.key):
                continue
            own = {pod: seat for pod, seat in seats.items() if part_of(pod) == part.key}
            if own:
                self._held.add(part.key)
                self._cache.reservations.put(Reservation(part.key, priority, own))

    def adopt(self, root: Group) -> None:
        """It runs, and so do those before it: what follows both is its own now."""
        for part in root.spec.later if root.spec is not None else ():
            if part.key in self._root_of:
                self._adopt(part.key, root.key)

    def _adopt(self, part: str, root: str) -> bool:
        """-> whether it was settled before"""
        before = self._root_of.get(part)
        if before is not None:
            self._settled[before].pop(part, None)
        self._root_of[part] = root
        self._settled.setdefault(root, {})[part] = None
        return before is not None

    def holds(self, part: str) -> bool:
        return part in self._held

    def follows(self, part: str) -> bool:
        """Whether it is the rest of a workload that has begun."""
        return part in self._root_of

    def landed(self, part: str) -> None:
        """It has its place, or can have none: its room is not held any more."""
        if part in self._held:
            self._held.discard(part)
            if self._cache.reservations.drop(part):
                self._cache.move_requests += 1

    def release(self, root: str) -> None:
        """A root does not run any more."""
        for part in self._settled.pop(root, ()):
            self._root_of.pop(part, None)
            self.landed(part)

    def told(self, needed: Iterable[PendingPod], others: Iterable[Reservation]) -> str:
        """Why a root waits: what it needs beside what is there, and whose room it cannot have."""
        notes: list[str] = []
        if parts := Counter(part_of(pod.key) for pod in needed):
            named = [f"{count(number, 'pod')} of {shown(key).partition('/')[2]}" for key, number in parts.items()]
            notes.append(f"room is needed from the start for what is made later: {_some(named)}")
        holders = [(shown(one.owner), one.backfill) for one in others if one.backfill or self.holds(one.owner)]
        if long := [name for name, waited in holders if waited]:
            notes.append(f"room is held for {_some(long)}, which has waited long")
        if later := [name for name, waited in holders if not waited]:
            notes.append(f"room is held for {_some(later)}, to be made once others of it are ready")
        return "; ".join(notes)

    # ---- inside

    def _group(self, root: Group, part: LaterPart) -> Group | None:
        """Those of its pods that are not there, as if they were."""
        there = self._cache.trees.get(part.key)
        have = there.members - there.going if there is not None else 0
        lack = min(part.count - have, _MOST)
        first = next((one for leaf in root.leaves() for one in (*leaf.pending.values(), *leaf.placed.values())), None)
        template = _read(part.template) if lack > 0 and first is not None else None
        if template is None or first is None:
            return None
        pod = template.spec
        pod.scheduler_name = pod.scheduler_name or first.pod.spec.scheduler_name
        if pod.scheduler_name not in self._cache.settings.names:
            return None
        pod.priority, pod.volumes, pod.resource_claims = first.pod.spec.priority, None, None
        assert root.spec is not None
        spec = GroupSpec(part.key, root.spec.namespace, part.name, minimum=lack, rule=root.spec.rule)
        meta = template.metadata or ObjectMeta()
        made = Group(part.key, spec)
        for number in range(lack):
            own = ObjectMeta(
                name=f"{part.name}-{number}", namespace=root.spec.namespace, uid=f"{part.key}#{number}",
                labels=meta.labels, annotations=meta.annotations,
            )  # fmt: skip
            made.pending[own.uid] = PodInfo(Pod(own, pod), number, part.key)
        return made


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def part_of(pod: str) -> str:
    """The part that a pod belongs to that is not there."""
    return pod.rpartition("#")[0]


def _read(template: bytes) -> _Template | None:
    try:
        return msgspec.json.decode(template, type=_Template)
    except msgspec.ValidationError:  # a shape that nobody expects: the server will refuse its pods
        return None
