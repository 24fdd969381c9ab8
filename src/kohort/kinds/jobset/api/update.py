"""What may change after creation (spec jobset 1.3, V15, V16).

The schema holds what never changes: policies, network and the gang front ends. Here stand the ReplicatedJobs, of which
some parts change while the JobSet is suspended, and the size of elastic ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from kohort.api.errors import FieldError, forbidden, invalid
from kohort.api.kind import Context, Object
from kohort.api.rules import same
from kohort.kinds.jobset.api import gang_validation
from kohort.kinds.jobset.api.gangs import active, gangs, option_on
from kohort.kinds.jobset.api.reading import (
    ReplicatedJob,
    entries,
    is_finished,
    is_suspended,
    replicated_jobs,
    spec_of,
)

_LIST: Final = "spec.replicatedJobs"
_POD_META: Final = ("labels", "annotations")
_POD_SPEC: Final = ("nodeSelector", "tolerations", "schedulingGates")
_SIZES: Final = ("parallelism", "completions")


def validate_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    return [*_replicated_jobs(new, old, ctx), *_gangs(new, old, ctx)]


def _replicated_jobs(new: Object, old: Object, ctx: Context) -> Iterator[FieldError]:
    before, after = replicated_jobs(old), replicated_jobs(new)
    if [job.name for job in before] != [job.name for job in after]:
        names = ", ".join(job.name for job in after)
        yield invalid(_LIST, names, "field is immutable: ReplicatedJobs cannot be added, removed, renamed or moved")
        return
    suspended = is_suspended(new) or is_suspended(old)
    for job, was in zip(after, before, strict=True):
        if _both(job, was, "dependsOn"):
            yield invalid(f"{job.path}.dependsOn", job.raw["dependsOn"], "field is immutable")
        elastic = ctx.on("ElasticJobSet") and job.indexed and was.indexed
        if elastic:
            yield from _resized(job, was, is_finished(old))
        now, then = _rest(job, was, suspended, elastic), _rest(was, job, suspended, elastic)
        if not same(now, then):
            place, value = _difference(now, then, f"replicatedJobs[{job.index}]")
            yield invalid(_LIST, value, f"field is immutable: {place} is not what it was{_hint(suspended)}")


def _hint(suspended: bool) -> str:
    if suspended:
        return f"; of a pod template only {', '.join((*_POD_META, *_POD_SPEC))} may change while suspended"
    return ""


def _both(job: ReplicatedJob, was: ReplicatedJob, member: str) -> bool:
    """Changed, not added or removed: upstream says so at the member itself."""
    now, then = job.raw.get(member), was.raw.get(member)
    return bool(now) and bool(then) and not same(now, then)


def _rest(job: ReplicatedJob, other: ReplicatedJob, suspended: bool, elastic: bool) -> Object:
    """The ReplicatedJob without what may change, and without what is reported elsewhere."""
    raw = deepcopy(job.raw)
    raw.pop("gangConfig", None)  # frozen by the schema, with a path of its own (V15)
    if _both(job, other, "dependsOn"):
        raw.pop("dependsOn")
    template = raw.get("template") or {}
    spec = template.get("spec") or {}
    pod = spec.get("template") or {}
    if elastic:
        _drop(spec, _SIZES)
    if suspended:
        _drop(pod.get("metadata") or {}, _POD_META)
        _drop(pod.get("spec") or {}, _POD_SPEC)
    for holder in (template, pod):  # an empty metadata is none
        if not holder.get("metadata"):
            holder.pop("metadata", None)
    return raw


def _drop(holder: Object, members: tuple[str, ...]) -> None:
    for member in members:
        holder.pop(member, None)


def _difference(now: Any, then: Any, path: str) -> tuple[str, Any]:
    """The first place where two values differ, and what stands there now."""
    if isinstance(now, dict) and isinstance(then, dict):
        for name in sorted(now.keys() | then.keys()):
            if not same(now.get(name), then.get(name)):
                return _difference(now.get(name), then.get(name), f"{path}.{name}")
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        for index, (one, other) in enumerate(zip(now, then, strict=True)):
            if not same(one, other):
                return _difference(one, other, f"{path}[{index}]")
    return path, now


def _resized(job: ReplicatedJob, was: ReplicatedJob, finished: bool) -> Iterator[FieldError]:
    """Elastic ReplicatedJobs. Only values that are set are looked at, as upstream does."""
    now, then = ([found.job.get(member) for member in _SIZES] for found in (job, was))
    if now == then:
        return
    path = f"{job.path}.template.spec"
    if finished:
        yield forbidden(path, "parallelism and completions of a finished JobSet cannot change")
        return
    for member, value in zip(_SIZES, now, strict=True):
        if value is not None and value < 1:
            yield invalid(f"{path}.{member}", value, "must be greater than or equal to 1")
    if None not in now and now[0] != now[1]:
        yield invalid(f"{path}.completions", now[1], f"must be equal to parallelism, {now[0]}: the Jobs are Indexed")


def _gangs(new: Object, old: Object, ctx: Context) -> Iterator[FieldError]:
    """What a resize or a new annotation would do to gangs. Findings that the stored object has too are not news."""
    if not option_on(ctx, "GangScheduling") or not active(new) or not _same_front_ends(new, old):
        return
    known = {(error.field, error.kind) for error in gang_validation.counted(old, ctx)}
    yield from (error for error in gang_validation.counted(new, ctx) if (error.field, error.kind) not in known)
    before = {request.path for request in gang_validation.too_small(gangs(old))}
    sizes = {job.index: job.pods for job in replicated_jobs(old)}
    for request in gang_validation.too_small(gangs(new)):  # V16
        for job in request.jobs:
            if request.path not in before and job.pods != sizes.get(job.index):
                yield gang_validation.minimum_error(request, f"{job.path}.template.spec.completions", job.completions)


def _same_front_ends(new: Object, old: Object) -> bool:
    whole = all(
        same(spec_of(new).get(name), spec_of(old).get(name))
        for name in ("gangConfig", "podGroupPolicies", "scheduling")
    )
    return whole and same(_modes(new), _modes(old))


def _modes(obj: Object) -> list[Any]:
    return [raw.get("gangConfig") for raw in entries(spec_of(obj).get("replicatedJobs"))]
