"""The rules of a JobSet without its gangs (spec jobset 1.1, 1.2, 1.4), as far as the schema does not say them.

Upstream reports some of them without a field; here each names the field where it can be mended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kohort.api import formats
from kohort.api.errors import ErrorKind, FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from kohort.api.kind import Context, Object
from kohort.kinds.jobset.api import constants
from kohort.kinds.jobset.api.reading import (
    ReplicatedJob,
    coordinator_endpoint,
    entries,
    future_name,
    in_order,
    job_name,
    pod_name,
    replicated_jobs,
    spec_of,
    subdomain_of,
)
from kohort.kinds.jobset.api.schema import FAILURE_REASONS, MAX_INT32, RESTART_JOB_ACTIONS

RULE_NAME: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
MAX_RULE_NAME: Final = 128
MAX_RESTARTED_REPLICAS: Final = 1024


def check(obj: Object, ctx: Context) -> Iterator[FieldError]:
    jobs = replicated_jobs(obj)
    known = {job.name for job in jobs}
    yield from _managed_by(obj)
    yield from _subdomain(obj)
    for job in jobs:
        yield from _containers(job)
        yield from _names(obj, job)
        if job.replicas * job.parallelism > MAX_INT32:
            detail = f"replicas × parallelism is {job.replicas * job.parallelism}, must not exceed {MAX_INT32}"
            yield invalid(f"{job.path}.replicas", job.replicas, detail)
    yield from _dependencies(obj, jobs)
    targets = (spec_of(obj).get("successPolicy") or {}).get("targetReplicatedJobs")
    yield from _targets(targets, known, "spec.successPolicy.targetReplicatedJobs")
    yield from _failure_policy(obj, jobs, known, ctx)
    yield from _coordinator(obj, jobs)


def _managed_by(obj: Object) -> Iterator[FieldError]:
    value, path = spec_of(obj).get("managedBy"), "spec.managedBy"
    if value is None:
        return
    problem = formats.domain_prefixed_path(value)
    if value == "":
        yield required(path)
    elif problem:
        yield invalid(path, value, problem)
    if len(value.encode()) > 63:
        yield too_long(path, 63)


def _subdomain(obj: Object) -> Iterator[FieldError]:
    value = (spec_of(obj).get("network") or {}).get("subdomain")
    if value:  # empty: the JobSet's name
        for problem in (formats.subdomain(value), formats.label_1035(value)):
            if problem:
                yield invalid("spec.network.subdomain", value, problem)


def _containers(job: ReplicatedJob) -> Iterator[FieldError]:
    if job.pod.get("containers") is None:
        yield required(f"{job.pod_path}.containers", "a list of containers")


def _names(obj: Object, job: ReplicatedJob) -> Iterator[FieldError]:
    """Only the longest joined name is looked at, so the index of 0 replicas is -1 (spec jobset 1.2)."""
    last = job.replicas - 1
    longest = job_name(future_name(obj), job.name, last)
    problem, what = formats.label_1035(longest), "the name of its last Job"
    if problem is None and job.indexed and job.completions is not None:
        longest = pod_name(future_name(obj), job.name, last, job.completions - 1) + constants.POD_SUFFIX
        problem, what = formats.label_1035(longest), "the name of its last pod"
    if problem:
        yield invalid(f"{job.path}.name", longest, f"{what}: {problem}")


def _dependencies(obj: Object, jobs: tuple[ReplicatedJob, ...]) -> Iterator[FieldError]:
    if in_order(obj):
        if spec_of(obj).get("replicatedJobs") is None:
            yield invalid("spec", {}, "replicatedJobs must be present (it may be empty) with InOrder startup")
        elif any(job.raw.get("dependsOn") is not None for job in jobs):
            yield forbidden("spec", "InOrder startup and dependsOn exclude each other: use dependsOn alone")
    earlier: set[str] = set()
    for job in jobs:
        if job.index == 0 and job.raw.get("dependsOn") is not None:
            yield forbidden(
                f"{job.path}.dependsOn", "the first ReplicatedJob starts first, it cannot depend on another"
            )
        for place, name in enumerate(job.depends_on):
            path = f"{job.path}.dependsOn[{place}].name"
            if name == job.name:  # V17: upstream admits it, and the ReplicatedJob never starts
                yield invalid(path, name, "a ReplicatedJob cannot wait for itself")
            elif name not in earlier:
                yield invalid(path, name, f"must be an earlier ReplicatedJob, one of: {_words(earlier)}")
        earlier.add(job.name)


def _words(known: set[str]) -> str:
    return ", ".join(sorted(known)) or "(there is none)"


def _targets(targets: list[str] | None, known: set[str], path: str) -> Iterator[FieldError]:
    for index, name in enumerate(targets or ()):
        if name not in known:
            yield invalid(f"{path}[{index}]", name, f"no ReplicatedJob has this name; there are: {_words(known)}")


# ---- failure policy


def _failure_policy(
    obj: Object, jobs: tuple[ReplicatedJob, ...], known: set[str], ctx: Context
) -> Iterator[FieldError]:
    policy = spec_of(obj).get("failurePolicy") or {}
    if policy.get("restartStrategy") == "InPlaceRestart":
        yield from _in_place(jobs, ctx)
    rules = entries(policy.get("rules"))
    restarts = [index for index, rule in enumerate(rules) if rule.get("action") in RESTART_JOB_ACTIONS]
    if restarts and not ctx.on("RestartJob"):  # upstream then reports nothing else of the policy
        for index in restarts:
            yield forbidden(f"spec.failurePolicy.rules[{index}].action", "needs the option RestartJob, which is off")
        return
    if restarts:
        yield from _restarted(jobs)
    yield from _rule_names(rules)
    for index, rule in enumerate(rules):
        path = f"spec.failurePolicy.rules[{index}]"
        for place, reason in enumerate(rule.get("onJobFailureReasons") or ()):
            if reason not in FAILURE_REASONS:
                yield not_supported(f"{path}.onJobFailureReasons[{place}]", reason, FAILURE_REASONS)
        yield from _targets(rule.get("targetReplicatedJobs"), known, f"{path}.targetReplicatedJobs")


def _restarted(jobs: tuple[ReplicatedJob, ...]) -> Iterator[FieldError]:
    for job in jobs:
        if job.replicas > MAX_RESTARTED_REPLICAS:
            detail = f"with a RestartJob action at most {MAX_RESTARTED_REPLICAS}: restarts are counted for each Job"
            yield invalid(f"{job.path}.replicas", job.replicas, detail)


def _rule_names(rules: list[Object]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        name, path = rule.get("name") or "", f"spec.failurePolicy.rules[{index}].name"
        if not 1 <= len(name) <= MAX_RULE_NAME:
            yield invalid(path, name, f"must be 1 to {MAX_RULE_NAME} characters long")
        elif not RULE_NAME.fullmatch(name):
            yield invalid(
                path,
                name,
                "must start with a letter, go on with letters, digits, '_', ',' or ':', and not end with ',' or ':'",
            )
        elif name in seen:
            yield duplicate(path, name)
        seen.add(name)


def _in_place(jobs: tuple[ReplicatedJob, ...], ctx: Context) -> Iterator[FieldError]:
    if not ctx.on("InPlaceRestart"):
        yield forbidden(
            "spec.failurePolicy.restartStrategy", "InPlaceRestart needs the option of that name, which is off"
        )
        return
    for job in jobs:
        path, why = f"{job.path}.template.spec", "with in-place restart"
        if job.job.get("backoffLimit") != MAX_INT32:
            yield invalid(f"{path}.backoffLimit", job.job.get("backoffLimit"), f"must be {MAX_INT32} {why}")
        if job.job.get("podReplacementPolicy") != "Failed":
            yield invalid(f"{path}.podReplacementPolicy", job.job.get("podReplacementPolicy"), f"must be Failed {why}")
        if job.completions is None or job.completions != job.job.get("parallelism"):
            yield invalid(
                f"{path}.completions", job.completions, f"completions and parallelism must be set and equal {why}"
            )


# ---- coordinator


def _coordinator(obj: Object, jobs: tuple[ReplicatedJob, ...]) -> Iterator[FieldError]:
    wanted = spec_of(obj).get("coordinator")
    if wanted is None:
        return
    path, name = "spec.coordinator", wanted.get("replicatedJob") or ""
    job = next((found for found in jobs if found.name == name), None)
    if job is None:
        known = _words({found.name for found in jobs})
        yield invalid(f"{path}.replicatedJob", name, f"no ReplicatedJob has this name; there are: {known}")
        return
    job_index, pod_index = wanted.get("jobIndex") or 0, wanted.get("podIndex") or 0
    if not 0 <= job_index < job.replicas:
        yield invalid(f"{path}.jobIndex", job_index, f"{name} has {job.replicas} Jobs, counted from 0")
    if job.job.get("completionMode") != "Indexed" or job.completions is None:
        yield invalid(f"{path}.replicatedJob", name, "its Jobs must be Indexed and say their completions")
    elif not 0 <= pod_index < job.completions:
        yield invalid(f"{path}.podIndex", pod_index, f"a Job of {name} has {job.completions} pods, counted from 0")
    endpoint = coordinator_endpoint(future_name(obj), wanted, subdomain_of(obj))
    problem = formats.label_value(endpoint)
    if problem:
        yield FieldError(
            ErrorKind.INVALID, path, f"its endpoint is the label {constants.COORDINATOR}: {problem}", endpoint
        )
