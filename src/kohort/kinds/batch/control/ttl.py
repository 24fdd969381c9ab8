"""Jobs that have ended are deleted when they have been looked at long enough: ttlSecondsAfterFinished (spec job 6)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kohort.api.kind import Object
from kohort.apimachinery import times
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, key_of
from kohort.controllers.reconcile import Reconcile, ReconcileError, Result, Write, one
from kohort.kinds.batch.api.status import COMPLETE, FAILED


def ttl_controller() -> Controller:
    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        return expire(reader.get("Job", key), now)

    return Controller(
        name="ttl-after-finished",
        watches=(Watch("batch/v1", "Job", _enqueue),),
        reconcile=reconcile_key,
        conditions=False,
    )


def expire(job: Object | None, now: datetime) -> Reconcile:
    """Its pods and groups go first (foreground), then the Job itself."""
    end = expiry(job) if job is not None else None
    if job is None or end is None:
        return Result()
    if end > now:
        return Result(requeue_after=(end - now).total_seconds())
    meta = job["metadata"]
    # If the time to live was changed a moment ago, the version is another, and the Job is looked at again.
    write = Write(
        verb="delete",
        api_version="batch/v1",
        kind="Job",
        namespace=str(meta.get("namespace") or ""),
        name=str(meta["name"]),
        uid=str(meta.get("uid") or ""),
        version=str(meta.get("resourceVersion") or ""),
        propagation="Foreground",
    )
    answer = yield from one(write)
    if answer.refusal is not None and not answer.refusal.not_found:
        raise ReconcileError(f"{write}: {answer.refusal.message}")
    return Result()


def expiry(job: Object) -> datetime | None:
    """When the Job's time is over; None if it has no end, or no time to live, or is going already."""
    ttl = (job.get("spec") or {}).get("ttlSecondsAfterFinished")
    if ttl is None or job["metadata"].get("deletionTimestamp"):
        return None
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") in (COMPLETE, FAILED) and condition.get("status") == "True":
            ended = times.parse(condition.get("lastTransitionTime"))
            return ended + timedelta(seconds=int(ttl)) if ended is not None else None
    return None


def _enqueue(_: Object | None, new: Object | None) -> Iterable[Enqueue]:
    if new is not None and expiry(new) is not None:
        yield Enqueue(key_of(new))
