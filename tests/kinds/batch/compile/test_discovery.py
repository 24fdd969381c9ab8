"""What is there already decides what is made (spec job 8.3)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.batch.compile.build import (
    compiled,
    gang,
    job,
    job_reference,
    minimums,
    objects,
    owner,
    pod_group,
    template,
    workload,
)

Object = dict[str, Any]
MINE = job_reference()
BYO = workload("byo", "Job", "trainer", template("grp", 2), group="batch")
OWN = workload("wl-own", "Job", "trainer", template("grp", 2), group="batch", owners=(MINE,))
SHAPED = job(p=3, c=3, mode="Indexed")
DECLARED = job(p=3, c=3, mode="Indexed", scheduling=gang())


def names(made: list[Object]) -> list[str]:
    return [one["metadata"]["name"] for one in made]


def test_t_31_in_1_36_a_foreign_workload_means_stand_aside() -> None:
    foreign = {**BYO, "apiVersion": "scheduling.k8s.io/v1alpha2"}
    done = compiled(SHAPED, "1.36", foreign)
    assert not done.plans
    assert "byo" in done.reason


def test_t_32_a_foreign_workload_is_used_ignored_or_decisive() -> None:
    (group,) = objects(DECLARED, "1.37", BYO)
    assert group["kind"] == "PodGroup"
    assert group["spec"]["workloadRef"] == {"workloadName": "byo", "templateName": "grp"}
    assert minimums([group]) == [2]
    assert [one["kind"] for one in group["metadata"]["ownerReferences"]] == ["Job"]
    assert minimums(objects(DECLARED, "1.37", BYO, parity=True)) == [3, 3]
    assert minimums(objects(DECLARED, "1.37", BYO, byo_workload="Ignore")) == [3, 3]
    assert objects(DECLARED, "1.37", BYO, byo_workload="Skip") == []


def test_t_32_a_foreign_workload_of_another_structure_is_not_used() -> None:
    two = workload("byo", "Job", "trainer", template("a"), template("b"), group="batch")
    done = compiled(DECLARED, "1.37", two)
    assert not done.plans
    assert done.reason.startswith("UnsupportedWorkloadStructure")
    assert done.warnings
    both = compiled(DECLARED, "1.37", BYO, {**BYO, "metadata": {"name": "byo2", "namespace": "lab"}})
    assert both.reason.startswith("AmbiguousWorkload")


@pytest.mark.parametrize("settings", [{}, {"parity": True}])
def test_t_33_two_own_workloads(settings: dict[str, Any]) -> None:
    other = workload("wl-two", "Job", "trainer", template("grp"), group="batch", owners=(MINE,))
    done = compiled(DECLARED, "1.37", OWN, other, **settings)
    assert not done.plans
    assert done.reason.startswith("AmbiguousWorkload")
    assert "wl-own, wl-two" in done.reason


def test_t_33b_one_own_and_one_foreign() -> None:
    assert names(objects(DECLARED, "1.37", OWN, BYO))[0] == "wl-own"
    v1alpha2 = [{**one, "apiVersion": "scheduling.k8s.io/v1alpha2"} for one in (OWN, BYO)]
    assert not compiled(SHAPED, "1.36", *v1alpha2).plans


def test_t_34_own_workload_with_two_templates() -> None:
    two = workload("wl-own", "Job", "trainer", template("a"), template("b"), group="batch", owners=(MINE,))
    (error,) = compiled(DECLARED, "1.37", two).errors
    assert "UnsupportedWorkloadStructure" in error.message
    older = {**two, "apiVersion": "scheduling.k8s.io/v1alpha2"}
    assert compiled(SHAPED, "1.36", older).reason.startswith("UnsupportedWorkloadStructure")


def test_t_35_two_own_groups() -> None:
    groups = [pod_group(f"pg-{number}", "wl-own", "grp", MINE, least=2) for number in (1, 2)]
    done = compiled(DECLARED, "1.37", OWN, *groups)
    assert not done.plans
    assert done.reason.startswith("AmbiguousPodGroup")


def test_t_36_the_workload_of_a_predecessor_is_never_used() -> None:
    stale = workload(
        "wl-stale", "Job", "trainer", template("grp", 2), group="batch", owners=(job_reference(uid="old"),)
    )
    for settings in ({}, {"parity": True}):
        assert names(objects(DECLARED, "1.37", stale, **settings))[0] == "trainer-8564d45897"
    assert not compiled(SHAPED, "1.36", {**stale, "apiVersion": "scheduling.k8s.io/v1alpha2"}).plans


def test_t_37_a_foreign_group_of_the_own_workload() -> None:
    foreign = pod_group("pg-foreign", "wl-own", "grp")
    assert names(objects(DECLARED, "1.37", OWN, foreign)) == ["wl-own", "wl-own-grp-5bbbff5bf8"]
    v1alpha2 = {**OWN, "apiVersion": "scheduling.k8s.io/v1alpha2"}
    older = {**foreign, "apiVersion": "scheduling.k8s.io/v1alpha2"}
    reference = {"workload": {"workloadName": "wl-own", "podGroupTemplateName": "grp"}}
    older["spec"] = {"podGroupTemplateRef": reference, "schedulingPolicy": {"basic": {}}}
    assert not compiled(SHAPED, "1.36", v1alpha2, older).plans


def test_t_37_the_own_group_is_found_by_its_controller() -> None:
    assert names(objects(DECLARED, "1.37", OWN, pod_group("pg-own", "wl-own", "grp", MINE, least=2)))[1] == "pg-own"


@pytest.mark.parametrize(
    "other",
    [
        workload("other", "Deployment", "trainer", template("grp"), group="apps"),
        workload("other", "Job", "trainer", template("grp"), group="lab.example"),
        workload("other", "Job", "trainer2", template("grp"), group="batch"),
        {**BYO, "metadata": {"name": "byo", "namespace": "elsewhere"}},
    ],
)
def test_t_39_references_must_match_in_full(other: Object) -> None:
    assert names(objects(DECLARED, "1.37", other))[0] == "trainer-8564d45897"


def test_t_47_a_lost_group_is_made_again_in_1_36_only() -> None:
    status = {"startTime": "2026-11-15T00:00:00Z", "active": 2}
    assert "not made again" in compiled({**DECLARED, "status": status}, "1.37", OWN).reason
    older = {**OWN, "apiVersion": "scheduling.k8s.io/v1alpha2"}
    assert compiled({**SHAPED, "status": status}, "1.36", older).plans


def test_pods_that_will_be_adopted_make_a_job_old() -> None:
    stray: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "lab", "labels": {"crew": "a"}},
    }
    obj = job(p=2, manualSelector=True, selector={"matchLabels": {"crew": "a"}})
    assert not compiled(obj, "1.37", stray).plans
    theirs = {**stray, "metadata": {**stray["metadata"], "ownerReferences": [owner("Foo", "f")]}}
    assert compiled(obj, "1.37", theirs).plans
