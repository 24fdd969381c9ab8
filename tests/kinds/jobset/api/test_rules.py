"""Rules and defaults that the recordings do not ask in this form: our fields and messages, odd documents, updates."""

from __future__ import annotations

from copy import deepcopy

import pytest
from tests.kinds.jobset.api.building import CTX, changes, completed, context, depends, errors, fields, jobset, rj

from kohort.api import admit
from kohort.api.kind import Object
from kohort.kinds.jobset.api import JOBSET


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        (jobset(rj("a", 1, 1), rj("b", 1, 1, dependsOn=depends("q"))), "spec.replicatedJobs[1].dependsOn[0].name"),
        (jobset(rj("a", 1, 1, dependsOn=[])), "spec.replicatedJobs[0].dependsOn"),
        (
            jobset(rj("a", 1, 1), successPolicy={"operator": "All", "targetReplicatedJobs": ["a", "ghost"]}),
            "spec.successPolicy.targetReplicatedJobs[1]",
        ),
        (jobset(rj("a", 1, 1), coordinator={"replicatedJob": "ghost"}), "spec.coordinator.replicatedJob"),
        (jobset(rj("a", 2, 1), coordinator={"replicatedJob": "a", "jobIndex": 2}), "spec.coordinator.jobIndex"),
        (jobset(rj("a", 1, 3), coordinator={"replicatedJob": "a", "podIndex": 3}), "spec.coordinator.podIndex"),
        (jobset(rj("a", 1, 3, None), coordinator={"replicatedJob": "a"}), "spec.coordinator.replicatedJob"),
        (
            jobset(rj("a", 1, 1), failurePolicy={"rules": [{"name": "n-", "action": "FailJobSet"}]}),
            "spec.failurePolicy.rules[0].name",
        ),
        (
            jobset(rj("a", 1, 1), failurePolicy={"rules": [{"action": "FailJobSet", "onJobFailureReasons": ["No"]}]}),
            "spec.failurePolicy.rules[0].onJobFailureReasons[0]",
        ),
        (
            jobset(rj("a", 1, 1), failurePolicy={"rules": [{"action": "RestartJob"}]}),
            "spec.failurePolicy.rules[0].action",
        ),
        (
            jobset(rj("a", 1, 1), failurePolicy={"restartStrategy": "InPlaceRestart"}),
            "spec.failurePolicy.restartStrategy",
        ),
    ],
)
def test_rules_that_upstream_reports_without_a_field(obj: Object, field: str) -> None:
    assert fields(obj) == [field]


def test_messages_say_what_would_be_accepted() -> None:
    obj = jobset(rj("a", 1, 1), rj("b", 1, 1), rj("c", 1, 1, dependsOn=depends("z")))
    assert "must be an earlier ReplicatedJob, one of: a, b" in errors(obj)[0].message


def test_several_faults_come_together() -> None:
    obj = jobset(rj("a", -1, 1, groupName="G"), managedBy="x", gangConfig={}, successPolicy={"operator": "Some"})
    assert set(fields(obj)) == {
        "spec.replicatedJobs[0].replicas",
        "spec.replicatedJobs[0].groupName",
        "spec.managedBy",
        "spec.gangConfig.gangMode",
        "spec.successPolicy.operator",
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"replicatedJobs": [None]},
        {"replicatedJobs": [{"name": "a", "template": None, "dependsOn": [None]}]},
        {"replicatedJobs": None, "podGroupPolicies": [None], "volumeClaimPolicies": [None]},
        {"replicatedJobs": [], "scheduling": {"replicatedJobs": [None]}},
        {"replicatedJobs": [], "gangConfig": {"gangMode": "Gang"}, "failurePolicy": {"rules": [None]}},
        {"replicatedJobs": [{"template": {"spec": {"template": {"spec": {"containers": [None], "volumes": [None]}}}}}]},
        {"coordinator": {}, "volumeClaimPolicies": [{"templates": [None]}]},
    ],
)
def test_documents_full_of_nulls_get_an_answer(spec: Object) -> None:
    obj = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "n"}, "spec": spec}
    assert admit.create(deepcopy(obj), CTX).code in {201, 422}
    errors(obj)
    JOBSET.warn(completed(obj), CTX)


def test_a_generated_name_counts_with_its_end() -> None:
    obj = jobset(rj("a", 1, 1))
    obj["metadata"] = {"generateName": "x" * 54 + "-", "namespace": "ns"}  # 55, 5 of the server, -a-0: 64
    assert "spec.replicatedJobs[0].name" in fields(obj)
    obj["metadata"]["generateName"] = "y-"
    assert fields(obj) == []


def test_defaults_leave_gangs_alone() -> None:
    specs: list[Object] = [
        {"gangConfig": {"gangMode": "Gang"}},
        {"scheduling": {}},
        {"podGroupPolicies": [{"name": "x"}]},
    ]
    for spec in specs:
        done = completed(jobset(rj("a", 1, 1), **spec))
        assert {name: done["spec"][name] for name in spec} == spec


def test_defaulting_twice_is_defaulting_once() -> None:
    once = completed(jobset({"name": "a", "template": {}}, failurePolicy={"rules": [{"action": "FailJobSet"}]}))
    assert completed(once) == once
    assert once["spec"]["failurePolicy"]["rules"][0]["name"] == "failurePolicyRule0"


# ---- updates


def test_what_may_change_is_said_with_what_did() -> None:
    old = jobset(rj("a", 1, 1), suspend=True)
    new = deepcopy(old)
    new["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["image"] = "tool:2"
    (found,) = changes(new, old)
    assert found.field == "spec.replicatedJobs"
    assert "replicatedJobs[0].template.spec.template.spec.containers[0].image" in found.message
    assert "nodeSelector" in found.message


def test_the_same_manifest_again_is_no_change() -> None:
    """A replace with what was applied: defaults were filled in since."""
    manifest = jobset({"name": "a", "template": {"spec": {"template": {"spec": {"containers": []}}}}})
    assert changes(manifest, completed(manifest)) == []


def test_elastic_needs_its_option() -> None:
    old, new = jobset(rj("g", 2, 4)), jobset(rj("g", 2, 6))
    assert [error.field for error in changes(new, old)] == ["spec.replicatedJobs"]
    assert changes(new, old, context("1.37", "ElasticJobSet")) == []


def test_status_writes_are_not_judged_by_the_spec() -> None:
    obj = completed(jobset(rj("a", 1, 1)))
    obj["metadata"]["resourceVersion"] = "3"
    done = deepcopy(obj)
    done["status"] = {"terminalState": "Completed", "restarts": 1}
    answer = admit.update(done, obj, CTX, subresource="status")
    assert answer.code == 200
    assert answer.object is not None
    assert answer.object["status"]["restarts"] == 1


def test_a_bare_off_in_yaml_is_false() -> None:
    (found,) = errors(jobset({**rj("a", 1, 1), "gangConfig": {"gangMode": False}}))
    assert 'in YAML write "Off" with quotes' in found.message
    assert "quotes" not in errors(jobset({**rj("a", 1, 1), "gangConfig": {"gangMode": True}}))[0].message
