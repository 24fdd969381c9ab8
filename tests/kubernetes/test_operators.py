"""Unmodified operators of other people on a real Kubernetes, with and without the Workload API: samples that their
projects publish wait together with a reason that names the rule, and start together once there is room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.support.operators.bed import WITHOUT_GROUPS, Bed, asking, label_of, sample, told
from tests.support.operators.recipes import missing

from kohort.testing.pytest_plugin import require_binaries

Json = dict[str, Any]
OPERATORS = ("jobset", "lws", "kuberay", "training-operator")


class Sample(NamedTuple):
    operator: str
    label: str  # of its pods
    pods: int
    rule: str  # and what it rests on


SAMPLES = {
    "jobset-coordinator": Sample(
        "jobset", "jobset.sigs.k8s.io/jobset-name", 5, "jobset (JobSet default/coordinator-example)"
    ),
    "leaderworkerset": Sample(
        "lws",
        "leaderworkerset.sigs.k8s.io/name",
        12,
        "leaderworkerset (LeaderWorkerSet default/leaderworkerset-sample)",
    ),
    "raycluster": Sample("kuberay", "ray.io/cluster", 2, "ray (RayCluster default/raycluster-kuberay)"),
    "pytorchjob": Sample(
        "training-operator", "training.kubeflow.org/job-name", 2, "kubeflow (PyTorchJob default/pytorch-simple)"
    ),
}


@pytest.fixture(scope="module", params=["with the Workload API", "without it"])
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    require_binaries("1.37")
    if reason := missing(OPERATORS):
        pytest.skip(reason)
    gates = WITHOUT_GROUPS if request.param == "without it" else None
    with Bed(*OPERATORS, gates=gates) as found:
        found.run()
        found.nodes(1, "1")  # room for one pod of each gang, for none of them whole
        for name, one in SAMPLES.items():
            found.apply(*map(asking, sample(one.operator, name)))
        yield found


def waiting(bed: Bed, label: str, count: int) -> list[Json]:
    """All pods of a workload, each with a word on why it waits."""

    def found() -> list[Json]:
        pods = bed.pods(label)
        return pods if len(pods) == count and all(told(one) for one in pods) else []

    return list(bed.until(found, f"{count} pods with {label} wait with a reason", 120))


def test_samples_wait_together_with_a_reason_and_start_together(bed: Bed) -> None:
    for one in SAMPLES.values():
        for pod in waiting(bed, one.label, one.pods):
            assert "nodeName" not in pod["spec"], "a part of a gang was started"
            assert f"grouped by rule {one.rule}" in told(pod)
    tree = bed.kohort("tree", "jobset", "coordinator-example")
    assert "by rule jobset" in tree
    assert "workers" in tree
    explained = bed.kohort("explain", "raycluster", "raycluster-kuberay")
    assert "by rule ray (RayCluster default/raycluster-kuberay)" in explained
    events = {(one["regarding"]["kind"], one["reason"]) for one in bed.items("events.events.k8s.io")}
    assert ("Pod", "FailedScheduling") in events
    looked = bed.kohort("run", "--once", "--dry-run")
    assert "rule leaderworkerset" in looked
    assert "default/leaderworkerset-sample" in looked

    bed.nodes(3, "8", "more")
    total = sum(one.pods for one in SAMPLES.values())

    def all_run() -> bool:
        pods = bed.pods()
        return sum(one["status"].get("phase") == "Running" for one in pods) == total == len(pods)

    bed.until(all_run, f"{total} pods run", 120)
    assert {label_of(one, "ray.io/node-type") for one in bed.pods("ray.io/cluster")} == {"head", "worker"}
