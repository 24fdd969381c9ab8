"""Renderers against the worked examples of the spec pages, whole objects."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.steps import counted

from kohort.gang.render import pod_link, pod_links, render
from kohort.gang.stand_in import stand_in
from kohort.gang.tree import Claim, Controller, Group, Owner, Plan, Template

AURORA = Plan(
    workload="w-aurora",
    namespace="ns",
    controller=Controller(api_group="jobset.x-k8s.io", kind="JobSet", name="aurora"),
    templates=(Template(name="pg-aurora", minimum=17),),
    groups=(Group(name="pg-aurora", template="pg-aurora"),),
)
AURORA_TREE = replace(
    AURORA,
    templates=(
        Template(
            name="root",
            minimum=2,
            children=(Template(name="pg-ctl", minimum=2), Template(name="pg-wrk", minimum=15)),
        ),
    ),
    groups=(
        Group(name="cpg-aurora", template="root"),
        Group(name="pg-aurora.ctl", template="pg-ctl", parent="cpg-aurora"),
        Group(name="pg-aurora.wrk", template="pg-wrk", parent="cpg-aurora"),
    ),
)
COBALT = Plan(
    workload="w-cobalt",
    namespace="ns",
    controller=None,
    templates=(Template(name="pg-slice", minimum=4),),
    groups=tuple(
        Group(name=f"pg-cobalt.slice.{index}", template="pg-slice", replica_key=str(index)) for index in range(3)
    ),
)
JOB = Owner(api_version="batch/v1", kind="Job", name="solver", uid="U1", controller=True, block_deletion=True)
WORKLOAD = Owner(api_version="scheduling.k8s.io/v1beta1", kind="Workload", name="solver-h1")
RACK = {"topology": [{"key": "example.com/rack"}]}
SOLVER = Plan(
    workload="solver-h1",
    namespace="hpc",
    controller=Controller(api_group="batch", kind="Job", name="solver"),
    templates=(
        Template(
            name="solver-pgt-0",
            minimum=6,
            topology="example.com/rack",
            disruption="all",
            claims=(Claim("gpu", template="gpus"), Claim("net", claim="nic")),
            priority_class="batch-high",
            priority=7000,
            preemption_policy="Never",
        ),
    ),
    groups=(Group(name="solver-h1-solver-pgt-0-h2", template="solver-pgt-0", owners=(JOB, WORKLOAD)),),
    owners=(JOB,),
)
CONTROLLER = {"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": "aurora"}
CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}, {"name": "net", "resourceClaimName": "nic"}]


def gang(count: int) -> dict[str, Any]:
    return {"gang": {"minCount": count}}


def obj(version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns"},
        "spec": spec,
    }


def test_50_jobset_gang_on_1_35() -> None:
    spec = {"controllerRef": CONTROLLER, "podGroups": [{"name": "pg-aurora", "policy": gang(17)}]}
    assert render(AURORA, "1.35") == ((obj("v1alpha1", "Workload", "w-aurora", spec),), (), ())
    assert pod_link(AURORA, "pg-aurora", "1.35") == {"workloadRef": {"name": "w-aurora", "podGroup": "pg-aurora"}}


def test_jobset_gang_on_1_36() -> None:
    reference = {"workload": {"workloadName": "w-aurora", "podGroupTemplateName": "pg-aurora"}}
    templates = [{"name": "pg-aurora", "schedulingPolicy": gang(17)}]
    assert render(AURORA, "1.36").objects == (
        obj("v1alpha2", "Workload", "w-aurora", {"controllerRef": CONTROLLER, "podGroupTemplates": templates}),
        obj("v1alpha2", "PodGroup", "pg-aurora", {"podGroupTemplateRef": reference, "schedulingPolicy": gang(17)}),
    )
    assert pod_link(AURORA, "pg-aurora", "1.36") == {"schedulingGroup": {"podGroupName": "pg-aurora"}}


def test_jobset_gang_on_1_37() -> None:
    reference = {"workloadName": "w-aurora", "templateName": "pg-aurora"}
    templates = [{"name": "pg-aurora", "schedulingPolicy": gang(17)}]
    assert render(AURORA, "1.37").objects == (
        obj("v1beta1", "Workload", "w-aurora", {"controllerRef": CONTROLLER, "podGroupTemplates": templates}),
        obj("v1beta1", "PodGroup", "pg-aurora", {"workloadRef": reference, "schedulingPolicy": gang(17)}),
    )


def test_jobset_tree_on_1_37() -> None:
    def leaf(name: str, template: str, count: int) -> dict[str, Any]:
        reference = {"workloadName": "w-aurora", "templateName": template}
        spec = {"parentCompositePodGroupName": "cpg-aurora", "workloadRef": reference, "schedulingPolicy": gang(count)}
        return obj("v1beta1", "PodGroup", name, spec)

    root = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    leaves = [{"name": "pg-ctl", "schedulingPolicy": gang(2)}, {"name": "pg-wrk", "schedulingPolicy": gang(15)}]
    assert render(AURORA_TREE, "1.37").objects == (
        obj(
            "v1beta1",
            "Workload",
            "w-aurora",
            {
                "controllerRef": CONTROLLER,
                "compositePodGroupTemplates": [{"name": "root", **root, "podGroupTemplates": leaves}],
            },
        ),
        obj(
            "v1alpha3",
            "CompositePodGroup",
            "cpg-aurora",
            {"workloadRef": {"workloadName": "w-aurora", "templateName": "root"}, **root},
        ),
        leaf("pg-aurora.ctl", "pg-ctl", 2),
        leaf("pg-aurora.wrk", "pg-wrk", 15),
    )


def test_51_replica_gangs_on_1_35_are_one_group_with_keys() -> None:
    assert len(render(COBALT, "1.35").objects[0]["spec"]["podGroups"]) == 1
    keys = [link["workloadRef"]["podGroupReplicaKey"] for link in pod_links(COBALT, "1.35").values()]
    assert keys == ["0", "1", "2"]


def test_replica_gangs_on_1_37_are_one_template_with_three_groups() -> None:
    workload, *groups = render(COBALT, "1.37").objects
    assert len(workload["spec"]["podGroupTemplates"]) == 1
    assert [group["metadata"]["name"] for group in groups] == [group.name for group in COBALT.groups]
    assert pod_links(COBALT, "1.37")["pg-cobalt.slice.1"] == {"schedulingGroup": {"podGroupName": "pg-cobalt.slice.1"}}


@pytest.mark.parametrize(("minor", "mode"), [("1.36", "PodGroup"), ("1.37", {"all": {}})])
def test_job_2_6_all_members_copied_into_the_group_in_the_order_of_the_tables(minor: str, mode: Any) -> None:
    workload, group = render(SOLVER, minor).objects
    template = workload["spec"]["podGroupTemplates"][0]
    common = {
        "schedulingPolicy": gang(6),
        "schedulingConstraints": RACK,
        "resourceClaims": CLAIMS,
        "disruptionMode": mode,
        "priorityClassName": "batch-high",
        "priority": 7000,
    }
    if minor == "1.37":
        common["preemptionPolicy"] = "Never"
    assert json.dumps(template) == json.dumps({"name": "solver-pgt-0", **common})
    reference, *rest = group["spec"].items()
    assert reference[0] in {"workloadRef", "podGroupTemplateRef"}
    assert json.dumps(dict(rest)) == json.dumps(common)


def test_key_order_of_objects_metadata_and_owners() -> None:
    plan = replace(SOLVER, labels={"a": "b"}, annotations={"c": "d"})
    workload, group = render(plan, "1.37").objects
    assert list(workload) == ["apiVersion", "kind", "metadata", "spec"]
    assert list(workload["metadata"]) == ["name", "namespace", "labels", "annotations", "ownerReferences"]
    first, second = group["metadata"]["ownerReferences"]
    assert list(first) == ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"]
    assert list(second) == ["apiVersion", "kind", "name", "uid"]


@pytest.mark.parametrize(("minor", "version"), [("1.36", "v1alpha2"), ("1.37", "v1beta1")])
def test_owner_workload_gets_the_rendered_version_and_a_stand_in_uid(minor: str, version: str) -> None:
    owner = render(SOLVER, minor).objects[1]["metadata"]["ownerReferences"][1]
    paper = stand_in(f"scheduling.k8s.io/{version}", "Workload", {"namespace": "hpc", "name": "solver-h1"})
    api_version = f"scheduling.k8s.io/{version}"
    assert owner == {"apiVersion": api_version, "kind": "Workload", "name": "solver-h1", "uid": paper}


def test_owner_workload_gets_the_real_uid_where_it_is_known() -> None:
    rendered = render(SOLVER, "1.37", uids={("Workload", "solver-h1"): "W1"})
    assert [owner["uid"] for owner in rendered.objects[1]["metadata"]["ownerReferences"]] == ["U1", "W1"]


@pytest.mark.parametrize(("minor", "count"), [("1.35", 0), ("1.36", 1), ("1.37", 1)])
def test_workload_of_somebody_else_is_not_rendered(minor: str, count: int) -> None:
    objects = render(replace(AURORA, own_workload=False), minor).objects
    assert [found["kind"] for found in objects] == ["PodGroup"] * count


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_minimum_of_the_group_overrides_the_template(minor: str) -> None:
    plan = replace(AURORA, groups=(replace(AURORA.groups[0], minimum=9),))
    workload, group = render(plan, minor).objects
    assert group["spec"]["schedulingPolicy"] == gang(9)
    assert workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"] == gang(17)


def test_core_group_goes_without_saying() -> None:
    plan = replace(AURORA, controller=Controller(api_group="", kind="ReplicationController", name="rc"))
    assert render(plan, "1.37").objects[0]["spec"]["controllerRef"] == {"kind": "ReplicationController", "name": "rc"}


def test_group_without_workload() -> None:
    plan = replace(AURORA, workload="", own_workload=False, controller=None)
    assert render(plan, "1.37").objects[0]["spec"] == {"schedulingPolicy": gang(17)}
    assert [str(error) for error in render(plan, "1.35").errors] == [
        "workload: Required value: Kubernetes 1.35 has no group outside a Workload"
    ]


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_objects_share_nothing(minor: str) -> None:
    workload, first, second = render(replace(COBALT, groups=COBALT.groups[:2], owners=(JOB,)), minor).objects
    first["spec"]["schedulingPolicy"]["gang"]["minCount"] = 1
    assert second["spec"]["schedulingPolicy"] == workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"] == gang(4)


def test_cost_grows_with_the_groups_not_with_their_square() -> None:
    def cost(jobs: int) -> int:
        templates = tuple(Template(name=f"pg-{index}", minimum=4, topology="rack") for index in range(8))
        groups = tuple(
            Group(name=f"pg-a.{index}.{job}", template=f"pg-{index}", replica_key=str(job), owners=(JOB, WORKLOAD))
            for index in range(8)
            for job in range(jobs)
        )
        plan = replace(SOLVER, templates=templates, groups=groups)
        with counted() as steps:
            assert len(render(plan, "1.37").objects) == 8 * jobs + 1
        return steps.count

    # Sixteen times the groups cost about sixteen times as much; a scan per group would cost 256 times as much.
    assert cost(256) < 17 * cost(16)
