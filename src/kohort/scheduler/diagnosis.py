"""Why each root waits: from the queue and the last decision, or asked afresh.

Reasons come from the engine's closed vocabulary. Two more words say that nothing is known against a root: it was not
tried yet, or its binding was refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kohort.place.demand import Reason
from kohort.place.diagnosis import count
from kohort.place.explain import Explanation, more_members, waits
from kohort.place.remedies import Remedy, RemedyKind
from kohort.place.requests import pod_requests
from kohort.scheduler.cache import SchedulerCache
from kohort.scheduler.decision import Decider, Decision, DecisionKind
from kohort.scheduler.model import COMPOSITE_PREFIX, described, shown
from kohort.scheduler.queue import QueuedRoot, SubQueue
from kohort.scheduler.status import REFUSED
from kohort.scheduler.trees import BrokenChain, Group, PodInfo
from kohort.scheduler.validate import too_deep

QUEUED: Final = "Queued"  # it has not been tried
_NAMED: Final = 3
_EXTRA: Final = "no node has room for a further pod of it"


@dataclass(frozen=True, slots=True)
class Pending:
    """Something that waits, and why: the answer to "why is this not running"."""

    key: str
    queue: str
    reason: str
    detail: str
    pods: int
    priority: int = 0
    since: float = 0.0
    attempts: int = 0
    explanation: Explanation | None = None


class PendingDiagnosis:
    """Asks one cache; `decisions`: the last failure of each root, `victims`: whom each preemptor waits for."""

    def __init__(
        self,
        cache: SchedulerCache,
        decider: Decider,
        decisions: Mapping[str, Decision],
        victims: Mapping[str, set[str]],
    ):
        self._cache = cache
        self._decider = decider
        self._decisions = decisions
        self._victims = victims

    # ---- as the scheduler sees it

    def waiting(self, entry: QueuedRoot, root: Group | PodInfo | None) -> Pending:
        explanation = self._told(entry, root)
        return Pending(
            root.pod.key if isinstance(root, PodInfo) else shown(entry.key),
            entry.queue.value,
            (explanation.reason if explanation is not None else None) or (REFUSED if entry.refusal else QUEUED),
            explanation.detail if explanation is not None else entry.refusal or "its turn has not come yet",
            entry.size,
            entry.priority,
            entry.since,
            entry.attempts,
            explanation,
        )

    def parked(self) -> Iterator[Pending]:
        """Pods that no root speaks for."""
        for member, broken in self._cache.parked():
            explanation = unrooted(member.pod.key, broken)
            yield Pending(
                member.pod.key, "incomplete", str(explanation.reason), explanation.detail, 1, explanation=explanation
            )

    def _told(self, entry: QueuedRoot, root: Group | PodInfo | None) -> Explanation | None:
        if entry.queue is SubQueue.PREEMPTING:
            victims = len(self._victims.get(entry.key, ()))
            return waits(entry.key, Reason.PREEMPTING, f"{count(victims, 'pod')} must go first")
        if entry.queue is SubQueue.GATED and root is not None:
            return gate(root, self._cache)
        decision = self._decisions.get(entry.key)
        return None if decision is None else of_decision(decision)

    # ---- as it is now, asked afresh

    def now(self, root: Group | PodInfo) -> tuple[Explanation | None, Decision | None]:
        """Why a root would not be placed by a decision made now; None if it would be, or has no pods to place."""
        if _gated(root):
            return gate(root, self._cache), None
        decision = self._decider.decide(root)
        if decision.kind in {DecisionKind.SCHEDULED, DecisionKind.NOTHING}:
            return volumes_under_way(root, self._cache), decision
        return of_decision(decision), decision


def of_decision(decision: Decision) -> Explanation:
    """What a decision that did not place everything says, with its note."""
    explanation = decision.explanation
    if explanation is None or explanation.reason is None:
        reason = decision.reason or Reason.INSUFFICIENT
        detail = next((one.detail for one in decision.outcomes.values() if one.reason is not None), _EXTRA)
        explanation = Explanation(decision.root, 0, False, reason, detail)
    return replace(explanation, detail=f"{explanation.detail}; {decision.note}") if decision.note else explanation


# ---- before a root can be tried


def _gated(root: Group | PodInfo) -> bool:
    return root.gated if isinstance(root, PodInfo) else root.gated or not root.ready


def gate(root: Group | PodInfo, cache: SchedulerCache) -> Explanation:
    """Why a root is not ready to be tried, level by level."""
    if isinstance(root, PodInfo):
        return waits(f"pod/{root.uid}", Reason.GATED, f"the pod has {_gates([root])}")
    deep = too_deep(root)
    return waits(root.key, Reason.MISCONFIGURED, deep) if deep else _gate(root, 0, cache, held=root.gated)


def _gate(group: Group, level: int, cache: SchedulerCache, *, held: bool) -> Explanation:
    """`held`: gates are what holds the tree back; members may be missing as well, but that comes after."""
    spec = group.spec
    assert spec is not None
    children = [_gate(child, level + 1, cache, held=held) for child in group.ordered()]
    wrong = group.gated if held else not group.ready
    explanation = Explanation(group.key, level, not wrong, need=spec.need, children=children)
    if not wrong:
        return explanation
    explanation.can = group.ready_children if spec.composite else group.members
    missing = spec.need - explanation.can
    if held:
        gated = [one for leaf in group.leaves() for one in leaf.pending.values() if one.gated]
        explanation.reason = Reason.GATED
        explanation.detail = f"{len(gated)} {'pod has' if len(gated) == 1 else 'pods have'} {_gates(gated)}"
        explanation.remedies = [
            Remedy(RemedyKind.GATES, "whoever set the scheduling gates has to take them away", len(gated))
        ]
        if not spec.composite and missing > 0:  # the gates may be there until all are
            explanation.detail += f"; {explanation.can} of {spec.need} members exist"
            explanation.remedies.append(more_members(missing, by=_creator(group)))
            _blame_quota(explanation, group, missing, cache)
        return explanation
    explanation.reason = Reason.WAITING_FOR_MEMBERS
    if spec.composite:
        explanation.detail = f"{explanation.can} of {spec.need} groups have the members they need"
        explanation.remedies = [more_members(missing, "group", _creator(group))]
    else:
        explanation.detail = f"{explanation.can} of {spec.need} members exist"
        explanation.remedies = [more_members(missing, by=_creator(group))]
        _blame_quota(explanation, group, missing, cache)
    return explanation


def _creator(group: Group) -> str:
    """Who creates its members: whoever controls those that are there, or the group."""
    known = next(iter((*group.pending.values(), *group.placed.values())), None)
    owners = (known.pod.metadata.owner_references if known is not None else None) or ()
    own = group.spec.owners if group.spec is not None else ()
    found = next((one for one in (*owners, *own) if one.controller), None)
    return f"{found.kind} {found.name}" if found is not None else ""


def _blame_quota(explanation: Explanation, group: Group, missing: int, cache: SchedulerCache) -> None:
    """A quota may keep the others from being created; and another gang that waits in the same way may hold it."""
    known = next(iter((*group.pending.values(), *group.placed.values())), None)
    if known is None or group.spec is None:
        return
    asks = pod_requests(cache.as_json(known)["spec"])
    short = cache.quotas.shortage(group.spec.namespace, {name: value * missing for name, value in asks.items()})
    if short is None:
        return
    explanation.detail += f"; {short}"
    explanation.remedies = [Remedy(RemedyKind.QUOTA, short.remedy, short.used + short.asks)]
    others = [other for other in _waiting_too(group, cache) if other.spec is not None]
    if others:
        names = ", ".join(shown(other.key) for other in others[:_NAMED])
        wait = "waits" if len(others) == 1 else "wait"
        explanation.detail += f"; {names} {wait} for members as well, and what each holds of the quota the other lacks"
        text = f"delete or suspend one of them and {shown(group.key)}, so that the other can start"
        explanation.remedies.append(Remedy(RemedyKind.QUOTA, text, len(others)))


def _waiting_too(group: Group, cache: SchedulerCache) -> list[Group]:
    """Other groups of the namespace that have some of their members, and too few."""
    assert group.spec is not None
    space = group.spec.namespace
    return [
        other
        for other in cache.trees
        if other is not group
        and other.spec is not None
        and other.spec.namespace == space
        and not other.spec.composite
        and other.pending
        and not other.ready
    ]


def volumes_under_way(root: Group | PodInfo, cache: SchedulerCache) -> Explanation | None:
    """It has nodes, and claims of it wait for a volume that somebody has been asked to make there."""
    members = [root] if isinstance(root, PodInfo) else [one for leaf in root.leaves() for one in leaf.pending.values()]
    asked = dict.fromkeys(
        found for one in members if one.pod.spec.volumes for found in cache.storage.under_way(cache.as_json(one))
    )
    if not asked:
        return None
    claim, provisioner, node = next(iter(asked))
    more = f", and {len(asked) - 1} more claims wait" if len(asked) > 1 else ""
    key = f"pod/{root.uid}" if isinstance(root, PodInfo) else root.key
    detail = f"claim {claim} waits for {provisioner} to make a volume for node {node}{more}"
    explanation = waits(key, Reason.WAITING_FOR_VOLUME, detail)
    text = f"look whether the provisioner {provisioner} runs, and for events of claim {claim}"
    explanation.remedies = [Remedy(RemedyKind.VOLUME, text, len(asked))]
    return explanation


def _gates(members: list[PodInfo]) -> str:
    names = {str(one.get("name")) for member in members for one in member.pod.spec.scheduling_gates or ()}
    return f"scheduling gates ({', '.join(sorted(names))})"


def unrooted(key: str, broken: BrokenChain) -> Explanation:
    """Of a pod or group whose chain of parents has no end."""
    reason = Reason.MISCONFIGURED if broken.cycle else Reason.WAITING_FOR_GROUP
    explanation = waits(key, reason, broken.why)
    if broken.remedy:
        explanation.remedies = [Remedy(RemedyKind.GROUP, broken.remedy, 1)]
    elif not broken.cycle:
        pod_group = not broken.group.startswith(COMPOSITE_PREFIX)
        field = "spec.schedulingGroup.podGroupName" if pod_group else "spec.parentCompositePodGroupName"
        kind = "PodGroup " if pod_group else ""
        text = f"create {kind}{described(broken.group)}, or correct {field}"
        explanation.remedies = [Remedy(RemedyKind.GROUP, text, 1)]
    return explanation


def told(explanation: Explanation, by: str = "") -> str:
    """As conditions and events say it. `by`: the rule that made the group."""
    advice = explanation.advice().replace(COMPOSITE_PREFIX, "")
    return "; ".join(filter(None, (f"{explanation.reason}: {explanation.detail}", advice, by)))
