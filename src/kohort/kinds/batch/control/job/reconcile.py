"""One reconcile of a Job: groups, pods, status (spec job 3.1). Only this module says what is done when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import controller_of, is_deleting, name_of, uid_of
from kohort.apimachinery import times
from kohort.apimachinery.labels import matches
from kohort.controllers.conditions import condition, set_condition
from kohort.controllers.gangquota import AGAIN, AVAILABLE, CONDITION, EXCEEDED, SOON
from kohort.controllers.reconcile import Event, Part, Reconcile, Result, Step, emit
from kohort.controllers.writes import create
from kohort.gang.compile import CompileContext
from kohort.kinds.batch.api.status import SUSPENDED, is_finished
from kohort.kinds.batch.compile.modes import BUILT_IN
from kohort.kinds.batch.control.job import backoff, finish
from kohort.kinds.batch.control.job import pod as pods_
from kohort.kinds.batch.control.job.accounting import Book, announce, close
from kohort.kinds.batch.control.job.backoff import Record
from kohort.kinds.batch.control.job.counting import Tally, has_index_limit, is_suspended, tally
from kohort.kinds.batch.control.job.groups import Grouped, ensure
from kohort.kinds.batch.control.job.template import new_pod
from kohort.kinds.batch.control.job.wanted import AT_ONCE, Wanted, want_active, wanted
from kohort.kinds.batch.control.job.writes import adopt, delete_all, let_all_go, raise_if, release
from kohort.kinds.batch.settings import JobSettings

_SLOW_START: Final = 1
_FITS: Final = "the pods of its gang fit into the quotas of the namespace"


@dataclass(slots=True)
class BackoffMemory:
    """What is remembered about one Job between two reconciles. Losing it makes a retry come sooner, nothing else."""

    record: Record = field(default_factory=Record)


@dataclass(frozen=True, slots=True)
class JobView:
    """A Job (None: it is gone), the pods that are or might become its own, and what else its groups depend on."""

    job: Object | None
    pods: Sequence[Object]
    others: Sequence[Object]
    now: datetime
    quota: Quota | None = None


class Quota(Protocol):
    """What the namespace's quotas leave for the gang of a pod that is to be made (`controllers.gangquota`)."""

    def uncounted(self, pod: Object) -> bool:
        """Whether that is not known yet, but soon."""

    def shortage(self, pod: Object, least: int | None) -> str:
        """Why none is made; `least`: of a gang that this reconcile made. Empty: go on."""

    def concerned(self, pod: Object) -> Sequence[Object]:
        """The group that waits, and whose it is: a JobSet or a TrainJob further up."""

    def refused(self, pod: Object) -> None: ...


def reconcile(view: JobView, memory: BackoffMemory, ctx: CompileContext) -> Reconcile:
    job = view.job
    if job is None:
        memory.record = Record()
        return (yield from _forsaken(view.pods))
    if (job["spec"].get("managedBy") or BUILT_IN) != BUILT_IN:
        return Result()
    own = [pod for pod in view.pods if _owner(pod) == job["metadata"]["uid"]]
    orphans = [pod for pod in view.pods if not _owner(pod)]
    strangers = [pod for pod in view.pods if _owner(pod) not in ("", job["metadata"]["uid"])]
    yield from _forsaken(strangers)
    if is_finished(job):
        memory.record = Record()
        return (yield from _forsaken(own))
    if job["spec"].get("completionMode") not in ("Indexed", "NonIndexed", None):
        text = "Skipped Job sync because completion mode is unknown"
        yield from emit(Event(job, "Warning", "UnknownCompletionMode", text))
        return Result()
    own = yield from _claim(job, own, orphans)
    grouped: Grouped = yield from ensure(job, [*view.others, *own], ctx, running=bool(own))
    if grouped.wait is not None and not own:
        return Result(requeue_after=grouped.wait)  # it has not begun: only a new Job gets a group
    return (yield from _reconcile_active(job, own, grouped, view, memory, ctx))


def _owner(pod: Object) -> str:
    owner = controller_of(pod) or {}
    return str(owner.get("uid") or "")


def _forsaken(pods: Sequence[Object]) -> Reconcile:
    """Nobody counts these any more: their Job is gone or has ended."""
    _, problem = yield from let_all_go([pod for pod in pods if pods_.is_tracked(pod)])
    raise_if([problem])
    return Result()


def _claim(job: Object, own: list[Object], orphans: list[Object]) -> Part:
    """Pods that match and belong to nobody are adopted; own ones that do not match any more are released."""
    selector = job["spec"].get("selector")
    # Every server gives a Job a selector; without one, nothing is said about whom to adopt or release.
    if job["metadata"].get("deletionTimestamp") or selector is None:
        return own
    strays = [pod for pod in own if not matches(selector, pod["metadata"].get("labels"))]
    found = [pod for pod in orphans if not is_deleting(pod) and matches(selector, pod["metadata"].get("labels"))]
    leaving = {id(pod) for pod in strays}
    kept = [pod for pod in own if id(pod) not in leaving]
    if not strays and not found:
        return kept
    answers = yield Step([*(adopt(job, pod) for pod in found), *(release(job, pod) for pod in strays)])
    refusals = [answer.refusal for answer in answers]
    raise_if(refusal.message for refusal in refusals if refusal is not None and not refusal.not_found)
    return [*kept, *(answer.object for answer in answers[: len(found)] if answer.object is not None)]


def _reconcile_active(
    job: Object, pods: list[Object], grouped: Grouped, view: JobView, memory: BackoffMemory, ctx: CompileContext
) -> Reconcile:
    """Count, decide, act, account."""
    now = view.now
    parity = ctx.settings.of(JobSettings).parity
    status: dict[str, Any] = copied(job.get("status") or {})
    started = status.get("startTime") is not None or is_suspended(job)
    if not started:
        status["startTime"] = times.seconds(now)
    found = tally({**job, "status": status}, pods)
    record = memory.record.after(found.new_succeeded, found.new_failed)
    book = Book(job, status, found, finish.verdict(found, now), now, parity=parity)
    left = finish.deadline_in(found.job, now) if book.verdict is None else None
    acted: _Acted = yield from _act(book, record, grouped, view.quota)
    book.put("active", acted.active)
    book.put("ready", acted.ready)
    book.put("terminating", acted.terminating)
    book.status.setdefault("uncountedTerminatedPods", {})
    try:
        yield from close(book)
    finally:
        if book.noted:  # before, the same pods are new at the next reconcile
            memory.record = record
    raise_if([acted.problem, grouped.problem])
    waits = [wait for wait in (left, acted.after, grouped.wait) if wait is not None]
    return Result(requeue_after=0.0 if book.full else min(waits, default=None))


@dataclass(slots=True)
class _Acted:
    """The pods as they are after acting, in numbers."""

    active: int
    ready: int
    terminating: int
    problem: str = ""
    after: float | None = None


def _act(book: Book, record: Record, grouped: Grouped, quota: Quota | None) -> Part:
    found = book.tally
    acted = _Acted(len(found.active), found.ready, found.terminating)
    if book.verdict is not None:
        yield from _stop(book, acted)
        return acted
    if book.job["metadata"].get("deletionTimestamp"):
        if finish.is_complete(found, acted.active):
            yield from _complete(book)
        return acted
    yield from _manage(book, record, grouped, acted, quota)
    if finish.is_complete(found, acted.active):
        yield from _complete(book)
        return acted
    change = _reflect_suspension(book.status, is_suspended(book.job), book.now)
    if change is not None:
        book.dirty = True
        yield from emit(Event(book.job, "Normal", *change))
    return acted


def _reflect_suspension(status: dict[str, Any], suspended: bool, now: datetime) -> tuple[str, str] | None:
    """Condition and start time follow, in place. The event to tell (reason, note) if that changed anything."""
    known = condition(status, SUSPENDED)
    # A Job that never was suspended has no condition that says so.
    if (known or {}).get("status") == str(suspended) or (known is None and not suspended):
        return None
    if suspended:
        reason, note = "JobSuspended", "Job suspended"
        status.pop("startTime", None)  # since 1.36: its pods may be changed now, and a deadline starts anew
    else:
        reason, note = "JobResumed", "Job resumed"
        status["startTime"] = times.seconds(now)
    set_condition(status, now, SUSPENDED, suspended, reason, note, lastProbeTime=times.seconds(now))
    return reason.removeprefix("Job"), note


def _complete(book: Book) -> Part:
    book.verdict = finish.COMPLETED
    if book.tally.completions is not None and book.tally.succeeded > book.tally.completions:
        text = "Too many succeeded pods running after completion count reached"
        yield from emit(Event(book.job, "Warning", "TooManySucceededPods", text))


def _stop(book: Book, acted: _Acted) -> Part:
    """The Job is decided: its pods go, with their finalizers, so that they are accounted for."""
    if book.tally.active and not book.parity and book.verdict is not None and not book.verdict.failed:
        yield from announce(book)
    gone, acted.problem = yield from delete_all(book.job, book.tally.active)
    if len(gone) < len(book.tally.active):
        book.verdict = None  # not said before all have been told
    _left(acted, gone)


def _left(acted: _Acted, gone: Sequence[Object]) -> None:
    acted.active -= len(gone)
    acted.ready -= sum(1 for pod in gone if pods_.is_ready(pod))
    acted.terminating += len(gone)


def _manage(book: Book, record: Record, grouped: Grouped, acted: _Acted, quota: Quota | None) -> Part:
    plan: Wanted = wanted(book.tally, record, book.now)
    acted.after = plan.after
    if plan.remove:
        # These never count: they lose the finalizer before they are deleted.
        free, problem = yield from let_all_go(plan.remove)
        let = [pod for pod in plan.remove if uid_of(pod) in free]
        gone, other = yield from delete_all(book.job, let)
        acted.problem = problem or other
        _left(acted, gone)
    elif plan.create and grouped.wait is None:
        if quota is not None and (again := (yield from _waits_for_quota(book, plan.create[0], grouped, quota))):
            acted.after = again
            return
        yield from _create(book, plan.create, grouped, acted)
        if acted.problem and quota is not None:
            quota.refused(_pod(book.tally, plan.create[0], grouped))
        if len(plan.create) >= AT_ONCE and _missing(book.tally, acted):
            acted.after = 0.0


def _waits_for_quota(book: Book, index: int | None, grouped: Grouped, quota: Quota) -> Part:
    """Whether the gang's pods do not all fit into what the namespace may have. -> seconds until to look again"""
    found = book.tally
    began = bool(found.active or found.succeeded or found.failed)
    pod = _pod(found, index, grouped)
    if not began and quota.uncounted(pod):
        return SOON
    note = "" if began else quota.shortage(pod, grouped.least)
    known = condition(book.status, CONDITION) or {}
    if note and (known.get("status"), known.get("message")) != ("True", note):
        set_condition(book.status, book.now, CONDITION, True, EXCEEDED, note)
        book.dirty = True
        yield from emit(*(Event(one, "Warning", EXCEEDED, note) for one in (book.job, *quota.concerned(pod))))
    elif not note and known.get("status") == "True":
        set_condition(book.status, book.now, CONDITION, False, AVAILABLE, _FITS)
        book.dirty = True
        yield from emit(*(Event(one, "Normal", AVAILABLE, _FITS) for one in (book.job, *quota.concerned(pod))))
    return AGAIN if note else 0.0


def _missing(found: Tally, acted: _Acted) -> int:
    return max(0, want_active(found) - acted.active)


def _create(book: Book, indexes: Sequence[int | None], grouped: Grouped, acted: _Acted) -> Part:
    """One, two, four, and so on: if pods are refused, not all of thousands are tried."""
    job, left, size = book.job, list(indexes), _SLOW_START
    while left and not acted.problem:
        batch, left = left[:size], left[size:]
        answers = yield Step([create(_pod(book.tally, index, grouped)) for index in batch])
        events = []
        for answer in answers:
            if answer.refusal is None:
                acted.active += 1
                name = name_of(answer.object or {})
                events.append(Event(job, "Normal", "SuccessfulCreate", f"Created pod: {name}"))
            else:
                acted.problem = answer.refusal.message
                events.append(Event(job, "Warning", "FailedCreate", f"Error creating: {acted.problem}"))
        yield from emit(*events)
        size *= 2


def _pod(found: Tally, index: int | None, grouped: Grouped) -> Object:
    counters = None
    if index is not None and has_index_limit(found.job):
        counters = backoff.index_counters(found.job, found.delayed.get(index))
    return new_pod(found.job, index, grouped.link, counters)
