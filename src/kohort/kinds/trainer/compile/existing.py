"""Groups that are there already (spec trainjob 3.5, D9): ours, somebody's who made them for us, or in the way.

Objects are found by what they refer to, not by name. What a user has made is used as it is; what belongs to another
owner, or to a predecessor of the same name, is never taken over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kohort.api.errors import FieldError, duplicate, forbidden, invalid
from kohort.api.kind import Object
from kohort.gang import render
from kohort.gang.compile import CompileContext
from kohort.gang.stand_in import has_uid, uid_of
from kohort.gang.tree import Group, Member, Owner, Plan

_WHERE = "metadata.name"


@dataclass(frozen=True, slots=True)
class Met:
    """The plan as far as the existing objects let it be, or why nothing may be created."""

    plan: Plan
    errors: tuple[FieldError, ...] = ()


def meet(plan: Plan, job: Object, ctx: CompileContext) -> Met:
    """The plan, adapted to the Workloads and groups of its namespace."""
    workloads = ctx.lookup.every("Workload", plan.namespace)
    ours = [found for found in workloads if _refers_to(found, job)]
    if len(ours) > 1:
        names = ", ".join(sorted(found["metadata"]["name"] for found in ours))
        return Met(plan, (duplicate(_WHERE, f"Workloads {names} both have this TrainJob as their controller"),))
    if ours:
        met = _use(plan, ours[0], job)
    elif any(found["metadata"]["name"] == plan.workload for found in workloads):
        met = Met(plan, (forbidden(_WHERE, f'Workload "{plan.workload}" exists and is not of this TrainJob'),))
    else:
        met = Met(plan)
    return met if met.errors else _with_groups(met.plan, job, ctx)


def _refers_to(workload: Object, job: Object) -> bool:
    ref = (workload.get("spec") or {}).get("controllerRef") or {}
    wanted = (job["apiVersion"].partition("/")[0], "TrainJob", job["metadata"]["name"])
    return (ref.get("apiGroup"), ref.get("kind"), ref.get("name")) == wanted


def _use(plan: Plan, workload: Object, job: Object) -> Met:
    owner = _controller(workload)
    if owner is not None and not _is(owner, job):
        text = f'Workload "{workload["metadata"]["name"]}" belongs to {_words(owner)}; waiting until it is gone'
        return Met(plan, (forbidden(_WHERE, text),))
    if owner is not None:
        return Met(plan)
    templates = render.parse([workload]).templates
    found = {template.name for root in templates for template in root.walk()}
    wanted = {template.name for template in plan.walk()}
    if found != wanted:
        expected = ", ".join(sorted(wanted))
        text = (
            f'Workload "{workload["metadata"]["name"]}" was made for this TrainJob; expected are templates {expected}'
        )
        return Met(plan, (invalid(_WHERE, ", ".join(sorted(found)), text),))
    meta = workload["metadata"]
    theirs = Owner(
        api_version=workload["apiVersion"], kind="Workload", name=meta["name"], uid=str(meta.get("uid") or "")
    )
    groups = tuple(replace(group, priority_class=None, owners=(group.owners[0], theirs)) for group in plan.groups)
    return Met(replace(plan, workload=meta["name"], templates=templates, groups=groups, own_workload=False))


def _with_groups(plan: Plan, job: Object, ctx: CompileContext) -> Met:
    """Groups that refer to a template of the plan keep their names."""
    names: dict[str, str] = {}
    errors: list[FieldError] = []
    for obj in [*ctx.lookup.every("CompositePodGroup", plan.namespace), *ctx.lookup.every("PodGroup", plan.namespace)]:
        template = _template_of(obj, plan)
        if template is None:
            continue
        owner = _controller(obj)
        if owner is not None and not _is(owner, job):
            text = f'{obj["kind"]} "{obj["metadata"]["name"]}" belongs to {_words(owner)}; waiting until it is gone'
            errors.append(forbidden(_WHERE, text))
        names.setdefault(template, obj["metadata"]["name"])
    if errors or not names:
        return Met(plan, tuple(errors))
    renamed = {group.name: names.get(group.template, group.name) for group in plan.groups}
    return Met(
        replace(plan, groups=tuple(_renamed(group, renamed) for group in plan.groups), members=_moved(plan, renamed))
    )


def _renamed(group: Group, names: dict[str, str]) -> Group:
    return replace(group, name=names[group.name], parent=None if group.parent is None else names[group.parent])


def _moved(plan: Plan, names: dict[str, str]) -> tuple[Member, ...]:
    return tuple(replace(member, group=names.get(member.group or "")) for member in plan.members)


def _template_of(obj: Object, plan: Plan) -> str | None:
    """The template of the plan that an existing group is an instance of."""
    spec = obj.get("spec") or {}
    ref = spec.get("workloadRef") or (spec.get("podGroupTemplateRef") or {}).get("workload") or {}
    name = ref.get("templateName") or ref.get("podGroupTemplateName")
    known = {template.name for template in plan.walk()}
    return str(name) if ref.get("workloadName") == plan.workload and name in known else None


def _controller(obj: Object) -> Object | None:
    owners = obj["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def _is(owner: Object, job: Object) -> bool:
    """The same object: a uid tells it from a predecessor of the same name."""
    named = (owner.get("kind"), owner.get("name")) == ("TrainJob", job["metadata"]["name"])
    return named and (not has_uid(job) or owner.get("uid") == uid_of(job))


def _words(owner: Object) -> str:
    return f"{owner.get('kind')} {owner.get('name')} (uid {owner.get('uid')})"
