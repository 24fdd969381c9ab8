"""A fault of ours while one root is decided: it concerns that root, is told where people see it, and stops nobody else.

A root that does not fit, or that is misconfigured, is no fault. A fault is an exception that nobody thought of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kohort.place.demand import Outcome, Reason
from kohort.place.explain import waits
from kohort.scheduler.decision import Decision, DecisionKind
from kohort.scheduler.queue import QueuedRoot
from kohort.scheduler.trees import Group, PodInfo

_LONGEST: Final = 512


@dataclass(frozen=True, slots=True)
class Fault:
    """For the log: `first` of a row."""

    root: str
    error: Exception
    first: bool


def text_of(error: Exception) -> str:
    text = f"the scheduler failed on it and tries again: {type(error).__name__}: {error}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def members_of(root: Group | PodInfo) -> dict[str, PodInfo]:
    """The pods that a decision about a root is about."""
    if isinstance(root, PodInfo):
        return {root.uid: root}
    return {uid: member for leaf in root.leaves() for uid, member in leaf.pending.items()}


def failed_decision(
    entry: QueuedRoot, root: Group | PodInfo | None, members: dict[str, PodInfo], error: Exception
) -> Decision:
    """What is said of a root instead of a decision."""
    text = text_of(error)
    keys = [group.key for group in root.walk()] if isinstance(root, Group) else [entry.key]
    outcome = Outcome(False, reason=Reason.ERROR, detail=text)
    waiting = {uid: member for uid, member in members.items() if not member.node and not member.leaving}
    return Decision(
        entry.key,
        entry.priority,
        DecisionKind.ERROR,
        waiting,
        outcomes=dict.fromkeys(keys, outcome),
        explanation=waits(entry.key, Reason.ERROR, text),
    )
