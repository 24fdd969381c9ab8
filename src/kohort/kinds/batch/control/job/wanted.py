"""How many pods a Job wants now, which go first if there are too many, which indexes come next (spec job 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.apimachinery import times
from kohort.kinds.batch.api.indexes import IndexSet
from kohort.kinds.batch.control.job import backoff
from kohort.kinds.batch.control.job import pod as pods_
from kohort.kinds.batch.control.job.backoff import Record
from kohort.kinds.batch.control.job.counting import (
    Tally,
    has_index_limit,
    indexes_of,
    is_indexed,
    is_suspended,
    waits_for_end,
)

AT_ONCE: Final = 500  # creates or deletes of one reconcile
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Either pods to remove, or pods to make (`None`: without an index), or nothing; `after`: reconcile again then."""

    remove: tuple[Object, ...] = ()
    create: tuple[int | None, ...] = ()
    after: float | None = None


def wanted(tally: Tally, record: Record, now: datetime) -> Wanted:
    if is_suspended(tally.job):
        return Wanted(remove=tuple(tally.active[:AT_ONCE]))
    most = want_active(tally)
    surplus = surplus_pods(tally, max(0, len(tally.active) - most))
    if surplus:
        return Wanted(remove=tuple(surplus[:AT_ONCE]))
    missing = most - len(tally.active) - (tally.terminating if waits_for_end(tally.job) else 0)
    return _missing(tally, missing, record, now) if missing > 0 else Wanted()


def want_active(tally: Tally) -> int:
    if tally.completions is None:
        # A work queue: once one pod found it empty, the others end by themselves and nobody is sent after them.
        return len(tally.active) if tally.succeeded else tally.parallelism
    return max(0, min(tally.parallelism, tally.completions - tally.succeeded))


def _missing(tally: Tally, missing: int, record: Record, now: datetime) -> Wanted:
    if not has_index_limit(tally.job):
        wait = record.remaining(now)
        if wait > 0:
            return Wanted(after=wait)
    missing = min(missing, AT_ONCE)
    if not is_indexed(tally.job):
        return Wanted(create=(None,) * missing)
    pending = _taken(tally).absent(tally.completions or 0, missing)
    ready: list[int] = []
    waits: list[float] = []
    for index in pending:
        failed = tally.delayed.get(index)
        wait = backoff.index_remaining(failed, now) if failed is not None else 0.0
        if wait > 0:
            waits.append(wait)
        else:
            ready.append(index)
    return Wanted(create=tuple(ready), after=min(waits, default=None))


def _taken(tally: Tally) -> IndexSet:
    completions = tally.completions or 0
    running = [*tally.active]
    if waits_for_end(tally.job):
        running += [pod for pod in tally.pods if pods_.is_terminating(pod)]
    return indexes_of(running, completions) | tally.done | tally.lost


# ---- which pods go


def surplus_pods(tally: Tally, least: int) -> list[Object]:
    """At least `least` of the active pods, and all whose index is wrong or taken by a better one."""
    if not is_indexed(tally.job):
        return sorted(tally.active, key=_keep)[:least]
    remove, left = _split(tally.active, tally.completions or 0)
    if len(remove) < least:
        remove += sorted(left, key=_keep)[: least - len(remove)]
    return remove


def _split(active: Sequence[Object], completions: int) -> tuple[list[Object], list[Object]]:
    """Pods that no index needs, and the others by index."""
    by_index: dict[int, list[Object]] = {}
    remove: list[Object] = []
    for pod in active:
        index = pods_.index(pod)
        if index is None or index >= completions:
            remove.append(pod)
        else:
            by_index.setdefault(index, []).append(pod)
    left = []
    for index in sorted(by_index):
        rivals = sorted(by_index[index], key=_keep)
        remove += rivals[:-1]
        left.append(rivals[-1])
    return remove, left


def _keep(pod: Object) -> tuple[Any, ...]:
    """How much a pod is worth keeping: the least first. Younger pods have done less."""
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    ready = pods_.condition(pod, "Ready")
    since = times.parse(ready.get("lastTransitionTime")) if pods_.is_ready(pod) else None
    return (
        bool((pod.get("spec") or {}).get("nodeName")),
        phases.get(pods_.phase(pod), 0),
        pods_.is_ready(pod),
        -(since or _LONG_AGO).timestamp() if since else 0.0,
        -pods_.restarts(pod),
        -pods_.created(pod).timestamp(),
    )
