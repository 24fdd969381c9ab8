"""A snapshot's history as a trace: what the cluster ran comes again, on its own nodes or on others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, Final

from kohort.api.kind import Object
from kohort.apimachinery import times
from kohort.apimachinery.quantity import well_formed
from kohort.simulate.trace import MOST_JOBS, MOST_PODS, Trace, TraceError, TraceJob

Json = dict[str, Any]
_UNKNOWN: Final = 3600.0  # seconds: how long jobs run if none is known to have ended


@dataclass(frozen=True, slots=True)
class _Past:
    """`seconds`: how long it ran, or has run so far; None: it had not started."""

    record: Json
    created: datetime
    seconds: float | None
    ended: bool


def is_snapshot(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("objects"), dict)


def read_history(document: Json) -> tuple[Trace, list[Object]]:
    """The trace, and the nodes that the snapshot has. Users are namespaces.

    Nobody knows how long what still ran, or waited, would have run: as long as the middle one of those that ended, or
    as long as it had run already if that is longer.
    """
    records = document.get("history")
    if not isinstance(records, list) or not records:
        raise TraceError(["history: is not in this snapshot, or empty; kohort snapshot -o FILE.json.gz writes it"])
    if len(records) > MOST_JOBS:
        raise TraceError([f"history: {len(records):,} jobs; accepted are at most {MOST_JOBS:,}"])
    taken = times.parse(document.get("time"))
    errors: list[str] = []
    found = [one for number, entry in enumerate(records) if (one := _past(entry, taken, number, errors)) is not None]
    if errors:
        raise TraceError(errors[:20])
    first = min(one.created for one in found)
    typical = median([one.seconds for one in found if one.ended and one.seconds is not None] or [_UNKNOWN])
    jobs = sorted((_job(one, first, typical) for one in found), key=lambda job: job.at)
    nodes = [one for one in document["objects"].get("nodes") or () if isinstance(one, dict)]
    return Trace(tuple(jobs), notes=tuple(_notes(found, typical))), nodes


def _past(entry: Any, taken: datetime | None, number: int, errors: list[str]) -> _Past | None:
    where = f"history[{number}]"
    if not isinstance(entry, dict):
        errors.append(f"{where}: accepted is an object")
        return None
    created, started, ended = (times.parse(entry.get(name)) for name in ("created", "started", "ended"))
    pods, requests = entry.get("pods"), entry.get("requests")
    if created is None:
        errors.append(f"{where}.created: {entry.get('created')!r} is not a time")
    if not isinstance(pods, int) or not 1 <= pods <= MOST_PODS:
        errors.append(f"{where}.pods: {pods!r} is not accepted; 1 to {MOST_PODS:,}")
    if not isinstance(requests, dict) or not all(well_formed(amount) for amount in requests.values()):
        errors.append(f"{where}.requests: {requests!r} is not accepted; quantities by resource")
    if created is None or errors:
        return None
    until = ended or taken
    seconds = (until - started).total_seconds() if started is not None and until is not None else None
    return _Past(entry, created, seconds, ended is not None)


def _job(past: _Past, first: datetime, typical: float) -> TraceJob:
    one = past.record
    duration = past.seconds or 0.0
    return TraceJob(
        name=f"{one.get('namespace')}/{one.get('name')}",
        at=(past.created - first).total_seconds(),
        duration=max(duration if past.ended else max(duration, typical), 1.0),
        pods=one["pods"],
        requests={str(name): str(amount) for name, amount in one["requests"].items()},
        priority=int(one.get("priority") or 0),
        user=str(one.get("namespace") or ""),
        topology=str(one.get("topology") or ""),
        minimum=int(one.get("minimum") or 0),
    )


def _notes(found: list[_Past], typical: float) -> list[str]:
    unended = sum(not one.ended for one in found)
    if not unended:
        return []
    taken = f"{unended:,} of {len(found):,} had not ended: they are taken to run {typical:,.0f} s"
    return [f"{taken}, as the middle one of the others, or as long as they had run"]
