"""What may be written to a Job's status: counters that only grow, conditions that agree and never go back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kohort.api.errors import OMITTED, FieldError, duplicate, invalid, required
from kohort.api.rules import same
from kohort.apimachinery import times
from kohort.kinds.batch.api import indexes

if TYPE_CHECKING:
    from kohort.api.kind import Context, Object

Status = dict[str, Any]

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"
FAILURE_TARGET: Final = "FailureTarget"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
TERMINAL: Final = (FAILED, COMPLETE, FAILURE_TARGET, SUCCESS_CRITERIA_MET)

_NEVER_BOTH: Final = (
    (COMPLETE, FAILED),
    (COMPLETE, FAILURE_TARGET),
    (SUCCESS_CRITERIA_MET, FAILED),
    (SUCCESS_CRITERIA_MET, FAILURE_TARGET),
)
_FIRST: Final = ((COMPLETE, SUCCESS_CRITERIA_MET), (FAILED, FAILURE_TARGET))


def holds(status: Status, condition: str) -> bool:
    conditions = status.get("conditions") or []
    return any(one.get("type") == condition and one.get("status") == "True" for one in conditions)


def is_finished(job: Object) -> bool:
    status = job.get("status") or {}
    return holds(status, COMPLETE) or holds(status, FAILED)


def validate_status(job: Object, old: Object, _ctx: Context) -> list[FieldError]:
    spec, status, before = job.get("spec") or {}, job.get("status") or {}, old.get("status") or {}
    return [
        *_counters(status),
        *_uncounted(status),
        *_finish(job, status),
        *_index_lists(spec, status),
        *_conditions(status),
        *_backwards(job, status, before),
    ]


def _counters(status: Status) -> Iterator[FieldError]:
    for member in ("active", "succeeded", "failed", "ready", "terminating"):
        value = status.get(member)
        if value is not None and value < 0:
            yield invalid(f"status.{member}", value, "must be greater than or equal to 0")
    ready = status.get("ready") or 0
    if ready > max(0, status.get("active") or 0):
        yield invalid("status.ready", ready, "cannot set more ready pods than active")


def _uncounted(status: Status) -> Iterator[FieldError]:
    block = status.get("uncountedTerminatedPods") or {}
    seen: set[str] = set()
    for member in ("succeeded", "failed"):
        for index, uid in enumerate(block.get(member) or []):
            place = f"status.uncountedTerminatedPods.{member}[{index}]"
            if not uid:
                yield invalid(place, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(place, uid)
            seen.add(uid)


def _finish(job: Object, status: Status) -> Iterator[FieldError]:
    complete, start, end = holds(status, COMPLETE), status.get("startTime"), status.get("completionTime")
    if complete and end is None:
        yield required("status.completionTime", "completionTime is required for Complete jobs")
    if not complete and end is not None:
        text = "cannot set completionTime when there is no Complete=True condition"
        yield invalid("status.completionTime", end, text)
    if start and end and times.moment(end) < times.moment(start):
        yield invalid("status.completionTime", end, "completionTime cannot be set before startTime")
    if not is_finished(job):
        return
    for member in ("active", "terminating"):
        if (status.get(member) or 0) > 0:
            yield invalid(f"status.{member}", status[member], f"{member}>0 is invalid for finished job")
    # A Job that asks for nothing may be complete before it starts.
    if start is None and (job.get("spec") or {}).get("completions") != 0:
        yield required("status.startTime", "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if any(uncounted.values()):
        yield invalid("status.uncountedTerminatedPods", uncounted, "must be empty for finished job")


def _index_lists(spec: Status, status: Status) -> Iterator[FieldError]:
    indexed, completions = spec.get("completionMode") == "Indexed", spec.get("completions") or 0
    for member in ("completedIndexes", "failedIndexes"):
        listed = status.get(member)
        if not listed:
            continue
        if not indexed:
            text = f"cannot set non-empty {member} when non-indexed completion mode"
            yield invalid(f"status.{member}", listed, text)
        elif member == "failedIndexes" and spec.get("backoffLimitPerIndex") is None:
            yield invalid(
                "status.failedIndexes", listed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            )
        elif _bad(listed, completions):
            yield invalid(f"status.{member}", listed, f"error parsing {member}: {_bad(listed, completions)}")
    yield from _overlap(status, completions)


def _bad(listed: str, completions: int) -> str | None:
    try:
        indexes.parse(listed, completions)
    except indexes.BadIndexesError as wrong:
        return str(wrong)
    return None


def _overlap(status: Status, completions: int) -> Iterator[FieldError]:
    done, failed = status.get("completedIndexes"), status.get("failedIndexes")
    if not done or not failed or _bad(done, completions) or _bad(failed, completions):
        return
    sets = (indexes.IndexSet(indexes.parse(listed, completions)) for listed in (done, failed))
    both = (next(sets) & next(sets)).first()
    if both is not None:
        yield invalid("status.failedIndexes", failed, f"failedIndexes and completedIndexes overlap at index: {both}")


def _conditions(status: Status) -> Iterator[FieldError]:
    for one, other in _NEVER_BOTH:
        if holds(status, one) and holds(status, other):
            yield invalid("status.conditions", OMITTED, f"cannot set {one}=True and {other}=true conditions")
    for final, interim in _FIRST:
        if holds(status, final) and not holds(status, interim):
            text = f"cannot set {final}=True condition without the {interim}=true condition"
            yield invalid("status.conditions", OMITTED, text)


def _backwards(job: Object, status: Status, old: Status) -> Iterator[FieldError]:
    for condition in TERMINAL:
        if holds(old, condition) and not holds(status, condition):
            yield invalid("status.conditions", OMITTED, f"cannot disable the terminal {condition}=True condition")
    for member in ("failed", "succeeded"):
        after, before = status.get(member) or 0, old.get(member) or 0
        if after < before and not (member == "succeeded" and _elastic(job)):
            yield invalid(f"status.{member}", after, f"cannot decrease the {member} counter")
    if holds(old, COMPLETE) and not same(status.get("completionTime"), old.get("completionTime")):
        yield invalid("status.completionTime", status.get("completionTime"), "field is immutable")
    started = old.get("startTime") is not None and not same(status.get("startTime"), old["startTime"])
    if started and not (job.get("spec") or {}).get("suspend") and not holds(old, SUSPENDED):
        text = "field is immutable for unsuspended job once set"
        yield invalid("status.startTime", status.get("startTime"), text)


def _elastic(job: Object) -> bool:
    """An Indexed Job whose completions were lowered forgets the successes beyond them."""
    spec = job.get("spec") or {}
    return spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
