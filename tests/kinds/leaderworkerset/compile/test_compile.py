"""LeaderWorkerSet -> groups (spec lws 4.4 to 4.10): scenarios L-50 to L-60, as far as objects go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.kinds.leaderworkerset.api.sample import K, context, defaulted, lws, pod_template
from tests.kinds.leaderworkerset.compile.observing import observed
from tests.support.plancheck import check_plan

from kohort.api.kind import Object
from kohort.gang import render
from kohort.gang.compile import Compilation, CompileContext, Lookup
from kohort.gang.tree import Plan
from kohort.kinds.leaderworkerset.compile.leaderworkerset import compile_object

UID = "3f1c9a52-7d0e-4b61-8a43-0c5e2f9d1b77"  # of the golden vectors in spec job 2.2
W = "duo-8564d45897"
REV = "6646545df9"  # recorded for the least object with size 3 (g-ready)
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
RACK = {"schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}}


def compiled(
    obj: Object,
    minor: str = "1.37",
    others: tuple[Object, ...] = (),
    instances: Sequence[Mapping[str, Any]] | None = None,
    newest_workload: int = 0,
) -> Compilation:
    ctx = context(minor)
    obj = defaulted(obj, ctx)
    obj["metadata"].setdefault("uid", UID)
    known = None if instances is None else observed(obj, instances, newest_workload)
    return compile_object(obj, CompileContext(ctx.release, ctx.gates, ctx.options, Lookup(others)), known)


def plan_of(obj: Object, minor: str = "1.37", **how: Any) -> Plan:
    done = compiled(obj, minor, **how)
    assert not done.errors
    (plan,) = done.plans
    assert check_plan(plan) == []
    return plan


def objects(obj: Object, minor: str = "1.37", **how: Any) -> tuple[Object, ...]:
    result = render.render(plan_of(obj, minor, **how), minor)
    assert not result.errors
    return result.objects


def names(plan: Plan) -> list[str]:
    return [group.name for group in plan.groups]


def minimums(plan: Plan) -> list[int | None]:
    return [plan.minimum(group) for group in plan.groups]


def test_nothing_is_asked_for() -> None:
    done = compiled(lws())
    assert (done.plans, done.errors) == ((), ())
    assert "spec.scheduling" in done.reason


def test_l_49_a_group_by_hand_is_left_alone() -> None:
    done = compiled(lws(template={"workerTemplate": pod_template(schedulingGroup={"podGroupName": "pg"})}))
    assert done.plans == ()
    assert "by hand" in done.reason


def test_l_50_one_gang_for_each_replica() -> None:
    workload, *groups = objects(lws(scheduling={}))
    owner = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "name": "duo",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert workload == {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": W,
            "namespace": "default",
            "labels": {f"{K}name": "duo"},
            "ownerReferences": [owner],
        },
        "spec": {
            "controllerRef": {"apiGroup": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "name": "duo"},
            "podGroupTemplates": [{"name": "replica", "schedulingPolicy": {"gang": {"minCount": 3}}}],
        },
    }
    assert [group["metadata"]["name"] for group in groups] == [f"{W}-0-{REV}", f"{W}-1-{REV}"]
    first = groups[0]
    assert first["metadata"]["labels"] == {
        f"{K}name": "duo",
        f"{K}scheduling-level": "replica",
        f"{K}group-index": "0",
        f"{K}template-revision-hash": REV,
    }
    assert first["metadata"]["ownerReferences"][0] == owner
    plain = first["metadata"]["ownerReferences"][1]
    assert (plain["apiVersion"], plain["kind"], plain["name"]) == ("scheduling.k8s.io/v1beta1", "Workload", W)
    assert "controller" not in plain
    assert first["spec"] == {
        "workloadRef": {"workloadName": W, "templateName": "replica"},
        "schedulingPolicy": {"gang": {"minCount": 3}},
    }


def test_l_50_six_pods_name_their_groups() -> None:
    plan = plan_of(lws(scheduling={}))
    assert [(member.source, member.count, member.group) for member in plan.members] == [
        ("leader duo-0", 1, f"{W}-0-{REV}"),
        ("workers duo-0-1 to duo-0-2", 2, f"{W}-0-{REV}"),
        ("leader duo-1", 1, f"{W}-1-{REV}"),
        ("workers duo-1-1 to duo-1-2", 2, f"{W}-1-{REV}"),
    ]
    assert {member.path for member in plan.members} == {("spec", "leaderWorkerTemplate", "workerTemplate")}


def test_leaders_with_a_template_of_their_own() -> None:
    plan = plan_of(lws(scheduling={}, replicas=1, template={"leaderTemplate": pod_template()}))
    assert [member.path[-1] for member in plan.members] == ["leaderTemplate", "workerTemplate"]


def test_replica_settings_are_carried() -> None:
    high = pod_template(priorityClassName="high")
    tree = {"replica": {**GANG, **RACK, "disruptionMode": {"all": {}}}}
    (template,) = plan_of(lws(scheduling=tree, template={"workerTemplate": high})).templates
    assert (template.name, template.minimum, template.topology) == ("replica", 3, "example.com/rack")
    assert (template.disruption, template.priority_class) == ("all", "high")


def test_replica_basic() -> None:
    plan = plan_of(lws(scheduling={"replica": BASIC}))
    assert minimums(plan) == [None, None]


@pytest.mark.parametrize(("replicas", "minimum", "groups"), [(2, 6, [f"{W}-lws"]), (0, 1, []), (3, 9, [f"{W}-lws"])])
def test_l_52_gang_of_the_whole_set(replicas: int, minimum: int, groups: list[str]) -> None:
    plan = plan_of(lws(scheduling=GANG, replicas=replicas))
    assert [(template.name, template.minimum) for template in plan.templates] == [("lws", minimum)]
    assert names(plan) == groups
    assert sum(member.count for member in plan.members) == replicas * 3


def test_l_52_labels_of_the_whole_set() -> None:
    (group,) = plan_of(lws(scheduling=GANG)).groups
    assert group.labels == {f"{K}name": "duo", f"{K}scheduling-level": "lws"}


def test_l_53_groups_for_leader_and_workers() -> None:
    plan = plan_of(lws(scheduling={"replica": {"leader": BASIC, "worker": GANG}}, startupPolicy="LeaderReady"))
    assert [(template.name, template.minimum) for template in plan.templates] == [("leader", None), ("worker", 2)]
    assert names(plan) == [
        f"{W}-0-leader-{REV}",
        f"{W}-0-worker-{REV}",
        f"{W}-1-leader-{REV}",
        f"{W}-1-worker-{REV}",
    ]
    assert plan.groups[1].labels == {
        f"{K}name": "duo",
        f"{K}scheduling-level": "role",
        f"{K}role": "worker",
        f"{K}group-index": "0",
        f"{K}template-revision-hash": REV,
    }
    assert [(member.count, member.group) for member in plan.members[:2]] == [
        (1, f"{W}-0-leader-{REV}"),
        (2, f"{W}-0-worker-{REV}"),
    ]


def test_a_missing_sibling_is_basic() -> None:
    plan = plan_of(lws(scheduling={"replica": {"leader": GANG}}))
    assert [(template.name, template.minimum) for template in plan.templates] == [("leader", 1), ("worker", None)]


def test_claims_of_a_role() -> None:
    claim = {"name": "nic", "resourceClaimTemplateName": "nic-tpl"}
    obj = lws(
        scheduling={"replica": {"worker": {"resourceClaims": [claim]}}},
        template={"workerTemplate": pod_template(resourceClaims=[claim])},
    )
    leader, worker = plan_of(obj).templates
    assert (leader.claims, [found.name for found in worker.claims]) == ((), ["nic"])


def test_l_55_a_restarted_group_has_groups_of_its_own() -> None:
    """W2: a counter instead of chance; both incarnations may live side by side."""
    rows: list[dict[str, Any]] = [{"index": 0}, {"index": 0, "incarnation": 1}, {"index": 1, "incarnation": 2}]
    plan = plan_of(lws(scheduling={}), instances=rows)
    assert names(plan) == [f"{W}-0-{REV}", f"{W}.1-0-{REV}", f"{W}.2-1-{REV}"]
    assert [group.labels.get(f"{K}incarnation") for group in plan.groups] == [None, "1", "2"]
    roles = plan_of(lws(scheduling={"replica": {"worker": GANG}}), instances=rows[1:2])
    assert names(roles) == [f"{W}.1-0-leader-{REV}", f"{W}.1-0-worker-{REV}"]


def test_l_56_old_groups_keep_their_size() -> None:
    rows: list[dict[str, Any]] = [{"index": 0, "revision": "old", "size": 2}, {"index": 1}, {"index": 2}]
    plan = plan_of(lws(scheduling={}), instances=rows)
    assert names(plan) == [f"{W}-0-old", f"{W}-1-{REV}", f"{W}-2-{REV}"]
    assert minimums(plan) == [2, 3, 3]
    roles = plan_of(lws(scheduling={"replica": {"worker": GANG}}), instances=rows[:2])
    assert minimums(roles) == [None, 1, None, 2]


def test_l_56_gang_of_the_whole_set_counts_each_group_with_its_size() -> None:
    """Issue #1080; the surge group (index 2 of 2 replicas) does not count."""
    rows: list[dict[str, Any]] = [{"index": 0, "revision": "old", "size": 2}, {"index": 1}, {"index": 2}]
    plan = plan_of(lws(scheduling=GANG), instances=rows)
    assert minimums(plan) == [5]


OUTER = {"apiVersion": "outer.example.com/v1", "kind": "Outer", "name": "o", "uid": "u1", "controller": True}
HANDED = {"scheduling.k8s.io/group-template-name": "prefill"}


def child(scheduling: Any = None, parent: str | None = None) -> Object:
    more = {"scheduling.k8s.io/parent-compositepodgroup": parent} if parent else {}
    obj = lws(scheduling=scheduling, annotations=HANDED | more)
    obj["metadata"]["ownerReferences"] = [OUTER]
    return obj


def parent_workload(minimum: int = 3, template: str = "prefill", kind: str = "Outer") -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "outer-wl", "namespace": "default"},
        "spec": {
            "controllerRef": {"apiGroup": "outer.example.com", "kind": kind, "name": "o"},
            "podGroupTemplates": [
                {"name": template, "schedulingPolicy": {"gang": {"minCount": minimum}}, "priorityClassName": "high"}
            ],
        },
    }


def test_l_57_a_late_parent_is_waited_for() -> None:
    done = compiled(child())
    assert (done.plans, done.errors) == ((), ())
    assert done.reason.startswith("ParentWorkloadNotReady")
    other = compiled(child(), others=(parent_workload(kind="Job"),))
    assert other.reason.startswith("ParentWorkloadNotReady")


@pytest.mark.parametrize(("tree", "expected"), [(None, ["0", "1"]), ({}, ["0", "1"]), (GANG, ["lws"])])
def test_l_57_then_its_template_is_used(tree: Any, expected: list[str]) -> None:
    done = compiled(child(tree), others=(parent_workload(),))
    (plan,) = done.plans
    assert check_plan(plan) == []
    assert [name.removeprefix(f"{W}-").removesuffix(f"-{REV}") for name in names(plan)] == expected
    made = render.render(plan, "1.37").objects
    assert [obj["kind"] for obj in made] == ["PodGroup"] * len(expected)
    assert {obj["spec"]["workloadRef"]["workloadName"] for obj in made} == {"outer-wl"}
    assert made[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert made[0]["spec"]["priorityClassName"] == "high"
    assert [owner["kind"] for owner in made[0]["metadata"]["ownerReferences"]] == ["LeaderWorkerSet"]


def test_l_57_the_parent_may_be_further_up() -> None:
    middle = {
        "apiVersion": "outer.example.com/v1",
        "kind": "Outer",
        "metadata": {
            "name": "o",
            "namespace": "default",
            "ownerReferences": [
                {"apiVersion": "outer.example.com/v1", "kind": "Root", "name": "o", "controller": True}
            ],
        },
    }
    assert compiled(child(), others=(middle, parent_workload(kind="Root"))).plans


def test_l_57_a_branch_above_must_exist() -> None:
    done = compiled(child(parent="slice-0"), others=(parent_workload(),))
    assert "slice-0" in done.reason
    branch = {"kind": "CompositePodGroup", "metadata": {"name": "slice-0", "namespace": "default"}}
    (plan,) = compiled(child(parent="slice-0"), others=(parent_workload(), branch)).plans
    assert {group.parent for group in plan.groups} == {"slice-0"}


def test_l_57_an_unknown_template_is_refused() -> None:
    done = compiled(child(), others=(parent_workload(template="decode"),))
    (error,) = done.errors
    assert error.field == "metadata.annotations.scheduling.k8s.io/group-template-name"
    assert "decode" in error.detail


def test_l_57_a_minimum_that_no_group_reaches_is_named() -> None:
    assert compiled(child(), others=(parent_workload(minimum=4),)).warnings


def test_l_58_the_tree_of_several_levels() -> None:
    tree = {**RACK, "replica": {**GANG, "worker": GANG}}
    plan = plan_of(lws(scheduling=tree))
    (root,) = plan.templates
    assert [(found.name, found.minimum) for found in root.walk()] == [
        ("lws", None),
        ("replica", 2),
        ("leader", None),
        ("worker", 2),
    ]
    assert [(group.name, group.parent) for group in plan.groups] == [
        (f"{W}-lws", None),
        (f"{W}-0-{REV}", f"{W}-lws"),
        (f"{W}-1-{REV}", f"{W}-lws"),
        (f"{W}-0-leader-{REV}", f"{W}-0-{REV}"),
        (f"{W}-0-worker-{REV}", f"{W}-0-{REV}"),
        (f"{W}-1-leader-{REV}", f"{W}-1-{REV}"),
        (f"{W}-1-worker-{REV}", f"{W}-1-{REV}"),
    ]
    kinds = [obj["kind"] for obj in objects(lws(scheduling=tree))]
    assert kinds == ["Workload", *["CompositePodGroup"] * 3, *["PodGroup"] * 4]


@pytest.mark.parametrize(
    ("replicas", "policy", "minimum"),
    [(2, {}, 2), (0, {}, 1), (4, {"minGroupCount": 3}, 3), (0, {"minGroupCount": 3}, 3)],
)
def test_l_58_root_minimum(replicas: int, policy: Object, minimum: int) -> None:
    tree = {"schedulingPolicy": {"gang": policy}, "replica": {"worker": GANG}}
    plan = plan_of(lws(scheduling=tree, replicas=replicas))
    assert plan.templates[0].minimum == minimum
    assert bool(plan.groups) == bool(replicas)


def test_l_58_replica_minimum_of_one() -> None:
    tree = {"replica": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}, "worker": GANG}}
    assert plan_of(lws(scheduling=tree)).template("replica").minimum == 1


def test_l_60_on_1_36() -> None:
    workload, *groups = objects(lws(scheduling={}), "1.36")
    assert workload["apiVersion"] == "scheduling.k8s.io/v1alpha2"
    assert [group["spec"]["podGroupTemplateRef"] for group in groups] == [
        {"workload": {"workloadName": W, "podGroupTemplateName": "replica"}}
    ] * 2
    assert groups[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}


def test_l_60_on_1_35() -> None:
    plan = plan_of(lws(scheduling={}), "1.35", instances=[{"index": 0}, {"index": 1, "incarnation": 2}])
    result = render.render(plan, "1.35")
    (workload,) = result.objects
    assert workload["spec"]["podGroups"] == [{"name": "replica", "policy": {"gang": {"minCount": 3}}}]
    links = [render.pod_link(plan, name, "1.35")["workloadRef"] for name in names(plan)]
    assert links == [
        {"name": W, "podGroup": "replica", "podGroupReplicaKey": f"0-{REV}"},
        {"name": W, "podGroup": "replica", "podGroupReplicaKey": f"2-1-{REV}"},
    ]


@pytest.mark.parametrize("minor", ["1.35", "1.36"])
def test_l_60_after_a_size_change_a_new_workload(minor: str) -> None:
    """The old one stays as long as it has a group."""
    rows: list[dict[str, Any]] = [{"index": 0, "revision": "old", "size": 2, "workload": 0}, {"index": 1}]
    old, new = compiled(lws(scheduling={}), minor, instances=rows, newest_workload=1).plans
    assert (old.workload, new.workload) == (W, f"{W}-1")
    assert (minimums(old), minimums(new)) == ([2], [3])
    assert (names(old), names(new)) == ([f"{W}-0-old"], [f"{W}-1-{REV}"])
    assert {owner.name for group in new.groups for owner in group.owners if owner.kind == "Workload"} == {f"{W}-1"}
    (last,) = compiled(lws(scheduling={}), minor, instances=rows[1:], newest_workload=1).plans
    assert last.workload == f"{W}-1"


def test_l_56_the_template_has_the_new_size_before_any_group_has() -> None:
    plan = plan_of(lws(scheduling={}), instances=[{"index": 0, "revision": "old", "size": 2}])
    assert (plan.template("replica").minimum, minimums(plan)) == (3, [2])


def test_names_without_a_uid_are_stable() -> None:
    ctx = context()
    obj = defaulted(lws(scheduling={}), ctx)
    runs = [compile_object(obj, CompileContext(ctx.release, ctx.gates, ctx.options)).plans[0] for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0].workload != W
