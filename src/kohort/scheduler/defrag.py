"""Domains that are freed by moving whole gangs: the fewest gangs, then the fewest pods, one gang after the other.

A plan frees so many nodes of one domain. Gangs whose pods are on these nodes go, with their spares; each finds another
place when its turn comes, with everybody who has not moved yet in place, and never on a node that is to be free. All
choices of one gang are looked at before any choice of two, so what is found is the least there is, unless the search
was cut off (`Defragmentation.proven`). Pods without a gang are not moved, nor are gangs that a budget keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Final

import numpy as np

from kohort.api.scheduling.defragmentation import MOST_MOVES
from kohort.place.columns import Amounts
from kohort.place.demand import PendingPod
from kohort.place.diagnosis import count
from kohort.place.search import Search
from kohort.place.victims import Budget
from kohort.scheduler.cache import SchedulerCache
from kohort.scheduler.demands import Asked, Demands
from kohort.scheduler.grouphealing import is_daemon, is_owned
from kohort.scheduler.healing import Seats
from kohort.scheduler.model import shown
from kohort.scheduler.spares import spare_of
from kohort.scheduler.trees import BrokenChain, Group, PodInfo

TRIALS: Final = 2_000  # placements that are tried


@dataclass(frozen=True, slots=True)
class Move:
    """One gang, from where to where; pod -> node, by the pods' names."""

    root: str
    kind: str
    namespace: str
    name: str
    leaves: dict[str, str]
    lands: dict[str, str]


@dataclass(slots=True)
class Defragmentation:
    """`nodes`: of the domain, free afterwards. `why`: nothing can be done, and what stands in the way."""

    key: str
    domain: str = ""
    nodes: list[str] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    proven: bool = True  # no plan has fewer moves
    why: str = ""

    @property
    def ok(self) -> bool:
        return not self.why


@dataclass(frozen=True, slots=True)
class _Domain:
    value: str
    free: tuple[int, ...]  # rows on which nothing runs
    taken: dict[int, frozenset[str]]  # row -> gangs on it, of rows that can be freed
    whole: bool  # all of its rows can be


class Defragmenter:
    """On a core that nobody else uses: what is tried is taken back."""

    def __init__(
        self, cache: SchedulerCache, trials: int = TRIALS, most: int = MOST_MOVES, left_alone: Collection[str] = ()
    ) -> None:
        """`left_alone`: gangs that are not moved."""
        self._cache, self._demands = cache, Demands(cache)
        self._trials = self._left = trials
        self._most = most
        self._roots: dict[str, Group] = {}
        self._kept = _kept_by_budgets(cache)
        self._left_alone = left_alone
        self.seats: dict[str, Seats] = {}  # of the gangs of the last plan: where they go
        self.barred: dict[str, Seats] = {}  # and what would fill the nodes that are to be free

    def plan(self, key: str, size: int | None = None) -> Defragmentation:
        """`size`: nodes that are to be free; None: all of the domain."""
        return next(found for found in self.search(key, size) if found is not None)

    def search(self, key: str, size: int | None = None) -> Iterator[Defragmentation | None]:
        """The same in steps: None while it goes on, and the plan at last. Between two steps others may use the core;
        a plan holds for the moment in which it is made."""
        domains = list(self._domains(key))
        found = [one for one in domains if (one.whole if size is None else len(one.free) + len(one.taken) >= size)]
        if not found:
            yield Defragmentation(key, why=self._hopeless(key, size, any_there=bool(domains)))
            return
        for moves in range(self._most + 1):
            for domain in found:
                for done in self._of(key, domain, size, moves):
                    yield done
                    if done is not None:
                        return
                if self._left <= 0:
                    why = f"not found within {self._trials:,} trials; it is not proven impossible"
                    yield Defragmentation(key, proven=False, why=why)
                    return
        yield Defragmentation(key, why=f"no {key} is free after {count(self._most, 'move')} or fewer", proven=False)

    # ---- domains

    def _domains(self, key: str) -> Iterator[_Domain]:
        """Those with the most free nodes first."""
        state = self._cache.state
        codes = state.column(key).codes
        by_domain: dict[str, list[int]] = {}
        for row in range(state.rows):
            if state.alive[row] and codes[row]:
                by_domain.setdefault(str(state.column(key).value(int(codes[row]))), []).append(row)
        found = []
        for value, rows in by_domain.items():
            on = {row: self._gangs_on(row) for row in rows}
            free = tuple(row for row in rows if on[row] == frozenset())
            taken = {row: gangs for row, gangs in on.items() if gangs}
            whole = len(free) + len(taken) == len(rows)
            found.append(_Domain(value, free, taken, whole))
        yield from sorted(found, key=lambda one: (-len(one.free), one.value))

    def _gangs_on(self, row: int) -> frozenset[str] | None:
        """None: somebody is there who is not moved."""
        gangs: set[str] = set()
        for pod in self._cache.state.node(row).pods.values():
            member = self._cache.members.get(pod.uid)
            if member is None:
                return None
            if is_daemon(member):
                continue
            group = self._cache.trees.get(spare_of(member)) if spare_of(member) else None
            root = self._cache.root(member) if group is None else self._cache.trees.root(group)
            if root is None or isinstance(root, BrokenChain) or root.key in self._kept or root.waiting:
                return None
            if root.key in self._left_alone or member.going or member.evicting:
                return None
            if any(not is_owned(one) for leaf in root.leaves() for one in leaf.placed.values()):
                return None
            self._roots[root.key] = root
            gangs.add(root.key)
        return frozenset(gangs)

    # ---- plans

    def _of(self, key: str, domain: _Domain, size: int | None, moves: int) -> Iterator[Defragmentation | None]:
        """A plan of so many moves for one domain, or nothing; None between two trials."""
        wanted = len(domain.free) + len(domain.taken) if size is None else size
        gangs = sorted(set().union(*domain.taken.values())) if domain.taken else []
        choices = sorted(combinations(gangs, moves), key=lambda chosen: sum(self._pods(one) for one in chosen))
        for chosen in choices:
            freed = [row for row, on in domain.taken.items() if on <= set(chosen)]
            if len(domain.free) + len(freed) < wanted:
                continue
            rows = [*domain.free, *freed][:wanted]
            for order in permutations(chosen):
                if not self._still(rows, chosen):
                    break
                done = self._in_order(order, rows)
                if done is not None:
                    names = sorted(self._cache.state.node(row).name for row in rows)
                    yield Defragmentation(key, domain.value, names, done)
                    return
                if self._left <= 0:
                    return
                yield None

    def _still(self, rows: Sequence[int], chosen: Sequence[str]) -> bool:
        """Whether nobody but the chosen is on these rows, and they are gangs as ever: others may have come since."""
        if any(self._cache.trees.get(key) is not self._roots[key] for key in chosen):
            return False
        for row in rows:
            on = self._gangs_on(row) if self._cache.state.alive[row] else None
            if on is None or not on <= set(chosen):
                return False
        return True

    def _pods(self, key: str) -> int:
        return sum(len(leaf.placed) for leaf in self._roots[key].leaves())

    def _in_order(self, order: Sequence[str], rows: Sequence[int]) -> list[Move] | None:
        """One gang after the other, each with those before it where they have gone."""
        engine = self._cache.engine
        mark, gone, done = engine.mark(), list[PodInfo](), list[Move]()
        try:
            for key in order:
                root = self._roots[key]
                members = {one.uid: one for leaf in root.leaves() for one in leaf.placed.values()}
                spares = [one for leaf in root.leaves() for one in self._cache.spares.of(leaf.key) if one.node]
                for member in (*members.values(), *spares):
                    self._cache.state.remove_pod(member.uid)
                    gone.append(member)
                move = self._move(root, members, rows)
                if move is None:
                    return None
                done.append(move)
            return done
        finally:
            engine.undo(mark)
            for member in gone:
                self._cache.state.put_pod(self._cache.assigned_pod(member), member.node)

    def _move(self, root: Group, members: dict[str, PodInfo], rows: Sequence[int]) -> Move | None:
        self._left -= 1
        engine, state = self._cache.engine, self._cache.state
        demand = self._demands.of(root, Asked({}, moved=frozenset(members)))
        blocked = np.array(sorted(rows), np.intp)
        barred: list[tuple[PendingPod, Amounts]] = []
        for pod in {pod.eq_class: pod for leaf in demand.leaves() for pod in leaf.pods}.values():
            away = np.maximum(engine.room(pod.eq_class)[blocked], 0)
            state.take_many(pod.eq_class.signature, blocked, away)
            barred.append((pod, away))
        try:
            result = Search(engine).place(demand)
        finally:
            for pod, away in reversed(barred):
                state.take_many(pod.eq_class.signature, blocked, -away)
        if not result.ok or len(result.placed) < len(members):
            return None
        spec = root.spec
        assert spec is not None
        name = {uid: one.pod.metadata.name for uid, one in members.items()}
        lands = {name[uid]: state.node(row).name for uid, row in result.placed.items()}
        leaves = {name[uid]: one.node for uid, one in members.items()}
        pods = {pod.key: pod for leaf in demand.leaves() for pod in leaf.pods}
        self.seats[root.key] = {uid: (pods[uid], state.node(row).name) for uid, row in result.placed.items()}
        self.barred[root.key] = {
            f"{pod.key}-{row}-{number}": (pod, state.node(row).name)
            for pod, away in barred
            for row, room in zip(blocked.tolist(), away.tolist(), strict=True)
            for number in range(room)
        }
        return Move(root.key, spec.kind, spec.namespace, spec.name, leaves, lands)

    def _hopeless(self, key: str, size: int | None, *, any_there: bool) -> str:
        if not any_there:
            return f"no node has the label {key}"
        what = "all of whose nodes" if size is None else f"of which {size} nodes"
        kept = f"; kept by budgets: {', '.join(map(shown, sorted(self._kept)))}" if self._kept else ""
        return f"there is no {key} {what} can be freed: pods without a gang are not moved{kept}"


def _kept_by_budgets(cache: SchedulerCache) -> set[str]:
    """Gangs that cannot be evicted as a whole."""
    budgets: list[Budget] = cache.budgets.cover(cache.state)
    kept: set[str] = set()
    for budget in budgets:
        by_root: dict[str, int] = {}
        for uid in budget.pods:
            member = cache.members.get(uid)
            if member is not None:
                key = cache.root_key(member)
                by_root[key] = by_root.get(key, 0) + 1
        kept |= {key for key, number in by_root.items() if number > budget.allowed}
    return kept
