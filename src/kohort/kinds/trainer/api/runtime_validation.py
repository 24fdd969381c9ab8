"""Admission of runtimes (spec trainjob 1.6, 1.8): roles, injection targets, groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api.errors import FieldError, invalid, required
from kohort.api.kind import Context, Object
from kohort.kinds.trainer.api.constants import (
    CLUSTER_RUNTIME,
    CONTAINERS,
    NODE,
    SUPPORT_LABEL,
    UNCHECKED_LABEL,
    container_of,
    containers_of,
    labels_of,
    replicated_jobs,
    role_of,
    spec_of,
    tidy,
)
from kohort.kinds.trainer.api.group_validation import check_gates, check_groups
from kohort.kinds.trainer.api.groups import wants_groups

_JOBS: Final = "spec.template.spec.replicatedJobs"
_DROPPED: Final = ("scheduling", "gangConfig", "podGroupPolicies")


def validate(runtime: Object, ctx: Context) -> list[FieldError]:
    runtime = tidy(runtime)
    errors = [*_empty(runtime), *_injection(runtime)]
    return errors if _unchecked(runtime) else [*errors, *_roles(runtime), *_groups(runtime, ctx)]


def validate_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    """An update that only now asks to go unchecked, or no longer does, is checked.

    Upstream looks at the roles of a namespaced runtime on creation only; groups are always looked at (scenario 11).
    """
    new, old = tidy(new), tidy(old)
    errors = [*_empty(new), *_injection(new)]
    if _unchecked(new) and _unchecked(old):
        return errors
    if new.get("kind") == CLUSTER_RUNTIME:
        errors += _roles(new)
    return [*errors, *_groups(new, ctx)]


def warn(runtime: Object, _: Context) -> list[str]:
    runtime = tidy(runtime)
    warnings = [] if wants_groups(runtime) else [f"{path}: ignored: {why}" for path, why in _ignored(runtime)]
    if runtime.get("kind") == CLUSTER_RUNTIME and is_deprecated(runtime):
        warnings.append(f'{CLUSTER_RUNTIME} "{runtime["metadata"].get("name")}" is deprecated')
    return warnings


def is_deprecated(runtime: Object) -> bool:
    return labels_of(runtime).get(SUPPORT_LABEL) == "deprecated"


def recheck(runtime: Object, ctx: Context) -> list[FieldError]:
    """What must hold when a TrainJob is built, whatever admission let through (1.6).

    The gates are not asked: where they are off, a stored runtime is used without its groups.
    """
    groups = wants_groups(runtime) and not check_gates(runtime, ctx)
    return [*_injection(runtime), *(check_groups(runtime, ctx)[1] if groups else [])]


def _unchecked(runtime: Object) -> bool:
    return labels_of(runtime).get(UNCHECKED_LABEL) == "disabled"


def _groups(runtime: Object, ctx: Context) -> list[FieldError]:
    if not wants_groups(runtime):
        return []
    return [*check_gates(runtime, ctx), *check_groups(runtime, ctx)[1]]


def _empty(runtime: Object) -> Iterator[FieldError]:
    if runtime.get("spec") == {}:
        yield required("spec", "at least one member")


def _roles(runtime: Object) -> Iterator[FieldError]:
    for index, job in enumerate(replicated_jobs(runtime)):
        role = role_of(job)
        if role is None:
            continue
        replicas = job.get("replicas")
        if replicas not in (None, 1):
            yield invalid(f"{_JOBS}[{index}].replicas", replicas, f"must be 1 for the {role}")
        if container_of(job, CONTAINERS[role]) is None:
            found = [container.get("name") for container in containers_of(job)]
            yield invalid(
                f"{_JOBS}[{index}].template.spec.template.spec.containers",
                found,
                f'must have a container "{CONTAINERS[role]}", as this is the {role}',
            )


def _injection(runtime: Object) -> Iterator[FieldError]:
    for index, target in enumerate(injection_targets(runtime)):
        path = f"spec.mlPolicy.torch.envInjection.targets[{index}].containerNames"
        names = target.get("containerNames")
        if names == []:
            yield invalid(path, 0, "must have at least 1 item")
        if NODE in (names or []):
            yield invalid(path, names, f'must not have "{NODE}", which always gets the variables')


def injection_targets(runtime: Object) -> list[dict[str, Any]]:
    torch = (spec_of(runtime).get("mlPolicy") or {}).get("torch") or {}
    return (torch.get("envInjection") or {}).get("targets") or []


def _ignored(runtime: Object) -> Iterator[tuple[str, str]]:
    """Gangs that the JobSet would make: not for one that a TrainJob owns (3.11)."""
    template = (spec_of(runtime).get("template") or {}).get("spec") or {}
    why = "a TrainJob's groups come from podGroupPolicy.workload"
    for name in _DROPPED:
        if template.get(name) is not None:
            yield f"spec.template.spec.{name}", why
    for index, job in enumerate(replicated_jobs(runtime)):
        if job.get("gangConfig") is not None:
            yield f"{_JOBS}[{index}].gangConfig", why
