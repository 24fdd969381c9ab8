"""Kubernetes 1.36: templates in the Workload, one PodGroup for every instance. No tree."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.releases import RELEASES
from kohort.gang import blocks
from kohort.gang.render import common
from kohort.gang.tree import Group, Plan, Template

API_VERSION: Final = RELEASES["1.36"].api_version
_MODES: Final = {"single": "Pod", "all": "PodGroup"}


def objects(plan: Plan, uids: common.Uids) -> tuple[Object, ...]:
    meta, templates = common.Metadata(plan, API_VERSION, uids), common.by_name(plan)
    groups = [_pod_group(plan, found, templates[found.template], meta) for found in plan.groups]
    return (_workload(plan, meta), *groups) if plan.own_workload else tuple(groups)


def _workload(plan: Plan, meta: common.Metadata) -> Object:
    listed = [{"name": found.name, **_body(found, found.minimum)} for found in plan.templates]
    spec = {**common.controller_reference(plan.controller), "podGroupTemplates": listed}
    return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": meta.of(plan), "spec": spec}


def _pod_group(plan: Plan, group: Group, template: Template, meta: common.Metadata) -> Object:
    spec: Object = {}
    if plan.workload:
        reference = {"workloadName": plan.workload, "podGroupTemplateName": template.name}
        spec["podGroupTemplateRef"] = {"workload": reference}
    spec |= _body(template, template.minimum if group.minimum is None else group.minimum, group)
    return {"apiVersion": API_VERSION, "kind": "PodGroup", "metadata": meta.of(group), "spec": spec}


def _body(template: Template, minimum: int | None, group: Group | None = None) -> Object:
    """What a template and its groups have alike."""
    return {
        "schedulingPolicy": common.policy(minimum, "minCount"),
        **common.constraints(template),
        **common.claims(template),
        **({"disruptionMode": _MODES[template.disruption]} if template.disruption else {}),
        **common.priority(template, group),
    }


def read_templates(spec: Object) -> tuple[Template, ...]:
    return tuple(read_template(found["name"], found) for found in spec.get("podGroupTemplates") or ())


def read_template(name: str, block: Object) -> Template:
    return Template(
        name=name,
        minimum=common.read_minimum(block.get("schedulingPolicy"), "minCount"),
        topology=blocks.topology(block),
        claims=blocks.claims(block),
        disruption=_read_mode(block.get("disruptionMode")),
        **common.read_priority(block),
    )


def _read_mode(value: Any) -> Any:
    return next((mode for mode, word in _MODES.items() if word == value), None)


def reference(spec: Object) -> tuple[str, str] | None:
    """(workload, template) that a PodGroup names."""
    found = (spec.get("podGroupTemplateRef") or {}).get("workload")
    return (found["workloadName"], found["podGroupTemplateName"]) if found else None
