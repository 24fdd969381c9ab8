"""One reconcile of a CronJob: what became of its runs, whether one is due, which old ones go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.apimachinery import times
from kohort.apimachinery.cron import BadScheduleError, Schedule, UnknownTimeZoneError, parse
from kohort.controllers.reconcile import (
    Event,
    Part,
    Reconcile,
    ReconcileError,
    Result,
    Step,
    emit,
    must,
    one,
)
from kohort.controllers.writes import create, delete, update
from kohort.kinds.batch.api.status import COMPLETE, holds, is_finished
from kohort.kinds.batch.compile.cronjob import run_of

SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_SOON: Final = 0.1  # seconds after the due moment: clocks are not exact


@dataclass(slots=True)
class Round:
    """A CronJob with its Jobs, and the status that is being written."""

    cronjob: Object
    jobs: Sequence[Object]
    now: datetime
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cronjob["spec"]
        return found

    @property
    def active(self) -> list[dict[str, Any]]:
        return list(self.status.get("active") or [])

    def set_active(self, references: list[dict[str, Any]]) -> None:
        if references:
            self.status["active"] = references
        else:
            self.status.pop("active", None)

    def event(self, kind: Literal["Normal", "Warning"], reason: str, note: str) -> Event:
        return Event(self.cronjob, kind, reason, note)


def reconcile(cronjob: Object | None, jobs: Sequence[Object], now: datetime) -> Reconcile:
    """`jobs`: those that the CronJob controls."""
    if cronjob is None:
        return Result()
    turn = Round(cronjob, jobs, now, copied(cronjob.get("status") or {}))
    yield from _follow(turn)
    after: float | None = yield from _run(turn)
    yield from _write_status(turn)
    yield from _clean(turn)
    return Result(requeue_after=after)


def _write_status(turn: Round) -> Part:
    if turn.status == (turn.cronjob.get("status") or {}):
        return
    write = update({**turn.cronjob, "status": turn.status}, "status")
    turn.cronjob = must(write, (yield from one(write)))


# ---- what became of the runs


def _follow(turn: Round) -> Part:
    known = {str(one["metadata"].get("uid")): one for one in turn.jobs}
    active, events = [], []
    for reference in turn.active:
        job = known.get(str(reference.get("uid")))
        if job is None:
            events.append(turn.event("Normal", "MissingJob", f"Active job went missing: {reference.get('name')}"))
        elif is_finished(job):
            word = "Complete" if holds(job.get("status") or {}, COMPLETE) else "Failed"
            note = f"Saw completed job: {reference.get('name')}, condition: {word}"
            events.append(turn.event("Normal", "SawCompletedJob", note))
        else:
            active.append(reference)
    listed = {str(one.get("uid")) for one in active}
    for uid, job in known.items():
        if not is_finished(job) and uid not in listed:
            # Made by us just before we died, or by hand: either way it runs in our name.
            active.append(_reference(job))
    turn.set_active(active)
    _last_success(turn)
    yield from emit(*events)


def _last_success(turn: Round) -> None:
    ends = [times.parse((job.get("status") or {}).get("completionTime")) for job in turn.jobs]
    last = times.parse(turn.status.get("lastSuccessfulTime"))
    newest = max([end for end in [*ends, last] if end is not None], default=None)
    if newest is not None and newest != last:
        turn.status["lastSuccessfulTime"] = times.seconds(newest)


def _reference(job: Object) -> dict[str, Any]:
    meta = job["metadata"]
    found = {"apiVersion": "batch/v1", "kind": "Job", "namespace": meta.get("namespace"), "name": meta["name"]}
    return {**found, "uid": meta.get("uid"), "resourceVersion": meta.get("resourceVersion")}


# ---- whether one is due


def _run(turn: Round) -> Part:
    """-> seconds until the next is due"""
    if turn.cronjob["metadata"].get("deletionTimestamp") or turn.spec.get("suspend"):
        return None
    try:
        schedule = parse(str(turn.spec.get("schedule") or ""), turn.spec.get("timeZone"))
    except BadScheduleError as error:
        reason = "UnknownTimeZone" if isinstance(error, UnknownTimeZoneError) else "UnparseableSchedule"
        yield from emit(turn.event("Warning", reason, f"cannot be scheduled: {error}"))
        return None
    due = yield from _due(turn, schedule)
    if due is not None and (yield from _may_start(turn)):
        yield from _start(turn, due)
    following = schedule.next(turn.now)
    return None if following is None else (following - turn.now).total_seconds() + _SOON


def _due(turn: Round, schedule: Schedule) -> Part:
    """The moment whose Job is to be made now, if any."""
    meta, deadline = turn.cronjob["metadata"], turn.spec.get("startingDeadlineSeconds")
    since = times.parse(turn.status.get("lastScheduleTime")) or times.parse(meta.get("creationTimestamp")) or turn.now
    late = turn.now - timedelta(seconds=int(deadline)) if deadline is not None else None
    missed = latest(schedule, max(since, late) if late is not None else since, turn.now)
    if missed.many:
        text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        yield from emit(turn.event("Warning", "TooManyMissedTimes", text))
    if missed.latest is None:
        if late is not None and late > since:
            gone = latest(schedule, since, late).latest
            if gone is not None:
                stamp = gone.strftime("%a, %d %b %Y %H:%M:%S +0000")
                note = f"Missed scheduled time to start a job: {stamp}"
                yield from emit(turn.event("Warning", "MissSchedule", note))
        return None
    name = run_name(turn.cronjob, missed.latest)
    return None if any(one.get("name") == name for one in turn.active) else missed.latest


def run_name(cronjob: Object, moment: datetime) -> str:
    return f"{cronjob['metadata']['name']}-{int(moment.timestamp()) // 60}"


def _may_start(turn: Round) -> Part:
    """What the concurrency policy says while others run."""
    policy = turn.spec.get("concurrencyPolicy") or "Allow"
    if policy == "Forbid" and turn.active:
        text = "Not starting job because prior execution is running and concurrency policy is Forbid"
        yield from emit(turn.event("Normal", "JobAlreadyActive", text))
        return False
    if policy == "Replace":
        jobs = {str(one["metadata"].get("uid")): one for one in turn.jobs}
        running = [jobs[str(one.get("uid"))] for one in turn.active if str(one.get("uid")) in jobs]
        gone = yield from _delete(turn, running)
        turn.set_active([one for one in turn.active if one.get("uid") not in gone])
    return True


def _start(turn: Round, due: datetime) -> Part:
    job = run_of(turn.cronjob, int(due.timestamp()) // 60)
    job["metadata"].setdefault("annotations", {})[SCHEDULED_AT] = times.seconds(due)
    write = create(job)
    answer = yield from one(write)
    if answer.refusal is not None and not answer.refusal.already_exists:
        yield from emit(turn.event("Warning", "FailedCreate", f"Error creating job: {answer.refusal.message}"))
        raise ReconcileError(f"{write}: {answer.refusal.message}")
    if answer.refusal is None:
        made = answer.object or job
        yield from emit(turn.event("Normal", "SuccessfulCreate", f"Created job {made['metadata']['name']}"))
        turn.set_active([*turn.active, _reference(made)])
    # If it exists, it is of an earlier reconcile that could not write the status; it is found among the Jobs next time.
    turn.status["lastScheduleTime"] = times.seconds(due)


# ---- which old ones go


def _clean(turn: Round) -> Part:
    ended = [job for job in turn.jobs if is_finished(job) and not job["metadata"].get("deletionTimestamp")]
    ended.sort(key=lambda job: ((job.get("status") or {}).get("startTime") or "", str(job["metadata"]["name"])))
    well = [job for job in ended if holds(job.get("status") or {}, COMPLETE)]
    badly = [job for job in ended if job not in well]
    surplus = [
        job
        for jobs, limit in ((well, "successfulJobsHistoryLimit"), (badly, "failedJobsHistoryLimit"))
        if turn.spec.get(limit) is not None
        for job in jobs[: max(0, len(jobs) - int(turn.spec[limit]))]
    ]
    yield from _delete(turn, surplus)


def _delete(turn: Round, jobs: Sequence[Object]) -> Part:
    """-> uids of what was told to go"""
    if not jobs:
        return set()
    answers = yield Step([delete(job) for job in jobs])
    gone, events, problems = set(), [], []
    for job, answer in zip(jobs, answers, strict=True):
        name = job["metadata"]["name"]
        if answer.refusal is None or answer.refusal.not_found:
            gone.add(job["metadata"].get("uid"))
            events.append(turn.event("Normal", "SuccessfulDelete", f"Deleted job {name}"))
        else:
            problems.append(answer.refusal.message)
            events.append(turn.event("Warning", "FailedDelete", f"Deleted job: {answer.refusal.message}"))
    yield from emit(*events)
    if problems:
        raise ReconcileError("; ".join(problems))
    return gone


@dataclass(frozen=True, slots=True)
class Missed:
    """The latest moment that is over; `many`: so many were missed that something must be wrong."""

    latest: datetime | None
    many: bool = False


def latest(schedule: Schedule, since: datetime, now: datetime) -> Missed:
    """The last due moment in (since, now]. Long gaps are jumped over: looked for ever further back from now."""
    first = schedule.next(since)
    if first is None or first > now:
        return Missed(None)
    second = schedule.next(first)
    if second is None or second > now:
        return Missed(first)
    period = second - first
    back, found = period, None
    while found is None:
        start = max(since, now - back)
        moment = schedule.next(start)
        while moment is not None and moment <= now:
            found, moment = moment, schedule.next(moment)
        back *= 2
    return Missed(found, many=(now - first) / period > 100)
