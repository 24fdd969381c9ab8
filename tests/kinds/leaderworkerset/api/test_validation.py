"""Creation (spec lws 1.1 to 1.3), scenarios L-01 to L-14."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinds.leaderworkerset.api.sample import K, context, defaulted, errors, fields, lws, pod_template

from kohort.api import admit
from kohort.api.kind import Object
from kohort.apimachinery.intstr import scaled
from kohort.kinds.leaderworkerset.api import LEADER_WORKER_SET

ROLLING = "spec.rolloutStrategy.rollingUpdateConfiguration"
SUBGROUP = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"


def rollout(**config: Any) -> Object:
    return lws(replicas=3, rolloutStrategy={"rollingUpdateConfiguration": config})


def subgroups(size: int, count: int | None, kind: str | None = None) -> Object:
    policy = {
        name: value for name, value in (("subGroupSize", count), ("subGroupPolicyType", kind)) if value is not None
    }
    return lws(size=size, template={"subGroupPolicy": policy})


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"replicas": None, "rolloutStrategy": None, "networkConfig": None, "startupPolicy": None},
        {"rolloutStrategy": {}, "networkConfig": {}},
        {"rolloutStrategy": {"rollingUpdateConfiguration": {}}, "networkConfig": {"subdomainPolicy": None}},
        {"rolloutStrategy": {"type": ""}},
    ],
)
def test_l_01_defaults(spec: Object) -> None:
    obj = lws(replicas=None, size=None)
    obj["spec"] |= spec
    assert defaulted(obj)["spec"] == {
        "replicas": 1,
        "startupPolicy": "LeaderCreated",
        "networkConfig": {"subdomainPolicy": "Shared"},
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
        },
        "leaderWorkerTemplate": {
            "size": 1,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "workerTemplate": {
                "metadata": {},
                "spec": {"containers": [{"name": "main", "image": "tool:1", "resources": {}}]},
            },
        },
    }


def test_l_02_words_that_are_replaced() -> None:
    def policy(word: str) -> str:
        found = defaulted(lws(template={"restartPolicy": word}))["spec"]["leaderWorkerTemplate"]["restartPolicy"]
        return str(found)

    assert [policy("Default"), policy("")] == ["None", "RecreateGroupOnPodRestart"]
    assert fields(lws(startupPolicy="")) == ["spec.startupPolicy"]


@pytest.mark.parametrize(
    "obj",
    [
        lws(replicas="2"),  # type: ignore[arg-type]
        lws(size=2**31),
        lws(template={"workerTemplate": pod_template(hostNetwork="yes")}),
    ],
    ids=["string for a number", "int32 overflow", "string for a bool"],
)
def test_l_03_wrong_types(obj: Object) -> None:
    assert admit.create(obj, context()).code == 400


@pytest.mark.parametrize(("number", "fine"), [(-1, False), (0, True), (1_000_000, True), (1_000_001, False)])
def test_l_04_replicas(number: int, fine: bool) -> None:
    assert fields(lws(replicas=number, size=1)) == ([] if fine else ["spec.replicas"])


@pytest.mark.parametrize(
    ("replicas", "size", "expected"),
    [
        (1, 0, ["spec.leaderWorkerTemplate.size"]),
        (2, 2**30, ["spec.replicas"]),
        (1, 2**31 - 1, []),
        (1_000_000, 2147, []),
        (1_000_000, 2148, ["spec.replicas"]),
    ],
)
def test_l_05_pods_in_all(replicas: int, size: int, expected: list[str]) -> None:
    assert fields(lws(replicas=replicas, size=size)) == expected


def test_l_05_three_errors_at_once() -> None:
    obj = lws(size=0, rolloutStrategy={"rollingUpdateConfiguration": {"partition": -1, "maxUnavailable": -1}})
    expected = ["spec.leaderWorkerTemplate.size", f"{ROLLING}.maxUnavailable", f"{ROLLING}.partition"]
    assert fields(obj) == expected


@pytest.mark.parametrize(
    ("unavailable", "surge", "fine"),
    [(0, 0, False), ("0%", "0%", False), ("10%", 0, False), ("34%", 0, True), (0, 1, True), (0, "1%", True)],
)
def test_l_06_something_must_be_able_to_move(unavailable: int | str, surge: int | str, fine: bool) -> None:
    expected = [] if fine else [f"{ROLLING}.maxUnavailable"]
    assert fields(rollout(maxUnavailable=unavailable, maxSurge=surge)) == expected


def test_l_06_nothing_moves_where_nothing_is() -> None:
    nothing = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}
    assert fields(lws(replicas=0, rolloutStrategy=nothing)) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"maxUnavailable": "101%"}, {"maxUnavailable"}),
        ({"maxUnavailable": "2"}, {"maxUnavailable"}),
        ({"maxSurge": "two"}, {"maxSurge"}),
        ({"maxUnavailable": -1}, {"maxUnavailable"}),
        ({"partition": -1}, {"partition"}),
        ({"partition": 7}, set()),
        ({"maxSurge": 9}, set()),
    ],
)
def test_l_07_shares_and_partition(config: Object, expected: set[str]) -> None:
    assert set(fields(rollout(**config))) == {f"{ROLLING}.{name}" for name in expected}


@pytest.mark.parametrize(
    ("value", "up", "expected"), [("34%", False, 1), ("34%", True, 2), (5, False, 5), ("x", True, 0)]
)
def test_shares_are_rounded(value: int | str, up: bool, expected: int) -> None:
    assert scaled(value, 3, up=up) == expected


@pytest.mark.parametrize(
    ("size", "count", "kind", "fine"),
    [
        (8, 4, None, True),
        (9, 4, None, True),
        (8, 3, None, False),
        (4, 5, None, False),
        (1, 2, None, False),
        (4, -2, None, False),
        (8, 4, "LeaderExcluded", False),
        (9, 4, "LeaderExcluded", True),
        (4, 0, None, False),  # L-09
        (4, None, None, False),  # L-09
        (4, None, "LeaderWorker", False),  # L-09
    ],
)
def test_l_08_l_09_subgroups(size: int, count: int | None, kind: str | None, fine: bool) -> None:
    assert set(fields(subgroups(size, count, kind))) == (set() if fine else {SUBGROUP})


@pytest.mark.parametrize("name", ["4u", "a.b", "n" * 64, "Up", "a-"])
def test_l_10_names(name: str) -> None:
    assert set(fields(lws(name))) == {"metadata.name"}


def test_l_10_generated_name() -> None:
    obj = lws()
    obj["metadata"] = {"generateName": "gen-"}
    assert fields(obj) == []


def test_l_11_subgroup_topology_needs_subgroups() -> None:
    key = K + "subgroup-exclusive-topology"
    assert fields(lws(annotations={key: "rack"})) == [f"metadata.annotations.{key}"]
    assert fields(lws(size=4, annotations={key: "rack"}, template={"subGroupPolicy": {"subGroupSize": 2}})) == []


WORKER = "spec.leaderWorkerTemplate.workerTemplate"


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"spec": {}}, f"{WORKER}.spec.containers"),
        ({"spec": {"containers": []}}, f"{WORKER}.spec.containers"),
        ({"spec": {"containers": [{"image": "x"}]}}, f"{WORKER}.spec.containers[0].name"),
        ({"spec": {"containers": [{"name": "main"}]}}, f"{WORKER}.spec.containers[0].image"),
        (pod_template(restartPolicy="Never"), f"{WORKER}.spec.restartPolicy"),
        (
            {**pod_template(), "metadata": {"labels": {f"{K}worker-index": "0"}}},
            f"{WORKER}.metadata.labels[{K}worker-index]",
        ),
        (
            {**pod_template(), "metadata": {"annotations": {f"{K}size": "9"}}},
            f"{WORKER}.metadata.annotations[{K}size]",
        ),
    ],
)
def test_l_13_templates_are_judged_at_admission(template: Object, field: str) -> None:
    assert fields(lws(template={"workerTemplate": template})) == [field]


def test_l_13_leader_template_too() -> None:
    bad = {"spec": {"containers": [{"name": "Not Ok", "image": "x"}]}}
    expected = ["spec.leaderWorkerTemplate.leaderTemplate.spec.containers[0].name"]
    assert fields(lws(template={"leaderTemplate": bad})) == expected


@pytest.mark.parametrize(("length", "warned"), [(51, False), (52, True), (53, True), (55, True)])
def test_l_14_long_names_are_warned_about(length: int, warned: bool) -> None:
    obj = lws("n" * length, replicas=1, size=2)
    answer = admit.create(obj, context())
    assert answer.accepted
    assert bool(answer.warnings) == warned


def test_l_14_each_digit_of_the_index_costs_one() -> None:
    assert admit.create(lws("n" * 51, replicas=10, size=2), context()).warnings == ()
    assert admit.create(lws("n" * 51, replicas=11, size=2), context()).warnings


def test_l_25_claims_are_volumes_of_the_pods() -> None:
    mounts = [{"name": "main", "image": "tool:1", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    template = {"workerTemplate": {"spec": {"containers": mounts}}}
    assert fields(lws(template={**template, "volumeClaimTemplates": [claim]})) == []
    assert fields(lws(template=template)) == [f"{WORKER}.spec.containers[0].volumeMounts[0].name"]


def test_claim_templates_need_names_of_their_own() -> None:
    twice = [{"metadata": {"name": "d"}}, {"metadata": {"name": "d"}}, {"spec": {}}]
    path = "spec.leaderWorkerTemplate.volumeClaimTemplates"
    assert fields(lws(template={"volumeClaimTemplates": twice})) == [
        f"{path}[1].metadata.name",
        f"{path}[2].metadata.name",
    ]


# ---- properties

NUMBERS = st.integers(0, 4)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": NUMBERS,
        "size": st.integers(1, 4),
        "startupPolicy": st.sampled_from(["LeaderCreated", "LeaderReady"]),
        "rolloutStrategy": st.sampled_from([{}, {"rollingUpdateConfiguration": {"maxSurge": "50%"}}]),
        "networkConfig": st.sampled_from([{}, {"subdomainPolicy": "UniquePerReplica"}]),
        "template": st.sampled_from([{}, {"restartPolicy": "Default"}, {"leaderTemplate": pod_template()}]),
        "scheduling": st.sampled_from([None, {}, {"replica": {"worker": {}}}]),
    },
)


@settings(max_examples=50, deadline=None)
@given(SPECS)
def test_defaulting_twice_is_defaulting_once(spec: Object) -> None:
    once = defaulted(lws(**spec))
    twice = defaulted(once)
    assert twice == once
    assert [str(error) for error in errors(lws(**spec))] == [str(error) for error in errors(once)]


def test_registered() -> None:
    from kohort.api.registry import find

    assert find("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet") is LEADER_WORKER_SET
