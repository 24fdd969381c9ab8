"""What happened when: for each unit the times it waited and ran, and marks for what went wrong.

What was before anybody looked is read from the objects that are still there; from then on changes are noted as they
come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from kohort.apimachinery import times
from kohort.scheduler.model import Node, Pod
from kohort.web.units import Unit

MARKS: Final = 400  # kept of the whole cluster
_SPANS: Final = 40  # kept of one unit
_AWAY: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
WAITING, RUNNING = "waiting", "running"


def epoch(text: str | None) -> int:
    """Seconds since 1970 of a time of the API; 0 if there is none."""
    moment = times.parse(text) if text else None
    return int(moment.timestamp()) if moment is not None else 0


@dataclass(slots=True)
class Span:
    what: str
    start: int
    end: int = 0  # 0: it lasts

    def row(self) -> list[Any]:
        return [self.what, self.start, self.end]


@dataclass(slots=True)
class Story:
    """Of one unit."""

    spans: deque[Span] = field(default_factory=lambda: deque(maxlen=_SPANS))

    def becomes(self, what: str, at: int) -> None:
        """Waiting, running, or nothing any more."""
        last = self.spans[-1] if self.spans else None
        if last is not None and not last.end:
            if last.what == what:
                return
            last.end = max(at, last.start)
        if what:
            self.spans.append(Span(what, at))


def first_story(pods: Iterable[Pod]) -> Story:
    """What the pods that are there say about the past."""
    story, every = Story(), list(pods)
    created = min((at for pod in every if (at := epoch(pod.metadata.creation_timestamp))), default=0)
    started = min((at for pod in every if (at := _since(pod, "PodScheduled"))), default=0)
    if created:
        story.becomes(WAITING, created)
    if started:
        story.becomes(RUNNING, started)
    if every and all(pod.status.phase in {"Succeeded", "Failed"} for pod in every):
        story.becomes("", max((_since(pod, "Ready", "False") for pod in every), default=0) or started or created)
    return story


def _since(pod: Pod, condition: str, status: str = "True") -> int:
    found = (one for one in pod.status.conditions or () if (one.type, one.status) == (condition, status))
    return next((epoch(one.last_transition_time) for one in found), 0)


@dataclass(frozen=True, slots=True)
class Mark:
    """`unit` 0: of no unit, for those who may see nodes."""

    number: int
    at: int
    what: str
    text: str
    namespace: str = ""
    unit: int = 0

    def row(self) -> list[Any]:
        return [self.number, self.at, self.what, self.text, self.namespace, self.unit]


class Marks:
    """The last things that happened, oldest first."""

    def __init__(self) -> None:
        self.every: deque[Mark] = deque(maxlen=MARKS)
        self.number = 0
        self._told: set[str] = set()

    def add(self, at: datetime, what: str, text: str, unit: Unit | None = None) -> None:
        self.number += 1
        namespace = unit.namespace if unit is not None else ""
        self.every.append(
            Mark(self.number, int(at.timestamp()), what, text, namespace, unit.id if unit is not None else 0)
        )

    def pod(self, old: Pod | None, new: Pod, unit: Unit, now: datetime) -> None:
        meta, status = new.metadata, new.status
        if meta.uid not in self._told and (target := _target(new)) is not None:
            self._told.add(meta.uid)
            what = "preempted" if target == "PreemptionByScheduler" else "disrupted"
            where = f" on {new.spec.node_name}" if new.spec.node_name else ""
            self.add(now, what, f"{meta.name}{where}: {target}", unit)
        elif status.phase == "Failed" and (old is None or old.status.phase != "Failed") and _target(new) is None:
            ended = 0 if old is not None else _since(new, "Ready", "False")
            at = datetime.fromtimestamp(ended, UTC) if ended else now
            self.add(at, "failed", f"{meta.name} failed on {new.spec.node_name or 'no node'}", unit)

    def forget(self, uids: Iterable[str]) -> None:
        self._told.difference_update(uids)

    def node(self, old: Node | None, new: Node | None, now: datetime) -> None:
        if old is None:
            return
        if new is None:
            self.add(now, "node", f"{old.metadata.name} was removed")
        elif _away(old) != _away(new):
            self.add(now, "node", f"{new.metadata.name} is {'not ready' if _away(new) else 'ready again'}")


def _target(pod: Pod) -> str | None:
    found = (one for one in pod.status.conditions or () if (one.type, one.status) == ("DisruptionTarget", "True"))
    return next((one.reason for one in found), None)


def _away(node: Node) -> bool:
    return any(taint.get("key") in _AWAY for taint in node.spec.taints or ())
