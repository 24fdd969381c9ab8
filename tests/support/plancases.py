"""Random questions for `kohort plan`: a cluster, what runs and waits on it, and files that somebody is about to submit.

All kinds, racks, taints, quotas, priorities, budgets. The same case is asked of a plan and tried on a cluster,
whichever that is: the embedded one in virtual time, or a real one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.api.kind import Object
from kohort.sim.cluster import Level, Pool

RACK: Final = "topology.kubernetes.io/rack"
GPU: Final = "nvidia.com/gpu"
DEDICATED: Final = {"key": "example.com/dedicated", "value": "batch", "effect": "NoSchedule"}
CLASSES: Final = {"plan-low": -10, "plan-high": 1000}
_LASTING: Final = {"sim.kohort.dev/run-seconds": "1000000", "sim.kohort.dev/start-seconds": "0.1"}


@dataclass(frozen=True)
class File:
    """What one file holds. `name`: of its workload, with which the names of its pods and groups begin."""

    kind: str
    name: str
    objects: tuple[Object, ...]


@dataclass(frozen=True)
class Case:
    """`ground`: quotas and budgets. `running`: submitted first, and left alone until nothing changes."""

    pools: tuple[Pool, ...]
    ground: tuple[Object, ...]
    running: tuple[File, ...]
    before: tuple[File, ...]
    asked: tuple[File, ...]

    @property
    def submitted(self) -> tuple[File, ...]:
        return (*self.before, *self.asked)


@dataclass
class _Wish:
    """What a workload asks for; each kind writes it down in its way."""

    rng: random.Random
    name: str
    pods: int
    requests: dict[str, str]
    priority: str = ""
    rack: bool = False
    pod: dict[str, Any] = field(default_factory=dict)

    @property
    def topology(self) -> dict[str, Any]:
        return {"schedulingConstraints": {"topology": [{"key": RACK}]}} if self.rack else {}

    def spec(self, **more: Any) -> Object:
        resources = {
            "requests": dict(self.requests),
            "limits": {name: amount for name, amount in self.requests.items() if "/" in name},
        }
        container = {"name": "node", "image": "registry.example/c:1", "resources": resources}
        priority = {"priorityClassName": self.priority} if self.priority else {}
        return {"containers": [container], "terminationGracePeriodSeconds": 1, **priority, **self.pod, **more}

    def template(self, **more: Any) -> Object:
        return {"metadata": {"annotations": dict(_LASTING)}, "spec": self.spec(**more)}

    def named(self, api_version: str, kind: str, spec: Object, name: str = "") -> Object:
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name or self.name}, "spec": spec}


def _pod(wish: _Wish) -> list[Object]:
    made = wish.named("v1", "Pod", wish.spec(restartPolicy="Never"))
    made["metadata"]["annotations"] = dict(_LASTING)
    return [made]


def _group(wish: _Wish) -> list[Object]:
    """By hand: a group and its members, one more than it needs now and then."""
    least = wish.pods - (wish.pods > 2 and wish.rng.random() < 0.3)
    disruption: Object = {"disruptionMode": {"all": {}}} if wish.rng.random() < 0.3 else {}
    priority = {"priorityClassName": wish.priority} if wish.priority else {}
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}, **wish.topology, **disruption, **priority}
    made = [wish.named("scheduling.k8s.io/v1beta1", "PodGroup", spec)]
    for number in range(wish.pods):
        link = {"schedulingGroup": {"podGroupName": wish.name}}
        pod = wish.named("v1", "Pod", wish.spec(restartPolicy="Never", **link), f"{wish.name}-{number}")
        pod["metadata"]["annotations"] = dict(_LASTING)
        made.append(pod)
    return made


def _job(wish: _Wish) -> list[Object]:
    gang: Object = {}
    if wish.rack or wish.rng.random() < 0.8:
        gang = {"scheduling": {"schedulingPolicy": {"gang": {}}, **wish.topology}}
        if wish.rng.random() < 0.3:
            gang["scheduling"]["disruptionMode"] = {"all": {}}
    shape = {"parallelism": wish.pods, "completions": wish.pods, "completionMode": "Indexed"}
    return [wish.named("batch/v1", "Job", {**shape, **gang, "template": wish.template(restartPolicy="Never")})]


def _replicated(wish: _Wish, name: str, pods: int, replicas: int = 1) -> Object:
    shape = {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
    job = {"spec": {**shape, "template": wish.template(restartPolicy="Never")}}
    return {"name": name, "replicas": replicas, "template": job}


def _jobset(wish: _Wish) -> list[Object]:
    gang: Object = {"gangConfig": {"gangMode": "Gang"}}
    if wish.rack:
        gang = {"scheduling": {"schedulingPolicy": {"gang": {}}, **wish.topology}}
    jobs = [_replicated(wish, "w", wish.pods)]
    if wish.pods > 3:
        jobs = [_replicated(wish, "driver", 1), _replicated(wish, "w", (wish.pods - 1) // 2, 2)]
        if wish.rack and wish.rng.random() < 0.5:  # each Job in a rack of its own, together or not at all
            each = {"targetReplicatedJobs": ["w"], "job": wish.topology}
            gang = {"scheduling": {"schedulingPolicy": {"gang": {}}, "replicatedJobs": [each]}}
    return [wish.named("jobset.x-k8s.io/v1alpha2", "JobSet", {**gang, "replicatedJobs": jobs})]


def _trainjob(wish: _Wish) -> list[Object]:
    policy = {"topologyConstraint": {"level": RACK}} if wish.rack else {}
    step = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    job = {"name": "node", "template": {"metadata": step, "spec": {"template": wish.template(restartPolicy="Never")}}}
    spec = {
        "mlPolicy": {"numNodes": 1, "torch": {}},
        "podGroupPolicy": {"workload": policy},
        "template": {"spec": {"replicatedJobs": [job]}},
    }
    api = "trainer.kubeflow.org/v1alpha1"
    ref = {"name": f"{wish.name}-runtime", "kind": "TrainingRuntime"}
    train = {"runtimeRef": ref, "trainer": {"numNodes": wish.pods, "resourcesPerNode": {"requests": wish.requests}}}
    if any("/" in name for name in wish.requests):
        train["trainer"]["resourcesPerNode"] = {  # type: ignore[index]
            "requests": wish.requests,
            "limits": {name: amount for name, amount in wish.requests.items() if "/" in name},
        }
    return [wish.named(api, "TrainingRuntime", spec, ref["name"]), wish.named(api, "TrainJob", train)]


def _leaderworkerset(wish: _Wish) -> list[Object]:
    replicas = 2 if wish.pods > 3 else 1
    scheduling: Object = {"replica": {"schedulingPolicy": {"gang": {}}, **wish.topology}}
    if not wish.rack and wish.rng.random() < 0.4:
        scheduling = {"schedulingPolicy": {"gang": {}}}
    template = {"size": max(wish.pods // replicas, 1), "workerTemplate": wish.template()}
    spec = {"replicas": replicas, "scheduling": scheduling, "leaderWorkerTemplate": template}
    return [wish.named("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)]


def _podcliqueset(wish: _Wish) -> list[Object]:
    def clique(name: str, replicas: int, least: int) -> Object:
        body: Object = {"roleName": name, "replicas": replicas, "minAvailable": least, "podSpec": wish.spec()}
        priority = body["podSpec"].pop("priorityClassName", "")
        assert priority == wish.priority
        return {"name": name, "annotations": dict(_LASTING), "spec": body}

    cliques = [clique("a", max(wish.pods - 1, 1), max(wish.pods - 1 - (wish.rng.random() < 0.3), 1))]
    if wish.pods > 1:
        cliques.append(clique("b", 1, 1))
    template: Object = {"cliques": cliques}
    made: list[Object] = []
    if wish.priority:
        template["priorityClassName"] = wish.priority
    if wish.rack:
        template["topologyConstraint"] = {"topologyName": f"{wish.name}-net", "pack": {"required": "rack"}}
        levels = {"levels": [{"domain": "rack", "key": RACK}]}
        made.append(wish.named("grove.io/v1alpha1", "ClusterTopologyBinding", levels, f"{wish.name}-net"))
    replicas = 2 if wish.rng.random() < 0.2 else 1
    spec = {"replicas": replicas, "template": template}
    return [*made, wish.named("grove.io/v1alpha1", "PodCliqueSet", spec)]


KINDS: Final[dict[str, Callable[[_Wish], list[Object]]]] = {
    "Pod": _pod,
    "PodGroup": _group,
    "Job": _job,
    "JobSet": _jobset,
    "TrainJob": _trainjob,
    "LeaderWorkerSet": _leaderworkerset,
    "PodCliqueSet": _podcliqueset,
}


def _file(rng: random.Random, name: str, pods: int, priorities: Sequence[str]) -> File:
    kind = rng.choice(list(KINDS))
    asks = {"cpu": str(rng.randint(1, 3)), **({GPU: str(rng.randint(1, 2))} if rng.random() < 0.25 else {})}
    wish = _Wish(rng, name, 1 if kind == "Pod" else pods, asks, rng.choice(priorities), rng.random() < 0.3)
    if rng.random() < 0.4:
        wish.pod["tolerations"] = [{**DEDICATED, "operator": "Equal"}]
    if rng.random() < 0.1:
        wish.pod["nodeSelector"] = {RACK: "rack-0"}
    return File(kind, name, tuple(KINDS[kind](wish)))


def _pools(rng: random.Random) -> tuple[Pool, ...]:
    racks = (Level(RACK, 2),)
    cpu = str(rng.choice([4, 6]))
    found = [Pool(name="n", count=rng.choice([2, 4, 6]), capacity={"cpu": cpu, "pods": "20"}, topology=racks)]
    if rng.random() < 0.4:
        found.append(
            Pool(name="own", count=2, capacity={"cpu": cpu, "pods": "20"}, topology=racks, taints=(DEDICATED,))
        )
    if rng.random() < 0.5:
        offers = {"cpu": cpu, "pods": "20", GPU: "4"}
        found.append(Pool(name="gpu", count=rng.choice([2, 3]), capacity=offers, topology=racks))
    return tuple(found)


def _ground(rng: random.Random) -> list[Object]:
    made: list[Object] = []
    if rng.random() < 0.25:
        hard = rng.choice([{"pods": str(rng.randint(4, 14))}, {"requests.cpu": str(rng.randint(6, 24))}])
        made.append(
            {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": hard}},
        )
    return made


def case(seed: int) -> Case:
    rng = random.Random(seed)
    pools, ground = _pools(rng), tuple(_ground(rng))
    running = tuple(_file(rng, f"r{n}", rng.randint(1, 5), ["", "", "plan-low"]) for n in range(rng.randint(0, 3)))
    before = tuple(_file(rng, f"b{n}", rng.randint(1, 4), ["", "plan-low"]) for n in range(rng.choice([0, 0, 1, 2])))
    many = rng.choice([1, 1, 1, 2])
    asked = tuple(_file(rng, f"a{n}", rng.randint(1, 7), ["", "plan-low", "plan-high"]) for n in range(many))
    return Case(pools, ground, running, before, asked)


def classes() -> list[Object]:
    return [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in CLASSES.items()
    ]
