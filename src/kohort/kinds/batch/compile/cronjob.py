"""A CronJob has no group; each of its runs may. Compiled is one run, as an example (spec job 3.10, T-65)."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Final

from kohort.api.errors import FieldError
from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.gang.compile import Compilation, CompileContext
from kohort.gang.stand_in import uid_of
from kohort.gang.tree import Plan
from kohort.kinds.batch.api.defaults import default
from kohort.kinds.batch.compile.job import compile_object as compile_job

EXAMPLE_RUN: Final = 29_000_000  # minutes since 1970: what a run is numbered by
_SPEC: Final = "spec.jobTemplate.spec."


def compile_object(cronjob: Object, ctx: CompileContext) -> Compilation:
    job = run_of(cronjob, EXAMPLE_RUN)
    default(job, ctx)
    done = compile_job(job, ctx)
    return replace(
        done,
        plans=tuple(_of_cronjob(plan) for plan in done.plans),
        errors=tuple(replace(error, field=_path(error.field)) for error in done.errors),
        warnings=tuple(_warning(warning) for warning in done.warnings),
        objects=(job,),
    )


def run_of(cronjob: Object, number: int) -> Object:
    """The Job of the run that is due `number` minutes after the beginning of 1970."""
    name, template = str(cronjob["metadata"]["name"]), (cronjob.get("spec") or {}).get("jobTemplate") or {}
    meta = template.get("metadata") or {}
    copied = {member: dict(meta[member]) for member in ("labels", "annotations") if meta.get(member)}
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": name,
        "uid": uid_of(cronjob),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{name}-{number}",
            "namespace": namespace_or_default(cronjob),
            **copied,
            "ownerReferences": [owner],
        },
        "spec": deepcopy(template.get("spec") or {}),
    }


def _of_cronjob(plan: Plan) -> Plan:
    """The pod template stands deeper in a CronJob."""
    members = tuple(replace(member, path=("spec", "jobTemplate", *member.path)) for member in plan.members)
    return replace(plan, members=members)


def _path(field: str) -> str:
    return _SPEC + field.removeprefix("spec.") if field.startswith("spec.") else field


def _warning(warning: FieldError | str) -> FieldError | str:
    return _path(warning) if isinstance(warning, str) else replace(warning, field=_path(warning.field))
