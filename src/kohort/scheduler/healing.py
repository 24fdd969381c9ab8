"""Gangs that have lost members: what becomes of them if nobody can take a member's place where its group is.

`Replacements` belongs to a decision: a member came back and found the domain of its group full. `Healer` watches the
clock: a group that has been below its minimum for longer than its grace is restarted or failed as a whole. Both only
say what is to be done (`HealingAction`); nothing is done here.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kohort.api.scheduling.constants import DISRUPTION_TARGET, POD_GROUP_SATISFIED
from kohort.api.scheduling.healing import BELOW_MINIMUM, FAIL, MOVE, REPLACEMENT, SPARES, WAIT, WIDEN
from kohort.apimachinery import times
from kohort.place.demand import PendingPod, Result
from kohort.place.diagnosis import count
from kohort.place.preempt import Preemption
from kohort.place.search import Search
from kohort.place.victims import Rank, Victim, VictimSet
from kohort.scheduler.cache import SchedulerCache
from kohort.scheduler.demands import Asked, Demands
from kohort.scheduler.grouphealing import decided_by, disrupted_with, lacking, staying
from kohort.scheduler.model import Condition, shown
from kohort.scheduler.trees import Group, PodInfo, having

EVICT: Final = "Evict"
DEFRAGMENT: Final = "Defragment"
_BY_API: Final = "EvictionByEvictionAPI"
Seats = Mapping[str, tuple[PendingPod, str]]  # pod -> what it asks for, and the name of its node
MOVE_HELD: Final = 60.0  # seconds for which the room that a gang moves to is held for it


@dataclass(frozen=True, slots=True)
class HealingAction:
    """`group`: what is moved, restarted or failed as a whole; `pods`: uids of its members that have to go. `seats`: the
    room that a move was found for."""

    policy: str
    group: str
    pods: tuple[str, ...]
    why: str
    seats: Seats = field(default_factory=dict)


class Replacements:
    """Members that come back to a group whose domain is full, in one decision."""

    def __init__(self, cache: SchedulerCache, demands: Demands) -> None:
        self._cache, self._demands = cache, demands
        self._usual = cache.settings.profile.healing

    def short(self, root: Group, assignments: Mapping[str, str]) -> list[Group]:
        """PodGroups that run, have members that found no place, and are below their minimum for it."""
        found = []
        for leaf in root.leaves():
            left = [one for uid, one in leaf.pending.items() if uid not in assignments and not one.leaving]
            coming = sum(uid in assignments for uid in leaf.pending)
            if left and lacking(leaf, coming):
                found.append(leaf)
        return found

    def widens(self, root: Group) -> bool:
        """Whether members of some group that runs may leave its domain."""
        leaves = (leaf for leaf in root.leaves() if leaf.placed)
        return any(decided_by(leaf, "replacement", self._usual)[1] == WIDEN for leaf in leaves)

    def action(self, root: Group, short: list[Group], why: str) -> tuple[HealingAction | None, str]:
        """What is done about groups that stay below their minimum, and a note about it: both may be nothing."""
        note = ""
        for leaf in short:
            unit, policy = decided_by(leaf, "replacement", self._usual)
            if policy == FAIL:
                said = f"{REPLACEMENT} {FAIL}: {why}"
                return HealingAction(FAIL, unit.key, tuple(_everybody(unit)), said), _told(unit, "is failed", said)
            if policy == MOVE:
                found, note = self._move(root, unit, why)
                if found is not None:
                    return found, note
        return None, note

    def _move(self, root: Group, unit: Group, why: str) -> tuple[HealingAction | None, str]:
        going = {one.uid: one for leaf in unit.leaves() for one in staying(leaf)}
        result, seats = self._elsewhere(root, going)
        if result is None:
            return None, f"{REPLACEMENT} {MOVE}: no place was found that takes all of {shown(unit.key)}"
        said = f"{REPLACEMENT} {MOVE}: {why}; {count(len(seats), 'pod')} would fit elsewhere"
        return HealingAction(MOVE, unit.key, tuple(going), said, seats), _told(unit, "is moved as a whole", said)

    def _elsewhere(
        self, root: Group, going: Mapping[str, PodInfo]
    ) -> tuple[Result | None, dict[str, tuple[PendingPod, str]]]:
        """Where the root would go if these pods had no node."""
        engine, state = self._cache.engine, self._cache.state
        with self._demands.without(going):
            demand = self._demands.of(root, Asked({}, moved=frozenset(going)))
            mark = engine.mark()
            result = Search(engine).place(demand)
            engine.undo(mark)
        if not result.ok or any(uid not in result.placed for uid in going):
            return None, {}
        pods = {pod.key: pod for leaf in demand.leaves() for pod in leaf.pods}
        return result, {uid: (pods[uid], state.node(row).name) for uid, row in result.placed.items()}


def is_evicted(member: PodInfo) -> bool:
    """By the eviction API, that is on purpose; not by a node that is lost, nor by its own controller."""
    return any(one.type == DISRUPTION_TARGET and one.reason == _BY_API for one in member.pod.status.conditions or ())


def _told(unit: Group, what: str, said: str) -> str:
    return f"{shown(unit.key)} {what}, by {said}"


def _everybody(unit: Group) -> Iterator[str]:
    for leaf in unit.leaves():
        yield from (one.uid for one in staying(leaf))
        yield from (uid for uid, one in leaf.pending.items() if not one.leaving)


def swapped(cache: SchedulerCache, spares: Iterable[PodInfo], found: Result) -> Preemption:
    """Whoever of the spares is on a node that a member takes, goes."""
    rows, victims = set(found.placed.values()), []
    for one in spares:
        row = cache.state.row(one.node)
        if row is not None and row in rows:
            pod = cache.assigned_pod(one)
            victims.append(VictimSet(one.uid, (Victim(pod, row),), pod.priority, Rank.POD, pod.started))
    return Preemption(tuple(victims), found)


class Healer:
    """Since when which group is below its minimum. Asked between two decisions; costs what is due."""

    def __init__(self, cache: SchedulerCache, stamp: Callable[[], str]) -> None:
        self._cache, self._stamp = cache, stamp
        self._usual = cache.settings.profile.healing
        self._since: dict[str, float] = {}
        self._timers: list[tuple[float, str]] = []
        self._seen = -1  # version of spares and lost nodes that was looked at
        self._evicted: dict[str, None] = {}  # groups that go with a member that was evicted
        self._held: dict[str, float] = {}  # root -> until when room is held for its move

    def look(self, root: Group, now: float) -> None:
        """Something about a root has changed."""
        for leaf in root.leaves():
            evicted = leaf.going and any(is_evicted(one) for one in leaf.placed.values() if one.going)
            if evicted and (unit := disrupted_with(leaf)) is not None:
                self._evicted[unit.key] = None
            if not lacking(leaf):
                self._since.pop(leaf.key, None)
            elif leaf.key not in self._since:
                self._since[leaf.key] = now - self._before(leaf)
                if decided_by(leaf, "below_minimum", self._usual)[1] != WAIT:
                    heapq.heappush(self._timers, (self._ends(leaf), leaf.key))

    def since(self, leaf: Group) -> float | None:
        return self._since.get(leaf.key)

    def hold(self, root: str, now: float, seconds: float = MOVE_HELD) -> None:
        """Room is held for a root that moves, for a while."""
        self._held[root] = now + seconds
        heapq.heappush(self._timers, (now + seconds, ""))

    def holds(self, root: str) -> bool:
        return root in self._held

    def landed(self, root: str) -> None:
        self._held.pop(root, None)

    def is_idle(self, now: float) -> bool:
        """Whether nothing can be due."""
        waits = self._held or self._evicted or self._cache.spares.lost
        return not waits and not (self._timers and self._timers[0][0] <= now)

    def overdue(self, now: float) -> list[str]:
        """Roots that have not come to the room that was held for them."""
        late = [root for root, until in self._held.items() if until <= now]
        for root in late:
            del self._held[root]
        return late

    def due(self, now: float) -> Iterator[HealingAction]:
        """Groups whose grace has ended."""
        done: set[str] = set()
        while self._timers and self._timers[0][0] <= now:
            _, key = heapq.heappop(self._timers)
            leaf = self._cache.trees.get(key)
            if key not in self._since or leaf is None or not lacking(leaf):
                continue
            if (ends := self._ends(leaf)) > now:  # it was above it meanwhile, or its grace has grown
                heapq.heappush(self._timers, (ends, key))
                continue
            unit, policy = decided_by(leaf, "below_minimum", self._usual)
            if policy != WAIT and unit.key not in done:
                done.add(unit.key)
                yield self._ended(leaf, unit, policy)

    def lost(self) -> Iterator[HealingAction]:
        """Members on nodes that are not heard of, where spares stand by: they are not waited for."""
        spares = self._cache.spares
        if not spares.lost or spares.version == self._seen:
            return
        for key in spares.groups():
            ready, leaf = spares.ready(key), self._cache.trees.get(key)
            members = [one for one in staying(leaf) if one.node in spares.lost] if leaf is not None else []
            if ready and members:
                nodes = ", ".join(sorted({one.node for one in members}))
                why = f"{SPARES}: {nodes} is not heard of, and {count(len(ready), 'spare')} of its gang stands by"
                yield HealingAction(SPARES, key, tuple(one.uid for one in members[: len(ready)]), why)
            away = tuple(one.uid for one in spares.of(key) if one.node in spares.lost and not one.evicting)
            if away:
                yield HealingAction(SPARES, key, away, f"{SPARES}: its node is not heard of")
        self._seen = spares.version

    def evicted(self) -> Iterator[HealingAction]:
        """Groups that are disrupted as a whole, of which a member was evicted, by kubectl drain for example."""
        found, self._evicted = self._evicted, {}
        for key in found:
            unit = self._cache.trees.get(key)
            pods = tuple(one.uid for leaf in unit.leaves() for one in staying(leaf)) if unit is not None else ()
            if pods:
                why = "disruptionMode all: a member was evicted, and nobody of the gang runs on without the others"
                yield HealingAction(EVICT, key, pods, why)

    def next_timer(self) -> float | None:
        return self._timers[0][0] if self._timers else None

    def _ended(self, leaf: Group, unit: Group, policy: str) -> HealingAction:
        grace = decided_by(leaf, "grace", self._usual)[1]
        why = f"{BELOW_MINIMUM} {policy}: {having(leaf)}, for longer than its grace of {grace:g} s"
        everybody = _everybody(unit) if policy == FAIL else (one.uid for leaf in unit.leaves() for one in staying(leaf))
        return HealingAction(policy, unit.key, tuple(everybody), why)

    def _ends(self, leaf: Group) -> float:
        grace: float = decided_by(leaf, "grace", self._usual)[1]
        return self._since[leaf.key] + grace

    def _before(self, leaf: Group) -> float:
        """Seconds for which it was below its minimum before we knew of it: a new leader does not begin anew."""
        conditions: tuple[Condition, ...] = leaf.spec.conditions if leaf.spec is not None else ()
        said = next((one for one in conditions if one.type == POD_GROUP_SATISFIED and one.status == "False"), None)
        began = times.parse(said.last_transition_time) if said is not None else None
        moment = times.parse(self._stamp())
        return max((moment - began).total_seconds(), 0.0) if began is not None and moment is not None else 0.0
