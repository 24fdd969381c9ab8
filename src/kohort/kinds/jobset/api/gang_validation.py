"""Which gangs a JobSet may ask for: rules V1 to V14 of spec jobset 4.2 (V15, V16: update.py; V17: validation.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kohort.api import formats
from kohort.api.errors import FieldError, forbidden, invalid, required, too_many
from kohort.api.kind import Context, Object
from kohort.kinds.jobset.api.gangs import (
    GANG,
    LEAF_LEVEL,
    OFF,
    REPLICATED_GANG,
    GangRequest,
    Gangs,
    active,
    gangs,
    has_top_level,
    is_sequenced,
    mode,
    option_on,
    policy_requests,
    present,
    without_empty,
)
from kohort.kinds.jobset.api.reading import ReplicatedJob, entries, exclusive_placement, replicated_jobs, spec_of
from kohort.kinds.jobset.api.schema import MAX_INT32, MAX_TEMPLATES


def check(obj: Object, ctx: Context) -> Iterator[FieldError]:
    if not option_on(ctx, "GangScheduling"):  # V1
        for path in present(obj):
            yield forbidden(path, "needs the option GangScheduling, which is off")
        return
    front_ends = active(obj)
    yield from _levels(obj)
    yield from _policies(obj)
    yield from _scheduling(obj, ctx)
    if len(front_ends) > 1:  # V4
        yield forbidden(
            "spec", f"only one of gangConfig, podGroupPolicies and scheduling, found {' and '.join(front_ends)}"
        )
        return
    if front_ends:
        yield from _active(obj, front_ends[0], gangs(obj), ctx)


def _active(obj: Object, front_end: str, asked: Gangs, ctx: Context) -> Iterator[FieldError]:
    yield from _names(asked)
    yield from _sequence(obj, front_end, asked)
    yield from _job_scheduling(obj)
    yield from _references(obj, front_end, asked)
    yield from counted(obj, ctx)
    if not is_external(obj):
        for request in too_small(asked):
            yield minimum_error(request, f"{request.path}.schedulingPolicy.gang.minCount", request.explicit)


def counted(obj: Object, ctx: Context) -> Iterator[FieldError]:
    """Rules about things that may change after creation: annotations, and how many pods there are."""
    front_ends = active(obj)
    if len(front_ends) != 1:
        return
    asked = gangs(obj)
    yield from _exclusive(obj, asked)
    if is_external(obj):
        return
    yield from _priority(asked, ctx)
    for tree in asked.requests:
        yield from _alike(tree)
    yield from _width(front_ends[0], asked)
    yield from _sums(asked)


# ---- gangConfig


def _levels(obj: Object) -> Iterator[FieldError]:
    """V3: one level only."""
    if mode(spec_of(obj)) != GANG:
        return
    for job in replicated_jobs(obj):
        if mode(job.raw) in {GANG, REPLICATED_GANG}:
            detail = "the JobSet is one gang already (spec.gangConfig); leave it out or set the JobSet to Off"
            yield invalid(f"{job.path}.gangConfig.gangMode", mode(job.raw), detail)


def is_external(obj: Object) -> bool:
    """Whether the user's own groups are to be used: gangConfig, and every pod template in scope names one (V7)."""
    scope = gangs(obj).jobs
    return active(obj) == ["gangConfig"] and bool(scope) and all(job.group_reference for job in scope)


def _references(obj: Object, front_end: str, asked: Gangs) -> Iterator[FieldError]:
    """V7: groups are either ours or the user's."""
    scope = asked.jobs
    having = [job for job in scope if job.group_reference]
    lacking = [job.name for job in scope if not job.group_reference]
    whole = mode(spec_of(obj)) != OFF and front_end == "gangConfig"
    for job in having:
        member, value = job.group_reference or ("", None)
        path = f"{job.pod_path}.{member}"
        if front_end != "gangConfig":
            yield forbidden(path, f"{front_end} makes the groups; remove the reference or {front_end}")
        elif not whole and mode(job.raw) == REPLICATED_GANG:
            yield forbidden(path, "one pod template cannot name a group for each Job; remove it or use gangMode Gang")
        elif lacking:
            yield forbidden(
                path, f"every pod template of a gang names a group or none does; {', '.join(lacking)} does not"
            )
        elif whole and value != (having[0].group_reference or ("", None))[1]:
            yield invalid(path, value, f"the JobSet is one gang: must be the group of {having[0].name}")


# ---- podGroupPolicies


def _policies(obj: Object) -> Iterator[FieldError]:
    """V13. That names are unique labels is said by the schema."""
    jobs = replicated_jobs(obj)
    known = {job.name for job in jobs}
    taken: dict[str, str] = {}
    policies = entries(spec_of(obj).get("podGroupPolicies"))
    alone = {job.name for request in policy_requests(obj) if request.each_job for job in request.jobs}
    for index, policy in enumerate(policies):
        path, wanted = f"spec.podGroupPolicies[{index}]", policy.get("targetReplicatedJobs") or ()
        if not wanted and len(policies) > 1:
            yield invalid(f"{path}.targetReplicatedJobs", [], "a policy for all ReplicatedJobs must be the only one")
        yield from _targets(wanted, known, taken, f"{path}.targetReplicatedJobs", f"podGroupPolicies[{index}]")
        if policy.get("mode") != REPLICATED_GANG and policy.get("name") in alone:  # both would be template pg-<name>
            detail = "is the name of a ReplicatedJob with a gang for each of its Jobs; choose another"
            yield invalid(f"{path}.name", policy["name"], detail)


def _targets(
    wanted: Sequence[str], known: set[str], taken: dict[str, str], path: str, who: str
) -> Iterator[FieldError]:
    """Targets exist, and none is named by two."""
    for place, name in enumerate(wanted):
        if name not in known:
            words = ", ".join(sorted(known)) or "(there is none)"
            yield invalid(f"{path}[{place}]", name, f"no ReplicatedJob has this name; there are: {words}")
        elif taken.get(name, who) != who:
            yield invalid(f"{path}[{place}]", name, f"is already a target of {taken[name]}")
        taken.setdefault(name, who)


# ---- scheduling


def _scheduling(obj: Object, ctx: Context) -> Iterator[FieldError]:
    """V14."""
    top, path = spec_of(obj).get("scheduling"), "spec.scheduling"
    if top is None:
        return
    jobs = replicated_jobs(obj)
    listed = entries(top.get("replicatedJobs"))
    yield from _block(top, path)
    if listed and has_top_level(top) and not option_on(ctx, "GangOfGangs"):
        yield forbidden(
            f"{path}.replicatedJobs", "beside fields of the JobSet needs the option GangOfGangs, which is off"
        )
    explicit = ((top.get("schedulingPolicy") or {}).get("gang") or {}).get("minCount")
    if explicit is not None and listed:
        detail = "with replicatedJobs the JobSet is a gang of groups, not of pods; leave minCount out"
        yield forbidden(f"{path}.schedulingPolicy.gang.minCount", detail)
    elif explicit is not None and is_sequenced(obj, jobs):
        detail = "ReplicatedJobs that start one after the other cannot wait for pods of all; leave minCount out"
        yield forbidden(f"{path}.schedulingPolicy.gang.minCount", detail)
    taken: dict[str, str] = {}
    for index, entry in enumerate(listed):
        where = f"{path}.replicatedJobs[{index}]"
        wanted = entry.get("targetReplicatedJobs") or ()
        yield from _targets(
            wanted, {job.name for job in jobs}, taken, f"{where}.targetReplicatedJobs", f"entry {index}"
        )
        yield from _entry(obj, entry, where)
    if listed and not has_top_level(top):
        missing = [job.name for job in jobs if job.name not in taken]
        if missing:
            yield required(f"{path}.replicatedJobs", f"an entry that targets {', '.join(missing)}: none does")


def _entry(obj: Object, entry: Object, path: str) -> Iterator[FieldError]:
    wanted, job = entry.get("targetReplicatedJobs") or (), entry.get("job")
    yield from _block(entry, path)
    if job is None:
        members = tuple(found for found in replicated_jobs(obj) if found.name in wanted)
        explicit = ((entry.get("schedulingPolicy") or {}).get("gang") or {}).get("minCount")
        if explicit is not None and is_sequenced(obj, members):
            detail = "its targets start one after the other and cannot wait for each other; leave minCount out"
            yield forbidden(f"{path}.schedulingPolicy.gang.minCount", detail)
        return
    yield from _block(job, f"{path}.job")
    if len(wanted) != 1:
        yield invalid(
            f"{path}.targetReplicatedJobs", list(wanted), "must be exactly one ReplicatedJob where job is set"
        )
    for member in LEAF_LEVEL:
        if entry.get(member) is not None:
            yield forbidden(f"{path}.{member}", "belongs into job: beside it there is no group for all Jobs")


def _block(block: Object, path: str) -> Iterator[FieldError]:
    basic = (block.get("schedulingPolicy") or {}).get("basic") is not None
    if basic and (block.get("disruptionMode") or {}).get("all") is not None:
        yield forbidden(
            f"{path}.disruptionMode.all", "pods of a basic group come and go one by one; use gang or single"
        )


# ---- whatever the front end


def _names(asked: Gangs) -> Iterator[FieldError]:
    """Names of templates and groups are made of names that a JobSet without gangs may have and a label may not."""
    for job in asked.jobs:
        problem = formats.label(job.name)
        if problem:
            yield invalid(f"{job.path}.name", job.name, f"pods in a gang: {problem}")


def _sequence(obj: Object, front_end: str, asked: Gangs) -> Iterator[FieldError]:
    """V5. The scheduling front end falls back to a gang for each ReplicatedJob instead."""
    if front_end == "scheduling":
        return
    for request in asked.requests:
        if is_sequenced(obj, request.jobs):
            members = ", ".join(job.name for job in request.jobs)
            detail = f"{members} start one after the other (InOrder or dependsOn): a gang of them would never start"
            yield forbidden(request.path, detail)


def _exclusive(obj: Object, asked: Gangs) -> Iterator[FieldError]:
    """V6: followers are refused until their leader runs, the leader waits for the gang."""
    for job in asked.jobs:
        placement = exclusive_placement(obj, job)
        if placement and not placement.by_node_selector and job.pods_per_job > 1:
            detail = f"exclusive placement lets the first pod of a Job start alone, the gang of {job.name} does not"
            yield forbidden(placement.path, f"{detail}; use the node-selector strategy")


def _job_scheduling(obj: Object) -> Iterator[FieldError]:
    """V8."""
    for job in replicated_jobs(obj):
        if job.job.get("scheduling") is not None:
            yield forbidden(
                f"{job.path}.template.spec.scheduling", "the JobSet makes the groups; remove one of the two"
            )


def _priority(asked: Gangs, ctx: Context) -> Iterator[FieldError]:
    """V9. From 1.37 on all templates of a Workload have one class, before that the pods of a group."""
    scopes = [asked.jobs] if ctx.release.has_composites else [leaf.jobs for leaf in asked.leaves]
    for jobs in scopes:
        yield from _differing(jobs, "priorityClassName", lambda job: job.pod.get("priorityClassName") or "")


def _alike(tree: GangRequest) -> Iterator[FieldError]:
    """V10: the scheduler refuses a group or tree whose pods differ in these."""
    yield from _differing(tree.jobs, "schedulerName", lambda job: job.pod.get("schedulerName") or "default-scheduler")
    yield from _differing(tree.jobs, "preemptionPolicy", lambda job: job.pod.get("preemptionPolicy") or "")


def _differing(
    jobs: tuple[ReplicatedJob, ...], member: str, value: Callable[[ReplicatedJob], Any]
) -> Iterator[FieldError]:
    members = [job for job in jobs if job.pods]
    for job in members[1:]:
        if value(job) != value(members[0]):
            words = value(members[0]) or "none"
            detail = f"must be that of {members[0].name} ({words}): what is grouped together must agree"
            yield invalid(f"{job.pod_path}.{member}", value(job), detail)


def _width(front_end: str, asked: Gangs) -> Iterator[FieldError]:
    """V11. Leaves and branches beneath a root stand in lists of their own; groups without pods are not made."""
    requests = without_empty(asked.requests)
    for level in (requests, *(request.children for request in requests)):
        for found in ([one for one in level if one.children], [one for one in level if not one.children]):
            if len(found) > MAX_TEMPLATES:
                yield too_many(_front_end_path(front_end, asked), len(found), MAX_TEMPLATES)


def _front_end_path(front_end: str, asked: Gangs) -> str:
    if front_end == "gangConfig":
        return "spec.replicatedJobs"
    return "spec.scheduling.replicatedJobs" if front_end == "scheduling" and not asked.split else f"spec.{front_end}"


def _sums(asked: Gangs) -> Iterator[FieldError]:
    """V12."""
    for leaf in asked.leaves:
        total = 0
        for job in leaf.jobs:
            total += job.pods_per_job if leaf.each_job else job.pods
            if total > MAX_INT32:
                yield invalid(job.path, total, f"the pods of a gang must not be more than {MAX_INT32}")
                break


def too_small(asked: Gangs) -> list[GangRequest]:
    """Requests whose written minimum is more than there are pods (V14, V16)."""
    return [leaf for leaf in asked.leaves if leaf.gang and leaf.explicit is not None and leaf.explicit > leaf.pods]


def minimum_error(request: GangRequest, path: str, value: Any) -> FieldError:
    members = ", ".join(job.name for job in request.jobs)
    what = f"a Job of {members} has" if request.each_job else f"{members} together have"
    return invalid(path, value, f"minCount is {request.explicit}, but {what} {request.pods} pods")
