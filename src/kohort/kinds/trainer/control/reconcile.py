"""One reconcile of a TrainJob (spec trainjob 2.5). Only this module says what is done when."""

from __future__ import annotations

from typing import Final

from kohort.api.bundle import Listener
from kohort.api.kind import Object
from kohort.api.objects import is_controlled_by, is_deleting
from kohort.controllers.reconcile import Event, Part, Reconcile, ReconcileError, Result, emit, must, one
from kohort.controllers.writes import delete, patch
from kohort.gang.compile import CompileContext
from kohort.kinds.trainer.api.constants import CLUSTER_RUNTIME, FAILED, GROUP, MANAGED_HERE, RUNTIME_KINDS, spec_of
from kohort.kinds.trainer.control.build import build
from kohort.kinds.trainer.control.keys import Keys
from kohort.kinds.trainer.control.status import DEADLINE, NOT_SUPPORTED, TrainJobStatus
from kohort.kinds.trainer.control.view import TrainJobView, WaitError, is_suspended

_LONGEST: Final = 950  # of what an event says


def reconcile(view: TrainJobView, ctx: CompileContext, keys: Keys, listener: Listener | None = None) -> Reconcile:
    job = view.job
    if job is None or is_deleting(job) or spec_of(job).get("managedBy", MANAGED_HERE) != MANAGED_HERE:
        return Result()
    draft = TrainJobStatus.of(job, view.now)
    jobset = view.jobset if is_controlled_by(view.jobset, job) else None
    problem = ""
    if not draft.is_finished:
        unknown = _unknown_runtime(job)
        if unknown:
            draft.set(FAILED, True, NOT_SUPPORTED, unknown)
        else:
            try:
                jobset = yield from build(view, job, ctx, keys, listener)
            except ReconcileError as error:
                problem = str(error)
                yield from _tell(job, error)
                yield from _stop(job, jobset)
    draft.reflect_suspension()
    if jobset is not None:
        draft.follow(jobset)
    return (yield from _end(draft, view, jobset, problem))


def _unknown_runtime(job: Object) -> str:
    ref = job["spec"]["runtimeRef"]
    kind, group = ref.get("kind", CLUSTER_RUNTIME), ref.get("apiGroup", GROUP)
    return "" if group == GROUP and kind in RUNTIME_KINDS else f"unsupported runtime: {kind}.{group}"


def _stop(job: Object, jobset: Object | None) -> Part:
    """Whatever is wrong with the rest: a job that is told to stop, stops."""
    if jobset is not None and is_suspended(job) and not is_suspended(jobset) and not is_deleting(jobset):
        yield from one(patch(jobset, {"spec": {"suspend": True}}))


def _tell(job: Object, error: ReconcileError) -> Part:
    if isinstance(error, WaitError):
        return
    text = str(error)
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
    note = f"TrainJob resources reconciliation failed: {short}"
    yield from emit(Event(job, "Warning", "TrainJobResourcesCreationFailed", note))


def _end(draft: TrainJobStatus, view: TrainJobView, jobset: Object | None, problem: str) -> Reconcile:
    """The status before anything is taken away for it: who reconciles next must know that the job is over."""
    deadline = draft.deadline()
    if deadline is not None and deadline <= view.now:
        draft.set(FAILED, True, DEADLINE, "TrainJob exceeded its active deadline")
    write = draft.write()
    if write is not None:
        must(write, (yield from one(write)))
    if draft.is_late and jobset is not None and not is_deleting(jobset):
        gone = delete(jobset)
        answer = yield from one(gone)
        if answer.refusal is not None and not answer.refusal.not_found:
            must(gone, answer)
    if problem and not draft.is_finished:
        raise ReconcileError(problem)
    if deadline is None or draft.is_finished:
        return Result()
    return Result(requeue_after=(deadline - view.now).total_seconds())
