"""Jobs whose group is described by a parent's Workload (spec job 3.9, 8.7)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.batch.compile.build import (
    DELEGATED,
    UID,
    compiled,
    gang,
    job,
    minimums,
    objects,
    owner,
    template,
    workload,
)
from tests.support.plancheck import check_plan

from kohort.api.errors import ErrorKind
from kohort.api.releases import Gate, default_gates

Object = dict[str, Any]
FLEET = owner("FleetJob", "f1")
PARENT = "scheduling.k8s.io/parent-compositepodgroup"
LEAD_AND_WORKERS = workload("fleet-wl", "FleetJob", "f1", template("lead"), template("workers", 3))


def child(name: str = "w", wanted: str = "workers", *, uid: str = UID, owned: Object = FLEET, **more: Any) -> Object:
    annotations = {DELEGATED: wanted, **more.pop("annotations", {})}
    return job(name, 4, 4, "Indexed", owners=(owned,), annotations=annotations, uid=uid, **more)


def test_t_80_the_parents_template_decides() -> None:
    obj = child(scheduling=gang(2))
    (group,) = objects(obj, "1.37", LEAD_AND_WORKERS, parity=True)
    assert group["metadata"]["name"] == "fleet-wl-workers-85bf49d576"
    assert [one["kind"] for one in group["metadata"]["ownerReferences"]] == ["Job"]
    assert group["spec"]["workloadRef"] == {"workloadName": "fleet-wl", "templateName": "workers"}
    assert minimums([group]) == [3]


def test_t_80_no_workload_of_its_own() -> None:
    (plan,) = compiled(child(), "1.37", LEAD_AND_WORKERS).plans
    assert plan.own_workload is False
    assert check_plan(plan) == []
    assert [member.group for member in plan.members] == [plan.groups[0].name]


def test_t_81_the_group_follows_the_template() -> None:
    grown = workload("fleet-wl", "FleetJob", "f1", template("lead"), template("workers", 5))
    mine = {"apiVersion": "batch/v1", "kind": "Job", "name": "w", "uid": UID, "controller": True}
    existing = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "pg-w", "namespace": "lab", "ownerReferences": [mine]},
        "spec": {**template("workers", 3), "workloadRef": {"workloadName": "fleet-wl", "templateName": "workers"}},
    }
    started = child(status={"startTime": "2026-11-15T00:00:00Z", "active": 4})
    (group,) = objects(started, "1.37", grown, existing)
    assert group["metadata"]["name"] == "pg-w"
    assert minimums([group]) == [5]


def test_t_82_the_parents_workload_is_missing() -> None:
    (error,) = compiled(child()).errors
    assert error.kind is ErrorKind.NOT_FOUND
    assert "ParentWorkloadNotFound: no Workload names FleetJob f1" in error.message
    assert compiled(child(), parity=True).reason.endswith("its pods stay ungrouped")


def test_t_83_the_template_is_missing() -> None:
    (error,) = compiled(child(wanted="absent"), "1.37", LEAD_AND_WORKERS).errors
    assert error.kind is ErrorKind.NOT_FOUND
    assert 'GroupTemplateNotFound: Workload fleet-wl has no PodGroup template "absent"' in error.message
    assert compiled(child(wanted="absent"), "1.37", LEAD_AND_WORKERS, parity=True).reason


def test_t_84_siblings_share_a_template() -> None:
    first, second = child("w1"), child("w2", uid="11111111-2222-3333-4444-555555555555")
    made = [objects(one, "1.37", LEAD_AND_WORKERS)[0]["metadata"]["name"] for one in (first, second)]
    assert len(set(made)) == 2
    stuck = [objects(one, "1.37", LEAD_AND_WORKERS, parity=True)[0]["metadata"]["name"] for one in (first, second)]
    assert len(set(stuck)) == 1


def test_t_85_the_workload_of_a_grandparent() -> None:
    train = owner("TrainJob", "tune", "trainer.kubeflow.org/v1alpha1")
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "tune", "namespace": "lab", "ownerReferences": [train]},
    }
    top = workload("tune-wl", "TrainJob", "tune", template("node", 2), group="trainer.kubeflow.org")
    obj = child("tune-node-0", "node", owned=owner("JobSet", "tune", "jobset.x-k8s.io/v1alpha2"))
    (group,) = objects(obj, "1.37", jobset, top)
    assert group["spec"]["workloadRef"]["workloadName"] == "tune-wl"
    assert not compiled(obj, "1.37", jobset, top, parity=True).plans


def test_the_chain_of_owners_ends() -> None:
    """Owners that own each other are followed for five steps, not for ever."""
    ring = [
        {
            "apiVersion": "lab.example/v1",
            "kind": "FleetJob",
            "metadata": {"name": name, "namespace": "lab", "ownerReferences": [owner("FleetJob", other)]},
        }
        for name, other in (("f1", "f2"), ("f2", "f1"))
    ]
    assert compiled(child(), "1.37", *ring).errors


@pytest.mark.parametrize("key", [PARENT, "scheduling.k8s.io/parent-composite-podgroup"])
def test_t_86_the_parent_instance(key: str) -> None:
    obj = child(annotations={key: "cpg-7"})
    (group,) = objects(obj, "1.37", LEAD_AND_WORKERS)
    assert group["spec"]["parentCompositePodGroupName"] == "cpg-7"
    (theirs,) = objects(obj, "1.37", LEAD_AND_WORKERS, parity=True)
    assert "parentCompositePodGroupName" not in theirs["spec"]


def test_t_86_without_the_gate_it_is_only_mentioned() -> None:
    flat = default_gates("1.37") - {Gate.COMPOSITE}
    done = compiled(child(annotations={PARENT: "cpg-7"}), "1.37", LEAD_AND_WORKERS, gates=flat)
    assert done.plans[0].groups[0].parent is None
    assert "CompositePodGroup" in str(done.warnings[0])


def test_t_87_an_empty_name_means_the_first_template() -> None:
    (group,) = objects(child(wanted=""), "1.37", LEAD_AND_WORKERS)
    assert group["spec"]["workloadRef"]["templateName"] == "lead"


def test_nested_templates_are_found() -> None:
    nested = workload("fleet-wl", "FleetJob", "f1")
    nested["spec"] = {
        "controllerRef": nested["spec"]["controllerRef"],
        "compositePodGroupTemplates": [
            {
                "name": "all",
                "schedulingPolicy": {"gang": {"minGroupCount": 1}},
                "podGroupTemplates": [template("workers", 3)],
            }
        ],
    }
    nested["apiVersion"] = "scheduling.k8s.io/v1beta1"
    (group,) = objects(child(annotations={PARENT: "cpg-1"}), "1.37", nested)
    assert minimums([group]) == [3]
    assert not compiled(child(), "1.37", nested, parity=True).plans


def test_upstream_forgets_the_preemption_policy() -> None:
    polite = workload("fleet-wl", "FleetJob", "f1", {**template("workers", 3), "preemptionPolicy": "Never"})
    assert objects(child(), "1.37", polite)[0]["spec"]["preemptionPolicy"] == "Never"
    assert "preemptionPolicy" not in objects(child(), "1.37", polite, parity=True)[0]["spec"]


def test_a_started_child_without_a_group_stays_without() -> None:
    started = child(status={"startTime": "2026-11-15T00:00:00Z"})
    assert "only new Jobs get one" in compiled(started, "1.37", LEAD_AND_WORKERS).reason


def test_j_56_a_group_in_the_template_wins_over_the_annotation() -> None:
    assert "ext" in compiled(child(group="ext"), "1.37", LEAD_AND_WORKERS).reason
