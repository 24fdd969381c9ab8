"""The scenarios of spec jobset 6 that are about compiled objects, by number."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.jobset.api.building import completed, context, depends, jobset, rj, warnings
from tests.kinds.jobset.compile.compiling import compiled, members, names, objects, plan_of, templates
from tests.support.plancheck import check_plan

from kohort.api.kind import Context, Object
from kohort.api.releases import Gate, default_gates, release
from kohort.gang.compile import CompileContext
from kohort.gang.render import pod_link
from kohort.gang.stand_in import uid_of
from kohort.kinds.jobset.api.constants import API_VERSION
from kohort.kinds.jobset.compile.jobset import compile_object
from kohort.kinds.jobset.settings import JobSetSettings

MINE = {"schedulingGroup": {"podGroupName": "mine"}}
GANG: dict[str, Any] = {"gang": {}}
TRAINJOB = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "t", "uid": "u"}

# ---- nothing to make


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        pytest.param(jobset(rj("a", 2, 3)), "no gang is asked for", id="1"),
        pytest.param(jobset(rj("a", 2, 3, gang="Off"), gang="Off"), "no gang is asked for", id="2"),
        pytest.param(jobset(rj("a", 0, 3, gang="Gang")), "no group has pods", id="21"),
        pytest.param(jobset(rj("a", 2, 0), gang="Gang"), "no group has pods", id="21 parallelism 0"),
        pytest.param(jobset(rj("a", 2, 3, pod=MINE)), "no gang is asked for", id="30"),
        pytest.param(
            jobset(rj("a", 1, 1, pod=MINE), rj("b", 1, 2, pod=MINE), gang="Gang"), "every pod template", id="31"
        ),
        pytest.param(
            jobset(
                rj("a", 1, 1, pod=MINE),
                meta={"ownerReferences": [TRAINJOB]},
            ),
            "no gang is asked for",
            id="59",
        ),
        pytest.param(jobset(rj("a", 1, 1), gang="Gang", managedBy="acme.io/other"), "acme.io/other", id="63"),
        pytest.param(jobset(gang="Gang"), "no group has pods", id="no ReplicatedJob"),
    ],
)
def test_1_to_63_nothing_to_make(obj: Object, why: str) -> None:
    done = compiled(obj)
    assert done.plans == ()
    assert done.errors == ()
    assert why in done.reason


def test_stored_gangs_are_ignored_while_the_option_is_off() -> None:
    """Not stripped, not refused: the JobSet was admitted while it was on (spec jobset 4.1)."""
    ctx = context(without=("GangScheduling",))
    done = compile_object(completed(jobset(rj("a", 1, 2), gang="Gang")), CompileContext(ctx.release, ctx.gates))
    assert (done.plans, done.reason) == ((), "the option GangScheduling is off")


# ---- counts


@pytest.mark.parametrize(
    ("obj", "wanted"),
    [
        pytest.param(jobset(rj("a", 1, 1), rj("b", 2, 3, gang="Gang"), gang="Off"), {"pg-b": 6}, id="9"),
        pytest.param(jobset(rj("p", 2, 4), rj("q", 2, 4), gang="Gang"), {"pg-js": 16}, id="12"),
        pytest.param(
            jobset(rj("p", 2, 4, gang="Gang"), rj("q", 1, 3, gang="Gang", dependsOn=depends("p", status="Complete"))),
            {"pg-p": 8, "pg-q": 3},
            id="13",
        ),
        pytest.param(
            jobset(rj("p", 2, 4, gang="ReplicatedGang"), rj("q", 3, 3, gang="ReplicatedGang")),
            {"pg-p": 4, "pg-q": 3},
            id="14",
        ),
        pytest.param(jobset(rj("s", 12, 2, gang="ReplicatedGang")), {"pg-s": 2}, id="15"),
        pytest.param(jobset(rj("m", 3, 8, 5, gang="Gang")), {"pg-m": 15}, id="17"),
        pytest.param(
            jobset(rj("m", 2, 7, None, job={"completionMode": "NonIndexed"}, gang="Gang")), {"pg-m": 14}, id="18"
        ),
        pytest.param(jobset(rj("m", 4, None, gang="Gang")), {"pg-m": 4}, id="19"),
        pytest.param(jobset(rj("z", 0, 3, gang="Gang"), rj("k", 1, 2, gang="Gang")), {"pg-k": 2}, id="20"),
        pytest.param(
            jobset(rj("a", 1, 2), startupPolicy={"startupPolicyOrder": "InOrder"}, gang="Gang"), {"pg-js": 2}, id="24"
        ),
        pytest.param(
            jobset(rj("a", 1, 2), rj("b", 2, 3, dependsOn=depends("a")), scheduling={"schedulingPolicy": GANG}),
            {"pg-a": 2, "pg-b": 6},
            id="27",
        ),
        pytest.param(
            jobset(rj("g", 2, 4), scheduling={"schedulingPolicy": {"gang": {"minCount": 7}}}),
            {"pg-js": 7},
            id="minCount",
        ),
        pytest.param(jobset(rj("g", 2, 4), scheduling={}), {"pg-js": 8}, id="scheduling {}"),
        pytest.param(
            jobset(rj("g", 2, 4), scheduling={"schedulingPolicy": {"basic": {}}}), {"pg-js": None}, id="basic"
        ),
        pytest.param(
            jobset(
                rj("a", 1, 1), rj("b", 1, 1, dependsOn=depends("a")), scheduling={"schedulingPolicy": {"basic": {}}}
            ),
            {"pg-js": None},
            id="a basic group waits for nobody, so startup in order does no harm",
        ),
    ],
)
def test_9_to_27_templates_and_minimums(obj: Object, wanted: dict[str, int | None]) -> None:
    plan = plan_of(obj)
    assert templates(plan) == wanted
    assert check_plan(plan) == []


def test_12_all_pods_reference_the_one_group() -> None:
    plan = plan_of(jobset(rj("p", 2, 4), rj("q", 2, 4), gang="Gang"))
    assert members(plan) == dict.fromkeys(["js-p-0", "js-p-1", "js-q-0", "js-q-1"], "pg-js")


def test_8_off_beneath_a_jobset_gang_is_in_it() -> None:
    plan = plan_of(jobset(rj("a", 1, 2), rj("b", 1, 3, gang="Off"), gang="Gang"))
    assert templates(plan) == {"pg-js": 5}
    assert members(plan)["js-b-0"] == "pg-js"


def test_13_groups_of_those_that_wait_are_made_up_front() -> None:
    plan = plan_of(jobset(rj("p", 2, 4, gang="Gang"), rj("q", 1, 3, gang="Gang", dependsOn=depends("p"))))
    assert names(objects(plan)) == ["Workload w-js", "PodGroup pg-js.p", "PodGroup pg-js.q"]


def test_14_15_a_group_for_each_job() -> None:
    plan = plan_of(jobset(rj("p", 2, 4, gang="ReplicatedGang"), rj("q", 3, 3, gang="ReplicatedGang")))
    assert len(plan.groups) == 5
    assert members(plan)["js-q-2"] == "pg-js.q.2"
    many = plan_of(jobset(rj("s", 12, 2, gang="ReplicatedGang")))
    assert (len(many.templates), len(many.groups)) == (1, 12)


def test_17_18_warnings_beside_the_counts() -> None:
    assert not [text for text in warnings(jobset(rj("m", 3, 8, 5, gang="Gang"))) if "last wave" in text]
    found = warnings(jobset(rj("m", 2, 7, None, job={"completionMode": "NonIndexed"}, gang="Gang")))
    assert [text for text in found if "template.spec.completions: is not set" in text]


def test_27_fallback_keeps_what_the_jobset_wishes() -> None:
    wishes: dict[str, Any] = {
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "disruptionMode": {"all": {}},
    }
    jobs = (rj("a", 1, 2), rj("b", 2, 3, dependsOn=depends("a")))
    plan = plan_of(jobset(*jobs, scheduling=wishes))
    assert [(t.name, t.topology, t.disruption) for t in plan.templates] == [
        ("pg-a", "rack", "all"),
        ("pg-b", "rack", "all"),
    ]


def test_27_a_gang_of_gangs_in_sequence_loses_its_root_only() -> None:
    scheduling = {
        "schedulingPolicy": GANG,
        "schedulingConstraints": {"topology": [{"key": "zone"}]},
        "replicatedJobs": [
            {"targetReplicatedJobs": ["b"], "job": {"schedulingConstraints": {"topology": [{"key": "rack"}]}}}
        ],
    }
    plan = plan_of(jobset(rj("a", 1, 2), rj("b", 2, 3, dependsOn=depends("a")), scheduling=scheduling))
    assert not plan.is_tree
    assert [(t.name, t.minimum, t.topology) for t in plan.templates] == [("pg-a", 2, "zone"), ("pg-b", 3, "rack")]
    assert [group.name for group in plan.groups] == ["pg-js.a", "pg-js.b.0", "pg-js.b.1"]


# ---- names


def test_36_37_names_never_meet() -> None:
    made = [
        jobset(rj("node", 1, 1, gang="Gang"), name="u"),
        jobset(rj("node", 1, 1, gang="Gang"), name="v"),
        jobset(rj("b", 1, 1, gang="Gang"), name="a"),
        jobset(rj("x", 1, 1), name="a-b", gang="Gang"),
        jobset(rj("b-0", 1, 1, gang="Gang"), name="a"),
        jobset(rj("b", 1, 1, gang="ReplicatedGang"), name="a"),
    ]
    found = [group.name for obj in made for group in plan_of(obj).groups]
    assert found == ["pg-u.node", "pg-v.node", "pg-a.b", "pg-a-b", "pg-a.b-0", "pg-a.b.0"]


def test_names_survive_restarts() -> None:
    fresh, later = jobset(rj("a", 2, 2), gang="Gang"), jobset(rj("a", 2, 2), gang="Gang", meta={"uid": "other"})
    later["status"] = {"restarts": 3}
    assert [g.name for g in plan_of(fresh).groups] == [g.name for g in plan_of(later).groups]


# ---- podGroupPolicies


def test_56_two_of_three() -> None:
    policies = [{"name": "pair", "targetReplicatedJobs": ["c", "a"]}]
    plan = plan_of(jobset(rj("a", 1, 2), rj("b", 1, 3), rj("c", 2, 4), podGroupPolicies=policies))
    assert templates(plan) == {"pg-pair": 10}
    assert members(plan) == {"js-a-0": "pg-js.pair", "js-b-0": None, "js-c-0": "pg-js.pair", "js-c-1": "pg-js.pair"}


def test_26_dependency_outside_the_policy() -> None:
    jobs = (rj("init", 1, 1), rj("x", 1, 2), rj("y", 1, 3, dependsOn=depends("init", status="Complete")))
    plan = plan_of(jobset(*jobs, podGroupPolicies=[{"name": "both", "targetReplicatedJobs": ["x", "y"]}]))
    assert templates(plan) == {"pg-both": 5}


def test_policy_in_replicated_mode() -> None:
    policies = [{"name": "each", "targetReplicatedJobs": ["a", "b"], "mode": "ReplicatedGang"}]
    plan = plan_of(jobset(rj("a", 2, 2), rj("b", 1, 3), podGroupPolicies=policies))
    assert templates(plan) == {"pg-a": 2, "pg-b": 3}
    assert [group.name for group in plan.groups] == ["pg-js.a.0", "pg-js.a.1", "pg-js.b.0"]


# ---- elastic


def test_47_48_elastic_resize_changes_minimums_only() -> None:
    before, after = (plan_of(jobset(rj("g", 2, size, gang="Gang"))) for size in (4, 6))
    assert templates(before) == {"pg-g": 8}
    assert templates(after) == {"pg-g": 12}
    assert names(objects(before)) == names(objects(after))
    # Whether the difference can be written in place is the release's word; a controller warns where not.
    assert release("1.37").min_count_mutable
    assert not release("1.36").min_count_mutable


# ---- shapes

B = jobset(rj("ctl", 1, 2), rj("wrk", 3, 5), name="aurora", gang="Gang")
D = jobset(rj("slice", 3, 4, gang="ReplicatedGang"), name="cobalt")


def test_50_jobset_gang_on_1_35() -> None:
    plan = plan_of(B, "1.35")
    (workload,) = objects(plan, "1.35")
    assert workload["apiVersion"] == "scheduling.k8s.io/v1alpha1"
    assert workload["spec"]["podGroups"] == [{"name": "pg-aurora", "policy": {"gang": {"minCount": 17}}}]
    assert pod_link(plan, "pg-aurora", "1.35") == {"workloadRef": {"name": "w-aurora", "podGroup": "pg-aurora"}}


def test_51_replica_gangs_on_1_35() -> None:
    plan = plan_of(D, "1.35")
    (workload,) = objects(plan, "1.35")
    assert workload["spec"]["podGroups"] == [{"name": "pg-slice", "policy": {"gang": {"minCount": 4}}}]
    links = [pod_link(plan, f"pg-cobalt.slice.{index}", "1.35")["workloadRef"] for index in range(3)]
    assert [link["podGroupReplicaKey"] for link in links] == ["0", "1", "2"]


def test_52_composite_rendering_of_a_jobset_gang() -> None:
    plan = plan_of(B, settings=JobSetSettings(gang_rendering="Composite"))
    assert templates(plan) == {"root": 2, "pg-ctl": 2, "pg-wrk": 15}
    assert names(objects(plan)) == [
        "Workload w-aurora",
        "CompositePodGroup cpg-aurora",
        "PodGroup pg-aurora.ctl",
        "PodGroup pg-aurora.wrk",
    ]
    assert members(plan)["aurora-wrk-2"] == "pg-aurora.wrk"


@pytest.mark.parametrize(
    ("obj", "minor", "words"),
    [
        (B, "1.36", "has no CompositePodGroup"),
        (jobset(*[rj(f"j{number}", 1, 1) for number in range(9)], gang="Gang"), "1.37", "at most 8 leaves"),
        (
            jobset(rj("a", 2, 2), scheduling={"schedulingPolicy": {"gang": {"minCount": 3}}}),
            "1.37",
            "minCount counts pods",
        ),
    ],
)
def test_composite_rendering_that_is_not_possible_stays_flat(obj: Object, minor: str, words: str) -> None:
    done = compiled(obj, minor, settings=JobSetSettings(gang_rendering="Composite"))
    assert len(done.plans[0].templates) == 1
    assert not done.plans[0].is_tree
    assert words in str(done.warnings)


def test_composite_rendering_leaves_replica_gangs_alone() -> None:
    assert not plan_of(D, settings=JobSetSettings(gang_rendering="Composite")).is_tree


def test_53_gang_of_gangs() -> None:
    scheduling = {"schedulingPolicy": GANG, "replicatedJobs": [{"targetReplicatedJobs": ["slice"], "job": {}}]}
    plan = plan_of(jobset(rj("driver", 1, 1), rj("slice", 2, 4), name="flint", scheduling=scheduling))
    (root,) = plan.templates
    assert root.depth == 3
    assert templates(plan) == {"root": 2, "pg-driver": 1, "cpg-slice": 2, "pg-slice": 4}
    assert {group.name: group.parent for group in plan.groups} == {
        "cpg-flint": None,
        "cpg-flint.slice": "cpg-flint",
        "pg-flint.driver": "cpg-flint",
        "pg-flint.slice.0": "cpg-flint.slice",
        "pg-flint.slice.1": "cpg-flint.slice",
    }
    assert members(plan)["flint-slice-1"] == "pg-flint.slice.1"
    assert check_plan(plan) == []


def test_a_root_counts_only_groups_that_are_made() -> None:
    scheduling = {"schedulingPolicy": GANG, "replicatedJobs": [{"targetReplicatedJobs": ["b"], "job": {}}]}
    plan = plan_of(jobset(rj("a", 1, 1), rj("b", 0, 4), rj("c", 2, 1), scheduling=scheduling))
    assert templates(plan) == {"root": 2, "pg-a": 1, "pg-c": 2}


def test_basic_root_with_entries() -> None:
    scheduling = {
        "schedulingPolicy": {"basic": {}},
        "schedulingConstraints": {"topology": [{"key": "zone"}]},
        "replicatedJobs": [
            {
                "targetReplicatedJobs": ["a", "b"],
                "schedulingPolicy": {"gang": {"minCount": 2}},
                "resourceClaims": [{"name": "link", "resourceClaimTemplateName": "channel"}],
            }
        ],
    }
    plan = plan_of(jobset(rj("a", 1, 2), rj("b", 1, 2), rj("c", 1, 2), scheduling=scheduling))
    (root,) = plan.templates
    assert (root.minimum, root.topology) == (None, "zone")
    # An entry over several is called like its first; whom no entry names is of the root's sort.
    assert templates(plan) == {"root": None, "pg-a": 2, "pg-c": None}
    assert [claim.template for claim in plan.template("pg-a").claims] == ["channel"]
    assert members(plan) == {"js-a-0": "pg-js.a", "js-b-0": "pg-js.a", "js-c-0": "pg-js.c"}


def test_a_tree_needs_the_gate_of_kubernetes() -> None:
    scheduling = {"schedulingPolicy": GANG, "replicatedJobs": [{"targetReplicatedJobs": ["a"]}]}
    gates = default_gates("1.37") - {Gate.COMPOSITE}
    ctx = Context.of("1.37", gates=gates, options=("GangScheduling", "GangOfGangs"))
    done = compile_object(
        completed(jobset(rj("a", 1, 1), scheduling=scheduling)), CompileContext(ctx.release, ctx.gates, ctx.options)
    )
    assert [error.field for error in done.errors] == ["spec.scheduling"]


# ---- 65: what every object carries


@pytest.mark.parametrize("minor", ["1.35", "1.36", "1.37"])
def test_65_controller_owners_and_labels(minor: str) -> None:
    obj = jobset(rj("a", 2, 2, gang="ReplicatedGang"), rj("b", 1, 3, gang="Gang"), name="kite", meta={"uid": "u-1"})
    plan = plan_of(obj, minor)
    made = objects(plan, minor)
    assert made[0]["spec"]["controllerRef"] == {"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": "kite"}
    owner = {
        "apiVersion": API_VERSION,
        "kind": "JobSet",
        "name": "kite",
        "uid": "u-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    prefix = "jobset.sigs.k8s.io"
    both = {f"{prefix}/jobset-name": "kite", f"{prefix}/jobset-uid": "u-1"}
    for found in made:
        assert found["metadata"]["ownerReferences"] == [owner]
        assert found["metadata"]["namespace"] == "ns"
        assert both.items() <= found["metadata"]["labels"].items()
    if minor != "1.35":
        labels = {found["metadata"]["name"]: found["metadata"]["labels"] for found in made}
        assert labels["pg-kite.a.1"] == {**both, f"{prefix}/replicatedjob-name": "a", f"{prefix}/job-index": "1"}
        assert labels["pg-kite.b"] == {**both, f"{prefix}/replicatedjob-name": "b"}
        assert labels["w-kite"] == both


def test_a_manifest_without_uid_gets_a_stand_in() -> None:
    obj = jobset(rj("a", 1, 1), gang="Gang")
    assert plan_of(obj).owners[0].uid == uid_of(obj)


def test_priority_class_goes_to_every_template() -> None:
    pod = {"priorityClassName": "hi"}
    scheduling = {"schedulingPolicy": GANG, "replicatedJobs": [{"targetReplicatedJobs": ["b"], "job": {}}]}
    plan = plan_of(jobset(rj("a", 1, 1, pod=pod), rj("b", 2, 1, pod=pod), scheduling=scheduling))
    assert {template.priority_class for template in plan.walk()} == {"hi"}
    assert check_plan(plan) == []


# ---- limits


def test_suspended_is_planned_and_said() -> None:
    done = compiled(jobset(rj("a", 1, 1), gang="Gang", suspend=True))
    assert len(done.plans) == 1
    assert "resumed" in str(done.warnings)


def test_more_jobs_than_a_plan_can_list() -> None:
    done = compiled(jobset(rj("a", 2**31 - 1, 1, gang="ReplicatedGang")))
    assert [error.field for error in done.errors] == ["spec.replicatedJobs[0].replicas"]


def test_a_name_that_only_a_server_knows() -> None:
    obj = jobset(rj("a", 1, 1), gang="Gang")
    obj["metadata"] = {"generateName": "x-"}
    assert [error.field for error in compiled(obj).errors] == ["metadata.name"]


def test_every_member_says_where_its_pod_template_stands() -> None:
    obj = jobset(rj("a", 1, 1), rj("b", 2, 3), gang="Gang")
    for member in plan_of(obj).members:
        found: Any = obj
        for part in member.path:
            found = found[part]
        assert "containers" in found["spec"]
