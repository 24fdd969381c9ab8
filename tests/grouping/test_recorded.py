"""Objects as the real operators made them (tests/recorded/operators.json, trainjob.json): each sample waits as a whole,
with the rule in its reason, and starts as a whole; what its operator made only then follows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.grouping import operators
from tests.grouping.cluster import Cluster
from tests.support.operators.bed import asking, for_kohort
from tests.support.operators.record import SAMPLES, short

Json = dict[str, Any]
FOLDER = Path(__file__).parents[1] / "recorded"
RECORDED: Json = json.loads((FOLDER / "operators.json").read_text())
TRAINER: Json = json.loads((FOLDER / "trainjob.json").read_text())["cases"]
POOL = "cloud.google.com/gke-nodepool"


class Expected(NamedTuple):
    rule: str
    least: int  # pods, there or to come, without whose room nothing of it starts
    groups: tuple[str, ...] = ()  # whose pods are there from the start, where there are several


EXPECTED = {
    "jobset-coordinator": Expected("jobset (JobSet default/coordinator-example)", 5, ("driver", "workers")),
    "jobset-in-order": Expected("jobset (JobSet default/startup-policy)", 5),
    "jobset-depends-on": Expected("jobset (JobSet default/depends-on)", 4),
    "jobset-exclusive": Expected("jobset (JobSet default/exclusive-placement)", 2),
    "leaderworkerset_v1_leaderworkerset": Expected(
        "leaderworkerset (LeaderWorkerSet default/leaderworkerset-sample)", 4, ("0", "1", "2")
    ),
    "leaderworkerset_multi_template": Expected(
        "leaderworkerset (LeaderWorkerSet default/leaderworkerset-multi-template)", 4, ("0", "1", "2")
    ),
    "leaderworkerset_exclusiveplacement": Expected(
        "leaderworkerset (LeaderWorkerSet default/leaderworkerset-sample)", 4, ("leader", "leader", "leader")
    ),
    "ray-cluster.sample": Expected("ray (RayCluster default/raycluster-kuberay)", 2, ("head", "workergroup")),
    "ray-cluster.complete": Expected("ray (RayCluster default/raycluster-complete)", 2, ("head", "small-group")),
    "ray-cluster.autoscaler": Expected("ray (RayCluster default/raycluster-autoscaler)", 1),
    "ray-cluster.kai-scheduler": Expected("ray (RayCluster default/raycluster-sample)", 3, ("head", "worker")),
    "ray-job.sample": Expected("ray (RayCluster default/rayjob-sample-", 2, ("head", "small-group")),
    "ray-service.sample": Expected("ray (RayCluster default/rayservice-sample-", 2, ("head", "small-group")),
    "pytorch/elastic/echo/echo": Expected("kubeflow (PyTorchJob default/elastic-example-echo)", 1),
    "tensorflow/simple": Expected("kubeflow (TFJob default/tfjob-simple)", 2),
    "mpi/tensorflow-mnist": Expected("kubeflow (MPIJob default/tensorflow-mnist)", 3),
    "jax/cpu-demo/demo": Expected("kubeflow (JAXJob default/jaxjob-simple)", 2),
    "xgboost/xgboostjob": Expected("kubeflow (XGBoostJob default/xgboost-dist-iris-test-train)", 3),
    "paddlepaddle/simple-cpu": Expected("kubeflow (PaddleJob default/paddle-simple-cpu)", 2),
}


def test_every_recorded_sample_is_played() -> None:
    assert set(RECORDED) == set(EXPECTED) == {short(name) for names in SAMPLES.values() for name in names}


def play(found: Cluster, which: str, stage: str) -> list[str]:
    known = {(one["kind"], one["metadata"]["name"]): one for one in RECORDED[which]["owners"]}
    for body in known.values():
        found.own({**body, "metadata": _meta(body["metadata"], known)})
    for pod in RECORDED[which][stage]:
        owner = pod.get("owner")
        above = known.get((owner["kind"], owner["name"])) if owner else None
        if owner and above is None:  # a pod: the leader of a LeaderWorkerSet owns its StatefulSet
            above = {**owner, "metadata": {"name": owner["name"], "uid": owner["name"]}}
        found.pod(pod["name"], above, pod.get("labels"), pod.get("annotations"))
    return [pod["name"] for pod in RECORDED[which][stage]]


def _meta(meta: Json, known: dict[tuple[str, str], Json]) -> Json:
    owner = meta.get("owner")
    if owner is None:
        return dict(meta)
    above = known.get((owner["kind"], owner["name"]), {"metadata": {}})
    return {**meta, "ownerReferences": [{**owner, "uid": above["metadata"].get("uid", ""), "controller": True}]}


@pytest.mark.parametrize("which", EXPECTED)
def test_a_sample_waits_as_a_whole_and_starts_as_a_whole(which: str) -> None:
    expected, found = EXPECTED[which], Cluster()
    if expected.least > 1:
        found.nodes(1, str(expected.least - 1), **{POOL: "small"})
    first = play(found, which, "first")
    found.settle(30)
    assert found.bound == {}
    for pod in first:
        assert f"grouped by rule {expected.rule}" in found.told(pod)
    assert tuple(name.rpartition("/")[2] for name in found.tree() if "/" in name) == expected.groups or len(
        found.tree()
    ) == len(expected.groups or ("one",))
    for number in range(3):
        found.nodes(1, "64", **{POOL: f"large-{number}"})
    found.settle(30)
    assert set(found.bound) == set(first)
    later = play(found, which, "later")
    found.settle(30)
    assert set(found.bound) == {*first, *later}


# ---- Kubeflow Trainer: the JobSets that it made, with pods as JobSet makes them

TRAINED = [  # case, JobSet, rule, pods without whose room nothing starts
    ("r-torch", "eight", "trainjob (TrainJob default/eight, its JobSet eight)", 8),
    ("r-jax", "four", "trainjob (TrainJob default/four, its JobSet four)", 4),
    ("r-mpi", "twelve", "trainjob (TrainJob default/twelve, its JobSet twelve)", 13),
    ("r-mpi-depends", "d", "trainjob (TrainJob default/d, its JobSet d)", 3),  # the launcher follows, beside the nodes
    ("r-init", "given", "trainjob (TrainJob default/given, its JobSet given)", 4),  # trainers follow, when these ended
    ("r-coscheduling", "c", "scheduler-plugins (PodGroup default/c", 6),
    ("r-volcano", "v", "volcano (PodGroup default/v", 4),
]


def trained(case: str, name: str) -> list[Json]:
    """The JobSet of a TrainJob, and the group of another scheduler that Trainer made with it."""
    found = {one["kind"]: one for one in TRAINER[case]["objects"] if one["name"] == name}
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": name, "uid": "t"}
    meta = {"name": name, "ownerReferences": [{**owner, "controller": True}]}
    made = [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": found.pop("JobSet")["spec"]}]
    for kind in (kind for kind in found if kind.endswith(" PodGroup")):
        made.append({"apiVersion": kind.partition(" ")[0], "kind": "PodGroup", "spec": found[kind]["spec"]})
    return [{**asking(for_kohort(one)), "metadata": dict(meta)} for one in made]


@pytest.mark.parametrize(("case", "name", "rule", "least"), TRAINED)
def test_a_trainjob_as_trainer_makes_it(case: str, name: str, rule: str, least: int) -> None:
    found, (body, *groups) = Cluster(), trained(case, name)
    found.nodes(1, str(least - 1))
    for one in groups:
        found.own(one)
    parts = body["spec"]["replicatedJobs"]
    first, later = ([one["name"] for one in parts if bool(one.get("dependsOn")) is after] for after in (False, True))
    pods = [pod for part in first for pod in operators.jobset(found, body, only=part)]
    found.settle(30)
    assert found.bound == {}
    for pod in pods:
        assert f"grouped by rule {rule}" in found.told(pod)
    found.nodes(1, "64")
    found.settle(30)
    assert set(found.bound) == set(pods)
    pods += [pod for part in later for pod in operators.jobset(found, body, only=part)]
    found.settle(30)
    assert set(found.bound) == set(pods)
