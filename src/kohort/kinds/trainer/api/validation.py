"""Admission of TrainJobs as far as the object alone decides (spec trainjob 1.1 to 1.4)."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from kohort.api import formats
from kohort.api.core.resources import well_formed
from kohort.api.errors import FieldError, forbidden, invalid
from kohort.api.kind import Context, Object
from kohort.api.rules import same
from kohort.kinds.trainer.api.constants import CONTAINERS, GROUP, RUNTIME_KINDS, spec_of, tidy

_PATCHES: Final = "spec.runtimePatches"
# What a patch may say once and not change: JobSet freezes it (1.4).
_FROZEN: Final = (
    "serviceAccountName",
    "volumes",
    "initContainers",
    "containers",
    "imagePullSecrets",
    "securityContext",
    "terminationGracePeriodSeconds",
)


def validate(job: Object, _: Context) -> list[FieldError]:
    job = tidy(job)
    return [*_name(job), *_runtime_ref(job), *_resources(job), *_patches(job)]


def validate_update(new: Object, old: Object, _: Context) -> list[FieldError]:
    """The frozen members are in the schema; an added or dropped one counts as changed there, too (D14)."""
    new, old = tidy(new), tidy(old)
    errors = [*_patches(new), *_frozen_patches(new, old)]
    if patches_differ(new, old) and not (is_suspended(new) or is_suspended(old)):
        errors.append(
            forbidden(_PATCHES, "may only change while the TrainJob is suspended, before or after the update")
        )
    return errors


def check_active(new: Object, old: Object, jobset: Object | None) -> list[FieldError]:
    """Patches wait until the Jobs of the existing JobSet have stopped."""
    if not patches_differ(new, old):
        return []
    counters = ((jobset or {}).get("status") or {}).get("replicatedJobsStatus") or []
    return [
        forbidden(_PATCHES, f'may not change while ReplicatedJob "{found.get("name")}" of the JobSet is active')
        for found in counters
        if found.get("active")
    ]


def is_suspended(job: Object) -> bool:
    return bool(spec_of(job).get("suspend"))


def patches_of(job: Object) -> list[dict[str, Any]]:
    return spec_of(job).get("runtimePatches") or []


def patches_differ(new: Object, old: Object) -> bool:
    """Whether anything but the time stamps differs."""
    return not same([_unstamped(patch) for patch in patches_of(new)], [_unstamped(patch) for patch in patches_of(old)])


def stamp_patches(new: Object, old: Object | None, now: str) -> None:
    """The stamps of the mutating webhook, in place: unchanged entries keep theirs, changed ones get `now`, and so do
    new ones that bring no time of their own.
    """
    known = {patch.get("manager"): patch for patch in patches_of(old or {})}
    for patch in patches_of(new):
        before = known.get(patch.get("manager"))
        if before is not None and same(_unstamped(patch), _unstamped(before)):
            patch["time"] = before.get("time") or now
        elif before is not None or not patch.get("time"):
            patch["time"] = now


def _unstamped(patch: dict[str, Any]) -> dict[str, Any]:
    bare = deepcopy(patch)
    bare.pop("time", None)
    return bare


def patched_jobs(patch: dict[str, Any]) -> list[dict[str, Any]]:
    template = (patch.get("trainingRuntimeSpec") or {}).get("template") or {}
    return (template.get("spec") or {}).get("replicatedJobs") or []


def patched_pod(job: dict[str, Any]) -> dict[str, Any]:
    return (((job.get("template") or {}).get("spec") or {}).get("template") or {}).get("spec") or {}


def pod_path(patch: int, job: int) -> str:
    return f"{_PATCHES}[{patch}].trainingRuntimeSpec.template.spec.replicatedJobs[{job}].template.spec.template.spec"


def _name(job: Object) -> Iterator[FieldError]:
    name = str((job.get("metadata") or {}).get("name") or "")
    problem = formats.label_1035(name) if name else None
    # What no object may be called is reported with the metadata.
    if problem and not formats.subdomain(name):
        yield invalid("metadata.name", name, problem)


def _runtime_ref(job: Object) -> Iterator[FieldError]:
    ref = spec_of(job).get("runtimeRef") or {}
    group, kind = ref.get("apiGroup", GROUP), ref.get("kind", RUNTIME_KINDS[0])
    if group != GROUP:
        yield invalid("spec.runtimeRef.apiGroup", group, f"no runtime of that group is known; accepted is {GROUP}")
    if kind not in RUNTIME_KINDS:
        yield invalid(
            "spec.runtimeRef.kind", kind, f"no such runtime is known; accepted are {', '.join(RUNTIME_KINDS)}"
        )


def _resources(job: Object) -> Iterator[FieldError]:
    resources = (spec_of(job).get("trainer") or {}).get("resourcesPerNode") or {}
    for member in ("requests", "limits"):
        for name, value in (resources.get(member) or {}).items():
            if not well_formed(value):
                path = f"spec.trainer.resourcesPerNode.{member}[{name}]"
                yield invalid(path, value, formats.quantity(str(value)) or "must be a quantity")


def _patches(job: Object) -> Iterator[FieldError]:
    for index, patch in enumerate(patches_of(job)):
        manager = patch.get("manager")
        problem = formats.domain_prefixed_path(manager) if manager is not None else None
        if problem:
            yield invalid(f"{_PATCHES}[{index}].manager", manager, problem)
        for place, patched in enumerate(patched_jobs(patch)):
            for number, container in enumerate(patched_pod(patched).get("containers") or []):
                if container.get("name") in CONTAINERS.values() and container.get("env"):
                    yield forbidden(
                        f"{pod_path(index, place)}.containers[{number}].env",
                        f'the variables of container "{container["name"]}" come from spec.trainer and spec.initializer',
                    )


def _frozen_patches(new: Object, old: Object) -> Iterator[FieldError]:
    """A field is frozen while it stays in the entry of the same manager; to add or drop it is accepted."""
    before = {patch.get("manager"): patch for patch in patches_of(old)}
    for index, patch in enumerate(patches_of(new)):
        stored = {job.get("name"): job for job in patched_jobs(before.get(patch.get("manager")) or {})}
        for place, job in enumerate(patched_jobs(patch)):
            was, now = patched_pod(stored.get(job.get("name")) or {}), patched_pod(job)
            for name in _FROZEN:
                both = was.get(name) is not None and now.get(name) is not None
                if both and not same(now[name], was[name]):
                    yield invalid(f"{pod_path(index, place)}.{name}", now[name], "field is immutable")
