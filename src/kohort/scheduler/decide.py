"""One decision about one root: what is asked for, where it goes, or who must go for it, or why neither.

Nothing here waits and nothing is written: a decision is made on the state as it is, and handed out as a `Verdict`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from kohort.place.demand import Branch, Demand, Leaf, Outcome, Reason, Result
from kohort.place.explain import Explanation, explain, waits
from kohort.place.pairs import PairClass
from kohort.place.preempt import Preemption, Preemptor
from kohort.place.search import Search
from kohort.place.units import find_units
from kohort.scheduler.lack import Lack, fits_empty, lack_of, placements
from kohort.scheduler.model import POD_PREFIX, shown
from kohort.scheduler.trees import Group, Member
from kohort.scheduler.validate import problems
from kohort.scheduler.world import World

NEVER = "Never"
_VOLUME_TRIES = 8
_NO_HELP = "preemption would not help"
Limits = dict[tuple[PairClass, int], int]  # kind and row -> pods


class Kind(StrEnum):
    """The results that kube-scheduler counts."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    PREEMPTING = "waiting_on_preemption"
    ERROR = "error"
    NOTHING = "nothing"  # no pod was left to place


@dataclass(slots=True)
class Verdict:
    """What was decided about a root."""

    root: str
    priority: int
    kind: Kind
    members: dict[str, Member]  # the pending ones it was about
    outcomes: dict[str, Outcome] = field(default_factory=dict)  # by group (or by the root's key, for a single pod)
    seats: dict[str, str] = field(default_factory=dict)  # uid -> node
    preemption: Preemption | None = None
    nominations: dict[str, str] = field(default_factory=dict)  # uid -> node
    lack: Lack | None = None
    placements: tuple[int, int] | None = None  # domains there are, domains that may do
    told: Explanation | None = None  # why not: numbers, the nearest miss, what would help
    note: str = ""  # about preemption, or about room that is held for others

    def facts(self) -> dict[str, str | int]:
        """For the log."""
        known: dict[str, str | int] = {"root": shown(self.root), "result": self.kind.value, "priority": self.priority}
        known |= {"placed": len(self.seats), "left": len(self.leftovers)}
        if self.reason is not None:
            known["reason"] = self.reason.value
        if self.preemption is not None:
            known["victims"] = sum(len(unit.pods) for unit in self.preemption.victims)
        return known

    @property
    def leftovers(self) -> list[Member]:
        return [member for uid, member in self.members.items() if uid not in self.seats]

    @property
    def reason(self) -> Reason | None:
        """Of the root; where it has its minimum and yet nothing was placed, of the first group below that has one."""
        own = self.outcomes.get(self.root)
        if own is not None and own.reason is not None:
            return own.reason
        return next((one.reason for one in self.outcomes.values() if one.reason is not None), None)


class Decider:
    """Decides on one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.engine = world.engine

    def decide(self, root: Group | Member) -> Verdict:
        verdict = self._start(root)
        if not verdict.members:
            verdict.kind = Kind.NOTHING
            return verdict
        if isinstance(root, Group) and (wrong := problems(root)):
            outcome = Outcome(False, reason=Reason.MISCONFIGURED, detail="; ".join(wrong))
            verdict.kind, verdict.outcomes = Kind.ERROR, {group.key: outcome for group in root.walk()}
            verdict.told = waits(root.key, Reason.MISCONFIGURED, outcome.detail)
            return verdict
        demand = self.demand(root)
        with self.engine.honouring(verdict.root, verdict.priority) as others:
            verdict.placements = placements(self.engine, demand)
            result = self._place(demand, verdict)
            if not result.ok:
                self._refuse(demand, verdict, result, allowed=_may_preempt(root))
                if any(one.held for one in others) and verdict.kind is Kind.UNSCHEDULABLE:
                    held = ", ".join(shown(one.owner) for one in others if one.held)
                    verdict.note = f"room is held for {held}, which has waited long"
        return verdict

    def _start(self, root: Group | Member) -> Verdict:
        if isinstance(root, Member):
            members = {} if root.leaving or root.node else {root.uid: root}
            return Verdict(self.world.root_key(root), self.world.priority(root), Kind.UNSCHEDULABLE, members)
        members = {uid: member for leaf in root.leaves() for uid, member in leaf.pending.items() if not member.leaving}
        return Verdict(root.key, self.priority(root), Kind.UNSCHEDULABLE, members)

    def priority(self, root: Group) -> int:
        """1.35 knows no priority of groups: that of its most important pod counts."""
        if root.spec is not None and root.spec.priority is not None:
            return root.spec.priority
        return max((traits[1] for leaf in root.leaves() for traits in leaf.traits), default=0)

    # ---- what is asked for

    def demand(self, root: Group | Member) -> Demand:
        if isinstance(root, Member):
            key = self.world.root_key(root)
            return Leaf(key, [self.world.wanted(root, self._nodes_of(key).get(root.uid, ""))])
        return self._tree(root, self._nodes_of(root.key))

    def _nodes_of(self, root: str) -> dict[str, str]:
        """Where its pods are nominated."""
        kept = self.engine.reservations.get(root)
        return {} if kept is None or kept.held else kept.nodes()

    def _tree(self, root: Group, nominated: dict[str, str]) -> Demand:
        spec = root.spec
        assert spec is not None, root.key
        if spec.composite:
            return Branch(
                root.key, [self._tree(child, nominated) for child in root.ordered()], spec.minimum, spec.topology
            )
        wanted = self.world.wanted
        pods = [wanted(one, nominated.get(uid, "")) for uid, one in root.pending.items() if not one.leaving]
        rows = [self.world.state.row(one.node) for one in root.placed.values()]
        running = [row for row in rows if row is not None]
        # Members that have succeeded, or sit on a node that is gone, count for the minimum but are nowhere.
        nowhere = len(root.finished) + len(rows) - len(running)
        minimum = spec.minimum
        if nowhere:
            minimum = max(spec.need - nowhere, 0)
        return Leaf(root.key, pods, minimum, spec.topology, running)

    # ---- where it goes

    def _place(self, demand: Demand, verdict: Verdict) -> Result:
        """Without the nodes that refused a binding, if it can be."""
        refused = any(member.refused for member in verdict.members.values())
        result = self._search(demand, verdict)
        if refused:
            with self._limited(self._refusals(verdict)):
                elsewhere = self._search(demand, verdict)
            if elsewhere.ok and len(elsewhere.placed) >= len(result.placed):
                result = elsewhere
        if result.ok:
            name = self.world.state.node
            verdict.kind = Kind.SCHEDULED
            verdict.outcomes = result.outcomes
            verdict.seats = {uid: name(row).name for uid, row in result.placed.items()}
        return result

    def _search(self, demand: Demand, verdict: Verdict) -> Result:
        """Where pods wait for volumes: until each finds one on its node, a node taking fewer pods with each try."""
        limits: Limits = {}
        for _ in range(_VOLUME_TRIES):
            mark = self.engine.mark()
            with self._limited(limits):
                result = Search(self.engine).place(demand)
                self.engine.undo(mark)
            short = self._without_volume(verdict, result) if result.ok else {}
            if not short:
                return result
            limits |= short
        return result

    def _without_volume(self, verdict: Verdict, result: Result) -> Limits:
        """Nodes with too few volumes for what was placed there, and how many pods they take."""
        world, name = self.world, self.world.state.node
        members = verdict.members
        seats = {uid: name(row) for uid, row in result.placed.items() if members[uid].pod.spec.volumes}
        wanted = {uid: (world.raw(members[uid]), facts.name, facts.labels) for uid, facts in seats.items()}
        _, short = world.storage.choose(wanted)
        limits: Limits = {}
        for uid in short:
            key = (world.kind(members[uid]), result.placed[uid])
            there = sum(1 for one in wanted if (world.kind(members[one]), result.placed[one]) == key)
            limits[key] = limits.get(key, there) - 1
        return limits

    def _refusals(self, verdict: Verdict) -> Limits:
        """Nodes that refused one of the pods have no room for its kind."""
        found = ((self.world.kind(member), node) for member in verdict.members.values() for node in member.refused)
        rows = ((kind, self.world.state.row(node)) for kind, node in found)
        return {(kind, row): 0 for kind, row in rows if row is not None}

    @contextmanager
    def _limited(self, limits: Limits) -> Iterator[None]:
        """Within, some nodes take no more than so many pods of a kind."""
        state, taken = self.world.state, []
        for (kind, row), most in limits.items():
            away = np.array([max(int(self.engine.room(kind)[row]) - most, 0)])
            state.take_many(kind.shape, np.array([row]), away)
            taken.append((kind.shape, np.array([row]), away))
        try:
            yield
        finally:
            for shape, rows, away in reversed(taken):
                state.take_many(shape, rows, -away)

    # ---- who must go

    def _refuse(self, demand: Demand, verdict: Verdict, result: Result, *, allowed: bool) -> None:
        verdict.outcomes = result.outcomes
        verdict.lack = lack_of(demand, verdict.priority, preempts=allowed)
        verdict.told = explain(self.engine, demand, result)
        if verdict.reason is Reason.MISCONFIGURED:
            verdict.kind = Kind.ERROR
            return
        self._decide_on_others(demand, verdict, allowed=allowed)
        if verdict.kind is Kind.PREEMPTING:
            verdict.told = waits(verdict.root, Reason.PREEMPTING, verdict.told.detail)

    def _decide_on_others(self, demand: Demand, verdict: Verdict, *, allowed: bool) -> None:
        if not allowed:
            verdict.note = "preemption is not allowed (preemptionPolicy Never)"
        elif self._under_way(verdict):
            verdict.kind = Kind.PREEMPTING
            verdict.nominations = self._nominated(verdict)
            verdict.note = "preemption is under way on the nominated nodes"
        else:
            self._preempt(demand, verdict)

    def _preempt(self, demand: Demand, verdict: Verdict) -> None:
        world = self.world
        lowest = min(world.priorities, default=None)
        if lowest is None or not self._lower(verdict.priority):
            verdict.note = "nobody can be preempted for it"
            return
        if not fits_empty(self.engine, demand):
            verdict.note = _NO_HELP
            return
        units = find_units(world.state, world.trees.facts)
        plan = Preemptor(self.engine, units, world.budgets.cover(world.state)).plan(demand, verdict.priority)
        if plan is None or not plan.victims:
            verdict.note = _NO_HELP
            return
        verdict.kind, verdict.preemption = Kind.PREEMPTING, plan
        name = world.state.node
        verdict.nominations = {uid: name(row).name for uid, row in plan.result.placed.items()}
        pods = sum(len(unit.pods) for unit in plan.victims)
        kind = "pod" if verdict.root.startswith(POD_PREFIX) else "podgroup"
        verdict.note = f"found a placement for {kind}, preempting {pods} victims"

    def _lower(self, priority: int) -> bool:
        """Whether somebody may be less important. A group's priority counts, not that of its pods."""
        facts = self.world.trees.facts
        return min(self.world.priorities) < priority or any(one.priority < priority for one in facts.values())

    def _under_way(self, verdict: Verdict) -> bool:
        """Somebody less important is going, on a node that a member is nominated for (spec scheduler 5.1)."""
        for node in set(self._nominated(verdict).values()):
            row = self.world.state.row(node)
            for pod in self.world.state.node(row).pods.values() if row is not None else ():
                if pod.terminating and self._unit_priority(pod.uid, pod.priority) < verdict.priority:
                    return True
        return False

    def _nominated(self, verdict: Verdict) -> dict[str, str]:
        return {uid: node for uid, node in self._nodes_of(verdict.root).items() if uid in verdict.members}

    def _unit_priority(self, uid: str, own: int) -> int:
        member = self.world.members.get(uid)
        return own if member is None else self.world.priority(member)


def _may_preempt(root: Group | Member) -> bool:
    if isinstance(root, Member):
        return root.pod.spec.preemption_policy != NEVER
    assert root.spec is not None
    if root.spec.policy is not None:
        return root.spec.policy != NEVER
    return not any(traits[2] == NEVER for leaf in root.leaves() for traits in leaf.traits)
