"""The Job."""

from __future__ import annotations

from typing import Any, Final

from kohort.api import formats
from kohort.api.kind import Column, Context, Kind, Object
from kohort.apimachinery import times
from kohort.kinds.batch.api import schema
from kohort.kinds.batch.api.defaults import default
from kohort.kinds.batch.api.status import COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, SUSPENDED, holds
from kohort.kinds.batch.api.status import validate_status as check_status
from kohort.kinds.batch.api.update import validate_update
from kohort.kinds.batch.api.validation import validate


def warn(job: Object, _ctx: Context) -> list[str]:
    return [*_name_warning(job), *spec_warnings(job.get("spec") or {}, "spec")]


def _name_warning(job: Object) -> list[str]:
    name = (job.get("metadata") or {}).get("name") or ""
    if name and formats.label(name):
        text = "this is used in Pod names and hostnames, which can result in surprising behavior"
        return [f"metadata.name: {text}; a DNS label is recommended: {formats.label(name)}"]
    return []


def spec_warnings(spec: dict[str, Any], path: str) -> list[str]:
    """What is accepted but will not do what its author hopes for. Also for the Job template of a CronJob."""
    found = []
    block, group = spec.get("scheduling"), _named_group(spec)
    if block is not None and group:
        found.append(f"{path}.scheduling: ignored, because the pod template names a group of its own ({group})")
    gang = ((block or {}).get("schedulingPolicy") or {}).get("gang") or {}
    least, completions = gang.get("minCount"), spec.get("completions")
    if least is not None and completions is not None and least > completions and not group:
        found.append(
            f"{path}.scheduling.schedulingPolicy.gang.minCount: {least} pods must start together, "
            f"but with {completions} completions so many never exist: the Job cannot start"
        )
    if (completions or 0) > 100_000 and (spec.get("parallelism") or 0) > 10_000:
        found.append(
            f"{path}.completions: with more than 100000 completions and 10000 pods at once, "
            "status may not be able to hold the list of indexes"
        )
    return found


def _named_group(spec: dict[str, Any]) -> str:
    pod = (spec.get("template") or {}).get("spec") or {}
    return str((pod.get("schedulingGroup") or pod.get("workloadRef") or {}).get("podGroupName") or "")


def _status(job: Object) -> str:
    status = job.get("status") or {}
    words = {
        COMPLETE: COMPLETE,
        FAILED: FAILED,
        SUSPENDED: SUSPENDED,
        FAILURE_TARGET: FAILURE_TARGET,
        SUCCESS_CRITERIA_MET: SUCCESS_CRITERIA_MET,
    }
    if (job.get("metadata") or {}).get("deletionTimestamp"):
        return "Terminating"
    return next((word for condition, word in words.items() if holds(status, condition)), "Running")


def _completions(job: Object) -> str:
    spec, status = job.get("spec") or {}, job.get("status") or {}
    done = status.get("succeeded") or 0
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(job: Object) -> str:
    """Of a finished Job; how long a running one has run is for whoever has a clock."""
    status = job.get("status") or {}
    start, end = status.get("startTime"), status.get("completionTime")
    if not start or not end:
        return ""
    seconds = int((times.moment(end) - times.moment(start)).total_seconds())
    return f"{seconds}s" if seconds < 120 else f"{seconds // 60}m{seconds % 60}s"


JOB: Final = Kind(
    group="batch",
    version="v1",
    kind="Job",
    plural="jobs",
    singular="job",
    categories=("all",),
    native=True,
    schema=schema.JOB,
    counts_changes=True,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=check_status,
    warn=warn,
    columns=(
        Column("Status", cell=_status, description="The condition that says most about the Job."),
        Column("Completions", cell=_completions, description="Successes so far, of those wanted."),
        Column("Duration", cell=_duration, description="From start to completion."),
        Column("Age", "date", path=".metadata.creationTimestamp"),
    ),
)
