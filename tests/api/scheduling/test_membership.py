"""A pod's membership where no recorded case reaches: pod templates, and the functions alone."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api.kind import Context
from kohort.api.scheduling import membership

NEW, OLD = Context.of("1.37"), Context.of("1.35")


def test_pod_12_the_rule_of_a_pod_template_has_its_path() -> None:
    found = membership.check({"schedulingGroup": {}}, "spec.template.spec", NEW)
    assert [(error.kind.name, error.field) for error in found] == [
        ("INVALID", "spec.template.spec.schedulingGroup.podGroupName")
    ]


@pytest.mark.parametrize("spec", [{}, {"schedulingGroup": None}, {"workloadRef": {"name": ""}}])
def test_no_group_no_rule(spec: dict[str, Any]) -> None:
    assert membership.check(spec, "spec", NEW) == []


def test_s7_85_eviction_responders_only_with_their_gate() -> None:
    spec = {"schedulingGroup": {"podGroupName": "ring"}, "evictionResponders": [{"name": "x"}]}
    assert membership.check(spec, "spec", NEW) == []
    gates = [*NEW.gates, "EvictionRequestAPI"]
    found = membership.check(spec, "spec", Context.of("1.37", gates))  # type: ignore[arg-type]
    assert [(error.kind.name, error.field) for error in found] == [("FORBIDDEN", "spec.schedulingGroup")]


def test_1_35_an_empty_replica_key_is_none() -> None:
    spec = {"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": ""}}
    membership.tidy(spec, OLD)
    assert spec == {"workloadRef": {"name": "w", "podGroup": "g"}}
    assert membership.check(spec, "spec", OLD) == []
