"""Kubernetes 1.37: Workload and PodGroup in v1beta1, the branches above them as CompositePodGroup in v1alpha3."""

from __future__ import annotations

from typing import Final

from kohort.api.kind import Object
from kohort.api.releases import RELEASES, SCHEDULING_GROUP
from kohort.gang import blocks
from kohort.gang.render import common
from kohort.gang.tree import Group, Plan, Template

API_VERSION: Final = RELEASES["1.37"].api_version
COMPOSITE_API_VERSION: Final = f"{SCHEDULING_GROUP}/{RELEASES['1.37'].composite_version}"


def objects(plan: Plan, uids: common.Uids) -> tuple[Object, ...]:
    meta, templates = common.Metadata(plan, API_VERSION, uids), common.by_name(plan)
    groups = [_group(plan, found, templates[found.template], meta) for found in plan.groups]
    return (_workload(plan, meta), *groups) if plan.own_workload else tuple(groups)


def _workload(plan: Plan, meta: common.Metadata) -> Object:
    spec = {**common.controller_reference(plan.controller), **_lists(plan.templates)}
    return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": meta.of(plan), "spec": spec}


def _lists(templates: tuple[Template, ...]) -> Object:
    leaves = [_template(found) for found in templates if found.is_leaf]
    branches = [_template(found) for found in templates if not found.is_leaf]
    lists: Object = {"podGroupTemplates": leaves} if leaves else {}
    if branches:
        lists["compositePodGroupTemplates"] = branches
    return lists


def _template(template: Template) -> Object:
    return {"name": template.name, **_body(template, template.minimum), **_lists(template.children)}


def _group(plan: Plan, group: Group, template: Template, meta: common.Metadata) -> Object:
    spec: Object = {"parentCompositePodGroupName": group.parent} if group.parent else {}
    if plan.workload:
        spec["workloadRef"] = {"workloadName": plan.workload, "templateName": template.name}
    spec |= _body(template, template.minimum if group.minimum is None else group.minimum, group)
    kind, version = ("PodGroup", API_VERSION) if template.is_leaf else ("CompositePodGroup", COMPOSITE_API_VERSION)
    return {"apiVersion": version, "kind": kind, "metadata": meta.of(group), "spec": spec}


def _body(template: Template, minimum: int | None, group: Group | None = None) -> Object:
    """What a template and its groups have alike. A branch counts groups and has no claims."""
    leaf = template.is_leaf
    return {
        "schedulingPolicy": common.policy(minimum, "minCount" if leaf else "minGroupCount"),
        **common.constraints(template),
        **(common.claims(template) if leaf else {}),
        **({"disruptionMode": {template.disruption: {}}} if template.disruption else {}),
        **common.priority(template, group),
        **({"preemptionPolicy": template.preemption_policy} if template.preemption_policy else {}),
    }


def read_templates(spec: Object) -> tuple[Template, ...]:
    """Leaves first: the order of the two lists."""
    leaves = [read_template(found["name"], found, leaf=True) for found in spec.get("podGroupTemplates") or ()]
    branches = [
        read_template(found["name"], found, leaf=False, children=read_templates(found))
        for found in spec.get("compositePodGroupTemplates") or ()
    ]
    return (*leaves, *branches)


def read_template(name: str, block: Object, *, leaf: bool, children: tuple[Template, ...] = ()) -> Template:
    return Template(
        name=name,
        minimum=common.read_minimum(block.get("schedulingPolicy"), "minCount" if leaf else "minGroupCount"),
        topology=blocks.topology(block),
        claims=blocks.claims(block),
        disruption=blocks.disruption(block),
        preemption_policy=block.get("preemptionPolicy"),
        children=children,
        **common.read_priority(block),
    )


def reference(spec: Object) -> tuple[str, str] | None:
    """(workload, template) that a group names."""
    found = spec.get("workloadRef")
    return (found["workloadName"], found["templateName"]) if found else None
