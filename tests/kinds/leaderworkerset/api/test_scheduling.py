"""`spec.scheduling` (spec lws 4.4): levels, defaults, all that is refused (L-54, W6, W7, W10)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.leaderworkerset.api.sample import K, context, defaulted, errors, fields, lws, pod_template

from kohort.api import admit
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.kinds.leaderworkerset.api.levels import Shape, shape_of

GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
RACK = {"schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}}
ALL: dict[str, Any] = {"disruptionMode": {"all": {}}}
LEADER = "spec.scheduling.replica.leader"
WORKER = "spec.scheduling.replica.worker"


def shape(tree: Any) -> Shape:
    found = shape_of(defaulted(lws(scheduling=tree)))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("tree", "active", "gangs"),
    [
        ({}, ("replica",), {"replica"}),
        ({"replica": {}}, ("replica",), {"replica"}),
        ({"replica": RACK}, ("replica",), {"replica"}),
        ({"replica": BASIC}, ("replica",), set()),
        (GANG, ("lws",), {"lws"}),
        (ALL, ("lws",), set()),
        ({"replica": {"leader": {}}}, ("role",), set()),
        ({"replica": {"worker": GANG}}, ("role",), {"worker"}),
        ({"replica": {**RACK, "worker": GANG}}, ("replica", "role"), {"worker"}),
        ({**RACK, "replica": {**GANG, "worker": GANG}}, ("lws", "replica", "role"), {"replica", "worker"}),
        ({**GANG, "replica": GANG}, ("lws", "replica"), {"lws", "replica"}),
        ({**GANG, "replica": {}}, ("lws",), {"lws"}),
    ],
)
def test_levels_and_their_defaults(tree: Object, active: tuple[str, ...], gangs: set[str]) -> None:
    found = shape(tree)
    assert (found.active, found.gangs) == (active, gangs)


def test_absent_means_nothing() -> None:
    assert shape_of(defaulted(lws())) is None


def test_the_stored_object_keeps_what_the_user_wrote() -> None:
    assert defaulted(lws(scheduling={}))["spec"]["scheduling"] == {}


VALID = [
    {},
    {"replica": {**GANG, **RACK, **ALL}},
    GANG,
    {"replica": {"leader": BASIC, "worker": GANG}},
    {"replica": {"worker": {"schedulingPolicy": {"gang": {"minCount": 2}}}}},
    {**RACK, "replica": {**GANG, "worker": GANG}},
    {"replica": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}, "leader": {}}},
]


@pytest.mark.parametrize("tree", VALID)
def test_accepted(tree: Object) -> None:
    assert errors(lws(scheduling=tree)) == []


CLAIM = {"name": "nic", "resourceClaimTemplateName": "nic-tpl"}
OTHER = {"name": "nic", "resourceClaimName": "nic-tpl"}
HIGH = {
    "leaderTemplate": pod_template(priorityClassName="high"),
    "workerTemplate": pod_template(priorityClassName="low"),
}
EXCLUSIVE = {f"{K}exclusive-topology": "rack"}

REFUSED: list[tuple[str, Object, list[str]]] = [
    (
        "two members of a union",
        lws(scheduling={"replica": {"schedulingPolicy": {"basic": {}, "gang": {}}}}),
        ["spec.scheduling.replica.schedulingPolicy"],
    ),
    ("no member of a union", lws(scheduling={"schedulingPolicy": {}}), ["spec.scheduling.schedulingPolicy"]),
    (
        "minGroupCount in a flat shape",
        lws(scheduling={"schedulingPolicy": {"gang": {"minGroupCount": 2}}}),
        ["spec.scheduling.schedulingPolicy.gang.minGroupCount"],
    ),
    (
        "minGroupCount of a replica above its two groups",
        lws(scheduling={"replica": {"schedulingPolicy": {"gang": {"minGroupCount": 3}}, "worker": GANG}}),
        ["spec.scheduling.replica.schedulingPolicy.gang.minGroupCount"],
    ),
    (
        "minCount below the full number",
        lws(scheduling={"replica": {"worker": {"schedulingPolicy": {"gang": {"minCount": 1}}}}}),
        [f"{WORKER}.schedulingPolicy.gang.minCount"],
    ),
    (
        "minCount of a leader above 1",
        lws(scheduling={"replica": {"leader": {"schedulingPolicy": {"gang": {"minCount": 2}}}}}),
        [f"{LEADER}.schedulingPolicy.gang.minCount"],
    ),
    (
        "claims above the leaves",
        lws(scheduling={"resourceClaims": [CLAIM], "replica": {"resourceClaims": [CLAIM]}}),
        ["spec.scheduling.resourceClaims", "spec.scheduling.replica.resourceClaims"],
    ),
    (
        "claims that the template does not name",
        lws(scheduling={"replica": {"worker": {"resourceClaims": [CLAIM]}}}),
        [f"{WORKER}.resourceClaims[0]"],
    ),
    (
        "claims of another source",
        lws(
            scheduling={"replica": {"worker": {"resourceClaims": [CLAIM]}}},
            template={"workerTemplate": pod_template(resourceClaims=[OTHER])},
        ),
        [f"{WORKER}.resourceClaims[0]"],
    ),
    ("size 1 with roles", lws(size=1, scheduling={"replica": {"worker": {}}}), ["spec.leaderWorkerTemplate.size"]),
    ("size 1 with levels", lws(size=1, scheduling={**GANG, "replica": GANG}), ["spec.leaderWorkerTemplate.size"]),
    ("W10: replica gang, LeaderReady", lws(scheduling={}, startupPolicy="LeaderReady"), ["spec.startupPolicy"]),
    ("set gang, LeaderReady", lws(scheduling=GANG, startupPolicy="LeaderReady"), ["spec.startupPolicy"]),
    (
        "gang of both roles, LeaderReady",
        lws(scheduling={"replica": {**GANG, "worker": GANG}}, startupPolicy="LeaderReady"),
        ["spec.startupPolicy"],
    ),
    (
        "W6: exclusive-topology with a gang",
        lws(scheduling={}, annotations=EXCLUSIVE),
        [f"metadata.annotations.{K}exclusive-topology"],
    ),
    (
        "exclusive-topology with topology",
        lws(scheduling={"replica": {**BASIC, **RACK}}, annotations=EXCLUSIVE),
        [f"metadata.annotations.{K}exclusive-topology"],
    ),
    (
        "L-49: a group in the template",
        lws(scheduling={}, template={"workerTemplate": pod_template(schedulingGroup={"podGroupName": "pg"})}),
        ["spec.leaderWorkerTemplate.workerTemplate.spec.schedulingGroup"],
    ),
    (
        "two priority classes",
        lws(scheduling={}, template=HIGH),
        ["spec.leaderWorkerTemplate.leaderTemplate.spec.priorityClassName"],
    ),
]


@pytest.mark.parametrize(("why", "obj", "expected"), REFUSED, ids=[row[0] for row in REFUSED])
def test_l_54_refused(why: str, obj: Object, expected: list[str]) -> None:
    found = errors(obj)
    assert [error.field for error in found] == expected
    assert not admit.create(obj, context()).accepted


def test_l_54_all_errors_in_one_answer() -> None:
    obj = lws(
        scheduling={"schedulingPolicy": {"gang": {"minGroupCount": 2}}},
        startupPolicy="LeaderReady",
        annotations=EXCLUSIVE,
        template=HIGH,
    )
    assert len(fields(obj)) == 4


@pytest.mark.parametrize(
    ("tree", "ctx", "expected"),
    [
        ({}, context(without=("WorkloadAwareScheduling",)), ["spec.scheduling"]),
        ({}, context(without=("GenericWorkload",)), ["spec.scheduling"]),
        ({}, context(options=DEFAULT_OPTIONS | {"LWSVolcano"}), ["spec.scheduling"]),
        (
            {"replica": RACK},
            context(without=("TopologyAwareWorkloadScheduling", "CompositePodGroup")),
            ["spec.scheduling.replica.schedulingConstraints"],
        ),
        ({"replica": RACK}, context("1.35"), ["spec.scheduling.replica.schedulingConstraints"]),
        ({"replica": ALL}, context("1.35"), ["spec.scheduling.replica.disruptionMode"]),
        ({"replica": ALL}, context("1.36"), []),
        (
            {"replica": ALL},
            context("1.36", without=("WorkloadAwarePreemption",)),
            ["spec.scheduling.replica.disruptionMode"],
        ),
        ({"replica": {**RACK, **ALL}}, context("1.36"), []),
    ],
    ids=["gate", "API", "W7 volcano", "topology gate", "1.35 topology", "1.35 mode", "1.36 mode", "1.36 gate", "1.36"],
)
def test_l_54_what_the_cluster_cannot_do(tree: Object, ctx: Context, expected: list[str]) -> None:
    assert fields(lws(scheduling=tree), ctx) == expected


@pytest.mark.parametrize(
    "ctx",
    [context(without=("LWSGangOfGangs",)), context(without=("CompositePodGroup",)), context("1.36"), context("1.35")],
    ids=["our gate", "Kubernetes' gate", "1.36", "1.35"],
)
def test_l_58_several_levels_without_composites(ctx: Context) -> None:
    assert fields(lws(scheduling={**GANG, "replica": GANG}), ctx) == ["spec.scheduling"]


def test_l_53_leader_basic_and_worker_gang_start_in_order() -> None:
    tree = {"replica": {"leader": BASIC, "worker": GANG}}
    assert errors(lws(scheduling=tree, startupPolicy="LeaderReady")) == []


def test_leader_ready_with_one_group_of_two() -> None:
    tree = {"replica": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}, "worker": GANG}}
    assert errors(lws(scheduling=tree, startupPolicy="LeaderReady")) == []


def test_w6_exclusive_topology_with_basic() -> None:
    assert errors(lws(scheduling={"replica": BASIC}, annotations=EXCLUSIVE)) == []


def test_claims_that_the_template_names() -> None:
    obj = lws(
        scheduling={"replica": {"worker": {"resourceClaims": [CLAIM]}}},
        template={"workerTemplate": pod_template(resourceClaims=[CLAIM])},
    )
    assert errors(obj) == []


def test_l_57_roles_under_a_parent() -> None:
    obj = lws(scheduling={"replica": {"worker": GANG}}, annotations={"scheduling.k8s.io/group-template-name": "t"})
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": "x/v1", "kind": "Outer", "name": "o", "uid": "u", "controller": True}
    ]
    assert fields(obj) == ["spec.scheduling.replica"]
    del obj["metadata"]["ownerReferences"]
    assert fields(obj) == []


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (lws(scheduling={**GANG, "replica": GANG}), "worker group"),
        (
            lws(scheduling={"schedulingPolicy": {"gang": {"minGroupCount": 5}}, "replica": {"worker": GANG}}),
            "nothing can start",
        ),
        (
            lws(template={"workerTemplate": pod_template(schedulingGroup={"podGroupName": "pg"})}),
            "all 2 replicas join the same group",
        ),
        (
            lws(
                replicas=1,
                startupPolicy="LeaderReady",
                template={"workerTemplate": pod_template(schedulingGroup={"podGroupName": "pg"})},
            ),
            "for ever",
        ),
    ],
    ids=["hollow gang", "out of reach", "L-49 shared by replicas", "L-49 LeaderReady"],
)
def test_warnings(obj: Object, words: str) -> None:
    answer = admit.create(obj, context())
    assert answer.accepted
    assert [text for text in answer.warnings if words in text]
