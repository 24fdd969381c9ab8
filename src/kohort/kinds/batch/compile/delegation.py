"""A Job whose group is described by the Workload of an object above it (spec job 3.9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kohort.api.errors import ErrorKind, FieldError
from kohort.api.kind import Object
from kohort.api.objects import controller_of, namespace_or_default
from kohort.api.releases import Gate
from kohort.gang.compile import Compilation, CompileContext, Notice
from kohort.gang.render.common import read_controller
from kohort.gang.stand_in import uid_of
from kohort.gang.tree import Group, Plan, Template
from kohort.kinds.batch.compile import existing as job_find
from kohort.kinds.batch.compile.names import pod_group_name
from kohort.kinds.batch.compile.parts import GROUP_TEMPLATE, PARENT_INSTANCE, job_owner, own_pods, ungrouped
from kohort.kinds.batch.settings import EffectiveSettings

_FIELD: Final = f"metadata.annotations[{GROUP_TEMPLATE}]"


def compile_delegated(job: Object, ctx: CompileContext, settings: EffectiveSettings) -> Compilation:
    wanted = str(job["metadata"]["annotations"][GROUP_TEMPLATE] or "")
    workload = job_find.parent_workload(job, ctx.lookup, parity=settings.parity)
    if workload is None:
        owner = controller_of(job) or {}
        above = f"{owner.get('kind')} {owner.get('name')}"
        why = Notice("ParentWorkloadNotFound", f"no Workload names {above} or an owner of it")
        return _missing(why, wanted, settings)
    templates = job_find.templates_of(workload)
    template = _find(templates, wanted, parity=settings.parity)
    name = str(workload["metadata"]["name"])
    if template is None:
        why = Notice("GroupTemplateNotFound", f'Workload {name} has no PodGroup template "{wanted}"')
        return _missing(why, wanted, settings)
    if settings.parity:  # upstream's library forgets this field
        templates = tuple(_without_preemption(one) for one in templates)
    plan = Plan(
        workload=name,
        namespace=namespace_or_default(job),
        controller=read_controller(workload.get("spec") or {}),
        templates=templates,
        groups=(),
        own_workload=False,
    )
    return _grouped(job, plan, template, ctx, settings)


def _grouped(
    job: Object, plan: Plan, template: Template, ctx: CompileContext, settings: EffectiveSettings
) -> Compilation:
    """The Job's own group of that template, or a new one while the Job is new."""
    groups = job_find.groups_of(plan.workload, plan.namespace, ctx.lookup)
    own = job_find.controlled(groups, uid_of(job))
    if len(own) > 1:
        why = f"the Job controls more than one PodGroup of Workload {plan.workload}"
        return ungrouped(Notice("AmbiguousPodGroup", why))
    if not own and not job_find.is_new(job, ctx.lookup, parity=settings.parity):
        return Compilation(reason="the Job has started without a group; only new Jobs get one")
    # Several Jobs may share a template; upstream gives them the same name, and all but the first get stuck.
    salt = "" if settings.parity else uid_of(job)
    name = str(own[0]["metadata"]["name"]) if own else pod_group_name(plan.workload, template.name, salt)
    parent, warnings = _parent(job, ctx, settings)
    group = Group(name=name, template=template.name, parent=parent, owners=(job_owner(job),))
    done = replace(plan, groups=(group,), members=own_pods(job, name))
    return Compilation(plans=(done,), warnings=warnings)


def _parent(job: Object, ctx: CompileContext, settings: EffectiveSettings) -> tuple[str | None, tuple[str, ...]]:
    annotations = job["metadata"]["annotations"]
    key = next((key for key in PARENT_INSTANCE if annotations.get(key)), None)
    if key is None or settings.parity:
        return None, ()
    if not ctx.on(Gate.COMPOSITE):
        return None, (f"metadata.annotations[{key}]: without feature gate {Gate.COMPOSITE} it has no effect",)
    return str(annotations[key]), ()


def _find(templates: tuple[Template, ...], wanted: str, *, parity: bool) -> Template | None:
    """By name, at any depth; without a name the first. Upstream looks at the top level only."""
    every = templates if parity else tuple(one for top in templates for one in top.walk())
    leaves = [one for one in every if one.is_leaf]
    return next((one for one in leaves if not wanted or one.name == wanted), None)


def _missing(why: Notice, wanted: str, settings: EffectiveSettings) -> Compilation:
    """Upstream makes pods at once and ungrouped; here the Job waits for what its parent still owes it."""
    if settings.parity:
        return Compilation(reason=f"{why}; its pods stay ungrouped")
    return Compilation(errors=(FieldError(ErrorKind.NOT_FOUND, _FIELD, str(why), wanted),), notice=why)


def _without_preemption(template: Template) -> Template:
    children = tuple(_without_preemption(child) for child in template.children)
    return replace(template, preemption_policy=None, children=children)
