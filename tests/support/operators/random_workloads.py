"""Workloads of random sizes for operators of other people, and what of each must start together.

A workload is one gang or several: the ReplicatedJobs of a JobSet in order, each group of a LeaderWorkerSet, leader and
workers where the leader goes first.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.support.operators.bed import label_of, pod_spec

Json = dict[str, Any]
_JOBSET: Final = "jobset.sigs.k8s.io/"
_LWS: Final = "leaderworkerset.sigs.k8s.io/"
_TRAINING: Final = "training.kubeflow.org/"
_LABELS: Final = (f"{_JOBSET}jobset-name", f"{_LWS}name", "ray.io/cluster", f"{_TRAINING}job-name")


@dataclass(frozen=True, slots=True)
class Workload:
    """`gangs`: pods that start together, by the name of the gang. `gang_of`: which of them a pod belongs to.
    `replicas`: names of gangs begin with the number of their replica, and each is of use without the others."""

    body: Json
    gangs: dict[str, int]
    gang_of: Callable[[Json], str]
    replicas: bool = False

    @property
    def kind(self) -> str:
        return str(self.body["kind"]).lower()

    @property
    def units(self) -> list[list[str]]:
        """Gangs that need each other."""
        if not self.replicas:
            return [list(self.gangs)]
        numbers = {name.partition("/")[0] for name in self.gangs}
        return [[name for name in self.gangs if name.partition("/")[0] == number] for number in sorted(numbers)]

    @property
    def pods(self) -> int:
        return sum(self.gangs.values())


def workload_of(pod: Json) -> str:
    """The name of the workload that a pod belongs to; empty: none of ours."""
    return next((label_of(pod, key) for key in _LABELS if label_of(pod, key)), "")


def random_workload(name: str, dice: random.Random) -> Workload:
    return dice.choice(_MAKERS)(name, dice)


def _jobset(name: str, dice: random.Random) -> Workload:
    sizes = {f"r{index}": dice.randint(1, 3) for index in range(dice.randint(1, 3))}
    parts = [
        {
            "name": part,
            "template": {"spec": {"parallelism": size, "completions": size, "template": {"spec": pod_spec()}}},
        }
        for part, size in sizes.items()
    ]
    spec: Json = {"replicatedJobs": parts}
    body = _body("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec)
    if dice.random() < 0.25:
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
        return Workload(body, sizes, lambda pod: label_of(pod, f"{_JOBSET}replicatedjob-name"))
    return Workload(body, {"": sum(sizes.values())}, _whole)


def _lws(name: str, dice: random.Random) -> Workload:
    size, replicas = dice.randint(2, 4), dice.randint(1, 2)
    pods = {"spec": {**pod_spec(), "restartPolicy": "Always"}}
    spec: Json = {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": pods}}
    body = _body("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, spec)
    groups = [str(index) for index in range(replicas)]
    if dice.random() < 0.25:
        spec["startupPolicy"] = "LeaderReady"
        gangs = {f"{group}/leader": 1 for group in groups} | {f"{group}/workers": size - 1 for group in groups}
        return Workload(body, gangs, _leader_or_workers, replicas=True)
    return Workload(body, dict.fromkeys(groups, size), lambda pod: label_of(pod, f"{_LWS}group-index"), replicas=True)


def _leader_or_workers(pod: Json) -> str:
    part = "leader" if label_of(pod, f"{_LWS}worker-index") == "0" else "workers"
    return f"{label_of(pod, f'{_LWS}group-index')}/{part}"


def _ray(name: str, dice: random.Random) -> Workload:
    sizes = [dice.randint(1, 3) for _ in range(dice.randint(1, 2))]
    pods = {"template": {"spec": {**pod_spec(), "restartPolicy": "Always"}}, "rayStartParams": {}}
    groups = [
        {**pods, "groupName": f"w{index}", "replicas": size, "minReplicas": size, "maxReplicas": size}
        for index, size in enumerate(sizes)
    ]
    body = _body("ray.io/v1", "RayCluster", name, {"headGroupSpec": pods, "workerGroupSpecs": groups})
    return Workload(body, {"": 1 + sum(sizes)}, _whole)


def _pytorch(name: str, dice: random.Random) -> Workload:
    workers = dice.randint(1, 4)
    replicas = {"Master": _replicas("pytorch", 1), "Worker": _replicas("pytorch", workers)}
    body = _body("kubeflow.org/v1", "PyTorchJob", name, {"pytorchReplicaSpecs": replicas})
    return Workload(body, {"": workers + 1}, _whole)


def _tensorflow(name: str, dice: random.Random) -> Workload:
    servers, workers = dice.randint(1, 2), dice.randint(1, 3)
    replicas = {"PS": _replicas("tensorflow", servers), "Worker": _replicas("tensorflow", workers)}
    return Workload(
        _body("kubeflow.org/v1", "TFJob", name, {"tfReplicaSpecs": replicas}), {"": servers + workers}, _whole
    )


def _mpi(name: str, dice: random.Random) -> Workload:
    workers = dice.randint(1, 4)
    replicas = {"Launcher": _replicas("mpi", 1), "Worker": _replicas("mpi", workers)}
    body = _body("kubeflow.org/v1", "MPIJob", name, {"slotsPerWorker": 1, "mpiReplicaSpecs": replicas})
    return Workload(body, {"": workers + 1}, _whole)


def _replicas(container: str, count: int) -> Json:
    pods = {"spec": {"containers": [{**pod_spec()["containers"][0], "name": container}]}}
    return {"replicas": count, "restartPolicy": "OnFailure", "template": pods}


def _whole(_pod: Json) -> str:
    return ""


def _body(api: str, kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


_MAKERS: Final = (_jobset, _lws, _ray, _pytorch, _tensorflow, _mpi)
