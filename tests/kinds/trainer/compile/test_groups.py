"""Levels, wishes, trees, owners (spec trainjob section 6, scenarios 30 to 47, 52, 73 to 78)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.trainer.compile.build import (
    COMPOSITE,
    UID,
    compiled,
    initializer,
    jobset,
    links,
    plan,
    refused,
    rendered,
    rjob,
    runtime,
    sizes,
    trainer,
    trainjob,
)

W = "spec.podGroupPolicy.workload"
S = f"{W}.scheduling"
JOBS = "spec.template.spec.replicatedJobs"
POD = "template.spec.template.spec"
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
RACK = {"schedulingConstraints": {"topology": [{"key": "topology.example.com/rack"}]}}
DATASET = initializer("dataset-initializer")


def _explicit(*entries: dict[str, Any], **whole: Any) -> dict[str, Any]:
    return {"scheduling": {**whole, "replicatedJobs": list(entries)}}


def _of(*names: str, **more: Any) -> dict[str, Any]:
    return {"targetReplicatedJobs": list(names), **more}


@pytest.mark.parametrize(
    ("workload", "where"),
    [
        ({"scheduling": {"schedulingPolicy": {"gang": {"minCount": 4}}}}, S),
        (_explicit(_of("node", schedulingPolicy={"gang": {"minCount": 4}})), f"{S}.replicatedJobs[0]"),
        (_explicit(_of("node", job={"schedulingPolicy": {"gang": {"minCount": 4}}})), f"{S}.replicatedJobs[0].job"),
    ],
)
def test_30_explicit_minimum(workload: Any, where: str) -> None:
    assert refused(runtime(workload=workload)) == [f"{where}.schedulingPolicy.gang.minCount"]


def test_31_two_levels() -> None:
    rt = runtime(rjob("helper"), trainer(), workload=_explicit(_of("helper"), _of("node"), **GANG))
    assert refused(rt) == [S]
    found = plan(trainjob(5), rt, options=COMPOSITE)
    assert sizes(found) == {"job": 2, "helper": 1, "node": 5}
    assert [group.parent for group in found.groups] == [None, *[found.groups[0].name] * 2]


def test_31_cluster_without_composites() -> None:
    rt = runtime(workload=_explicit(_of("node"), **GANG))
    assert refused(rt, options=COMPOSITE, without=["CompositePodGroup"]) == [S]


def test_32_job_with_two_targets() -> None:
    rt = runtime(rjob("a"), trainer(), workload=_explicit(_of("a", "node", job={})))
    assert refused(rt) == [f"{S}.replicatedJobs[0].job"]
    found = plan(trainjob(4), rt, options=COMPOSITE)
    assert sizes(found) == {"a-node": 2, "a-0": 1, "node-0": 4}


def test_32_job_beside_other_fields() -> None:
    rt = runtime(workload=_explicit(_of("node", job={}, **RACK)))
    assert refused(rt) == [f"{S}.replicatedJobs[0].job"]
    found = plan(trainjob(4), rt, options=COMPOSITE)
    assert sizes(found) == {"node": 1, "node-0": 4}
    assert found.templates[0].topology == "topology.example.com/rack"


def test_33_group_for_each_job() -> None:
    assert sizes(plan(trainjob(4), runtime(workload=_explicit(_of("node", job={}))))) == {"node-0": 4}


def test_34_group_for_each_of_several_replicas() -> None:
    rt = runtime(trainer(), rjob("slice", replicas=3), workload=_explicit(_of("node"), _of("slice", job={})))
    assert refused(rt) == [f"{S}.replicatedJobs[1].job"]


def test_levels_do_not_stand_side_by_side() -> None:
    rt = runtime(rjob("a"), trainer(), workload=_explicit(_of("a"), _of("node", job={}, **RACK)))
    assert refused(rt, options=COMPOSITE) == [f"{S}.replicatedJobs"]


def test_stage_fields_and_explicit_groups() -> None:
    rt = runtime(workload={"topologyConstraint": {"level": "zone"}, "disruptionMode": {"all": {}}, "scheduling": {}})
    assert refused(rt) == [f"{W}.topologyConstraint", f"{W}.disruptionMode"]


# ---- wishes


def test_35_topology_of_the_trainer_only() -> None:
    rt = runtime(DATASET, trainer(), workload={"topologyConstraint": {"level": "topology.example.com/rack"}})
    workload, first, second = rendered(plan(trainjob(4), rt))
    wanted = {"topology": [{"key": "topology.example.com/rack"}]}
    assert [one.get("schedulingConstraints") for one in workload["spec"]["podGroupTemplates"]] == [None, wanted]
    assert [one["spec"].get("schedulingConstraints") for one in (first, second)] == [None, wanted]


def test_36_two_topologies() -> None:
    rt = runtime(workload={"scheduling": {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}})
    assert refused(rt) == [f"{S}.schedulingConstraints.topology"]


@pytest.mark.parametrize(
    ("wish", "gate"),
    [
        (RACK, "TopologyAwareWorkloadScheduling"),
        ({"resourceClaims": [{"name": "c", "resourceClaimName": "x"}]}, "DRAWorkloadResourceClaims"),
    ],
)
def test_wish_behind_a_gate_of_the_cluster(wish: Any, gate: str) -> None:
    job = trainer(resourceClaims=[{"name": "c", "resourceClaimName": "x"}])
    rt = runtime(job, workload={"scheduling": wish})
    assert refused(rt) == []
    assert refused(rt, without=[gate, "CompositePodGroup"]) == [f"{S}.{next(iter(wish))}"]


def test_37_priority_class() -> None:
    objects = rendered(plan(trainjob(4), runtime(trainer(priorityClassName="batch-high"))))
    template, group = objects[0]["spec"]["podGroupTemplates"][0], objects[1]["spec"]
    assert template["priorityClassName"] == group["priorityClassName"] == "batch-high"
    assert "priority" not in {*template, *group}


@pytest.mark.parametrize("other", [{"priorityClassName": "b"}, {}])
def test_38_classes_in_one_gang(other: Any) -> None:
    rt = runtime(trainer("launcher", priorityClassName="a"), rjob("node", **other), ml={"mpi": {}})
    assert refused(rt) == [f"{JOBS}[1].{POD}.priorityClassName"]


@pytest.mark.parametrize("to", ["1.36", "1.37"])
@pytest.mark.parametrize(("first", "second"), [("a", "b"), (None, "b")])
def test_39_classes_of_two_groups(to: str, first: str | None, second: str) -> None:
    """A Workload of 1.37 takes no templates of different classes, so the groups alone carry them."""
    mine: dict[str, Any] = {"priorityClassName": first} if first else {}
    rt = runtime(initializer("dataset-initializer", **mine), trainer(priorityClassName=second))
    workload, *groups = rendered(plan(trainjob(4), rt, to=to), to)
    assert [group["spec"].get("priorityClassName") for group in groups] == [first, second]
    assert all("priorityClassName" not in template for template in workload["spec"]["podGroupTemplates"])


def test_40_schedulers_in_one_gang() -> None:
    rt = runtime(trainer("launcher", schedulerName="kohort"), rjob("node"), ml={"mpi": {}})
    assert refused(rt) == [f"{JOBS}[1].{POD}.schedulerName"]
    same = runtime(trainer("launcher", schedulerName="default-scheduler"), rjob("node"), ml={"mpi": {}})
    assert refused(same) == []


@pytest.mark.parametrize(("to", "wanted"), [("1.36", "PodGroup"), ("1.37", {"all": {}})])
def test_41_disruption(to: str, wanted: Any) -> None:
    rt = runtime(DATASET, trainer(), workload={"disruptionMode": {"all": {}}})
    workload, first, second = rendered(plan(trainjob(4), rt, to=to), to)
    assert [one.get("disruptionMode") for one in workload["spec"]["podGroupTemplates"]] == [None, wanted]
    assert [one["spec"].get("disruptionMode") for one in (first, second)] == [None, wanted]


CLAIM = {"name": "slice", "resourceClaimTemplateName": "ring"}


def test_42_claim() -> None:
    rt = runtime(trainer(resourceClaims=[CLAIM]), workload=_explicit(_of("node", resourceClaims=[CLAIM])))
    workload, group = rendered(plan(trainjob(4), rt))
    assert workload["spec"]["podGroupTemplates"][0]["resourceClaims"] == [CLAIM]
    assert group["spec"]["resourceClaims"] == [CLAIM]


@pytest.mark.parametrize("pods", [[], [{"name": "slice", "resourceClaimTemplateName": "other"}]])
def test_43_claim_that_no_pod_has(pods: Any) -> None:
    rt = runtime(trainer(resourceClaims=pods), workload=_explicit(_of("node", resourceClaims=[CLAIM])))
    assert refused(rt) == [f"{S}.replicatedJobs[0].resourceClaims[0]"]


# ---- nobody else decides


def test_44_pod_template_with_a_group() -> None:
    rt = runtime(trainer(schedulingGroup={"podGroupName": "mine"}))
    assert refused(rt) == [f"{JOBS}[0].{POD}.schedulingGroup"]


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"scheduling": {}}, "scheduling"),
        ({"gangConfig": {"gangMode": "Gang"}}, "gangConfig"),
        ({"podGroupPolicies": [{"name": "x"}]}, "podGroupPolicies"),
    ],
)
def test_45_jobset_with_groups_of_its_own(template: Any, field: str) -> None:
    assert refused(runtime(template=template)) == [f"spec.template.spec.{field}"]
    ignored = runtime(template=template, groups=False)
    assert refused(ignored) == []
    assert field not in jobset(compiled(trainjob(2), ignored))["spec"]


def test_45_job_with_groups_of_its_own() -> None:
    job = trainer()
    job["template"]["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {}}}
    assert refused(runtime(job)) == [f"{JOBS}[0].template.spec.scheduling"]


def test_46_owners() -> None:
    workload, group = rendered(plan(trainjob(4), runtime()))
    named = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "job", "uid": UID}
    mine = {**named, "controller": True, "blockOwnerDeletion": True}
    assert workload["metadata"]["ownerReferences"] == [mine]
    first, second = group["metadata"]["ownerReferences"]
    assert first == mine
    assert (second["kind"], second["name"]) == ("Workload", "job")
    assert second["uid"]
    assert "controller" not in second


def test_47_controller_reference() -> None:
    workload, _ = rendered(plan(trainjob(4), runtime()))
    wanted = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob", "name": "job"}
    assert workload["spec"]["controllerRef"] == wanted


def test_52_order() -> None:
    rt = runtime(DATASET, trainer(), workload=_explicit(_of("dataset-initializer"), _of("node"), **BASIC))
    kinds = [obj["kind"] for obj in rendered(plan(trainjob(4), rt, options=COMPOSITE))]
    assert kinds == ["Workload", "CompositePodGroup", "PodGroup", "PodGroup"]


def test_73_jobs_stay_quiet() -> None:
    """The Job controller makes nothing for pods that name a group, unless this annotation asks it to."""
    made = jobset(compiled(trainjob(4), runtime()))
    assert "scheduling" not in made["spec"]
    assert "group-template-name" not in str(made)


# ---- trees


def test_74_gang_over_stages_that_wait() -> None:
    jobs = rjob("fetch"), trainer(after=[("fetch", "Complete")])
    entries = _of("fetch"), _of("node")
    assert refused(runtime(*jobs, workload=_explicit(*entries, **GANG)), options=COMPOSITE) == [f"{S}.schedulingPolicy"]
    assert refused(runtime(*jobs, workload=_explicit(*entries, **BASIC)), options=COMPOSITE) == []


def test_75_disruption_of_a_tree() -> None:
    everything = {"disruptionMode": {"all": {}}, **GANG}
    single = _of("node", disruptionMode={"single": {}})
    rt = runtime(rjob("a"), trainer(), workload=_explicit(_of("a"), single, **everything))
    assert refused(rt, options=COMPOSITE) == [f"{S}.replicatedJobs[1].disruptionMode"]
    rt = runtime(rjob("a"), trainer(), workload=_explicit(_of("a"), _of("node"), **everything))
    found = plan(trainjob(4), rt, options=COMPOSITE)
    assert [template.disruption for template in found.walk()] == ["all", "all", "all"]


def test_76_root_that_is_called_like_a_child() -> None:
    rt = runtime(trainer("launcher"), rjob("node"), ml={"mpi": {}}, workload=_explicit(_of("launcher", "node"), **GANG))
    found = plan(trainjob(6, name="launcher-node"), rt, options=COMPOSITE)
    assert sizes(found) == {"launcher-node-root": 1, "launcher-node": 7}


def test_77_leaves_of_a_tree() -> None:
    rt = runtime(rjob("a"), trainer(), workload=_explicit(_of("a"), _of("node", job={}), **GANG))
    workload, root, middle, first, second = rendered(plan(trainjob(4), rt, options=COMPOSITE))
    assert "podGroupTemplates" not in workload["spec"]
    assert root["apiVersion"] == "scheduling.k8s.io/v1alpha3"
    assert "parentCompositePodGroupName" not in root["spec"]
    assert [one["spec"].get("parentCompositePodGroupName") for one in (middle, first, second)] == [
        root["metadata"]["name"],
        root["metadata"]["name"],
        middle["metadata"]["name"],
    ]
    assert [one["spec"]["workloadRef"]["templateName"] for one in (root, middle, first, second)] == [
        "job",
        "node",
        "a",
        "node-0",
    ]


def test_claims_stay_at_the_leaves_of_a_tree() -> None:
    job = trainer(resourceClaims=[CLAIM])
    rt = runtime(job, workload=_explicit(_of("node"), resourceClaims=[CLAIM]))
    assert refused(rt, options=COMPOSITE) == [f"{S}.resourceClaims"]


def test_one_priority_class_in_a_tree() -> None:
    rt = runtime(rjob("a", priorityClassName="x"), trainer(), workload=_explicit(_of("a"), _of("node"), **GANG))
    assert refused(rt, options=COMPOSITE) == [f"{JOBS}[1].{POD}.priorityClassName"]


def test_whoever_is_not_named_is_still_part_of_the_whole() -> None:
    rt = runtime(rjob("a", parallelism=2), trainer(), workload=_explicit(_of("node"), **GANG))
    assert sizes(plan(trainjob(4), rt, options=COMPOSITE)) == {"job": 2, "node": 4, "a": 2}


def test_78_older_writers() -> None:
    result = compiled(trainjob(8), runtime(), to="1.36")
    workload, group = rendered(result.plans[0], "1.36")
    assert workload["apiVersion"] == group["apiVersion"] == "scheduling.k8s.io/v1alpha2"
    reference = {"workload": {"workloadName": "job", "podGroupTemplateName": "trainer"}}
    assert group["spec"]["podGroupTemplateRef"] == reference
    assert links(result) == links(compiled(trainjob(8), runtime())) == {"node": group["metadata"]["name"]}


def test_78_the_oldest_writer() -> None:
    result = compiled(trainjob(8), runtime(), to="1.35")
    (workload,) = rendered(result.plans[0], "1.35")
    assert workload["spec"]["podGroups"] == [{"name": "trainer", "policy": {"gang": {"minCount": 8}}}]
    pod = jobset(result)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pod["workloadRef"] == {"name": "job", "podGroup": "trainer"}
