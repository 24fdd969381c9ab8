"""Kubernetes 1.35: the groups live inside the Workload; which instance a pod belongs to, only the pod says."""

from __future__ import annotations

from typing import Final

from kohort.api.convert.names import group_name
from kohort.api.kind import Object
from kohort.api.releases import RELEASES
from kohort.gang.render import common
from kohort.gang.tree import Group, Plan, Template

API_VERSION: Final = RELEASES["1.35"].api_version


def objects(plan: Plan, uids: common.Uids) -> tuple[Object, ...]:
    if not plan.own_workload:
        return ()
    groups = [{"name": found.name, "policy": common.policy(found.minimum, "minCount")} for found in plan.templates]
    spec = {**common.controller_reference(plan.controller), "podGroups": groups}
    meta = common.Metadata(plan, API_VERSION, uids).of(plan)
    return ({"apiVersion": API_VERSION, "kind": "Workload", "metadata": meta, "spec": spec},)


def pod_link(plan: Plan, group: Group) -> Object:
    link = {"name": plan.workload, "podGroup": group.template}
    if group.replica_key:
        link["podGroupReplicaKey"] = group.replica_key
    return {"workloadRef": link}


def read_templates(spec: Object) -> tuple[Template, ...]:
    return tuple(
        Template(name=found["name"], minimum=common.read_minimum(found.get("policy"), "minCount"))
        for found in spec.get("podGroups") or ()
    )


def read_pod(pod: Object) -> tuple[str, Group] | None:
    """The Workload that a pod names, and the group; its name is made up, as 1.35 has none."""
    link = pod["spec"].get("workloadRef")
    if not link:
        return None
    workload, template, key = link["name"], link["podGroup"], link.get("podGroupReplicaKey") or None
    return workload, Group(name=group_name(workload, template, key), template=template, replica_key=key)
