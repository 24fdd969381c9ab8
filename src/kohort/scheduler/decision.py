"""One decision about one root: what is asked for, where it goes, or who must go for it, or why neither.

Nothing here waits and nothing is written: a decision is made on the state as it is, and handed out as a `Decision`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from time import monotonic

import numpy as np

from kohort.api.scheduling.healing import REPLACEMENT, WIDEN
from kohort.place.demand import Branch, Demand, Outcome, PendingPod, Reason, Result
from kohort.place.effort import Effort
from kohort.place.explain import Explanation, explain, waits
from kohort.place.interpod import EquivalenceClass
from kohort.place.preempt import Preemption, Preemptor
from kohort.place.search import Search
from kohort.place.victims import find_victim_sets
from kohort.scheduler.cache import SchedulerCache
from kohort.scheduler.demands import Asked, Demands
from kohort.scheduler.evictions import Evictions
from kohort.scheduler.hardquestions import HardQuestions
from kohort.scheduler.healing import HealingAction, Replacements, swapped
from kohort.scheduler.madetrees import in_words_of_rules
from kohort.scheduler.model import is_pod_key, shown
from kohort.scheduler.queueinghint import QueueingHint, fits_empty, placements, queueing_hint
from kohort.scheduler.spares import spare_of
from kohort.scheduler.trees import Group, PodInfo
from kohort.scheduler.validate import problems

NEVER = "Never"
_VOLUME_TRIES = 8
_NAMED = 3  # victims in a message
_NO_HELP = "preemption would not help"
_UNDER_WAY = "preemption is under way on the nominated nodes"
_SWAPPING = "a spare of the group makes room for a member that is lost"
_NO_ROOM = "no node of its domain has room for it"
_HELD = 0.5  # seconds that a decision may hold others, if what is hard is searched elsewhere
Limits = dict[tuple[EquivalenceClass, int], int]  # kind and row -> pods


class DecisionKind(StrEnum):
    """The results that kube-scheduler counts."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    PREEMPTING = "waiting_on_preemption"
    ERROR = "error"
    NOTHING = "nothing"  # no pod was left to place


@dataclass(slots=True)
class Decision:
    """What was decided about a root."""

    root: str
    priority: int
    kind: DecisionKind
    members: dict[str, PodInfo]  # the pending ones it was about
    outcomes: dict[str, Outcome] = field(default_factory=dict)  # by group (or by the root's key, for a single pod)
    assignments: dict[str, str] = field(default_factory=dict)  # uid -> node
    preemption: Preemption | None = None
    nominations: dict[str, str] = field(default_factory=dict)  # uid -> node
    later: dict[str, tuple[PendingPod, str]] = field(default_factory=dict)  # pods that come once it runs, their nodes
    hint: QueueingHint | None = None
    placements: tuple[int, int] | None = None  # domains there are, domains that may do
    explanation: Explanation | None = None  # why not: numbers, the nearest miss, what would help
    note: str = ""  # about preemption, or about room that is held for others
    room: str = ""  # what it must have room for beside its pods, and whose it cannot have: part of the note
    minimum_only: bool = False  # surplus was left out, for minimums of others come first: it has its own turn
    searching: bool = False  # not found yet: a search for it goes on elsewhere, and ends in another decision
    swapped: bool = False  # who goes for it are spares of its own
    widened: str = ""  # why members were placed outside of their group's domain
    healing: HealingAction | None = None  # what is done about members that are lost and found no place
    rests_on: tuple[int, ...] = ()  # of a failure: versions of what the cluster had then

    @property
    def namespace(self) -> str:
        return next((member.pod.metadata.namespace for member in self.members.values()), "")

    def facts(self) -> dict[str, str | int]:
        """For the log."""
        known: dict[str, str | int] = {"root": shown(self.root), "result": self.kind.value, "priority": self.priority}
        known |= {"placed": len(self.assignments), "left": len(self.leftovers)}
        if self.reason is not None:
            known["reason"] = self.reason.value
        if self.preemption is not None:
            known["victims"] = self.preemption.evictions
        if self.searching:
            known["searching"] = "yes"
        return known

    @property
    def is_pod(self) -> bool:
        """Whether the root is a pod without a group."""
        return is_pod_key(self.root)

    @property
    def leftovers(self) -> list[PodInfo]:
        return [member for uid, member in self.members.items() if uid not in self.assignments]

    @property
    def reason(self) -> Reason | None:
        """Of the root; where it has its minimum and yet nothing was placed, of the first group below that has one."""
        own = self.outcomes.get(self.root)
        if own is not None and own.reason is not None:
            return own.reason
        return next((one.reason for one in self.outcomes.values() if one.reason is not None), None)


def _misconfigured(decision: Decision, root: Group | PodInfo, wrong: list[str]) -> Decision:
    outcome = Outcome(False, reason=Reason.MISCONFIGURED, detail="; ".join(wrong))
    keys = [group.key for group in root.walk()] if isinstance(root, Group) else [decision.root]
    decision.kind, decision.outcomes = DecisionKind.ERROR, dict.fromkeys(keys, outcome)
    decision.explanation = waits(decision.root, Reason.MISCONFIGURED, outcome.detail)
    return decision


def _excess(demand: Demand, decision: Decision) -> Iterator[str]:
    """Pods whose rules name more than is looked at: one of each kind."""
    told: set[str] = set()
    for pod in (pod for leaf in demand.leaves() for pod in leaf.pods):
        if (said := pod.eq_class.excess) and said not in told:
            told.add(said)
            member = decision.members.get(pod.key)
            yield f"{member.pod.key if member is not None else shown(pod.key)} is not tried: {said}"


def within(seconds: float, clock: Callable[[], float] = monotonic) -> Effort:
    """What one decision may cost: everybody else waits for it."""
    end = clock() + seconds
    return Effort(expired=lambda: clock() > end, left=lambda: end - clock())


class Decider:
    """Decides on one cache."""

    def __init__(
        self,
        cache: SchedulerCache,
        evictions: Evictions,
        questions: HardQuestions | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`questions`: where hard ones are put aside; None: they are settled at once, and everybody waits for it.
        `clock`: by which a decision has to end."""
        self.cache = cache
        self.engine = cache.engine
        self._evictions = evictions
        self._questions = questions
        self._clock = clock
        self._pause: Callable[[], None] | None = None
        self._effort = Effort()
        self._planned: Mapping[str, str] = {}
        self._demands = Demands(cache)
        self.replacements = Replacements(cache, self._demands)

    def decide(
        self,
        root: Group | PodInfo,
        *,
        minimum_only: bool = False,
        seats: Mapping[str, str] | None = None,
        pause: Callable[[], None] | None = None,
    ) -> Decision:
        """`seats`: where its pods were found to fit (pod -> node), taken if it still holds. `pause`: called where the
        search for a place may be suspended; whatever follows it is done in one piece."""
        decision = self._start(root)
        decision.minimum_only = minimum_only
        self._planned = seats or {}
        if not decision.members:
            decision.kind = DecisionKind.NOTHING
            return decision
        if isinstance(root, Group) and (wrong := problems(root)):
            return _misconfigured(decision, root, wrong)
        self.engine.pause = self._pause = pause
        demand = self.demand(root)
        if any(eq_class.excess for eq_class in demand.eq_classes):
            return _misconfigured(decision, root, list(_excess(demand, decision)))
        self._effort = self.limits_of(decision.root)
        with self.engine.respecting_nominations(decision.root, decision.priority) as others:
            if self.cache.settings.explains:
                decision.placements = placements(self.engine, demand)
            result = self._place(demand, decision)
            if isinstance(root, Group) and len(decision.assignments) < len(decision.members):
                if self._swap(root, decision):
                    return decision
                result = self._elsewhere(root, decision, result)
            if not result.ok:
                self._refuse(demand, decision, result, allowed=_may_preempt(root))
                decision.room = self.cache.later.told(_later(demand, decision), others)
                if decision.room and decision.kind is DecisionKind.UNSCHEDULABLE:
                    decision.note = decision.room
            if isinstance(root, Group):
                self._heal(root, decision, result)
        return decision

    def seats_of_later(self, root: Group) -> dict[str, tuple[PendingPod, str]]:
        """For parts that follow a root that runs; none, if there is no room for all of them."""
        leaves = list(self._demands.of_later(self.cache.later.missing(root), Asked({})))
        if not leaves:
            return {}
        with self.engine.respecting_nominations(root.key, self.priority(root)):
            mark = self.engine.mark()
            found = Search(self.engine, within(_HELD)).place(Branch(root.key, leaves, len(leaves)))
            self.engine.undo(mark)
        return self._seats((pod for leaf in leaves for pod in leaf.pods), found.placed) if found.ok else {}

    def _seats(self, pods: Iterable[PendingPod], placed: Mapping[str, int]) -> dict[str, tuple[PendingPod, str]]:
        name = self.cache.state.node
        return {pod.key: (pod, name(placed[pod.key]).name) for pod in pods if pod.key in placed}

    def _swap(self, root: Group, decision: Decision) -> bool:
        """Members that are lost take the place of their group's spares, if there is no other room in their domain."""
        short = self.replacements.short(root, decision.assignments) if self.cache.spares else ()
        spares = {one.uid: one for leaf in short for one in self.cache.spares.ready(leaf.key)}
        going = self._evictions.victims.get(decision.root, set()) & self.cache.members.keys()
        if going and any(uid in self.cache.members and spare_of(self.cache.members[uid]) for uid in going):
            decision.kind, decision.nominations = DecisionKind.PREEMPTING, self._nominated(decision)
            decision.assignments, decision.note = {}, _SWAPPING
            decision.explanation = waits(decision.root, Reason.PREEMPTING, _SWAPPING)
            return True
        if not spares:
            return False
        before = len(decision.assignments)
        with self._demands.without(spares):
            trial = Decision(decision.root, decision.priority, decision.kind, decision.members)
            found = self._place(self._demands.of(root, Asked({})), trial)
        if not found.ok or len(found.placed) <= before:
            return False
        plan = swapped(self.cache, spares.values(), found)
        decision.kind, decision.preemption, decision.swapped = DecisionKind.PREEMPTING, plan, True
        decision.nominations, decision.assignments = trial.assignments, {}
        decision.outcomes = {key: Outcome(False, reason=Reason.PREEMPTING, detail=_SWAPPING) for key in found.outcomes}
        decision.note = _named_pods(plan)
        decision.explanation = waits(decision.root, Reason.PREEMPTING, f"{_SWAPPING}: {decision.note}")
        return True

    def _elsewhere(self, root: Group, decision: Decision, result: Result) -> Result:
        """Members that come back to a domain that is full, outside of it, where their group's policy is to widen."""
        if not self.replacements.widens(root):
            return result
        why, before, outcomes = result.of(root.key).detail, decision.assignments, decision.outcomes
        found = self._place(self._demands.of(root, Asked(self._nodes_of(root.key), wider=True)), decision)
        if not found.ok or len(decision.assignments) <= len(before):
            decision.assignments, decision.outcomes = before, outcomes
            return result
        decision.widened = f"{REPLACEMENT} {WIDEN}: placed outside of the group's domain, for {why or _NO_ROOM}"
        return found

    def _heal(self, root: Group, decision: Decision, result: Result) -> None:
        """Nobody makes room for members that are lost: what does their group want?"""
        if decision.searching or len(decision.assignments) == len(decision.members):
            return
        if decision.kind not in {DecisionKind.SCHEDULED, DecisionKind.UNSCHEDULABLE}:
            return
        short = self.replacements.short(root, decision.assignments)
        if short:
            why = result.of(short[0].key).detail or result.of(root.key).detail or _NO_ROOM
            decision.healing, note = self.replacements.action(root, short, why)
            decision.note = "; ".join(filter(None, (decision.note, note)))

    def _start(self, root: Group | PodInfo) -> Decision:
        if isinstance(root, PodInfo):
            members = {} if root.leaving or root.node else {root.uid: root}
            return Decision(self.cache.root_key(root), self.cache.priority(root), DecisionKind.UNSCHEDULABLE, members)
        members = {uid: member for leaf in root.leaves() for uid, member in leaf.pending.items() if not member.leaving}
        return Decision(root.key, self.priority(root), DecisionKind.UNSCHEDULABLE, members)

    def priority(self, root: Group) -> int:
        """1.35 knows no priority of groups: that of its most important pod counts."""
        if root.spec is not None and root.spec.priority is not None:
            return root.spec.priority
        if len(root.traits) == 1 and not root.children:
            return next(iter(root.traits))[1]
        return max((traits[1] for leaf in root.leaves() for traits in leaf.traits), default=0)

    # ---- what is asked for

    def demand(self, root: Group | PodInfo) -> Demand:
        key = self.cache.root_key(root) if isinstance(root, PodInfo) else root.key
        return self._demands.of(root, Asked(self._nodes_of(key)))

    def _nodes_of(self, root: str) -> dict[str, str]:
        """Where its pods are nominated."""
        kept = self.engine.reservations.get(root)
        return {} if kept is None or kept.backfill else kept.nodes()

    # ---- where it goes

    def limits_of(self, root: str, most: float | None = None) -> Effort:
        """Of a decision; `most`: seconds of a search for it."""
        seconds = self.cache.settings.profile.search_seconds
        if self._questions is None:
            return within(seconds if most is None else min(seconds, most), self._clock)
        return replace(within(min(seconds, _HELD), self._clock), solver=self._questions.of(root, most))

    def _place(self, demand: Demand, decision: Decision) -> Result:
        """Without the nodes that refused a binding, if it can be."""
        refused = any(member.refused or spare_of(member) for member in decision.members.values())
        result = self._search(demand, decision)
        if refused:
            with self._limited(self._refusals(decision)):
                elsewhere = self._search(demand, decision)
            if elsewhere.ok and len(elsewhere.placed) >= len(result.placed):
                result = elsewhere
        if result.ok:
            name, members = self.cache.state.node, decision.members
            decision.kind = DecisionKind.SCHEDULED
            decision.outcomes = result.outcomes
            decision.assignments = {uid: name(row).name for uid, row in result.placed.items() if uid in members}
            if len(decision.assignments) < len(result.placed):
                decision.later = self._seats(_later(demand, decision), result.placed)
        return result

    def _search(self, demand: Demand, decision: Decision) -> Result:
        """Where pods wait for volumes: until each finds one on its node, a node taking fewer pods with each try."""
        limits: Limits = {}
        found = {} if self._questions is None else self._questions.found(decision.root)
        if self._planned:
            rows = {uid: self.cache.state.row(node) for uid, node in self._planned.items()}
            found = {uid: row for uid, row in rows.items() if row is not None}
        for _ in range(_VOLUME_TRIES):
            if limits:
                with self._limited(limits):
                    result = self._found(demand, decision, found)
            else:
                result = self._found(demand, decision, found)
            short = self._without_volume(decision, result) if result.ok else {}
            if not short:
                return result
            limits |= short
        return result

    def _found(self, demand: Demand, decision: Decision, found: Mapping[str, int]) -> Result:
        engine, told = self.engine, self.cache.settings.explains
        mark = engine.mark()
        search = Search(engine, self._effort.again())
        result = search.place(demand, minimum_only=decision.minimum_only, found=found, told=told)
        engine.pause = None
        engine.undo(mark)
        return result

    def _without_volume(self, decision: Decision, result: Result) -> Limits:
        """Nodes with too few volumes for what was placed there, and how many pods they take."""
        cache, name = self.cache, self.cache.state.node
        members = decision.members
        with_volumes = [uid for uid in result.placed if uid in members and members[uid].pod.spec.volumes]
        if not with_volumes:
            return {}
        assignments = {uid: name(result.placed[uid]) for uid in with_volumes}
        wanted = {uid: (cache.as_json(members[uid]), facts.name, facts.labels) for uid, facts in assignments.items()}
        _, short = cache.storage.choose(wanted)
        limits: Limits = {}
        for uid in short:
            key = (cache.equivalence_class(members[uid]), result.placed[uid])
            there = sum(1 for one in wanted if (cache.equivalence_class(members[one]), result.placed[one]) == key)
            limits[key] = limits.get(key, there) - 1
        return limits

    def _refusals(self, decision: Decision) -> Limits:
        """Nodes that refused one of the pods have no room for its kind; nor has, for a spare, a node of a member: it
        would be lost with it."""
        found = (
            (self.cache.equivalence_class(member), node)
            for member in decision.members.values()
            for node in (*member.refused, *self._nodes_of_members(member))
        )
        rows = ((kind, self.cache.state.row(node)) for kind, node in found)
        return {(kind, row): 0 for kind, row in rows if row is not None}

    def _nodes_of_members(self, spare: PodInfo) -> set[str]:
        group = self.cache.trees.get(spare_of(spare))
        return set() if group is None else {one.node for one in group.placed.values()}

    @contextmanager
    def _limited(self, limits: Limits) -> Iterator[None]:
        """Within, some nodes take no more than so many pods of a kind."""
        state, taken = self.cache.state, []
        for (kind, row), most in limits.items():
            away = np.array([max(int(self.engine.room(kind)[row]) - most, 0)])
            state.take_many(kind.signature, np.array([row]), away)
            taken.append((kind.signature, np.array([row]), away))
        try:
            yield
        finally:
            for signature, rows, away in reversed(taken):
                state.take_many(signature, rows, -away)

    # ---- who must go

    def _refuse(self, demand: Demand, decision: Decision, result: Result, *, allowed: bool) -> None:
        decision.outcomes = result.outcomes
        decision.hint = queueing_hint(demand, decision.priority, preempts=allowed)
        decision.searching = result.searching
        if decision.reason is Reason.MISCONFIGURED:
            decision.kind = DecisionKind.ERROR
        elif decision.searching:
            decision.note = "nobody is preempted before that has ended" if allowed else ""
        else:
            self._decide_on_others(demand, decision, allowed=allowed)
        if decision.kind is DecisionKind.PREEMPTING:
            decision.explanation = waits(decision.root, Reason.PREEMPTING, result.of(demand.name).detail)
        elif decision.searching:
            decision.explanation = waits(decision.root, Reason.NOT_FOUND, result.of(demand.name).detail)
        elif self.cache.settings.explains:  # it costs about as much as the search: only for those that have to wait
            self.engine.pause = self._pause  # nobody goes and nothing is placed: it can be told a little later
            decision.explanation = in_words_of_rules(explain(self.engine, demand, result), self.cache.trees)
            self.engine.pause = None

    def _decide_on_others(self, demand: Demand, decision: Decision, *, allowed: bool) -> None:
        if not allowed:
            decision.note = "preemption is not allowed (preemptionPolicy Never)"
        elif self._under_way(decision):
            decision.kind = DecisionKind.PREEMPTING
            decision.nominations = self._nominated(decision)
            decision.note = _UNDER_WAY
        else:
            self._preempt(demand, decision)

    def _preempt(self, demand: Demand, decision: Decision) -> None:
        cache = self.cache
        lowest = min(cache.priorities, default=None)
        if lowest is None or not self._lower(decision.priority):
            decision.note = "nobody can be preempted for it"
            return
        if not fits_empty(self.engine, demand):
            decision.note = _NO_HELP
            return
        victim_sets = find_victim_sets(cache.state, cache.trees.group_infos, self._evictions.protected())
        effort = replace(self.limits_of(decision.root), solver=None)
        preemptor = Preemptor(self.engine, victim_sets, cache.budgets.cover(cache.state), effort)
        plan = (preemptor.plan_pod if decision.is_pod else preemptor.plan)(demand, decision.priority)
        if plan is None or not plan.victims:
            decision.note = _NO_HELP
            return
        decision.kind, decision.preemption = DecisionKind.PREEMPTING, plan
        name = cache.state.node
        decision.nominations = {
            uid: name(row).name for uid, row in plan.result.placed.items() if uid in decision.members
        }
        decision.later = self._seats(_later(demand, decision), plan.result.placed)
        kind = "pod" if decision.is_pod else "podgroup"
        # In the words of kube-scheduler, which has no singular.
        decision.note = f"found a placement for {kind}, preempting {plan.evictions} victims: {_named_pods(plan)}"
        if not plan.evictions:
            decision.note = _UNDER_WAY

    def _lower(self, priority: int) -> bool:
        """Whether somebody may be less important. A group's priority counts, not that of its pods."""
        known = (*self.cache.priorities, *self.cache.trees.priorities)
        return min(known) < priority

    def _under_way(self, decision: Decision) -> bool:
        """Somebody less important is going, on a node that a member is nominated for (spec scheduler 5.1), or anywhere
        by its own plan while all of the plan's nodes are there."""
        nodes = set(self._nominated(decision).values())
        going = self._evictions.victims.get(decision.root, set()) & self.cache.members.keys()
        if going and nodes and all(self.cache.state.row(node) is not None for node in nodes):
            return True
        for node in nodes:
            row = self.cache.state.row(node)
            for pod in self.cache.state.node(row).pods.values() if row is not None else ():
                if pod.terminating and self._unit_priority(pod.uid, pod.priority) < decision.priority:
                    return True
        return False

    def _nominated(self, decision: Decision) -> dict[str, str]:
        return {uid: node for uid, node in self._nodes_of(decision.root).items() if uid in decision.members}

    def _unit_priority(self, uid: str, own: int) -> int:
        member = self.cache.members.get(uid)
        return own if member is None else self.cache.priority(member)


def _later(demand: Demand, decision: Decision) -> Iterator[PendingPod]:
    """Pods that are not there."""
    return (pod for leaf in demand.leaves() for pod in leaf.pods if pod.key not in decision.members)


def _named_pods(plan: Preemption) -> str:
    names = sorted(
        f"{victim.pod.namespace}/{victim.pod.name}"
        for victim_set in plan.victims
        for victim in victim_set.pods
        if not victim.pod.terminating
    )
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _may_preempt(root: Group | PodInfo) -> bool:
    if isinstance(root, PodInfo):
        return root.pod.spec.preemption_policy != NEVER and not spare_of(root)
    assert root.spec is not None
    if root.spec.policy is not None:
        return root.spec.policy != NEVER
    return not any(traits[2] == NEVER for leaf in root.leaves() for traits in leaf.traits)
