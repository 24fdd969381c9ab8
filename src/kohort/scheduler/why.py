"""Why each root waits: from the queue and the last decision, or asked afresh.

Reasons come from the engine's closed vocabulary. Two more words say that nothing is known against a root: it was not
tried yet, or its binding was refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kohort.place.demand import Reason
from kohort.place.explain import Explanation, waits
from kohort.place.remedies import Remedy
from kohort.scheduler.conditions import REFUSED
from kohort.scheduler.decide import Decider, Kind, Verdict
from kohort.scheduler.model import shown
from kohort.scheduler.queue import Entry, Where
from kohort.scheduler.trees import Broken, Group, Member
from kohort.scheduler.world import World

QUEUED: Final = "Queued"  # it has not been tried
_EXTRA: Final = "no node has room for a further pod of it"


@dataclass(frozen=True, slots=True)
class Pending:
    """Something that waits, and why: the answer to "why is this not running"."""

    key: str
    where: str
    reason: str
    detail: str
    pods: int
    priority: int = 0
    since: float = 0.0
    attempts: int = 0
    explanation: Explanation | None = None


class Why:
    """Asks one world; `verdicts`: the last failure of each root, `victims`: whom each preemptor waits for."""

    def __init__(
        self, world: World, decider: Decider, verdicts: Mapping[str, Verdict], victims: Mapping[str, set[str]]
    ):
        self._world = world
        self._decider = decider
        self._verdicts = verdicts
        self._victims = victims

    # ---- as the scheduler sees it

    def waiting(self, entry: Entry, root: Group | Member | None) -> Pending:
        told = self._told(entry, root)
        return Pending(
            root.pod.key if isinstance(root, Member) else shown(entry.key),
            entry.where.value,
            (told.reason if told is not None else None) or (REFUSED if entry.refusal else QUEUED),
            told.detail if told is not None else entry.refusal or "its turn has not come yet",
            entry.size,
            entry.priority,
            entry.since,
            entry.attempts,
            told,
        )

    def parked(self) -> Iterator[Pending]:
        """Pods that no root speaks for."""
        for member, broken in self._world.parked():
            told = unrooted(member.pod.key, broken)
            yield Pending(member.pod.key, "incomplete", str(told.reason), told.detail, 1, explanation=told)

    def _told(self, entry: Entry, root: Group | Member | None) -> Explanation | None:
        if entry.where is Where.PREEMPTING:
            victims = len(self._victims.get(entry.key, ()))
            return waits(entry.key, Reason.PREEMPTING, f"{victims} pods must go first")
        if entry.where is Where.GATED and root is not None:
            return gate(root)
        verdict = self._verdicts.get(entry.key)
        return None if verdict is None else of_verdict(verdict)

    # ---- as it is now, asked afresh

    def now(self, root: Group | Member) -> tuple[Explanation | None, Verdict | None]:
        """Why a root would not be placed by a decision made now; None if it would be, or has no pods to place."""
        if _gated(root):
            return gate(root), None
        verdict = self._decider.decide(root)
        if verdict.kind in {Kind.SCHEDULED, Kind.NOTHING}:
            return None, verdict
        return of_verdict(verdict), verdict


def of_verdict(verdict: Verdict) -> Explanation:
    """What a decision that did not place everything says, with its note."""
    told = verdict.told
    if told is None or told.reason is None:
        reason = verdict.reason or Reason.INSUFFICIENT
        detail = next((one.detail for one in verdict.outcomes.values() if one.reason is not None), _EXTRA)
        told = Explanation(verdict.root, 0, False, reason, detail)
    return replace(told, detail=f"{told.detail}; {verdict.note}") if verdict.note else told


# ---- before a root can be tried


def _gated(root: Group | Member) -> bool:
    return root.gated if isinstance(root, Member) else root.held or not root.ready


def gate(root: Group | Member) -> Explanation:
    """Why a root is not ready to be tried, level by level."""
    if isinstance(root, Member):
        return waits(f"pod/{root.uid}", Reason.GATED, f"the pod has {_gates([root])}")
    return _gate(root, 0, held=root.held)


def _gate(group: Group, level: int, *, held: bool) -> Explanation:
    """`held`: gates are what holds the tree back; members may be missing as well, but that comes after."""
    spec = group.spec
    assert spec is not None
    children = [_gate(child, level + 1, held=held) for child in group.ordered()]
    wrong = group.held if held else not group.ready
    told = Explanation(group.key, level, not wrong, need=spec.need, children=children)
    if not wrong:
        return told
    told.can = group.ready_children if spec.composite else group.members
    if held:
        gated = [one for leaf in group.leaves() for one in leaf.pending.values() if one.gated]
        told.reason = Reason.GATED
        told.detail = f"{len(gated)} {'pod has' if len(gated) == 1 else 'pods have'} {_gates(gated)}"
        told.remedies = [Remedy("gates", "without the scheduling gates: whoever set them takes them away", len(gated))]
        return told
    told.reason = Reason.WAITING_FOR_MEMBERS
    missing = told.need - told.can
    if spec.composite:
        told.detail = f"{told.can} of {spec.need} groups have the members they need"
        told.remedies = [Remedy("members", f"with {missing} more {'group' if missing == 1 else 'groups'}", missing)]
    else:
        told.detail = f"{told.can} of {spec.need} members exist"
        told.remedies = [Remedy("members", f"with {missing} more {'member' if missing == 1 else 'members'}", missing)]
    return told


def _gates(members: list[Member]) -> str:
    names = {str(one.get("name")) for member in members for one in member.pod.spec.scheduling_gates or ()}
    return f"scheduling gates ({', '.join(sorted(names))})"


def unrooted(key: str, broken: Broken) -> Explanation:
    """Of a pod or group whose chain of parents has no end."""
    reason = Reason.MISCONFIGURED if broken.cycle else Reason.WAITING_FOR_GROUP
    return waits(key, reason, broken.why.replace("composite/", "CompositePodGroup "))
