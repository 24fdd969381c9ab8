"""The definition of JobSet alone, as a server judges by it that does not ask us: refuses much, and nothing too much."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.jobsets import GANG, jobset, rj
from tests.e2e.test_jobset_admission import ACCEPTED, REFUSED, UNDEFINED
from tests.kinds.jobset.api.test_recorded import TRIES, play, recorded
from tests.server.crd.alone import alone, judged

from kohort.api import admit
from kohort.api.kind import Context, Kind, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.server.crd.shipped import shipped

MOST = 2**31 - 1
INDEXED = {"completionMode": "Indexed"}


@pytest.fixture(scope="module")
def definition() -> Kind:
    return alone("jobsets.jobset.x-k8s.io")


@pytest.mark.parametrize("scenario", REFUSED)
def test_what_admission_refuses(definition: Kind, scenario: str) -> None:
    obj, field = REFUSED[scenario]
    found = judged(definition, obj)
    assert (scenario in UNDEFINED) is (not found)
    assert not found or any(f"{field}.".startswith((f"{one}.", f"{one}[")) for one in found), found


@pytest.mark.parametrize("scenario", ACCEPTED)
def test_what_admission_accepts(definition: Kind, scenario: str) -> None:
    assert judged(definition, ACCEPTED[scenario]) == {}


@pytest.mark.parametrize(("name", "index"), TRIES)
def test_nothing_is_refused_that_admission_accepts(definition: Kind, name: str, index: int) -> None:
    attempt = recorded()[name]["tries"][index]
    answer = play(name, attempt)
    if answer.object is None or "patch" in attempt:
        return
    obj = answer.object
    if all(one.get("name") for one in containers(obj)):
        obj["metadata"].setdefault("name", f"{obj['metadata'].get('generateName', '')}xxxxx")
        assert judged(definition, obj) == {}


def containers(obj: Object) -> list[Any]:
    pods = [one["template"]["spec"]["template"]["spec"] for one in obj["spec"].get("replicatedJobs") or ()]
    return [one for pod in pods for member in ("containers", "volumes") for one in pod.get(member) or ()]


def many(number: int, **fields: Any) -> list[Object]:
    return [rj(f"r{one}", **fields) for one in range(number)]


def rule(name: str) -> Object:
    return {"name": name, "action": "FailJobSet"}


# what is wrong -> (JobSet, field)
MORE: dict[str, tuple[Object, str]] = {
    "a name too long": (jobset("t" * 40, rj("a" * 30)), ""),
    "a name that is no label": (jobset("t.t", rj("a")), ""),
    "the first depends": (jobset("t", rj("a", dependsOn=[])), "spec.replicatedJobs"),
    "too many pods": (jobset("t", rj("a", 2, MOST)), "spec.replicatedJobs"),
    "unknown coordinator": (jobset("t", rj("a"), coordinator={"replicatedJob": "b"}), "spec.coordinator"),
    "coordinator's index": (
        jobset("t", rj("a", 2, job=INDEXED), coordinator={"replicatedJob": "a", "jobIndex": 2}),
        "spec.coordinator",
    ),
    "rules of one name": (
        jobset("t", rj("a"), failurePolicy={"rules": [rule("r"), rule("r")]}),
        "spec.failurePolicy.rules",
    ),
    "a rule's name": (jobset("t", rj("a"), failurePolicy={"rules": [rule("1st")]}), "spec.failurePolicy.rules"),
    "in place": (jobset("t", rj("a"), failurePolicy={"restartStrategy": "InPlaceRestart"}), "spec.replicatedJobs"),
    "a target of two": (
        jobset(
            "t",
            *many(3),
            podGroupPolicies=[{"name": one, "targetReplicatedJobs": ["r1", one]} for one in ("r0", "r2")],
        ),
        "spec.podGroupPolicies",
    ),
    "no target": (
        jobset("t", *many(2), scheduling={"replicatedJobs": [{"targetReplicatedJobs": ["r0"]}]}),
        "spec.scheduling.replicatedJobs",
    ),
    "job of two": (
        jobset("t", *many(2), scheduling={"replicatedJobs": [{"targetReplicatedJobs": ["r0", "r1"], "job": {}}]}),
        "spec.scheduling.replicatedJobs[0]",
    ),
    "basic but all": (
        jobset("t", rj("a"), scheduling={"schedulingPolicy": {"basic": {}}, "disruptionMode": {"all": {}}}),
        "spec.scheduling",
    ),
}


def test_two_of_one_name_are_refused_as_a_key_and_by_a_rule(definition: Kind) -> None:
    found = judged(definition, jobset("t", rj("a"), rj("a")))
    assert set(found) == {"spec.replicatedJobs", "spec.replicatedJobs[1]"}


@pytest.mark.parametrize("what", MORE)
def test_more_that_is_refused(definition: Kind, what: str) -> None:
    obj, field = MORE[what]
    assert set(judged(definition, obj)) == {field}
    assert admit.create(obj, Context.of("1.37", options=DEFAULT_OPTIONS), namespace="n").code == 422


def test_lists_longer_than_the_rules_look(definition: Kind) -> None:
    long = many(40)
    target = {"operator": "All", "targetReplicatedJobs": ["r39"]}
    assert judged(definition, jobset("t", *long, successPolicy=target)) == {}
    assert judged(definition, jobset("t", *long, **GANG)) == {}


def test_later(definition: Kind) -> None:
    old = jobset("t", rj("a", 2, **GANG), rj("b"), coordinator={"replicatedJob": "a"})
    jobs = old["spec"]["replicatedJobs"]
    frozen = {"spec.replicatedJobs"}
    for changed in (
        jobs[:1],
        [*jobs, rj("c")],
        [jobs[1], jobs[0]],
        [jobs[0] | {"replicas": 3}, jobs[1]],
        [jobs[0] | {"gangConfig": {"gangMode": "Off"}}, jobs[1]],
        [jobs[0], jobs[1] | GANG],
    ):
        assert set(judged(definition, {**old, "spec": {**old["spec"], "replicatedJobs": changed}}, old)) == frozen
    for free in ({"suspend": True}, {"coordinator": {"replicatedJob": "nobody"}}, {"ttlSecondsAfterFinished": 1}):
        assert judged(definition, {**old, "spec": {**old["spec"], **free}}, old) == {}


@pytest.mark.parametrize("name", ["trainingruntimes", "clustertrainingruntimes"])
def test_a_runtime_may_be_edited(name: str) -> None:
    schema = shipped()[f"{name}.trainer.kubeflow.org"].schema("v1alpha1")
    within = schema["properties"]["spec"]["properties"]["template"]
    assert len(within["properties"]["spec"]["x-kubernetes-validations"]) == 1
    assert "oldSelf" not in str(within)
