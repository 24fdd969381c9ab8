"""Rules V1 to V17 and the scenarios of spec jobset 6 that are decided at admission."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.kinds.jobset.api.building import changes, context, depends, errors, fields, jobset, rj, warnings

from kohort.api import admit, options
from kohort.api.errors import ErrorKind
from kohort.api.kind import Object
from kohort.kinds.jobset.api.constants import EXCLUSIVE_TOPOLOGY, NODE_SELECTOR_STRATEGY

POD = "template.spec.template.spec"
SPREAD = {EXCLUSIVE_TOPOLOGY: "rack"}


def accepted(obj: Object, **how: Any) -> bool:
    return not errors(obj, context(**how))


# ---- V1: the gate


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        (jobset(rj("a", 1, 1), gang="Off"), "spec.gangConfig"),
        (jobset(rj("a", 1, 1, gang="Off")), "spec.replicatedJobs[0].gangConfig"),
        (jobset(rj("a", 1, 1), podGroupPolicies=[{"name": "x"}]), "spec.podGroupPolicies"),
        (jobset(rj("a", 1, 1), scheduling={}), "spec.scheduling"),
    ],
)
def test_3_v1_gate_off_any_front_end_is_refused(obj: Object, field: str) -> None:
    found = errors(obj, context(without=("GangScheduling",)))
    assert [(error.kind, error.field) for error in found] == [(ErrorKind.FORBIDDEN, field)]
    assert accepted(obj)


def test_v1_upstream_name_of_the_gate_counts_too() -> None:
    obj = jobset(rj("a", 1, 1), gang="Gang")
    for gate in ("GangScheduling", "JobSetWorkloadAwareSchedulingAPI"):
        assert errors(obj, options.context("1.37", {gate: True})) == []
        assert errors(obj, options.context("1.37", {gate: False})) != []


def test_v1_the_gate_of_kubernetes_with_the_same_name_is_another() -> None:
    ctx = context("1.36", without=("GangScheduling",))
    assert ctx.on("GangScheduling")  # of Kubernetes 1.36
    assert fields(jobset(rj("a", 1, 1), gang="Gang"), ctx) == ["spec.gangConfig"]


# ---- V2, V3, V4: gangConfig


@pytest.mark.parametrize(
    ("obj", "kind", "field"),
    [
        pytest.param(
            jobset(rj("a", 1, 1), gang="ReplicatedGang"),
            ErrorKind.NOT_SUPPORTED,
            "spec.gangConfig.gangMode",
            id="4",
        ),
        pytest.param(
            jobset(rj("a", 1, 1, gang="gang")),
            ErrorKind.NOT_SUPPORTED,
            "spec.replicatedJobs[0].gangConfig.gangMode",
            id="5",
        ),
        pytest.param(jobset(rj("a", 1, 1), gangConfig={}), ErrorKind.REQUIRED, "spec.gangConfig.gangMode", id="6"),
        pytest.param(
            jobset(rj("a", 1, 1), rj("b", 1, 1, gang="Gang"), gang="Gang"),
            ErrorKind.INVALID,
            "spec.replicatedJobs[1].gangConfig.gangMode",
            id="7",
        ),
        pytest.param(
            jobset(rj("a", 1, 1, gang="ReplicatedGang"), gang="Gang"),
            ErrorKind.INVALID,
            "spec.replicatedJobs[0].gangConfig.gangMode",
            id="7 with ReplicatedGang",
        ),
        pytest.param(
            jobset(rj("a", 1, 1), gang="Gang", podGroupPolicies=[{"name": "x"}]), ErrorKind.FORBIDDEN, "spec", id="10"
        ),
        pytest.param(
            jobset(rj("a", 1, 1, gang="Gang"), scheduling={}), ErrorKind.FORBIDDEN, "spec", id="10 with scheduling"
        ),
    ],
)
def test_4_to_10_v2_v3_v4_one_mode_at_one_level(obj: Object, kind: ErrorKind, field: str) -> None:
    assert [(error.kind, error.field) for error in errors(obj)] == [(kind, field)]


def test_2_off_everywhere_is_no_front_end() -> None:
    assert accepted(jobset(rj("a", 2, 3, gang="Off"), gang="Off", podGroupPolicies=[{"name": "x"}]))


def test_8_off_beneath_a_jobset_gang_is_accepted_with_a_warning() -> None:
    obj = jobset(rj("a", 1, 1), rj("b", 1, 1, gang="Off"), gang="Gang")
    assert [text for text in warnings(obj) if text.startswith("spec.replicatedJobs[1].gangConfig.gangMode: Off")]
    assert not [text for text in warnings(jobset(rj("b", 1, 1, gang="Off"))) if "Off" in text]


def test_9_mixed_levels_are_fine_while_the_jobset_is_off() -> None:
    jobs = (rj("a", 1, 1, gang="Off"), rj("b", 1, 1, gang="Gang"), rj("c", 2, 1, gang="ReplicatedGang"))
    assert accepted(jobset(*jobs, gang="Off"))


@pytest.mark.parametrize("name", ["scheduleAtOnce", "scheduleAtOncePerReplica", "gangPolicy"])
def test_11_fields_of_earlier_proposals_are_refused_with_a_hint(name: str) -> None:
    answer = admit.create(jobset(rj("a", 1, 1), **dict[str, Any]({name: True})), context())
    assert answer.code == 422
    assert [cause.field for cause in answer.causes] == [f"spec.{name}"]
    assert "gangConfig" in answer.message
    beneath = jobset({**rj("a", 1, 1), name: True})
    assert fields(beneath) == [f"spec.replicatedJobs[0].{name}"]
    strict = admit.create(jobset(rj("a", 1, 1), **dict[str, Any]({name: True})), context(), field_validation="Strict")
    assert strict.code == 400
    assert f'unknown field "spec.{name}"' in strict.message
    assert "gangConfig" in strict.message


# ---- V5: sequenced startup


def test_23_v5_jobset_gang_in_order() -> None:
    order = {"startupPolicyOrder": "InOrder"}
    two = jobset(rj("a", 1, 1), rj("b", 1, 1), gang="Gang", startupPolicy=order)
    assert fields(two) == ["spec.gangConfig"]
    assert "a, b start one after the other" in errors(two)[0].message


def test_24_v5_in_order_with_one_replicated_job() -> None:
    assert accepted(jobset(rj("a", 2, 2), gang="Gang", startupPolicy={"startupPolicyOrder": "InOrder"}))


def test_v5_jobset_gang_with_depends_on() -> None:
    obj = jobset(rj("a", 1, 1), rj("b", 1, 1, dependsOn=depends("a")), gang="Gang")
    assert fields(obj) == ["spec.gangConfig"]
    each = jobset(rj("a", 1, 1, gang="Gang"), rj("b", 1, 1, gang="ReplicatedGang", dependsOn=depends("a")))
    assert accepted(each)


def test_25_v5_path_through_a_replicated_job_outside() -> None:
    jobs = (rj("x", 1, 1), rj("y", 1, 1, dependsOn=depends("x")), rj("z", 1, 1, dependsOn=depends("y")))
    obj = jobset(*jobs, podGroupPolicies=[{"name": "both", "targetReplicatedJobs": ["x", "z"]}])
    assert fields(obj) == ["spec.podGroupPolicies[0]"]


def test_26_v5_dependency_on_somebody_outside() -> None:
    jobs = (rj("init", 1, 1), rj("x", 1, 1), rj("y", 1, 1, dependsOn=depends("init", status="Complete")))
    assert accepted(jobset(*jobs, podGroupPolicies=[{"name": "both", "targetReplicatedJobs": ["x", "y"]}]))


def test_v5_replica_gangs_of_a_policy_span_no_two_replicated_jobs() -> None:
    jobs = (rj("x", 1, 2), rj("y", 1, 2, dependsOn=depends("x")))
    assert accepted(jobset(*jobs, podGroupPolicies=[{"name": "each", "mode": "ReplicatedGang"}]))


def test_27_28_v14_scheduling_falls_back_unless_it_counts() -> None:
    jobs = (rj("a", 1, 4), rj("b", 1, 4, dependsOn=depends("a")))
    assert accepted(jobset(*jobs, scheduling={"schedulingPolicy": {"gang": {}}}))
    counted = jobset(*jobs, scheduling={"schedulingPolicy": {"gang": {"minCount": 5}}})
    assert fields(counted) == ["spec.scheduling.schedulingPolicy.gang.minCount"]
    entry = {"targetReplicatedJobs": ["a", "b"], "schedulingPolicy": {"gang": {"minCount": 5}}}
    below = jobset(*jobs, scheduling={"replicatedJobs": [entry]})
    assert fields(below) == ["spec.scheduling.replicatedJobs[0].schedulingPolicy.gang.minCount"]


# ---- V6: exclusive placement


def test_29_v6_exclusive_placement_and_a_gang_wait_for_each_other() -> None:
    annotations = "spec.replicatedJobs[0].template.metadata.annotations"
    assert fields(jobset(rj("e", 2, 4, gang="Gang", note=SPREAD))) == [annotations]
    by_selector = {**SPREAD, NODE_SELECTOR_STRATEGY: "true"}
    assert accepted(jobset(rj("e", 2, 4, gang="Gang", note=by_selector)))
    assert accepted(jobset(rj("e", 2, 1, gang="Gang", note=SPREAD)))
    assert accepted(jobset(rj("e", 2, 4, note=SPREAD)))


def test_v6_annotation_on_the_jobset() -> None:
    obj = jobset(rj("e", 2, 4, gang="Gang"), meta={"annotations": SPREAD})
    assert fields(obj) == ["metadata.annotations"]
    # The JobSet's strategy does not count without its own exclusive-topology.
    mixed = jobset(rj("e", 2, 4, gang="Gang", note=SPREAD), meta={"annotations": {NODE_SELECTOR_STRATEGY: "true"}})
    assert fields(mixed) == ["spec.replicatedJobs[0].template.metadata.annotations"]


# ---- V7, V8: somebody else's groups

MINE = {"schedulingGroup": {"podGroupName": "mine"}}
OTHER = {"schedulingGroup": {"podGroupName": "other"}}


@pytest.mark.parametrize(
    ("obj", "wrong"),
    [
        pytest.param(jobset(rj("a", 2, 3, pod=MINE)), [], id="30 no front end"),
        pytest.param(jobset(rj("a", 1, 1, pod=MINE), rj("b", 1, 1, pod=MINE), gang="Gang"), [], id="31"),
        pytest.param(jobset(rj("a", 1, 1, pod=MINE), rj("b", 1, 1), gang="Gang"), [0], id="32"),
        pytest.param(jobset(rj("a", 1, 1, pod=MINE), rj("b", 1, 1, pod=OTHER), gang="Gang"), [1], id="two groups"),
        pytest.param(
            jobset(rj("a", 1, 1, pod=MINE, gang="Gang"), rj("b", 1, 1, pod=OTHER, gang="Gang")), [], id="a group each"
        ),
        pytest.param(
            jobset(rj("a", 1, 1, pod=MINE, gang="Gang"), rj("b", 1, 1, gang="Gang")), [0], id="one of two gangs"
        ),
        pytest.param(
            jobset(rj("a", 1, 1, pod=MINE), rj("b", 1, 1, gang="Gang")), [], id="outside the scope of the gangs"
        ),
        pytest.param(jobset(rj("a", 2, 1, pod=MINE, gang="ReplicatedGang")), [0], id="replica gangs"),
        pytest.param(jobset(rj("a", 1, 1, pod=MINE), podGroupPolicies=[{"name": "x"}]), [0], id="policies"),
        pytest.param(jobset(rj("a", 1, 1, pod=MINE), scheduling={}), [0], id="scheduling"),
    ],
)
def test_30_to_32_v7_groups_are_ours_or_the_users(obj: Object, wrong: list[int]) -> None:
    assert fields(obj) == [f"spec.replicatedJobs[{index}].{POD}.schedulingGroup" for index in wrong]


def test_v7_reference_of_1_35() -> None:
    pod = {"workloadRef": {"name": "w", "podGroup": "g"}}
    found = fields(jobset(rj("a", 1, 1, pod=pod), scheduling={}), context("1.35"))
    assert found == [f"spec.replicatedJobs[0].{POD}.workloadRef"]


def test_33_v8_scheduling_of_the_job_itself() -> None:
    job: dict[str, Any] = {"scheduling": {"schedulingPolicy": {"basic": {}}}}
    assert fields(jobset(rj("a", 1, 1, job=job), gang="Gang")) == ["spec.replicatedJobs[0].template.spec.scheduling"]
    assert accepted(jobset(rj("a", 1, 1, job=job)))


# ---- V9 to V12: what a Workload and the scheduler take


def test_34_v9_one_priority_class() -> None:
    high, low = {"priorityClassName": "hi"}, {"priorityClassName": "lo"}
    two = jobset(rj("a", 1, 2, pod=high, gang="Gang"), rj("b", 1, 2, pod=low, gang="Gang"))
    assert fields(two) == [f"spec.replicatedJobs[1].{POD}.priorityClassName"]
    assert accepted(jobset(rj("a", 1, 2, pod=high, gang="Gang"), rj("b", 1, 2, pod=low, gang="Off")))
    assert fields(jobset(rj("a", 1, 2, pod=high), rj("b", 1, 2), gang="Gang"))  # unset is a difference
    # Before 1.37 a Workload may mix classes, a group may not.
    assert errors(two, context("1.36")) == []
    assert fields(jobset(rj("a", 1, 2, pod=high), rj("b", 1, 2, pod=low), gang="Gang"), context("1.36"))


@pytest.mark.parametrize(
    ("member", "value"), [("schedulerName", "kohort"), ("preemptionPolicy", "Never")], ids=["schedulerName", "policy"]
)
def test_v10_pods_of_a_gang_are_alike_to_the_scheduler(member: str, value: str) -> None:
    one, other = rj("a", 1, 1), rj("b", 1, 1, pod={member: value})
    assert fields(jobset(one, other, gang="Gang")) == [f"spec.replicatedJobs[1].{POD}.{member}"]
    tree = {"schedulingPolicy": {"gang": {}}, "replicatedJobs": [{"targetReplicatedJobs": ["a"]}]}
    assert fields(jobset(one, other, scheduling=tree)) == [f"spec.replicatedJobs[1].{POD}.{member}"]
    apart = [{**one, "gangConfig": {"gangMode": "Gang"}}, {**other, "gangConfig": {"gangMode": "Gang"}}]
    assert accepted(jobset(*apart))


def test_v10_the_default_scheduler_by_name_is_no_difference() -> None:
    assert accepted(jobset(rj("a", 1, 1), rj("b", 1, 1, pod={"schedulerName": "default-scheduler"}), gang="Gang"))


def test_16_v11_nine_templates() -> None:
    jobs = [rj(f"j{number}", 1, 2, gang="Gang") for number in range(9)]
    assert [(error.kind, error.field) for error in errors(jobset(*jobs))] == [
        (ErrorKind.TOO_MANY, "spec.replicatedJobs")
    ]
    assert accepted(jobset(*jobs[:8]))
    jobs[4]["replicas"] = 0  # no pods, no template
    assert accepted(jobset(*jobs))


def test_v11_nine_policies_and_nine_entries() -> None:
    jobs = [rj(f"j{number}", 1, 2) for number in range(9)]
    policies = [{"name": f"p{number}", "targetReplicatedJobs": [f"j{number}"]} for number in range(9)]
    assert fields(jobset(*jobs, podGroupPolicies=policies)) == ["spec.podGroupPolicies"]
    listed = [{"targetReplicatedJobs": [f"j{number}"]} for number in range(9)]
    assert fields(jobset(*jobs, scheduling={"replicatedJobs": listed})) == ["spec.scheduling.replicatedJobs"]


def test_v11_leaves_and_branches_beneath_a_root_are_counted_apart() -> None:
    jobs = [rj(f"j{number}", 1, 2) for number in range(16)]
    listed = [{"targetReplicatedJobs": [f"j{number}"], "job": {}} for number in range(8)]
    tree = {"schedulingPolicy": {"gang": {}}, "replicatedJobs": listed}
    assert accepted(jobset(*jobs, scheduling=tree))
    assert fields(jobset(*jobs, rj("one-more", 1, 2), scheduling=tree)) == ["spec.scheduling.replicatedJobs"]


def test_22_v12_sum_above_int32() -> None:
    most = 2**31 - 1
    obj = jobset(rj("a", 1, most), rj("b", 1, 1), gang="Gang")
    assert fields(obj) == ["spec.replicatedJobs[1]"]
    assert accepted(jobset(rj("a", 1, most - 1), rj("b", 1, 1), gang="Gang"))
    assert fields(jobset(rj("a", 2**30, 2))) == ["spec.replicatedJobs[0].replicas"]


# ---- V13: podGroupPolicies


@pytest.mark.parametrize(
    ("policies", "field"),
    [
        pytest.param(
            [{"name": "x"}, {"name": "y", "targetReplicatedJobs": ["a"]}], "[0].targetReplicatedJobs", id="55"
        ),
        pytest.param([{"name": "x", "targetReplicatedJobs": ["ghost"]}], "[0].targetReplicatedJobs[0]", id="unknown"),
        pytest.param(
            [{"name": "x", "targetReplicatedJobs": ["a"]}, {"name": "y", "targetReplicatedJobs": ["b", "a"]}],
            "[1].targetReplicatedJobs[1]",
            id="two policies for one",
        ),
        pytest.param([{"name": "x", "targetReplicatedJobs": ["a", "a"]}], "[0].targetReplicatedJobs[1]", id="twice"),
        pytest.param([{"name": "X", "targetReplicatedJobs": ["a"]}], "[0].name", id="no label"),
        pytest.param([{"name": "x" * 61, "targetReplicatedJobs": ["a"]}], "[0].name", id="too long for pg-"),
        pytest.param([{"targetReplicatedJobs": ["a"]}], "[0].name", id="no name"),
        pytest.param(
            [{"name": "x", "targetReplicatedJobs": ["a"]}, {"name": "x", "targetReplicatedJobs": ["b"]}],
            "[1]",
            id="same name",
        ),
        pytest.param(
            [
                {"name": "b", "targetReplicatedJobs": ["a"]},
                {"name": "x", "targetReplicatedJobs": ["b"], "mode": "ReplicatedGang"},
            ],
            "[0].name",
            id="template name taken",
        ),
        pytest.param([{"name": "x", "mode": "Off"}], "[0].mode", id="mode"),
    ],
)
def test_55_v13_policies(policies: list[Object], field: str) -> None:
    found = fields(jobset(rj("a", 1, 1), rj("b", 1, 1), podGroupPolicies=policies))
    assert found == [f"spec.podGroupPolicies{field}"]


def test_56_v13_somebody_may_stay_out() -> None:
    policies = [{"name": "x", "targetReplicatedJobs": ["a", "b"]}]
    assert accepted(jobset(rj("a", 1, 1), rj("b", 1, 1), rj("c", 1, 1), podGroupPolicies=policies))


# ---- V14: scheduling

BASIC: dict[str, Any] = {"basic": {}}
GANG: dict[str, Any] = {"gang": {}}
ALL: dict[str, Any] = {"all": {}}


@pytest.mark.parametrize(
    ("scheduling", "wrong"),
    [
        ({"schedulingPolicy": {"basic": {}, "gang": {}}}, ["schedulingPolicy"]),
        ({"schedulingPolicy": {}}, ["schedulingPolicy"]),
        ({"disruptionMode": {"single": {}, "all": {}}}, ["disruptionMode"]),
        ({"schedulingPolicy": BASIC, "disruptionMode": ALL}, ["disruptionMode.all"]),
        ({"schedulingPolicy": GANG, "disruptionMode": ALL}, []),
        ({"disruptionMode": ALL}, []),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, ["schedulingPolicy.gang.minCount"]),
        ({"schedulingPolicy": {"gang": {"minCount": 9}}}, []),
        ({"schedulingPolicy": {"gang": {"minCount": 10}}}, ["schedulingPolicy.gang.minCount"]),
        ({"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}, ["schedulingConstraints.topology"]),
        ({"replicatedJobs": [{"targetReplicatedJobs": ["a"]}]}, ["replicatedJobs"]),  # b is not targeted
        ({"replicatedJobs": [{"targetReplicatedJobs": ["a", "b"]}]}, []),
        (
            {"replicatedJobs": [{"targetReplicatedJobs": ["a", "b"]}, {"targetReplicatedJobs": ["b"]}]},
            ["replicatedJobs[1].targetReplicatedJobs[0]"],
        ),
        (
            {"replicatedJobs": [{"targetReplicatedJobs": ["a", "b"]}, {"targetReplicatedJobs": ["ghost"]}]},
            ["replicatedJobs[1].targetReplicatedJobs[0]"],
        ),
        (
            {"replicatedJobs": [{"targetReplicatedJobs": ["a", "b"]}, {}]},
            ["replicatedJobs[1].targetReplicatedJobs"],
        ),
        (
            {"replicatedJobs": [{"targetReplicatedJobs": ["a", "b"], "job": {}}]},
            ["replicatedJobs[0].targetReplicatedJobs"],
        ),
        (
            {
                "replicatedJobs": [
                    {"targetReplicatedJobs": ["a"], "job": {}, "schedulingPolicy": GANG},
                    {"targetReplicatedJobs": ["b"]},
                ]
            },
            ["replicatedJobs[0].schedulingPolicy"],
        ),
        (
            {
                "replicatedJobs": [
                    {"targetReplicatedJobs": ["a"], "job": {"schedulingPolicy": {"gang": {"minCount": 4}}}},
                    {"targetReplicatedJobs": ["b"], "schedulingPolicy": {"gang": {"minCount": 4}}},
                ]
            },
            [
                "replicatedJobs[0].job.schedulingPolicy.gang.minCount",
                "replicatedJobs[1].schedulingPolicy.gang.minCount",
            ],
        ),
        (
            {
                "replicatedJobs": [
                    {"targetReplicatedJobs": ["a"], "job": {"schedulingPolicy": BASIC, "disruptionMode": ALL}},
                    {"targetReplicatedJobs": ["b"], "resourceClaims": [{"name": "c"}]},
                ]
            },
            ["replicatedJobs[0].job.disruptionMode.all", "replicatedJobs[1].resourceClaims[0]"],
        ),
        (
            {"schedulingPolicy": {"gang": {"minCount": 2}}, "replicatedJobs": [{"targetReplicatedJobs": ["a"]}]},
            ["schedulingPolicy.gang.minCount"],
        ),
    ],
)
def test_v14_scheduling(scheduling: Object, wrong: list[str]) -> None:
    found = fields(jobset(rj("a", 2, 3), rj("b", 1, 3), scheduling=scheduling))
    assert sorted(found) == sorted(f"spec.scheduling.{field}" for field in wrong)


def test_54_v14_two_levels_need_the_option() -> None:
    tree = {"schedulingPolicy": GANG, "replicatedJobs": [{"targetReplicatedJobs": ["a"]}]}
    obj = jobset(rj("a", 1, 1), rj("b", 1, 1), scheduling=tree)
    assert fields(obj, context(without=("GangOfGangs",))) == ["spec.scheduling.replicatedJobs"]
    assert errors(obj, options.context("1.37", {"JobSetGangOfGangs": True})) == []
    assert fields(obj, options.context("1.37", {"JobSetGangOfGangs": False})) == ["spec.scheduling.replicatedJobs"]


# ---- names


@pytest.mark.parametrize("name", ["", "a-", "-a"])
def test_names_that_a_jobset_may_have_and_a_group_may_not(name: str) -> None:
    assert accepted(jobset(rj(name, 1, 1)))
    assert fields(jobset(rj(name, 1, 1, gang="Gang"))) == ["spec.replicatedJobs[0].name"]


# ---- V15, V16, V17: updates and dependencies


def edited(obj: Object, **spec: Any) -> Object:
    made = deepcopy(obj)
    made["spec"].update(spec)
    return made


@pytest.mark.parametrize("suspended", [False, True], ids=["running", "suspended"])
def test_35_v15_front_ends_never_change(suspended: bool) -> None:
    plain = jobset(rj("a", 1, 2), suspend=suspended)
    gang = jobset(rj("a", 1, 2), gang="Gang", suspend=suspended)
    assert [error.field for error in changes(edited(gang, gangConfig={"gangMode": "Off"}), gang)] == ["spec.gangConfig"]
    assert [error.field for error in changes(gang, plain)] == ["spec.gangConfig"]
    assert [error.field for error in changes(plain, gang)] == ["spec.gangConfig"]
    assert [error.field for error in changes(edited(plain, scheduling={}), plain)] == ["spec.scheduling"]
    policies = edited(plain, podGroupPolicies=[{"name": "x"}])
    assert [error.field for error in changes(policies, plain)] == ["spec.podGroupPolicies"]
    beneath = jobset(rj("a", 1, 2, gang="Gang"), suspend=suspended)
    assert [error.field for error in changes(beneath, plain)] == ["spec.replicatedJobs[0].gangConfig"]
    assert changes(gang, gang) == []


def test_49_v16_elastic_below_a_written_minimum() -> None:
    scheduling = {"replicatedJobs": [{"targetReplicatedJobs": ["g"], "schedulingPolicy": {"gang": {"minCount": 7}}}]}
    old, new = jobset(rj("g", 2, 4), scheduling=scheduling), jobset(rj("g", 2, 3), scheduling=scheduling)
    elastic = context("1.37", "ElasticJobSet")
    found = changes(new, old, elastic)
    assert [error.field for error in found] == ["spec.replicatedJobs[0].template.spec.completions"]
    assert "minCount is 7, but g together have 6 pods" in found[0].message
    assert changes(jobset(rj("g", 2, 5), scheduling=scheduling), old, elastic) == []
    assert changes(jobset(rj("g", 2, 3)), jobset(rj("g", 2, 4)), elastic) == []


def test_v12_elastic_above_int32() -> None:
    old, new = jobset(rj("g", 2, 4), gang="Gang"), jobset(rj("g", 2, 2**30), gang="Gang")
    found = changes(new, old, context("1.37", "ElasticJobSet"))
    assert [error.field for error in found] == ["spec.replicatedJobs[0]"]


def test_v6_annotation_that_comes_later() -> None:
    old = jobset(rj("g", 2, 4), gang="Gang")
    new = jobset(rj("g", 2, 4), gang="Gang", meta={"annotations": SPREAD})
    assert [error.field for error in changes(new, old)] == ["metadata.annotations"]
    assert changes(edited(new, ttlSecondsAfterFinished=5), new) == []  # not news


def test_64_v17_a_replicated_job_cannot_wait_for_itself() -> None:
    obj = jobset(rj("a", 1, 1), rj("b", 1, 1, dependsOn=depends("b")))
    assert fields(obj) == ["spec.replicatedJobs[1].dependsOn[0].name"]


def test_63_managed_by_somebody_else_is_admitted() -> None:
    assert accepted(jobset(rj("a", 1, 1), gang="Gang", managedBy="kueue.x-k8s.io/multikueue"))
