"""What people and controllers are told: conditions of pods and groups, nominations, events.

As kube-scheduler writes them (spec scheduler 6), and what it leaves out: conditions of CompositePodGroups,
DisruptionTarget on groups that are preempted, events on groups, and a reason from our vocabulary in every message.
A True condition is never taken back. Nothing that says the same as before is written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec

from kohort.api.scheduling import constants as words
from kohort.api.scheduling.healing import FAIL, GANG_FAILED, MOVE, RESTART, SPARES
from kohort.place.demand import Outcome
from kohort.place.diagnosis import count
from kohort.place.explain import Explanation
from kohort.place.victims import VictimSet
from kohort.scheduler.cache import SchedulerCache
from kohort.scheduler.decision import Decision, DecisionKind
from kohort.scheduler.healing import DEFRAGMENT, EVICT, HealingAction
from kohort.scheduler.model import COMPOSITE_PREFIX, Condition, GroupSpec, Pod, shown
from kohort.scheduler.trees import Group, GroupTrees, PodInfo, having

POD_SCHEDULED: Final = "PodScheduled"
_EXTRA: Final = "no node has room for it beside the members that were placed"
_REFUSAL: Final = "binding to {} was refused: {}"
_KEPT: Final = "members that are bound keep their nodes, and the gang starts when this one is bound"
_STARTS: Final = "it has the nodes that it needs to start"
# policy -> condition of the pods that go, its reason, and the reason of the event
_HEALED: Final = {
    MOVE: (words.DISRUPTION_TARGET, "MoveByScheduler", "Moved"),
    RESTART: (words.DISRUPTION_TARGET, "RestartByScheduler", "Restarted"),
    FAIL: (GANG_FAILED, "FailedByScheduler", "Failed"),
    SPARES: (words.DISRUPTION_TARGET, "SwapByScheduler", "Swapped"),
    EVICT: (words.DISRUPTION_TARGET, "EvictionByScheduler", "Evicted"),
    DEFRAGMENT: (words.DISRUPTION_TARGET, "DefragmentationByScheduler", "Defragmented"),
}
REFUSED: Final = "BindingRefused"  # it has a place, and the API server did not take it


@dataclass(frozen=True, slots=True)
class Target:
    """An object that is written to or spoken of."""

    kind: str
    namespace: str
    name: str
    uid: str
    api_version: str = ""  # of an owner: of what the scheduler reads, it is known

    @classmethod
    def pod(cls, pod: Pod) -> Target:
        return cls("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)

    @classmethod
    def group(cls, spec: GroupSpec) -> Target:
        """Itself, or whom it was made for where no object stands for it."""
        if spec.rule and (owners := cls.owners(spec)):
            return owners[0]
        return cls(spec.kind, spec.namespace, spec.name, spec.uid)

    @classmethod
    def owners(cls, spec: GroupSpec) -> list[Target]:
        """Whom a group was made for: a Job, a JobSet, a TrainJob, a LeaderWorkerSet, a PodGang."""
        found = (one for one in spec.owners if one.kind != "Workload" and one.uid)
        return [cls(one.kind, spec.namespace, one.name, one.uid, one.api_version) for one in found]


@dataclass(frozen=True, slots=True)
class Patch:
    """A condition, and for pods a nomination (None: leave it, empty: clear it)."""

    target: Target
    condition: Condition | None = None
    nominated: str | None = None


@dataclass(frozen=True, slots=True)
class SchedulerEvent:
    """An event."""

    regarding: Target
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    text: str
    related: Target | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """A victim."""

    pod: Target
    root: str
    condition: Condition
    failed: bool = False  # it is not deleted but has failed: what follows is its owner's policy
    asked: bool = False  # by the eviction API, which asks the budgets


@dataclass(slots=True)
class Writes:
    patches: list[Patch] = field(default_factory=list)
    events: list[SchedulerEvent] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.patches or self.events)

    def __add__(self, more: Writes) -> Writes:
        return Writes([*self.patches, *more.patches], [*self.events, *more.events])

    def add(self, more: Writes) -> None:
        self.patches += more.patches
        self.events += more.events


class StatusBuilder:
    """What was said last, so that only news are said."""

    def __init__(self, group_condition: str = words.POD_GROUP_INITIALLY_SCHEDULED, scheduler: str = "kohort") -> None:
        self._group_condition = group_condition
        self._scheduler = scheduler
        self._pods: dict[str, tuple[str, str]] = {}  # uid -> reason, message
        self._nominated: dict[str, str] = {}
        self._groups: dict[str, tuple[str, str, str]] = {}  # uid -> status, reason, message
        self._satisfied: dict[str, str] = {}  # uid of a group -> status
        self._last_event: dict[str, str] = {}  # uid of a group -> text of its last event
        self._owners_told: dict[str, str] = {}  # key of a root -> what its owners were told last: they know it waits
        self._tables: tuple[dict[str, Any], ...] = (
            *(self._pods, self._nominated, self._groups, self._satisfied, self._last_event, self._owners_told),
        )

    def forget(self, uid: str) -> None:
        for table in self._tables:
            if table:
                table.pop(uid, None)

    def said(self, uid: str) -> tuple[str, str, str] | None:
        """Status, reason and message of a group's condition as we last wrote it."""
        return self._groups.get(uid)

    def is_scheduled(self, group: Group) -> bool:
        """Whether it is known to have had its minimum once. 1.35 has nowhere to say so."""
        said = self._status(group.spec) if group.spec is not None else None
        return said is not None and said[0] == "True"

    # ---- after a decision

    def failure(self, decision: Decision, trees: GroupTrees, now: str) -> Writes:
        """Of everything in the tree that did not get a place."""
        writes = Writes()
        reason = words.REASON_SCHEDULER_ERROR if decision.kind is DecisionKind.ERROR else words.REASON_UNSCHEDULABLE
        advice = _advice(decision)
        texts: dict[str, tuple[str, str]] = {}  # of each group, alike for all its pods: condition, event
        waits = decision.kind is not DecisionKind.SCHEDULED
        for member in decision.leftovers:
            key = member.group or decision.root
            if key not in texts:
                outcome, by = decision.outcomes.get(key), _by(trees.get(key))
                both = (_text(outcome, note, advice.get(key, ""), by) for note in (decision.room, decision.note))
                texts[key] = (next(both), next(both))
            said, event = texts[key]
            nominated = decision.nominations.get(member.uid, "") if waits else None
            writes.patches += self._pod(member, reason, said, nominated, now)
            writes.events += self._failed(member, event)
        for key, outcome in decision.outcomes.items():
            group = trees.get(key)
            if group is None or group.spec is None or outcome.ok:
                continue
            note = decision.note if decision.kind is not DecisionKind.SCHEDULED else ""
            writes.patches += self.satisfied(group, now)
            text = _minimum(group, decision) + _text(outcome, note, advice.get(key, ""), group.spec.by)
            writes.patches += self._condition(group.spec, "False", reason, text, now)
            writes.events += self._new_event(group.spec, "Warning", "FailedScheduling", "Scheduling", text)
            if key == decision.root:
                writes.events += self._tell_owners(group.spec, "Warning", "FailedScheduling", text)
        return writes

    def settled(self, group: Group, now: str) -> Writes:
        """Enough of it has nodes."""
        writes = Writes()
        if group.spec is not None:
            if self._owners_told.get(group.key):
                writes.events += self._tell_owners(group.spec, "Normal", "Scheduled", _STARTS)
                self._owners_told[group.key] = ""
            writes.patches += self._condition(group.spec, "True", words.REASON_SCHEDULED, "", now)
            scheduled = bool(writes.patches)
            writes.patches += self.satisfied(group, now)
            if scheduled:
                placed = len(group.placed)
                text = f"{count(placed, 'pod')} {'has a node' if placed == 1 else 'have nodes'}"
                text = "its groups have nodes" if group.spec.composite else text
                writes.events += self._new_event(group.spec, "Normal", "Scheduled", "Binding", text)
        return writes

    def satisfied(self, group: Group, now: str) -> Iterator[Patch]:
        """Whether it has its minimum now. Told when it has been tried, and from then on whenever the answer changes."""
        spec = group.spec
        if spec is None or not spec.has_status:
            return
        status = "True" if group.settled else "False"
        if self._satisfaction(spec) == status:
            return
        kind = words.COMPOSITE_SATISFIED if spec.composite else words.POD_GROUP_SATISFIED
        self._satisfied[spec.uid] = status
        reason = words.REASON_SATISFIED if group.settled else words.REASON_BELOW_MINIMUM
        yield Patch(Target.group(spec), Condition(kind, status, reason, having(group), now, spec.generation or None))

    def was_satisfied(self, group: Group) -> bool:
        return group.spec is not None and self._satisfaction(group.spec) == "True"

    def _satisfaction(self, spec: GroupSpec) -> str:
        """As we last said it or, if we have not, as the API has it."""
        mine = self._satisfied.get(spec.uid)
        if mine or not spec.conditions:
            return mine or ""
        kind = words.COMPOSITE_SATISFIED if spec.composite else words.POD_GROUP_SATISFIED
        return next((one.status for one in spec.conditions if one.type == kind), "")

    def widened(self, group: Group, text: str) -> list[SchedulerEvent]:
        """A member was placed outside of its group's domain."""
        return [] if group.spec is None else self._new_event(group.spec, "Warning", "Widened", "Scheduling", text)

    def regressed(self, group: Group, text: str, now: str) -> Writes:
        """It had been tried, and now lacks members: what was said of it is no longer true."""
        writes = Writes()
        if group.spec is None or not group.spec.has_status:
            return writes
        before = self._status(group.spec)
        if before is not None and before[0] == "False":
            reason = words.REASON_UNSCHEDULABLE
            writes.patches += self._condition(group.spec, "False", reason, text, now)
            for member in group.pending.values():
                if member.uid in self._pods:
                    writes.patches += self._pod(member, reason, text, None, now)
        return writes

    def waiting(self, spec: GroupSpec, text: str, *, root: bool = True) -> list[SchedulerEvent]:
        """It is not ready to be tried, and has not been for a while."""
        events = self._new_event(spec, "Normal", "Waiting", "Scheduling", text)
        return [*events, *(self._tell_owners(spec, "Normal", "Waiting", text) if root else ())]

    def group_waiting(self, spec: GroupSpec, text: str, now: str) -> list[Patch]:
        """The same in its condition, unless it has been scheduled once."""
        return list(self._condition(spec, "False", words.REASON_UNSCHEDULABLE, text, now))

    def member_waiting(self, member: PodInfo, text: str, now: str) -> Writes:
        """A pod whose group is not ready to be tried, or not there."""
        return Writes(
            list(self._pod(member, words.REASON_UNSCHEDULABLE, text, None, now)), list(self._failed(member, text))
        )

    def _tell_owners(
        self, spec: GroupSpec, kind: Literal["Normal", "Warning"], reason: str, text: str
    ) -> Iterator[SchedulerEvent]:
        """Whoever looks at a workload sees why its gang waits, and that it no longer does."""
        if self._owners_told.get(spec.key) != text:
            self._owners_told[spec.key] = text
            for owner in Target.owners(spec):
                said = f"{spec.kind} {spec.name}: {text}"
                related = None if spec.rule else Target.group(spec)
                yield SchedulerEvent(owner, kind, reason, "Scheduling", said, related)

    def refused(self, member: PodInfo, node: str, text: str, now: str) -> Writes:
        """The API server refused a binding."""
        message = _REFUSAL.format(node, text)
        patches = self._pod(member, words.REASON_SCHEDULER_ERROR, message, None, now)
        return Writes(list(patches), list(self._failed(member, message)))

    def stuck(self, member: PodInfo, group: Group, text: str, now: str) -> Writes:
        """A binding was refused more than once: the groups above it say what they lack. Bound members are left alone:
        they may run already, and a pod without a controller would never come back."""
        writes, said = Writes(), f"{REFUSED}: {member.pod.key} is not taken by the API server: {text}; {_KEPT}"
        above: Group | None = group
        while above is not None and above.spec is not None and not self.is_scheduled(above):
            reason = words.REASON_UNSCHEDULABLE if above.spec.composite else words.REASON_SCHEDULER_ERROR
            writes.patches += self._condition(above.spec, "False", reason, said, now)
            writes.events += self._new_event(above.spec, "Warning", REFUSED, "Binding", said)
            above = above.parent
        return writes

    def volumes_not_bound(self, member: PodInfo, text: str, now: str) -> Writes:
        """Its volumes did not come."""
        patches = self._pod(member, words.REASON_SCHEDULER_ERROR, text, None, now)
        return Writes(list(patches), list(self._failed(member, text)))

    def bound(self, member: PodInfo, node: str) -> list[SchedulerEvent]:
        self._pods.pop(member.uid, None)
        self._nominated.pop(member.uid, None)
        text = f"Successfully assigned {member.pod.key} to {node}"
        return [SchedulerEvent(Target.pod(member.pod), "Normal", "Scheduled", "Binding", text)]

    # ---- victims

    def evictions(
        self, decision: Decision, preemptor: Target, trees: GroupTrees, now: str
    ) -> tuple[list[Eviction], Writes]:
        writes = Writes()
        found: list[Eviction] = []
        kind = preemptor.kind.lower()
        text = f"{self._scheduler}: preempting to accommodate a higher priority {kind}"
        reason = words.REASON_PREEMPTION
        if decision.swapped:
            reason, text = "SwapByScheduler", f"{self._scheduler}: a member of {kind} {preemptor.name} takes its place"
        condition = Condition(words.DISRUPTION_TARGET, "True", reason, text, now)
        assert decision.preemption is not None
        by = f"{kind} {preemptor.namespace}/{preemptor.name} (priority {decision.priority}, uid {preemptor.uid})"
        for victim_set in decision.preemption.victims:
            writes.patches += self._disrupted(victim_set, trees, condition)
            for victim in victim_set.pods:
                target = Target("Pod", victim.pod.namespace, victim.pod.name, victim.pod.uid)
                if not victim.pod.terminating:
                    found.append(Eviction(target, decision.root, condition))
                    said = f"Preempted by {by} on node {_place(decision)}"
                    event = SchedulerEvent(target, "Normal", "Preempted", "Preempting", said, preemptor)
                    if decision.swapped:
                        said = f"a member takes the place of {victim.pod.name}"
                        event = SchedulerEvent(preemptor, "Normal", "Swapped", "Healing", said, target)
                    writes.events.append(event)
        writes.events += self._robbed(decision.preemption.victims, trees, by, preemptor)
        return found, writes

    def _robbed(
        self, victim_sets: Sequence[VictimSet], trees: GroupTrees, by: str, preemptor: Target
    ) -> Iterator[SchedulerEvent]:
        """A group that loses members is told to whom, and so are its owners: the pods will be gone."""
        lost: dict[str, int] = {}
        for victim in (victim for victim_set in victim_sets for victim in victim_set.pods):
            if victim.pod.group is not None and not victim.pod.terminating:
                lost[victim.pod.group] = lost.get(victim.pod.group, 0) + 1
        for key, pods in lost.items():
            group = trees.get(key)
            if group is None or group.spec is None:
                continue
            text = f"{pods} of its pods {'was' if pods == 1 else 'were'} preempted by {by}"
            for target in dict.fromkeys((Target.group(group.spec), *Target.owners(group.spec))):
                yield SchedulerEvent(target, "Warning", "Preempted", "Preempting", text, preemptor)

    def _disrupted(self, victim_set: VictimSet, trees: GroupTrees, condition: Condition) -> Iterator[Patch]:
        """A group that goes as a whole is told, not only its pods."""
        group = trees.get(victim_set.group) if victim_set.group is not None else None
        spec = group.spec if group is not None else None
        if spec is not None and spec.has_status:
            yield Patch(Target.group(spec), condition)

    # ---- gangs that have lost members

    def healed(self, action: HealingAction, cache: SchedulerCache, now: str) -> tuple[list[Eviction], Writes]:
        """A gang is moved, restarted or failed as a whole: its pods, its group and its owners are told."""
        kind, reason, event = _HEALED[action.policy]
        condition = Condition(kind, "True", reason, f"{self._scheduler}: {action.why}", now)
        members = [cache.members[uid] for uid in action.pods if uid in cache.members]
        failed = action.policy == FAIL
        asked = action.policy == DEFRAGMENT
        found = [Eviction(Target.pod(one.pod), action.group, condition, failed, asked) for one in members]
        writes, group = Writes(), cache.trees.get(action.group)
        spec = group.spec if group is not None else None
        if spec is not None:
            if spec.has_status and action.policy != SPARES:
                told = Condition(words.DISRUPTION_TARGET, "True", reason, f"{self._scheduler}: {action.why}", now)
                writes.patches.append(Patch(Target.group(spec), told))
            for target in dict.fromkeys((Target.group(spec), *Target.owners(spec))):
                writes.events.append(SchedulerEvent(target, "Warning", event, "Healing", action.why))
        return found, writes

    # ---- inside

    def _pod(self, member: PodInfo, reason: str, message: str, nominated: str | None, now: str) -> Iterator[Patch]:
        uid = member.uid
        before = self._nominated.get(uid, member.pod.status.nominated_node_name)
        change = nominated if nominated is not None and nominated != before else None
        said = self._pods.get(uid) or _said(member.pod)
        if said == (reason, message) and change is None:
            return
        self._pods[uid] = (reason, message)
        if change is not None:
            self._nominated[uid] = change
        yield Patch(Target.pod(member.pod), Condition(POD_SCHEDULED, "False", reason, message, now), change)

    def _failed(self, member: PodInfo, text: str) -> Iterator[SchedulerEvent]:
        if self._last_event.get(member.uid) != text:
            self._last_event[member.uid] = text
            yield SchedulerEvent(Target.pod(member.pod), "Warning", "FailedScheduling", "Scheduling", text)

    def _status(self, spec: GroupSpec) -> tuple[str, str, str] | None:
        """Of the group's condition, as we wrote it or, if we have not, as the API has it."""
        mine = self._groups.get(spec.uid)
        if mine is not None:
            return mine
        kind = self._type(spec)
        return next(((one.status, one.reason, one.message) for one in spec.conditions if one.type == kind), None)

    def _type(self, spec: GroupSpec) -> str:
        return words.COMPOSITE_INITIALLY_SCHEDULED if spec.composite else self._group_condition

    def _condition(self, spec: GroupSpec, status: str, reason: str, message: str, now: str) -> Iterator[Patch]:
        if not spec.has_status:
            return
        before = self._status(spec)
        if before is not None and (before[0] == "True" or before == (status, reason, message)):
            return
        if spec.composite and reason == words.REASON_SCHEDULER_ERROR:
            reason = words.REASON_INVALID
        self._groups[spec.uid] = (status, reason, message)
        moved = now if before is None or before[0] != status else self._since(spec)
        condition = Condition(self._type(spec), status, reason, message, moved or now, spec.generation or None)
        yield Patch(Target.group(spec), condition)

    def _since(self, spec: GroupSpec) -> str | None:
        kind = self._type(spec)
        return next((one.last_transition_time for one in spec.conditions if one.type == kind), None)

    def _new_event(
        self, spec: GroupSpec, kind: Literal["Normal", "Warning"], reason: str, action: str, text: str
    ) -> list[SchedulerEvent]:
        if spec.rule or self._last_event.get(spec.key) == text:
            return []  # of what a rule made, its owners are told
        self._last_event[spec.key] = text
        return [SchedulerEvent(Target.group(spec), kind, reason, action, text)]


def written(condition: Condition) -> dict[str, Any]:
    """As it is sent. An empty reason or message is said: a merge patch keeps what it does not name."""
    body: dict[str, Any] = msgspec.to_builtins(condition)
    return {"reason": "", "message": "", **body}


def _text(outcome: Outcome | None, *more: str) -> str:
    if outcome is None or outcome.reason is None:
        said = _EXTRA
    else:
        said = f"{outcome.reason.value}: {outcome.detail}" if outcome.detail else outcome.reason.value
    return "; ".join([said, *(one for one in more if one)])


def _advice(decision: Decision) -> dict[str, str]:
    """By group: what came closest, and what would help."""
    if decision.explanation is None or decision.kind is not DecisionKind.UNSCHEDULABLE:
        return {}
    return {one.group: _plain(one) for one in decision.explanation.every() if not one.ok}


def _by(group: Group | None) -> str:
    return group.spec.by if group is not None and group.spec is not None else ""


def _minimum(group: Group, decision: Decision) -> str:
    """kube-scheduler's own words for a minimum that is out of reach: its tests and others look for them."""
    spec = group.spec
    if spec is None or spec.minimum is None or decision.kind is DecisionKind.ERROR:
        return ""
    name = "minGroupCount" if spec.composite else "minCount"
    return f"{name} ({spec.minimum}) cannot be satisfied: "


def _plain(explanation: Explanation) -> str:
    """Its advice, with names as people read them."""
    below = explanation.culprit().group
    return explanation.advice().replace(below, shown(below)).replace(COMPOSITE_PREFIX, "")


def scheduler_error(pod: Pod) -> str:
    """What its scheduler reported when it could not finish with the pod, a refused binding for example; else empty."""
    reason, message = _said(pod) or ("", "")
    return message if reason == words.REASON_SCHEDULER_ERROR else ""


def _said(pod: Pod) -> tuple[str, str] | None:
    found = (one for one in pod.status.conditions or () if one.type == POD_SCHEDULED and one.status == "False")
    return next(((one.reason, one.message) for one in found), None)


def _place(decision: Decision) -> str:
    """Of a group's preemption kube-scheduler says that it is on node cluster."""
    nodes = set(decision.nominations.values())
    return nodes.pop() if decision.is_pod and len(nodes) == 1 else "cluster"
