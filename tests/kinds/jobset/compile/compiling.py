"""Compile a JobSet as the library does: only what is valid and completed."""

from __future__ import annotations

from typing import Any

from tests.kinds.jobset.api.building import completed, context, errors

from kohort.api.kind import Object
from kohort.gang.compile import Compilation, CompileContext
from kohort.gang.render import render
from kohort.gang.settings import SettingsByKind
from kohort.gang.tree import Plan
from kohort.kinds.jobset.compile.jobset import compile_object
from kohort.kinds.jobset.settings import JobSetSettings


def compiled(
    obj: Object, minor: str = "1.37", *options: str, settings: JobSetSettings | None = None, **how: Any
) -> Compilation:
    ctx = context(minor, *options, **how)
    assert errors(obj, ctx) == []
    whole = CompileContext(ctx.release, ctx.gates, ctx.options, settings=SettingsByKind(settings or JobSetSettings()))
    return compile_object(completed(obj, ctx), whole)


def plan_of(obj: Object, minor: str = "1.37", **how: Any) -> Plan:
    done = compiled(obj, minor, **how)
    assert done.errors == ()
    (plan,) = done.plans
    return plan


def templates(plan: Plan) -> dict[str, int | None]:
    """Name -> minimum of all templates."""
    return {template.name: template.minimum for template in plan.walk()}


def members(plan: Plan) -> dict[str, str | None]:
    """Job -> group of its pods."""
    return {member.source.removeprefix("Job "): member.group for member in plan.members}


def objects(plan: Plan, minor: str = "1.37") -> list[Object]:
    done = render(plan, minor)
    assert done.errors == ()
    return list(done.objects)


def names(found: list[Object]) -> list[str]:
    return [f"{obj['kind']} {obj['metadata']['name']}" for obj in found]
