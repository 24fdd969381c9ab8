"""One reconcile of a JobSet, in the order of spec jobset 2.1. Only this module says what is done when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import meta_of, namespace_of
from kohort.api.releases import Gate
from kohort.apimachinery import times
from kohort.controllers import faults
from kohort.controllers.reconcile import (
    CREATES_AT_MOST,
    Event,
    Part,
    Reconcile,
    ReconcileError,
    Result,
    Step,
    Write,
    emit,
    must,
    one,
)
from kohort.controllers.writes import create, delete
from kohort.gang.compile import CompileContext
from kohort.kinds.jobset.api import validate
from kohort.kinds.jobset.api.constants import COMPLETED, FAILED, RESTARTING, SUSPENDED
from kohort.kinds.jobset.api.reading import (
    ReplicatedJob,
    is_finished,
    is_managed_elsewhere,
    is_suspended,
    replicated_jobs,
    spec_of,
)
from kohort.kinds.jobset.control import children, groups, inplace, policies, startup, state
from kohort.kinds.jobset.control.children import Wiring
from kohort.kinds.jobset.control.state import Jobs
from kohort.kinds.jobset.control.status import JobSetStatus
from kohort.kinds.jobset.control.view import JobSetView
from kohort.kinds.jobset.settings import JobSetSettings

AT_ONCE: Final = 50
# By the names, and with the labels, that dashboards of upstream's controller know.
COUNTERS: Final = {"jobset_completed": "JobSets that have completed.", "jobset_failed": "JobSets that have failed."}
_COUNTED: Final = ((COMPLETED, "jobset_completed"), (FAILED, "jobset_failed"))


def reconcile(view: JobSetView, ctx: CompileContext, *, grouping: bool = True) -> Reconcile:
    """`grouping`: whether the server has groups."""
    jobset = view.jobset
    if jobset is None or meta_of(jobset).get("deletionTimestamp") or is_managed_elsewhere(jobset):
        return Result()
    if not faults.has_begun(jobset) and (wrong := validate(jobset, ctx)):
        # No webhook has validated it: a server that has the definition only. It is looked at again when it is changed.
        yield from emit(Event(jobset, "Warning", "InvalidJobSet", "; ".join(map(str, wrong))))
        return Result()
    jobs = state.sort(jobset, view.jobs)
    draft = JobSetStatus(jobset, view.now, {"restarts": 0, **copied(jobset.get("status") or {})})
    rows = state.counters(jobset, jobs)
    draft.status["replicatedJobsStatus"] = rows
    if is_finished(jobset):
        return (yield from _ended(jobset, jobs, draft, view))
    yield from _delete_jobs(jobs.previous)
    _ready(jobset, draft, rows)
    more = False
    if jobs.failed:
        _failed(jobset, jobs, draft)
    elif jobs.successful and policies.is_complete(jobset, jobs):
        _completed(draft)
    else:
        more = yield from _go_on(jobset, jobs, draft, view, ctx, grouping)
    yield from _write(draft)
    again = 0.0 if more and not is_finished(draft.obj) else None
    return Result(requeue_after=again, counted=tuple(name for kind, name in _COUNTED if draft.holds(kind)))


def _ended(jobset: Object, jobs: Jobs, draft: JobSetStatus, view: JobSetView) -> Reconcile:
    yield from _delete_jobs(jobs.active)
    yield from groups.remove(jobset, view.groups)
    yield from _write(draft)
    ttl = spec_of(jobset).get("ttlSecondsAfterFinished")
    if ttl is None:
        return Result()
    ended = draft.condition(COMPLETED) if draft.holds(COMPLETED) else draft.condition(FAILED)
    end = (times.parse((ended or {}).get("lastTransitionTime")) or view.now) + timedelta(seconds=int(ttl))
    if end > view.now:
        return Result(requeue_after=(end - view.now).total_seconds())
    write = delete(jobset, "Foreground")
    answer = yield from one(write)
    if answer.refusal is not None and not answer.refusal.not_found:
        raise ReconcileError(answer.refusal.message)
    return Result()


def _delete_jobs(jobs: Sequence[Object]) -> Part:
    """Foreground: a Job's name is free only when its pods are gone."""
    going = [job for job in jobs if not job["metadata"].get("deletionTimestamp")]
    for start in range(0, len(going), AT_ONCE):
        batch = going[start : start + AT_ONCE]
        answers = yield Step([delete(job, "Foreground") for job in batch])
        for answer in answers:
            if answer.refusal is not None and not answer.refusal.not_found:
                raise ReconcileError(answer.refusal.message)


def _ready(jobset: Object, draft: JobSetStatus, rows: Sequence[dict[str, Any]]) -> None:
    """A restart is over when all of its Jobs are up."""
    wanted = sum(replicated.replicas for replicated in replicated_jobs(jobset))
    up = sum(int(row["ready"]) + int(row["succeeded"]) for row in rows)
    if not is_suspended(jobset) and up == wanted:
        draft.set(RESTARTING, False, "JobsReady", "all jobs are ready")


# ---- the end, or another try


def _completed(draft: JobSetStatus) -> None:
    text = "jobset completed successfully"
    draft.set(COMPLETED, True, "AllJobsCompleted", text)
    draft.status["terminalState"] = COMPLETED
    draft.set(RESTARTING, False, "JobSetCompleted", text)


def _fail(draft: JobSetStatus, reason: str, text: str) -> None:
    draft.set(FAILED, True, reason, text, event="Warning")
    draft.status["terminalState"] = FAILED
    draft.set(RESTARTING, False, "JobSetFailed", "jobset failed")


def _failed(jobset: Object, jobs: Jobs, draft: JobSetStatus) -> None:
    policy = spec_of(jobset).get("failurePolicy")
    decision = policies.decide(jobset, jobs.failed)
    first = f"(first failed job: {decision.job['metadata']['name']})"
    text = f"applying {decision.action} failure policy action {first}"
    if policy is None:
        _fail(draft, "FailedJobs", f"jobset failed due to one or more job failures {first}")
    elif decision.action == policies.FAIL:
        _fail(draft, "FailJobSetFailurePolicyAction", text)
    elif not decision.action.endswith("AndIgnoreMaxRestarts") and _spent(draft.status) >= int(
        policy.get("maxRestarts") or 0
    ):
        _fail(draft, "ReachedMaxRestarts", f"jobset failed due to reaching max number of restarts {first}")
    elif decision.action.startswith(policies.RESTART):
        _restart_all(draft, decision, text)
    else:
        _restart_one(jobset, draft, decision, text)


def _spent(status: dict[str, Any]) -> int:
    rows = status.get("replicatedJobsStatus") or ()
    return int(status.get("restartsCountTowardsMax") or 0) + sum(
        sum(row.get("jobRestartsCountTowardsMax") or ()) for row in rows
    )


def _restart_all(draft: JobSetStatus, decision: policies.Decision, text: str) -> None:
    draft.status["restarts"] = int(draft.status.get("restarts") or 0) + 1
    if decision.counts:
        draft.status["restartsCountTowardsMax"] = int(draft.status.get("restartsCountTowardsMax") or 0) + 1
    draft.event("Warning", f"{decision.action}FailurePolicyAction", text)
    reason = f"FailurePolicy_{decision.rule}" if decision.rule else "DefaultFailurePolicy"
    draft.set(RESTARTING, True, reason, text, event=None)
    draft.event("Warning", reason, text)


def _restart_one(jobset: Object, draft: JobSetStatus, decision: policies.Decision, text: str) -> None:
    name, index = state.replicated_of(decision.job), state.index_of(decision.job)
    replicas = next(one.replicas for one in replicated_jobs(jobset) if one.name == name)
    row = state.row_of(draft.status["replicatedJobsStatus"], name)
    members = ["jobRestarts"]
    if decision.counts:
        members.append("jobRestartsCountTowardsMax")
    for member in members:
        counts = [*(row.get(member) or ()), *([0] * replicas)][: max(replicas, index + 1)]
        counts[index] += 1
        row[member] = counts
    draft.event("Warning", f"{decision.action}FailurePolicyAction", text)


# ---- what has to be there


def _go_on(
    jobset: Object, jobs: Jobs, draft: JobSetStatus, view: JobSetView, ctx: CompileContext, grouping: bool
) -> Part:
    """-> whether there may be more Jobs to make than one reconcile makes."""
    if children.has_service(jobset) and not view.services:
        yield from _make(draft, children.service(jobset), "HeadlessServiceCreationFailed", "{error}")
    known = {claim["metadata"]["name"] for claim in view.claims}
    for kept, template in children.claims(jobset):
        claim = children.claim(jobset, kept, template)
        if claim["metadata"]["name"] not in known:
            yield from _make(draft, claim, "PVCCreationFailed", "{error}")
    gangs: groups.GangLinks = yield from groups.ensure(jobset, jobs, view, ctx, served=grouping)
    if ctx.on("ElasticJobSet"):
        yield from startup.scale(jobset, jobs.active)
    if gangs.wait:
        yield from _write(draft)
        raise ReconcileError(gangs.wait)
    rows = draft.status["replicatedJobsStatus"]
    absent = startup.missing(jobset, jobs, rows, _wire(jobset, gangs, view, ctx))
    yield from _create(draft, absent, gangs)
    if is_suspended(jobset):
        yield from startup.suspend(jobs.active)
        draft.set(SUSPENDED, True, "SuspendedJobs", "jobset is suspended")
        draft.set(RESTARTING, False, "JobSetSuspended", "jobset is suspended")
        yield from groups.release(jobset, view, ctx)
    else:
        yield from startup.resume(jobset, jobs.active, rows)
        startup.reflect(jobset, draft, rows)
    if inplace.is_wanted(jobset) and not inplace.record_attempts(jobset, draft.status, view.pods()):
        _fail(draft, "ReachedMaxRestarts", "jobset failed due to reaching max number of restarts")
    return sum(map(len, absent)) >= CREATES_AT_MOST


def _wire(jobset: Object, gangs: groups.GangLinks, view: JobSetView, ctx: CompileContext) -> startup.Wire:
    status = jobset.get("status") or {}
    counted, alone = ctx.on("RestartJob"), placement_by_template(ctx)

    def priority(name: str) -> int:
        found = view.priority_class(name) if name else None
        return int((found or {}).get("value") or 0)

    def wire(name: str, replicated: ReplicatedJob, index: int) -> Wiring:
        return Wiring(
            link=gangs.links.get(name, {}),
            template=gangs.templates.get(name, ""),
            restarts=state.job_restarts(status, replicated.name, index) if counted else None,
            priority=priority if alone else None,
        )

    return wire


def placement_by_template(ctx: CompileContext) -> bool:
    """Whether Jobs of exclusive placement carry what keeps them apart: not where the server sees to it.

    On 1.36 each such Job becomes a gang by itself (4.7). Its first pod would wait for the others, which are let in when
    it is bound: there the template says it in any case.
    """
    settings = ctx.settings.of(JobSetSettings)
    if settings.parity:
        return False
    gangs_of_jobs = ctx.release.has_pod_groups and not ctx.release.min_count_mutable and ctx.on(Gate.JOB)
    return gangs_of_jobs or settings.exclusive_placement != "Admission"


def _make(draft: JobSetStatus, obj: Object, reason: str, text: str) -> Part:
    write = create(obj)
    answer = yield from one(write)
    if answer.refusal is not None and not answer.refusal.already_exists:
        note = text.format(error=answer.refusal.message, name=obj["metadata"]["name"])
        yield from emit(Event(draft.obj, "Warning", reason, note))
        raise ReconcileError(note)


def _create(draft: JobSetStatus, batches: Sequence[Sequence[Object]], gangs: groups.GangLinks) -> Part:
    """ReplicatedJob by ReplicatedJob: if one of its Jobs cannot be made, those after it are not tried.

    What is forbidden (a quota is used up) is so for all of them, and one batch finds that out.
    """
    for jobs in batches:
        problems, events = [], []
        for start in range(0, len(jobs), AT_ONCE):
            batch = jobs[start : start + AT_ONCE]
            answers = yield Step([create(job) for job in batch])
            for job, answer in zip(batch, answers, strict=True):
                name = job["metadata"]["name"]
                if answer.refusal is None:
                    events += _dropped(draft.obj, answer.object, gangs.links.get(name, {}))
                else:
                    note = f'job "{name}" creation failed with error: {answer.refusal.message}'
                    problems.append(note)
                    events.append(Event(draft.obj, "Warning", "JobCreationFailed", note))
            if any(answer.refusal is not None and answer.refusal.forbidden for answer in answers):
                break
        yield from emit(*events)
        if problems:
            raise ReconcileError("; ".join(problems))


def _dropped(jobset: Object, job: Object | None, link: Mapping[str, Any]) -> list[Event]:
    """A server without the Workload API drops the field from the Job, and its pods would start one by one (4.1)."""
    pod = (((job or {}).get("spec") or {}).get("template") or {}).get("spec") or {}
    lost = [member for member in link if member not in pod] if job is not None else []
    if not lost:
        return []
    note = (
        f"Job {(job or {})['metadata']['name']}: the server dropped {', '.join(lost)}; its pods do not start together"
    )
    return [Event(jobset, "Warning", "WorkloadAPIUnavailable", note)]


def _write(draft: JobSetStatus) -> Part:
    """Once, at the end; events are told only when it is stored."""
    stored = draft.obj.get("status") or {}
    if draft.status != stored and (draft.status["replicatedJobsStatus"] or stored):
        meta = meta_of(draft.obj)
        write = Write(
            verb="update",
            api_version=draft.obj["apiVersion"],
            kind="JobSet",
            namespace=namespace_of(draft.obj),
            name=meta["name"],
            subresource="status",
            body={**draft.obj, "status": draft.status},
        )
        draft.obj = must(write, (yield from one(write)))
    yield from emit(*draft.events)
    draft.events.clear()
