"""Warnings that every reconcile would repeat are told once for each generation of the JobSet (spec jobset 4.9)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kohort.controllers.reconcile import Answer, Event, Reconcile, Result

ONCE: Final = frozenset(
    {
        "InvalidJobSet",
        "GangNameConflict",
        "GangDrift",
        "GangQuorumUnreachable",
        "WorkloadAPIUnavailable",
        "UserProvidedWorkload",
    }
)
ACTION: Final = "Reconciling"  # of all events on a JobSet, as upstream's
_MOST: Final = 10_000

Key = tuple[str, int, str, str]


class EventFilter:
    """What was told. A new process begins with none, and tells it again."""

    def __init__(self) -> None:
        self._told: OrderedDict[Key, None] = OrderedDict()

    def is_news(self, event: Event) -> bool:
        if event.reason not in ONCE:
            return True
        meta = event.regarding["metadata"]
        key = (str(meta.get("uid") or ""), int(meta.get("generation") or 0), event.reason, event.note)
        if key in self._told:
            return False
        self._told[key] = None
        if len(self._told) > _MOST:
            self._told.popitem(last=False)
        return True


def filtered(reconcile: Reconcile, seen_events: EventFilter) -> Reconcile:
    """The same reconcile, without events that were recorded before."""
    answers: Sequence[Answer] | None = None
    try:
        while True:
            step = next(reconcile) if answers is None else reconcile.send(answers)
            news = [replace(event, action=ACTION) for event in step.events if seen_events.is_news(event)]
            answers = yield replace(step, events=news)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        reconcile.close()
