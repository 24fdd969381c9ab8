"""A JobSet's Jobs sorted by what they mean now, and the counters in its status (spec jobset 1.5, 2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import label
from kohort.controllers.reconcile import ReconcileError
from kohort.kinds.batch.api.status import COMPLETE, FAILED, holds
from kohort.kinds.jobset.api import constants
from kohort.kinds.jobset.api.reading import ReplicatedJob, entries, replicated_jobs
from kohort.kinds.jobset.control.children import JOB_RESTART_ATTEMPT, RESTART_ATTEMPT


@dataclass(frozen=True, slots=True)
class Jobs:
    """`previous`: of an earlier attempt, on their way out."""

    previous: tuple[Object, ...]
    active: tuple[Object, ...]
    successful: tuple[Object, ...]
    failed: tuple[Object, ...]

    @property
    def current(self) -> tuple[Object, ...]:
        return (*self.active, *self.successful, *self.failed)


def sort(jobset: Object, jobs: Sequence[Object]) -> Jobs:
    status = jobset.get("status") or {}
    previous, active, successful, failed = [], [], [], []
    for job in jobs:
        if _is_previous(job, status):
            previous.append(job)
        elif holds(job.get("status") or {}, COMPLETE):
            successful.append(job)
        elif holds(job.get("status") or {}, FAILED):
            failed.append(job)
        else:
            active.append(job)
    return Jobs(tuple(previous), tuple(active), tuple(successful), tuple(failed))


def _attempt(job: Object, key: str) -> int:
    text = label(job, key) or "0"
    if not text.isascii() or not text.isdigit():
        raise ReconcileError(f"Job {job['metadata']['name']}: label {key} is {text!r}, not a number")
    return int(text)


def _is_previous(job: Object, status: Object) -> bool:
    if _attempt(job, RESTART_ATTEMPT) < int(status.get("restarts") or 0):
        return True
    return _attempt(job, JOB_RESTART_ATTEMPT) < job_restarts(status, replicated_of(job), index_of(job))


def replicated_of(job: Object) -> str:
    return label(job, constants.REPLICATED_JOB_NAME)


def index_of(job: Object) -> int:
    text = label(job, constants.JOB_INDEX)
    return int(text) if text.isdigit() else 0


def job_restarts(status: Object, replicated: str, index: int, member: str = "jobRestarts") -> int:
    for one in entries(status.get("replicatedJobsStatus")):
        if one.get("name") == replicated:
            listed = one.get(member) or []
            return int(listed[index]) if index < len(listed) else 0
    return 0


def is_ready(job: Object) -> bool:
    """Enough pods are ready or done: as many as run at a time."""
    spec, status = job.get("spec") or {}, job.get("status") or {}
    parallelism = 1 if spec.get("parallelism") is None else int(spec["parallelism"])
    completions = spec.get("completions")
    wanted = parallelism if completions is None else min(parallelism, int(completions))
    return int(status.get("ready") or 0) + int(status.get("succeeded") or 0) >= wanted


def counters(jobset: Object, jobs: Jobs) -> list[dict[str, Any]]:
    """replicatedJobsStatus, sorted by name, the last first."""
    known = {one.get("name"): one for one in entries((jobset.get("status") or {}).get("replicatedJobsStatus"))}
    found = []
    for replicated in replicated_jobs(jobset):
        row: dict[str, Any] = {"name": replicated.name, **_counts(jobs, replicated)}
        kept = known.get(replicated.name) or {}
        row |= {member: kept[member] for member in ("jobRestarts", "jobRestartsCountTowardsMax") if kept.get(member)}
        found.append(row)
    return sorted(found, key=lambda row: str(row["name"]), reverse=True)


def _counts(jobs: Jobs, replicated: ReplicatedJob) -> dict[str, int]:
    def own(some: Sequence[Object]) -> list[Object]:
        return [job for job in some if replicated_of(job) == replicated.name]

    running = own(jobs.active)
    return {
        "ready": sum(1 for job in running if is_ready(job) and not (job.get("spec") or {}).get("suspend")),
        "succeeded": len(own(jobs.successful)),
        "failed": len(own(jobs.failed)),
        "active": sum(1 for job in running if int((job.get("status") or {}).get("active") or 0) > 0),
        "suspended": sum(1 for job in running if (job.get("spec") or {}).get("suspend")),
    }


def row_of(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    return next((row for row in rows if row.get("name") == name), {})


def has_started(replicated: ReplicatedJob, rows: Sequence[dict[str, Any]]) -> bool:
    row = row_of(rows, replicated.name)
    return sum(int(row.get(member) or 0) for member in ("ready", "succeeded", "failed")) == replicated.replicas


def has_succeeded(replicated: ReplicatedJob, rows: Sequence[dict[str, Any]]) -> bool:
    return int(row_of(rows, replicated.name).get("succeeded") or 0) == replicated.replicas


def may_start(jobset: Object, replicated: ReplicatedJob, rows: Sequence[dict[str, Any]]) -> bool:
    """What it depends on has come as far as it must."""
    every = {one.name: one for one in replicated_jobs(jobset)}
    for need in entries(replicated.raw.get("dependsOn")):
        other = every.get(str(need.get("name")))
        if other is None:
            continue
        reached = has_succeeded if need.get("status") == "Complete" else has_started
        if not reached(other, rows):
            return False
    return True
