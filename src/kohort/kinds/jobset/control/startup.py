"""Which Jobs are made and resumed when: startup order, dependencies, restarts, suspension (spec jobset 2.2, 2.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import meta_of
from kohort.controllers.reconcile import CREATES_AT_MOST, Answer, Event, Part, ReconcileError, Step, emit
from kohort.controllers.writes import patch
from kohort.kinds.jobset.api.constants import IN_PROGRESS, STARTED, SUSPENDED
from kohort.kinds.jobset.api.reading import (
    ReplicatedJob,
    entries,
    in_order,
    is_suspended,
    job_name,
    replicated_jobs,
    spec_of,
)
from kohort.kinds.jobset.control import children, state
from kohort.kinds.jobset.control.children import Wiring
from kohort.kinds.jobset.control.state import Jobs
from kohort.kinds.jobset.control.status import JobSetStatus

_FOR_GOOD: Final = (403, 422)
Rows = Sequence[dict[str, Any]]


Wire = Callable[[str, ReplicatedJob, int], Wiring]  # name of a Job -> what it is given


def missing(jobset: Object, jobs: Jobs, rows: Rows, wire: Wire) -> list[list[Object]]:
    """The Jobs to be made, by ReplicatedJob: at most CREATES_AT_MOST, the others later."""
    strategy = (spec_of(jobset).get("failurePolicy") or {}).get("restartStrategy")
    if strategy == "BlockingRecreate" and jobs.previous:
        return []
    taken = {str(job["metadata"]["name"]) for job in (*jobs.previous, *jobs.current)}
    found, left = [], CREATES_AT_MOST
    for replicated in _startable(jobset, rows, created=True):
        absent = (
            (index, name)
            for index in range(replicated.replicas)
            if (name := job_name(str(meta_of(jobset)["name"]), replicated.name, index)) not in taken
        )
        some = [
            children.job(jobset, replicated, index, wire(name, replicated, index))
            for index, name in islice(absent, left)
        ]
        found.append(some)
        left -= len(some)
    return found


def _startable(jobset: Object, rows: Rows, *, created: bool) -> list[ReplicatedJob]:
    """In order: up to the first that has not started. While suspended all are made, but for those that depend."""
    found = []
    for replicated in replicated_jobs(jobset):
        if not state.may_start(jobset, replicated, rows):
            continue
        if created and is_suspended(jobset) and replicated.depends_on:
            continue
        found.append(replicated)
        ordered = in_order(jobset) and not (created and is_suspended(jobset))
        if ordered and not state.has_started(replicated, rows):
            break
    return found


def reflect(jobset: Object, draft: JobSetStatus, rows: Rows) -> None:
    """The conditions of a JobSet that is not suspended."""
    started = all(state.has_started(one, rows) for one in replicated_jobs(jobset))
    if in_order(jobset):
        done, going = "in order startup policy has completed", "in order startup policy is in progress"
        if started:
            draft.set(IN_PROGRESS, False, "InOrderStartupPolicyInProgress", going, event=None)
            draft.set(STARTED, True, "InOrderStartupPolicyCompleted", done)
        else:
            draft.set(IN_PROGRESS, True, "InOrderStartupPolicyInProgress", going)
            draft.set(STARTED, False, "InOrderStartupPolicyCompleted", done, event=None)
    if started or not in_order(jobset):
        draft.set(SUSPENDED, False, "ResumeJobs", "jobset is resumed")


def suspend(active: Sequence[Object]) -> Part:
    running = [job for job in active if not (job.get("spec") or {}).get("suspend")]
    yield from _patch_all([(job, {"spec": {"suspend": True}}) for job in running])


def resume(jobset: Object, active: Sequence[Object], rows: Rows) -> Part:
    """What the template says of scheduling by now goes with it; nothing is taken away."""
    startable = {one.name: one for one in _startable(jobset, rows, created=False)}
    sleeping = [
        job for job in active if (job.get("spec") or {}).get("suspend") and state.replicated_of(job) in startable
    ]
    started = [job for job in sleeping if (job.get("status") or {}).get("startTime")]
    if started:
        # A template may change only while a Job has no start.
        answers = yield Step([patch(job, {"status": {"startTime": None}}, "status") for job in started])
        _all(answers)
    yield from _patch_all([(job, _resumed(startable[state.replicated_of(job)], job)) for job in sleeping])


def _resumed(replicated: ReplicatedJob, job: Object) -> dict[str, Any]:
    wanted, known = replicated.job.get("template") or {}, job["spec"].get("template") or {}
    meta: dict[str, Any] = {}
    for member in ("labels", "annotations"):
        given = (wanted.get("metadata") or {}).get(member) or {}
        own = (known.get("metadata") or {}).get(member) or {}
        new = {
            key: value for key, value in given.items() if not key.startswith(children.PREFIX) and own.get(key) != value
        }
        if new:
            meta[member] = new
    spec: dict[str, Any] = {}
    given, own = wanted.get("spec") or {}, known.get("spec") or {}
    if given.get("nodeSelector"):
        spec["nodeSelector"] = dict(given["nodeSelector"])
    for member in ("tolerations", "schedulingGates"):
        more = [one for one in entries(given.get(member)) if one not in entries(own.get(member))]
        if more:
            spec[member] = [*entries(own.get(member)), *more]
    template = {name: part for name, part in (("metadata", meta), ("spec", spec)) if part}
    return {"spec": {"suspend": False, **({"template": template} if template else {})}}


def scale(jobset: Object, active: Sequence[Object]) -> Part:
    """Elastic: parallelism and completions of the template reach the Jobs, both together."""
    every = {one.name: one for one in replicated_jobs(jobset)}
    changes = []
    for job in active:
        wanted = every.get(state.replicated_of(job))
        if wanted is None or wanted.completions is None:
            continue
        size = {"parallelism": wanted.parallelism, "completions": wanted.completions}
        if {name: job["spec"].get(name) for name in size} != size:
            changes.append((job, {"spec": size}))
    if not changes:
        return
    answers = yield Step([patch(job, body) for job, body in changes])
    refused = [answer for answer in answers if answer.refusal is not None and answer.refusal.code in _FOR_GOOD]
    # Kubernetes 1.36 freezes the size of Jobs in a gang: trying again helps nobody, and the rest goes on.
    notes = {f"Jobs keep their size: {answer.refusal.message}" for answer in refused if answer.refusal is not None}
    yield from emit(*(Event(jobset, "Warning", "GangDrift", note) for note in sorted(notes)))
    _all([answer for answer in answers if answer not in refused])


def _patch_all(changes: Sequence[tuple[Object, dict[str, Any]]]) -> Part:
    if changes:
        answers = yield Step([patch(job, body) for job, body in changes])
        _all(answers)


def _all(answers: Sequence[Answer]) -> None:
    problems = [answer.refusal.message for answer in answers if answer.refusal is not None]
    if problems:
        raise ReconcileError("; ".join(problems))
