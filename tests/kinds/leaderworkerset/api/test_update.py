"""What may change on a living set (spec lws 1.4, 3.7, 4.4, 4.9)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.leaderworkerset.api.sample import K, context, lws, pod_template, update_errors

from kohort.api.kind import Context, Object


def said(old: Object, patch: Object, ctx: Context | None = None) -> list[str]:
    return [error.field for error in update_errors(old, patch, ctx)]


def spec(**members: Any) -> Object:
    return {"spec": members}


def template(**members: Any) -> Object:
    return {"spec": {"leaderWorkerTemplate": members}}


SUBGROUP = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
CLAIMS = "spec.leaderWorkerTemplate.volumeClaimTemplates"


@pytest.mark.parametrize(
    "patch",
    [
        spec(replicas=5),
        spec(startupPolicy="LeaderReady"),
        spec(networkConfig={"subdomainPolicy": "UniquePerReplica"}),
        spec(rolloutStrategy=None),
        template(size=4),
        template(restartPolicy="None"),
        template(workerTemplate=pod_template(priorityClassName="low")),
        template(leaderTemplate=pod_template()),
        template(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"}),
        {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
    ],
)
def test_l_12_free_changes(patch: Object) -> None:
    assert said(lws(), patch) == []


def test_l_12_subgroups_never_change() -> None:
    with_them = lws(size=4, template={"subGroupPolicy": {"subGroupSize": 2}})
    assert said(with_them, template(subGroupPolicy={"subGroupSize": 4})) == [SUBGROUP]
    assert said(with_them, template(subGroupPolicy=None)) == [SUBGROUP]
    assert said(lws(size=4), template(subGroupPolicy={"subGroupSize": 2})) == [SUBGROUP]
    assert said(with_them, template(size=5, subGroupPolicy={"subGroupPolicyType": "LeaderExcluded"})) == []


def test_l_12_general_rules_hold_on_update() -> None:
    assert said(lws(), spec(replicas=-1)) == ["spec.replicas"]
    assert said(lws(), template(size=0)) == ["spec.leaderWorkerTemplate.size"]


def test_l_25_claim_templates_are_frozen() -> None:
    claim = {"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    old = lws(template={"volumeClaimTemplates": [claim]})
    assert said(old, template(volumeClaimTemplates=None)) == [CLAIMS]
    assert said(lws(), template(volumeClaimTemplates=[claim])) == [CLAIMS]
    assert said(old, spec(replicas=3)) == []


@pytest.mark.parametrize("key", ["exclusive-topology", "subgroup-exclusive-topology"])
def test_topology_annotations_are_frozen(key: str) -> None:
    split = {"subGroupPolicy": {"subGroupSize": 2}}
    old = lws(size=4, annotations={K + key: "rack"}, template=split)
    for value in ("zone", None):
        assert said(old, {"metadata": {"annotations": {K + key: value}}}) == [f"metadata.annotations.{K}{key}"]


# ---- spec.scheduling never changes

GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
RACK = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}


def of(tree: Any) -> Object:
    return lws(scheduling=tree)


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        (None, {}, "spec.scheduling"),
        ({}, None, "spec.scheduling"),
        ({}, {"replica": {"leader": {}}}, "spec.scheduling"),
        ({"replica": GANG}, {"replica": BASIC}, "spec.scheduling.replica.schedulingPolicy"),
        ({"replica": GANG}, {"replica": {**GANG, **RACK}}, "spec.scheduling.replica.schedulingConstraints"),
        (
            {"replica": {**GANG, "disruptionMode": {"all": {}}}},
            {"replica": {**GANG, "disruptionMode": {"single": {}}}},
            "spec.scheduling.replica.disruptionMode",
        ),
        (GANG, {**GANG, "replica": GANG}, "spec.scheduling"),
        (
            {"replica": {"worker": GANG}},
            {"replica": {"worker": BASIC}},
            "spec.scheduling.replica.worker.schedulingPolicy",
        ),
        (
            {"replica": {"worker": GANG}},
            {"replica": {"worker": GANG, "leader": GANG}},
            "spec.scheduling.replica.leader.schedulingPolicy",
        ),
        (
            {"replica": {"worker": GANG}},
            {"replica": {"worker": GANG, "leader": RACK}},
            "spec.scheduling.replica.leader.schedulingConstraints",
        ),
    ],
)
def test_l_54_the_tree_is_frozen(before: Any, after: Any, field: str) -> None:
    old, new = of(before), of(after)
    patch = {"spec": {"scheduling": _patch(old["spec"].get("scheduling"), new["spec"].get("scheduling"))}}
    assert field in said(old, patch)


def _patch(old: Any, new: Any) -> Any:
    """A merge patch that replaces."""
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    return {**dict.fromkeys(old.keys() - new.keys()), **{name: _patch(old.get(name), new[name]) for name in new}}


def test_l_54_priority_class_is_frozen_with_scheduling() -> None:
    patch = template(workerTemplate={"spec": {"priorityClassName": "low"}})
    assert said(of({}), patch) == ["spec.leaderWorkerTemplate.workerTemplate.spec.priorityClassName"]


def test_an_explicit_minimum_follows_the_size() -> None:
    def workers(count: int) -> Object:
        return {"replica": {"worker": {"schedulingPolicy": {"gang": {"minCount": count}}}}}

    patch = {"spec": {"scheduling": workers(3), "leaderWorkerTemplate": {"size": 4}}}
    assert said(of(workers(2)), patch) == []
    assert said(of(workers(2)), template(size=4)) == ["spec.scheduling.replica.worker.schedulingPolicy.gang.minCount"]


def test_l_52_scale_of_a_gang_of_all() -> None:
    assert said(of(GANG), spec(replicas=3)) == []
    for minor in ("1.35", "1.36"):
        assert said(of(GANG), spec(replicas=3), context(minor)) == ["spec.replicas"]
        assert said(of(GANG), template(size=4), context(minor)) == ["spec.leaderWorkerTemplate.size"]
        assert said(of({}), spec(replicas=3), context(minor)) == []
        assert said(of(BASIC), spec(replicas=3), context(minor)) == []


def test_scale_of_a_tree_whose_root_is_a_gang() -> None:
    """minGroupCount of a living CompositePodGroup is frozen (spec workload-api 2.4)."""
    tree = {**GANG, "replica": {"worker": GANG}}
    assert said(of(tree), spec(replicas=3)) == ["spec.replicas"]
    assert said(of(tree), spec(replicas=0)) == []
    explicit = {"schedulingPolicy": {"gang": {"minGroupCount": 1}}, "replica": {"worker": GANG}}
    assert said(of(explicit), spec(replicas=3)) == []
    assert said(of({"replica": {**GANG, "worker": GANG}}), spec(replicas=3)) == []
