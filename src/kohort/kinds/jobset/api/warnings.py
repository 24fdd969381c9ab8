"""What is accepted and still unwise: gangs that may starve (spec jobset 4.2, 4.5, 4.6), Jobs that no server takes."""

from __future__ import annotations

from collections.abc import Iterator

from kohort.api import formats
from kohort.api.kind import Context, Object
from kohort.apimachinery import regexp
from kohort.kinds.jobset.api import gang_validation
from kohort.kinds.jobset.api.child import refusals
from kohort.kinds.jobset.api.gangs import GANG, OFF, gangs, mode, option_on
from kohort.kinds.jobset.api.reading import (
    ReplicatedJob,
    entries,
    exclusive_placement,
    is_managed_elsewhere,
    replicated_jobs,
    spec_of,
)


def warn(obj: Object, ctx: Context) -> list[str]:
    found = list(_plain(obj))
    for job in replicated_jobs(obj):
        found += _job(obj, job, ctx)
    if option_on(ctx, "GangScheduling"):
        found += _gangs(obj)
    return found


# ---- gangs


def _gangs(obj: Object) -> Iterator[str]:
    if mode(spec_of(obj)) == GANG:
        for job in replicated_jobs(obj):
            if job.raw.get("gangConfig") is not None and mode(job.raw) == OFF:
                text = f"Off does not take {job.name} out: the JobSet is one gang, its pods are in it"
                yield f"{job.path}.gangConfig.gangMode: {text}"
    asked = gangs(obj)
    if not asked.requests or is_managed_elsewhere(obj) or gang_validation.is_external(obj):
        return
    gang_jobs = {job.index for leaf in asked.leaves if leaf.gang for job in leaf.jobs}
    for job in asked.jobs:
        if not job.pods:
            yield f"{job.path}: has no pods ({job.replicas} Jobs of {job.pods_per_job}), so it has no group"
        elif job.index in gang_jobs:
            yield from _waves(job)
    for path in asked.split:
        yield f"{path}: ReplicatedJobs start one after the other, so each is a gang of its own"
    policy = spec_of(obj).get("failurePolicy") or {}
    if gang_jobs and policy and policy.get("restartStrategy", "Recreate") == "Recreate":
        text = (
            "new pods may start on the strength of old ones that are still ending; BlockingRecreate keeps gangs strict"
        )
        yield f"spec.failurePolicy.restartStrategy: with Recreate {text}"


def _waves(job: ReplicatedJob) -> Iterator[str]:
    """Late-phase starvation: a pod that comes when too few others are left waits for ever."""
    path = f"{job.path}.template.spec.completions"
    if job.completions is None:
        yield f"{path}: is not set: when some pods of the gang have succeeded, replaced ones may wait for ever"
    elif job.completions > job.parallelism:
        text = f"{job.completions} is more than parallelism {job.parallelism}"
        yield f"{path}: {text}: pods of the last wave may be too few for the gang and wait for ever"


# ---- Jobs that would fail to be created: upstream admits them all the same (spec jobset 1.2)


def _plain(obj: Object) -> Iterator[str]:
    policy = spec_of(obj).get("failurePolicy") or {}
    if (policy.get("maxRestarts") or 0) < 0:
        yield f"spec.failurePolicy.maxRestarts: {policy['maxRestarts']} counts as 0"
    for index, rule in enumerate(entries(policy.get("rules"))):
        for place, pattern in enumerate(rule.get("onJobFailureMessagePatterns") or ()):
            if regexp.problem(pattern):
                path = f"spec.failurePolicy.rules[{index}].onJobFailureMessagePatterns[{place}]"
                yield f'{path}: "{pattern}" is not a regular expression and matches nothing'


def _job(obj: Object, job: ReplicatedJob, ctx: Context) -> Iterator[str]:
    if formats.label_value(job.name):
        yield f'{job.path}.name: "{job.name}" cannot be a label: no Job of it can be created'
    placement = exclusive_placement(obj, job)
    if placement and not placement.by_node_selector and not job.indexed:
        yield f"{placement.path}: exclusive placement never lets a pod of {job.name} in: its Jobs are not Indexed"
    for error in refusals(obj, job, ctx):
        yield f"{error}: no Job of {job.name} can be created"
