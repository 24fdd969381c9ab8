"""A LeaderWorkerSet under a parent that made the Workload (spec lws 4.7): it only makes groups from a template of that.

Until the parent's objects are there, nothing is compiled and the reason says ParentWorkloadNotReady: pods wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api.errors import FieldError, forbidden, invalid
from kohort.api.kind import Object
from kohort.api.objects import annotation, controller_of, namespace_or_default
from kohort.gang.compile import Compilation, CompileContext, Notice
from kohort.gang.render import parse
from kohort.gang.tree import Group, Owner, Plan, Template
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import shape_of
from kohort.kinds.leaderworkerset.compile.groups import Site, members_of, replica, whole_set
from kohort.kinds.leaderworkerset.compile.names import Instance, base_name

NOT_READY: Final = "ParentWorkloadNotReady"


def compile_delegated(obj: Object, owner: Owner, ctx: CompileContext, instances: tuple[Instance, ...]) -> Compilation:
    shape = shape_of(obj)
    level = shape.active[0] if shape is not None and shape.flat else "replica"
    if shape is not None and (not shape.flat or level == "role"):
        detail = "under a parent the whole set or each replica is a group, not leader and worker"
        return Compilation(errors=(forbidden("spec.scheduling.replica", detail),))
    workload = _parent_workload(obj, ctx)
    if workload is None:
        return _not_ready(f"no owner of {obj['metadata']['name']} has a Workload yet")
    parent = annotation(obj, constants.PARENT_GROUP) or annotation(obj, constants.PARENT_GROUP_TOO)
    if parent and ctx.lookup.find("CompositePodGroup", parent, namespace_or_default(obj)) is None:
        return _not_ready(f'the CompositePodGroup "{parent}" is not there yet')
    read = parse([workload])
    found = {template.name: template for template in read.walk()}
    wanted = annotation(obj, constants.TEMPLATE_NAME) or ""
    errors = tuple(_unusable(wanted, found, workload))
    if errors:
        return Compilation(errors=errors)
    site = Site(obj, base_name(obj), (owner,), found, parent)
    groups = _groups(level, site, instances, wanted)
    plan = Plan(
        workload=read.workload,
        namespace=namespace_or_default(obj),
        controller=read.controller,
        templates=read.templates,
        groups=groups,
        members=members_of("lws" if level == "lws" else "replica", site, instances) if groups else (),
        own_workload=False,
    )
    return Compilation(plans=(plan,), warnings=tuple(_shortfall(found[wanted], level, instances)))


def _not_ready(why: str) -> Compilation:
    notice = Notice(NOT_READY, why)
    return Compilation(reason=str(notice), notice=notice)


def _groups(level: str, site: Site, instances: tuple[Instance, ...], template: str) -> tuple[Group, ...]:
    """As the parent's template says, its minimum too: the parent knows what it asked for."""
    if not instances:
        return ()
    if level == "lws":
        return (whole_set(site, template),)
    as_written = Site(site.obj, site.base, site.owners, {template: Template(name=template)}, site.parent)
    return tuple(replica(as_written, one, template) for one in instances)


def _unusable(wanted: str, found: dict[str, Template], workload: Object) -> Iterator[FieldError]:
    path, name = f"metadata.annotations.{constants.TEMPLATE_NAME}", workload["metadata"]["name"]
    if wanted not in found:
        accepted = ", ".join(template.name for template in found.values() if template.is_leaf)
        yield invalid(path, wanted, f"the Workload {name} has no such template; it has {accepted}")
    elif not found[wanted].is_leaf:
        yield invalid(
            path, wanted, f"in the Workload {name} it is a template of groups; pods need one without children"
        )


def _shortfall(template: Template, level: str, instances: tuple[Instance, ...]) -> Iterator[str]:
    sizes = [one.size for one in instances]
    pods = sum(sizes) if level == "lws" else min(sizes, default=0)
    if sizes and template.minimum is not None and template.minimum > pods:
        yield (
            f'template "{template.name}" of the parent asks for {template.minimum} pods and a group has {pods}:'
            " it can never start"
        )


# ---- the parent


def _parent_workload(obj: Object, ctx: CompileContext) -> Object | None:
    """Of the controller owners, upwards, the first that has a Workload."""
    namespace = namespace_or_default(obj)
    workloads = ctx.lookup.every("Workload", namespace)
    for owner in _ancestors(obj, ctx):
        for workload in workloads:
            if _names(workload, owner):
                return workload
    return None


def _ancestors(obj: Object, ctx: CompileContext) -> Iterator[Object]:
    seen: set[tuple[Any, ...]] = set()
    owner = controller_of(obj)
    while owner is not None and (owner.get("kind"), owner.get("name")) not in seen:
        seen.add((owner.get("kind"), owner.get("name")))
        yield owner
        above = ctx.lookup.find(str(owner.get("kind")), str(owner.get("name")), namespace_or_default(obj))
        owner = controller_of(above) if above is not None else None


def _names(workload: Object, owner: Object) -> bool:
    reference = (workload.get("spec") or {}).get("controllerRef") or {}
    group = str(owner.get("apiVersion") or "").rpartition("/")[0]
    said = (reference.get("apiGroup") or "", reference.get("kind"), reference.get("name"))
    return said == (group, owner.get("kind"), owner.get("name"))
