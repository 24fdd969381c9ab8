"""What is accepted with a word of warning (spec jobset 4.2, 4.5, 4.6, and the traps of 1.2)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.jobset.api.building import context, depends, jobset, rj, warnings

from kohort.api.kind import Object
from kohort.kinds.jobset.api.constants import EXCLUSIVE_TOPOLOGY

COMPLETIONS = "spec.replicatedJobs[0].template.spec.completions"


def starts(found: list[str]) -> list[str]:
    return [text.partition(": ")[0] for text in found]


def test_a_plain_gang_has_no_warning() -> None:
    assert warnings(jobset(rj("a", 2, 3), gang="Gang")) == []


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        pytest.param(jobset(rj("a", 1, 2, 3, gang="Gang")), [COMPLETIONS], id="completions above parallelism"),
        pytest.param(
            jobset(rj("m", 2, 7, None, job={"completionMode": "NonIndexed"}, gang="Gang")), [COMPLETIONS], id="18"
        ),
        pytest.param(jobset(rj("a", 1, 2, 3)), [], id="no gang, no starvation"),
        pytest.param(
            jobset(rj("a", 1, 2, 3), scheduling={"schedulingPolicy": {"basic": {}}}), [], id="basic groups do not wait"
        ),
        pytest.param(
            jobset(rj("z", 0, 2, gang="Gang"), rj("k", 1, 2, gang="Gang")), ["spec.replicatedJobs[0]"], id="20"
        ),
        pytest.param(
            jobset(rj("a", 1, 2, gang="Gang"), failurePolicy={"maxRestarts": 1}),
            ["spec.failurePolicy.restartStrategy"],
            id="Recreate",
        ),
        pytest.param(
            jobset(rj("a", 1, 2, gang="Gang"), failurePolicy={"restartStrategy": "BlockingRecreate"}),
            [],
            id="BlockingRecreate",
        ),
        pytest.param(
            jobset(rj("a", 1, 2), rj("b", 1, 2, dependsOn=depends("a")), scheduling={}), ["spec.scheduling"], id="27"
        ),
        pytest.param(
            jobset(rj("a", 1, 2, 3), gang="Gang", managedBy="acme.io/other"), [], id="gangs are not made by us"
        ),
    ],
)
def test_gangs_that_may_starve(obj: Object, fields: list[str]) -> None:
    assert starts(warnings(obj)) == fields


@pytest.mark.parametrize(
    ("job", "field"),
    [
        pytest.param(rj("a", 1, 3, None), "template.spec.completions", id="the completions trap"),
        pytest.param(rj("a", 1, -1), "template.spec.parallelism", id="parallelism -1"),
        pytest.param(
            rj("a", 1, 1, pod={"restartPolicy": "Always"}), "template.spec.template.spec.restartPolicy", id="Always"
        ),
        pytest.param(
            rj("a", 1, 1, pod={"containers": []}), "template.spec.template.spec.containers", id="no container"
        ),
        pytest.param(rj("a-", 1, 1), "name", id="no label"),
    ],
)
def test_jobs_that_no_server_takes(job: Object, field: str) -> None:
    found = [text for text in warnings(jobset(job)) if text.startswith(f"spec.replicatedJobs[0].{field}: ")]
    assert found
    assert found[0].endswith("can be created")


def test_no_job_no_warning() -> None:
    assert warnings(jobset(rj("a", 0, 3, None))) == []


def test_volumes_of_claim_policies_are_there_for_the_job() -> None:
    pod = {"containers": [{"name": "m", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    policies = [{"templates": [{"metadata": {"name": "data"}, "spec": claim}]}]
    assert warnings(jobset(rj("a", 1, 1, pod=pod), volumeClaimPolicies=policies)) == []


@pytest.mark.parametrize(
    ("pattern", "warned"),
    [("([", True), ("a.*b", False), ("(?=x)", True), (r"\pL+", False)],
)
def test_patterns(pattern: str, warned: bool) -> None:
    rule = {"name": "n", "action": "FailJobSet", "onJobFailureMessagePatterns": [pattern]}
    found = warnings(jobset(rj("a", 1, 1), failurePolicy={"rules": [rule]}))
    assert bool(found) is warned


def test_negative_max_restarts_and_exclusive_placement_of_other_jobs() -> None:
    assert starts(warnings(jobset(rj("a", 1, 1), failurePolicy={"maxRestarts": -1}))) == [
        "spec.failurePolicy.maxRestarts"
    ]
    loose: dict[str, Any] = {"job": {"completionMode": "NonIndexed"}, "note": {EXCLUSIVE_TOPOLOGY: "rack"}}
    assert "never lets a pod of a in" in warnings(jobset(rj("a", 1, 1, **loose)))[0]


def test_gang_warnings_need_the_option() -> None:
    obj = jobset(rj("a", 1, 2, 3, gang="Gang"))
    assert warnings(obj)
    ctx = context(without=("GangScheduling",))
    obj["spec"]["replicatedJobs"][0].pop("gangConfig")
    assert warnings(obj, ctx) == []
