"""`make companion`: build the operators, then random workloads on a half-full cluster.

JobSets, LeaderWorkerSets, RayClusters and PyTorchJobs of random sizes come and go, a node is lost and comes back. After
each step the cluster is given time; at the end everything must have been a whole gang or none of it, and whatever
waits must have a reason. The samples that the projects publish are played by tests/kubernetes/test_operators.py.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

from tests.support.operators.bed import WITHOUT_GROUPS, Bed, label_of, pod_spec, told
from tests.support.operators.recipes import OPERATORS

Json = dict[str, Any]
_NAMES = tuple(OPERATORS)


def jobset(name: str, dice: random.Random) -> tuple[Json, int]:
    sizes = [dice.randint(1, 3) for _ in range(dice.randint(1, 3))]
    parts = [
        {
            "name": f"r{index}",
            "template": {"spec": {"parallelism": size, "completions": size, "template": {"spec": pod_spec()}}},
        }
        for index, size in enumerate(sizes)
    ]
    return _body("jobset.x-k8s.io/v1alpha2", "JobSet", name, {"replicatedJobs": parts}), sum(sizes)


def lws(name: str, dice: random.Random) -> tuple[Json, int]:
    size = dice.randint(2, 5)
    pods = {"spec": {**pod_spec(), "restartPolicy": "Always"}}
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": size, "workerTemplate": pods}}
    return _body("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, spec), size


def ray(name: str, dice: random.Random) -> tuple[Json, int]:
    workers = dice.randint(1, 4)
    pods = {"template": {"spec": {**pod_spec(), "restartPolicy": "Always"}}, "rayStartParams": {}}
    group = {**pods, "groupName": "w", "replicas": workers, "minReplicas": workers, "maxReplicas": workers}
    spec = {"headGroupSpec": pods, "workerGroupSpecs": [group]}
    return _body("ray.io/v1", "RayCluster", name, spec), workers + 1


def pytorch(name: str, dice: random.Random) -> tuple[Json, int]:
    workers = dice.randint(1, 4)
    container = {**pod_spec()["containers"][0], "name": "pytorch"}
    template = {"restartPolicy": "OnFailure", "template": {"spec": {"containers": [container]}}}
    replicas = {"Master": {**template, "replicas": 1}, "Worker": {**template, "replicas": workers}}
    return _body("kubeflow.org/v1", "PyTorchJob", name, {"pytorchReplicaSpecs": replicas}), workers + 1


def _body(api: str, kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


_MAKERS = {"jobset": jobset, "leaderworkerset": lws, "raycluster": ray, "pytorchjob": pytorch}
_LABELS = (
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/name",
    "ray.io/cluster",
    "training.kubeflow.org/job-name",
)


class Watcher:
    """What went wrong."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.sizes: dict[str, int] = {}
        self.kinds: dict[str, str] = {}
        self.whole: set[str] = set()  # gangs that have started: what they lose later comes back by itself
        self.faults: list[str] = []

    def look(self) -> dict[str, tuple[int, int]]:
        """Workload -> pods that have a node, pods that wait without a reason. A gang is bound pod by pod, so a part is
        a fault only if it stays one."""
        found = {name: [0, 0] for name in self.sizes}
        for pod in self.bed.pods():
            name = next((label_of(pod, key) for key in _LABELS if label_of(pod, key)), "")
            if name in found and "deletionTimestamp" not in pod["metadata"]:
                found[name][0] += "nodeName" in pod["spec"]
                found[name][1] += "nodeName" not in pod["spec"] and not told(pod)
        return {name: (bound, silent) for name, (bound, silent) in found.items()}

    def settle(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while True:
            looked = self.look()
            self.whole |= {name for name, (bound, _) in looked.items() if bound >= self.sizes[name]}
            parts = [name for name, (bound, _) in looked.items() if 0 < bound < self.sizes[name]]
            partly = [name for name in parts if name not in self.whole]
            silent = [name for name, (_, quiet) in looked.items() if quiet]
            if not partly and not silent:
                return
            if time.monotonic() > end:
                self.faults += [f"{name}: partly started, {looked[name][0]} of {self.sizes[name]}" for name in partly]
                self.faults += [f"{name}: {looked[name][1]} pods wait without a reason" for name in silent]
                return
            time.sleep(1)


def workloads(bed: Bed, number: int, seed: int) -> Watcher:
    dice = random.Random(seed)
    watcher = Watcher(bed)
    for index in range(number):
        kind = dice.choice(sorted(_MAKERS))
        name = f"w{index}"
        body, size = _MAKERS[kind](name, dice)
        watcher.sizes[name], watcher.kinds[name] = size, kind
        bed.apply(body)
        if index % 3 == 2:
            watcher.settle(30)
        started = sorted(watcher.whole & watcher.sizes.keys())
        if len(started) > 6:
            for gone in dice.sample(started, 4):
                bed.delete(watcher.kinds[gone], gone)
                del watcher.sizes[gone]
        if index % 20 == 10:  # a node is lost with its pods, and comes back
            watcher.settle(30)  # whoever is whole now may be a part of itself after it
            bed.env.kubectl("cordon", "virtual-1")
            bed.env.kubectl("delete", "pods", "--field-selector=spec.nodeName=virtual-1", "--wait=false")
        if index % 20 == 16:
            bed.env.kubectl("uncordon", "virtual-1")
    bed.env.kubectl("uncordon", "virtual-1")
    watcher.settle(60)
    _drain(bed, watcher)
    return watcher


def _drain(bed: Bed, watcher: Watcher) -> None:
    """Everything that waits gets its turn when others go: what does not, holds itself up."""
    end = time.monotonic() + 240
    while watcher.sizes and time.monotonic() < end:
        watcher.settle(30)
        for name in sorted(watcher.whole & watcher.sizes.keys()):
            bed.delete(watcher.kinds[name], name)
            del watcher.sizes[name]
        time.sleep(2)
    watcher.faults += [f"{name}: never started" for name in watcher.sizes]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.operators", description=__doc__)
    parser.add_argument("--workloads", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-groups", action="store_true", help="the gates of the Workload API off")
    parser.add_argument("--build-only", action="store_true")
    chosen = parser.parse_args()
    for name in OPERATORS:
        OPERATORS[name].build()
    if chosen.build_only:
        return 0
    with Bed(*_NAMES, gates=WITHOUT_GROUPS if chosen.without_groups else None) as bed:
        bed.run()
        bed.nodes(4, "6")
        watcher = workloads(bed, chosen.workloads, chosen.seed)
    for fault in watcher.faults:
        print(fault)
    told = f"{chosen.workloads} workloads, seed {chosen.seed}: {len(watcher.whole)} started as whole gangs"
    print(f"{told}, {len(watcher.faults)} faults")
    return 1 if watcher.faults else 0


if __name__ == "__main__":
    sys.exit(main())
