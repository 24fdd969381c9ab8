"""A Job as a tree: one group of its own, or one that its parent's Workload describes (KEP-5547).

Messages begin with the reason of the controller's event (spec job 2.8). An error of kind NotFound is worth waiting
for: what is missing may still come, and until then no pod should be made.
"""

from __future__ import annotations

from dataclasses import replace

from kohort.api import formats
from kohort.api.errors import invalid
from kohort.api.kind import Object
from kohort.api.objects import controller_of, namespace_or_default
from kohort.gang.compile import Compilation, CompileContext, Notice
from kohort.gang.compile.builder import Builder
from kohort.gang.stand_in import uid_of
from kohort.gang.tree import Controller, Group, Owner, Plan
from kohort.kinds.batch.compile import existing as job_find
from kohort.kinds.batch.compile.delegation import compile_delegated
from kohort.kinds.batch.compile.groups import item_of, template_of, warnings_of
from kohort.kinds.batch.compile.modes import Mode, mode_of
from kohort.kinds.batch.compile.names import legal_template_name, pod_group_name, template_name, workload_name
from kohort.kinds.batch.compile.parts import FAILED_CREATE, job_owner, own_pods, ungrouped
from kohort.kinds.batch.settings import SKIP, USE, EffectiveSettings


def compile_object(job: Object, ctx: CompileContext) -> Compilation:
    settings = EffectiveSettings.of(ctx)
    mode, reason = mode_of(job, ctx, settings)
    if mode is Mode.NONE:
        return Compilation(reason=reason)
    if mode is Mode.POD_GROUP_ONLY:
        return compile_delegated(job, ctx, settings)
    return _root(job, ctx, settings)


def _root(job: Object, ctx: CompileContext, settings: EffectiveSettings) -> Compilation:
    name, namespace, uid = str(job["metadata"]["name"]), namespace_or_default(job), uid_of(job)
    known = job_find.workloads_of("batch/v1", "Job", name, namespace, ctx.lookup)
    own = job_find.controlled(known, uid)
    if settings.byo == SKIP and len(known) != len(own):
        others = ", ".join(_names(known))
        return Compilation(reason=f"a Workload of somebody else names the Job ({others}): it is left to it")
    if len(own) > 1:
        why = f"the Job controls more than one Workload ({', '.join(_names(own))})"
        return ungrouped(Notice("AmbiguousWorkload", why))
    if own:
        return _existing(job, own[0], ctx, settings)
    if settings.byo == USE:
        foreign = [workload for workload in known if controller_of(workload) is None]
        if foreign:
            return _brought(job, foreign, ctx, settings)
    if not job_find.is_new(job, ctx.lookup, parity=settings.parity):
        return Compilation(reason="the Job has started without a group; only new Jobs get one")
    return _fresh(job, ctx, settings)


def _unsupported(workload: str) -> Notice:
    return Notice("UnsupportedWorkloadStructure", f"Workload {workload} must have exactly one PodGroup template")


def _impossible(job: str, notice: Notice) -> Compilation:
    return Compilation(errors=(invalid("metadata.name", job, str(notice)),), notice=notice)


def _names(objects: list[Object]) -> list[str]:
    return sorted(str((obj.get("metadata") or {}).get("name")) for obj in objects)


def _fresh(job: Object, ctx: CompileContext, settings: EffectiveSettings) -> Compilation:
    """A new Workload with one template, and a PodGroup of it."""
    name, owner = str(job["metadata"]["name"]), job_owner(job)
    template = template_name(name) if settings.parity else legal_template_name(name)
    problem = formats.label(template)
    if problem:
        why = f"the group template would be called {template}, which no server accepts: {problem}"
        return _impossible(name, Notice(FAILED_CREATE, why))
    workload = workload_name(name, uid_of(job))
    builder = Builder(item_of(job, template, ctx, settings), workload, namespace_or_default(job), owner)
    plan = builder.build_workload()
    made = pod_group_name(workload, template)
    group = replace(builder.new_pod_group(made, template), owners=(owner, _workload_owner(workload, ctx)))
    return _planned(job, replace(plan, groups=(group,), hashes_uid=True), ctx, settings)


def _existing(job: Object, workload: Object, ctx: CompileContext, settings: EffectiveSettings) -> Compilation:
    """The Job's own Workload is there. Only its minimum may have to follow."""
    name, templates = str(workload["metadata"]["name"]), job_find.templates_of(workload)
    if len(templates) != 1 or not templates[0].is_leaf:
        notice = _unsupported(name)
        return ungrouped(notice) if not settings.declared else _impossible(str(job["metadata"]["name"]), notice)
    template = templates[0]
    wanted = template_of(job, template.name, ctx, settings)
    if settings.declared and template.is_gang and wanted.is_gang:
        template = replace(template, minimum=wanted.minimum)
    owner = job_owner(job)
    plan = Plan(
        workload=name,
        namespace=namespace_or_default(job),
        controller=Controller(api_group="batch", kind="Job", name=str(job["metadata"]["name"])),
        templates=(template,),
        groups=(),
        owners=(owner,),
    )
    # A gang's group follows the Job even where the Workload beside it is none; a basic one stays basic.
    least = wanted.minimum if settings.declared and wanted.is_gang else None
    return _with_group(job, plan, (owner, _workload_owner(name, ctx)), ctx, settings, least)


def _brought(job: Object, workloads: list[Object], ctx: CompileContext, settings: EffectiveSettings) -> Compilation:
    """Somebody made a Workload for the Job: it is used as it is, and never changed."""
    names = ", ".join(_names(workloads))
    if len(workloads) > 1:
        return ungrouped(Notice("AmbiguousWorkload", f"more than one Workload names the Job ({names})"))
    templates = job_find.templates_of(workloads[0])
    if len(templates) != 1 or not templates[0].is_leaf:
        return ungrouped(_unsupported(names))
    plan = Plan(
        workload=names,
        namespace=namespace_or_default(job),
        controller=Controller(api_group="batch", kind="Job", name=str(job["metadata"]["name"])),
        templates=templates,
        groups=(),
        own_workload=False,
    )
    return _with_group(job, plan, (job_owner(job),), ctx, settings)


def _with_group(
    job: Object,
    plan: Plan,
    owners: tuple[Owner, ...],
    ctx: CompileContext,
    settings: EffectiveSettings,
    least: int | None = None,
) -> Compilation:
    """The group of a Workload that is there: the Job's own one, or a new one while the Job is new."""
    groups = job_find.groups_of(plan.workload, plan.namespace, ctx.lookup)
    own = job_find.controlled(groups, uid_of(job))
    if settings.byo == SKIP and len(groups) != len(own):
        return Compilation(reason=f"a PodGroup of somebody else belongs to Workload {plan.workload}")
    if len(own) > 1:
        why = f"the Job controls more than one PodGroup ({', '.join(_names(own))})"
        return ungrouped(Notice("AmbiguousPodGroup", why))
    new = job_find.is_new(job, ctx.lookup, parity=settings.parity)
    if not own and not new and settings.declared:
        return Compilation(reason="the Job has started, and its PodGroup is gone; it is not made again")
    template = plan.templates[0].name
    name = _names(own)[0] if own else pod_group_name(plan.workload, template)
    follows = bool(own) and "gang" in own[0]["spec"].get("schedulingPolicy", {})
    group = Group(name=name, template=template, owners=owners, minimum=least if follows else None)
    return _planned(job, replace(plan, groups=(group,)), ctx, settings)


def _workload_owner(workload: str, ctx: CompileContext) -> Owner:
    return Owner(api_version=ctx.release.api_version, kind="Workload", name=workload)


def _planned(job: Object, plan: Plan, ctx: CompileContext, settings: EffectiveSettings) -> Compilation:
    members = own_pods(job, plan.groups[0].name)
    return Compilation(plans=(replace(plan, members=members),), warnings=tuple(warnings_of(job, plan, ctx, settings)))
