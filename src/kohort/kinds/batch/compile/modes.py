"""Who manages a Job's group: nobody, the Job itself, or the Workload of an object above it (spec job 1.1 to 1.3)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import controller_of
from kohort.api.releases import Gate
from kohort.gang.compile import CompileContext
from kohort.kinds.batch.api.status import is_finished
from kohort.kinds.batch.compile.parts import GROUP_TEMPLATE, named_group
from kohort.kinds.batch.settings import EffectiveSettings

BUILT_IN: Final = "kubernetes.io/job-controller"


class Mode(StrEnum):
    """What a Job gets."""

    NONE = "none"
    BOTH = "both"  # a Workload and a PodGroup
    POD_GROUP_ONLY = "podgroup-only"  # the parent's Workload describes it


def mode_of(job: Object, ctx: CompileContext, settings: EffectiveSettings) -> tuple[Mode, str]:
    """The management mode, and for NONE the reason."""
    why = _left_alone(job, ctx, settings)
    if why:
        return Mode.NONE, why
    return _declared(job, settings) if settings.declared else _inferred(job.get("spec") or {})


def _left_alone(job: Object, ctx: CompileContext, settings: EffectiveSettings) -> str:
    """Why no release would look at the Job, if so."""
    if settings.source is None:
        return f"Kubernetes {ctx.release.minor} makes no groups for Jobs; 1.36 is the first that does"
    if Gate.JOB in ctx.release.gates and not ctx.on(Gate.JOB):
        return f"feature gate {Gate.JOB} is off"
    manager = (job.get("spec") or {}).get("managedBy")
    if manager and manager != BUILT_IN:
        return f"the Job is managed by {manager}"
    if is_finished(job):
        return "the Job has finished"
    group = named_group(job)
    return f"the pod template names a group of its own ({group})" if group else ""


def _inferred(spec: dict[str, Any]) -> tuple[Mode, str]:
    """Only one shape is a gang, whoever owns the Job: all indexes at once, and more than one."""
    parallelism = spec.get("parallelism") or 0
    if spec.get("completionMode") != "Indexed":
        return Mode.NONE, "not a gang: the Job is not Indexed"
    if parallelism <= 1:
        return Mode.NONE, f"not a gang: parallelism is {parallelism}"
    if spec.get("completions") != parallelism:
        return Mode.NONE, f"not a gang: completions ({spec.get('completions')}) differ from parallelism ({parallelism})"
    return Mode.BOTH, ""


def _declared(job: Object, settings: EffectiveSettings) -> tuple[Mode, str]:
    owner = controller_of(job)
    annotations = (job.get("metadata") or {}).get("annotations") or {}
    if owner is None:
        return Mode.BOTH, ""
    if GROUP_TEMPLATE in annotations:
        return Mode.POD_GROUP_ONLY, ""
    if settings.cronjob_transparent and _is_cronjob(owner):
        return Mode.BOTH, ""
    return Mode.NONE, f"its owner, {owner.get('kind')} {owner.get('name')}, decides, and has not asked for a group"


def _is_cronjob(owner: dict[str, Any]) -> bool:
    return owner.get("kind") == "CronJob" and str(owner.get("apiVersion") or "").startswith("batch/")
