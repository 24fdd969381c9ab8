"""Random workloads of operators on a half-full cluster that loses nodes, in virtual time: no gang is started in part,
none is held up for ever by an order of creation, and no pod waits without a reason.

Ten histories with twenty workloads each; more of them: KOHORT_HISTORIES=200. `make companion` asks the same of the real
operators.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from tests.grouping import operators
from tests.grouping.cluster import Cluster
from tests.scheduler.short import create

Json = dict[str, Any]
HISTORIES = int(os.environ.get("KOHORT_HISTORIES", "10"))
WORKLOADS = 20
NODES = 6
PODS: Json = {"spec": {"schedulerName": "kohort", "containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
Make = Callable[[Cluster], list[str]]


@dataclass
class Stage:
    """Pods that an operator makes at once. `minimum` of them start together."""

    make: Make
    minimum: int
    pods: list[str] = field(default_factory=list)
    started: bool = False


@dataclass
class Workload:
    name: str
    stages: list[Stage]
    begun: int = 0  # stages whose pods exist

    @property
    def started(self) -> bool:
        return all(one.started for one in self.stages)

    @property
    def pods(self) -> list[str]:
        return [pod for stage in self.stages for pod in stage.pods]


# ---- what people submit


def jobset(name: str, dice: Random) -> Workload:
    parts = {f"r{number}": dice.randint(1, 3) for number in range(dice.randint(1, 3))}
    jobs = [
        {
            "name": part,
            "replicas": 1,
            "template": {"spec": {"parallelism": size, "completions": size, "template": PODS}},
        }
        for part, size in parts.items()
    ]
    spec: Json = {"replicatedJobs": jobs}
    body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}
    if dice.random() < 0.6:
        return Workload(name, [Stage(lambda found: operators.jobset(found, body), sum(parts.values()))])
    spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    return Workload(name, [Stage(_only(body, part), size) for part, size in parts.items()])


def _only(body: Json, part: str) -> Make:
    return lambda found: operators.jobset(found, body, only=part)


def lws(name: str, dice: Random) -> Workload:
    size = dice.randint(2, 5)
    spec: Json = {"replicas": 1, "leaderWorkerTemplate": {"size": size, "workerTemplate": PODS}}
    api = "leaderworkerset.x-k8s.io/v1"
    body = {"apiVersion": api, "kind": "LeaderWorkerSet", "metadata": {"name": name}, "spec": spec}
    if dice.random() < 0.5:
        return Workload(name, [Stage(lambda found: operators.lws(found, body, 0), size)])
    spec["startupPolicy"] = "LeaderReady"
    leader = Stage(lambda found: operators.lws(found, body, 0, workers=False), 1)
    return Workload(name, [leader, Stage(lambda found: operators.lws(found, body, 0, leader=False), size - 1)])


def ray(name: str, dice: Random) -> Workload:
    replicas, least = dice.randint(1, 4), dice.randint(0, 1)
    group = {"groupName": "w", "replicas": replicas, "minReplicas": least, "maxReplicas": 4}
    spec: Json = {"workerGroupSpecs": [group], "enableInTreeAutoscaling": dice.random() < 0.5}
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}, "spec": spec}
    needed = least if spec["enableInTreeAutoscaling"] else replicas
    return Workload(name, [Stage(lambda found: operators.ray(found, body), 1 + needed)])


def pytorch(name: str, dice: Random) -> Workload:
    workers = dice.randint(1, 4)
    replicas = {"Master": {"replicas": 1}, "Worker": {"replicas": workers}}
    spec: Json = {"pytorchReplicaSpecs": replicas}
    body = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": spec}
    least = workers
    if dice.random() < 0.4:
        least = dice.randint(1, workers)
        spec["elasticPolicy"] = {"minReplicas": least}
    return Workload(name, [Stage(lambda found: operators.kubeflow(found, body, "pytorchReplicaSpecs"), 1 + least)])


def mpi(name: str, dice: Random) -> Workload:
    workers = dice.randint(1, 4)
    replicas = {"Launcher": {"replicas": 1, "template": PODS}, "Worker": {"replicas": workers, "template": PODS}}
    spec = {"mpiReplicaSpecs": replicas, "launcherCreationPolicy": "WaitForWorkersReady"}
    body = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": spec}
    first = Stage(lambda found: operators.kubeflow(found, body, "mpiReplicaSpecs", without="launcher"), workers)
    return Workload(name, [first, Stage(lambda found: [operators.mpi_launcher(found, body)], 1)])


KINDS = (jobset, lws, ray, pytorch, mpi)


# ---- a history


class History:
    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.cluster = Cluster()
        self.cluster.nodes(NODES, "4")
        for number in range(NODES * 2):  # half-full with pods of nobody's
            self.cluster.pod(f"other-{number}")
        self.cluster.settle()
        self.there: list[Workload] = []
        self.lost: list[str] = []
        self.seen: list[str] = []

    def run(self) -> None:
        for number in range(WORKLOADS):
            kind = self.dice.choice(KINDS)
            self.there.append(kind(f"w{number}", self.dice))
            self.seen.append(kind.__name__)
            self.step()
            what = self.dice.random()
            if what < 0.2:
                self.lose_node()
            elif what < 0.4:
                self.node_back()
            elif what < 0.7:
                self.end_one()
            elif what < 0.75:
                self.cluster.restart()
        self.drain()

    def step(self) -> None:
        """Operators make what they make now, the scheduler decides, until nothing more comes of it."""
        again = True
        while again:
            again = False
            for one in self.there:
                while one.begun < len(one.stages) and all(stage.started for stage in one.stages[: one.begun]):
                    stage = one.stages[one.begun]
                    stage.pods = stage.make(self.cluster)
                    one.begun += 1
            self.cluster.settle(60)
            again = self.look()

    def look(self) -> bool:
        """-> whether an operator has something to make now"""
        bound, news = self.cluster.bound, False
        for one in self.there:
            for stage in one.stages[: one.begun]:
                have = sum(pod in bound for pod in stage.pods)
                if stage.started:
                    continue
                assert have == 0 or have >= stage.minimum, f"{one.name}: {have} of {stage.minimum} were started"
                if have:
                    stage.started = news = True
        return news and any(one.begun < len(one.stages) for one in self.there)

    def lose_node(self) -> None:
        """With its pods; operators make those again."""
        names = sorted(self.cluster.objects["node"])
        if len(names) <= NODES - 2:
            return
        node = self.dice.choice(names)
        self.lost.append(node)
        gone = [pod for pod, where in self.cluster.bound.items() if where == node]
        bodies = {pod: deepcopy(self.cluster.objects["pod"][pod]) for pod in gone}
        self.cluster.delete("node", node)
        for pod in gone:
            self.cluster.delete("pod", pod)
        for pod, body in bodies.items():
            del body["spec"]["nodeName"]
            body["metadata"].pop("uid", None)
            body["status"] = {"phase": ""}
            self.cluster.put("pod", pod, body)
        self.step()

    def node_back(self) -> None:
        if self.lost:
            create(self.cluster, {"node": self.lost.pop(), "cpu": "4"})
            self.step()

    def end_one(self) -> None:
        started = [one for one in self.there if one.started]
        if started:
            one = self.dice.choice(started)
            self.there.remove(one)
            for pod in one.pods:
                self.cluster.delete("pod", pod)
            self.step()

    def drain(self) -> None:
        """Everybody gets a turn once others are gone, and whoever waits till then is told why."""
        while self.lost:
            self.node_back()
        while self.there:
            self.cluster.later(30)
            bound = self.cluster.bound
            for pod in self.cluster.objects["pod"]:
                assert pod in bound or self.cluster.told(pod), f"{pod} waits without a reason"
            before = len(self.there)
            self.end_one()
            assert len(self.there) < before, f"held up for ever: {[one.name for one in self.there]}"


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_random_workloads_start_whole_or_wait_with_a_reason(seed: int) -> None:
    history = History(seed)
    history.run()
    assert len(history.seen) == WORKLOADS
