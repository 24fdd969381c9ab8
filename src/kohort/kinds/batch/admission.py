"""Job: on Kubernetes 1.36 the parallelism of a gang is frozen (spec job 3.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kohort.api.errors import FieldError, denied
from kohort.api.kind import Context, Object
from kohort.api.objects import namespace_or_default
from kohort.gang.admission import NOTHING, Findings
from kohort.gang.compile import CompileContext


def validate(new: Object, old: Object | None, ctx: CompileContext) -> Findings:
    if old is None:
        return NOTHING
    groups = ctx.lookup.every("PodGroup", namespace_or_default(new)) if ctx.release.minor == "1.36" else ()
    return Findings(tuple(check_parallelism(new, old, groups, ctx)))


def check_parallelism(job: Object, old: Object, groups: Iterable[Object], ctx: Context) -> list[FieldError]:
    """Denied if parallelism differs and the Job's pods are in a gang: one that the stored template names, or one
    that the Job controls. `groups` are the PodGroups of the Job's namespace."""
    if ctx.release.minor != "1.36" or _parallelism(job) == _parallelism(old):
        return []
    name, uid = _named(old), (old.get("metadata") or {}).get("uid")
    for group in groups:
        known = (group.get("metadata") or {}).get("name")
        if _is_gang(group) and (known == name if name else _controls(group, uid)):
            return [denied(f'cannot change parallelism for a Job referencing gang-scheduled PodGroup "{known}"')]
    return []


def _parallelism(job: Object) -> int:
    value = (job.get("spec") or {}).get("parallelism")
    return 1 if value is None else int(value)


def _named(job: Object) -> str | None:
    template: dict[str, Any] = ((job.get("spec") or {}).get("template") or {}).get("spec") or {}
    return (template.get("schedulingGroup") or {}).get("podGroupName")


def _is_gang(group: Object) -> bool:
    return ((group.get("spec") or {}).get("schedulingPolicy") or {}).get("gang") is not None


def _controls(group: Object, uid: str | None) -> bool:
    owners = (group.get("metadata") or {}).get("ownerReferences") or []
    return bool(uid) and any(owner.get("controller") and owner.get("uid") == uid for owner in owners)
