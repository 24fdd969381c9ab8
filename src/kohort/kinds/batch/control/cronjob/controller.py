"""The CronJob controller as the runtime sees it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime

from kohort.api.kind import Object
from kohort.api.objects import controller_of
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, enqueue_itself
from kohort.controllers.reconcile import Reconcile
from kohort.kinds.batch.control.cronjob.reconcile import reconcile


def cronjob_controller() -> Controller:
    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        cronjob = reader.get("CronJob", key)
        uid = cronjob["metadata"].get("uid") if cronjob is not None else None
        jobs = reader.indexed("Job", "cronjob", key)
        return reconcile(cronjob, [job for job in jobs if (controller_of(job) or {}).get("uid") == uid], now)

    watches = (
        Watch("batch/v1", "CronJob", enqueue_itself),
        Watch("batch/v1", "Job", _of_job, {"cronjob": _cronjob_of}),
    )
    return Controller(name="cronjob", watches=watches, reconcile=reconcile_key, conditions=False)


def _of_job(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    for job in (old, new):
        if job is not None:
            yield from (Enqueue(key) for key in _keys(job))


def _keys(job: Object) -> Iterable[Key]:
    owner = controller_of(job)
    if owner is not None and owner.get("kind") == "CronJob":
        yield Key(str(job["metadata"].get("namespace") or ""), str(owner.get("name")))


def _cronjob_of(job: Object) -> Iterable[Hashable]:
    return _keys(job)
