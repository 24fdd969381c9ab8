"""LeaderWorkerSets whose controller is killed, or refused, at every single write: the end is the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.controllers import kubelet
from tests.controllers.driver import Driver, KilledError
from tests.controllers.simapi import CONTENT, SimApi
from tests.support.sampling import points

from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.controllers.reconcile import Write
from kohort.gang.compile import CompileContext
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.control.controller import leaderworkerset_controller

NS = "lab"
KINDS = ("Workload", "CompositePodGroup", "PodGroup", "Service", "ControllerRevision", "PersistentVolumeClaim")


class World:
    """The simulated API with a kubelet that runs every pod, and lets those that are deleted go a moment later."""

    def __init__(self, minor: str = "1.37") -> None:
        base = Context.of(minor, options=DEFAULT_OPTIONS)
        self.ctx = CompileContext(base.release, base.gates, base.options)
        self.api = SimApi(base, groups={"", "scheduling.k8s.io", constants.GROUP})
        self.driver = Driver(self.api)
        self.start()
        self.api.clock.later(0.5, self._kubelet)

    def start(self) -> None:
        self.driver.start(leaderworkerset_controller(self.ctx))

    def _kubelet(self) -> None:
        for key in [key for key in self.api.objects if key[0] == "Pod"]:
            pod = self.api.objects.get(key)
            if pod is None:
                continue
            if pod["metadata"].get("deletionTimestamp"):
                self._let_go(key, pod)
            elif pod["status"]["phase"] == "Pending":
                kubelet.step(self.api, key, {"kubelet": "bind"})
                kubelet.step(self.api, key, {"kubelet": "run"})
        self.api.clock.later(0.5, self._kubelet)

    def _let_go(self, key: Any, pod: Object) -> None:
        """Only when the controller has had the time to see it: four looks of a kubelet."""
        seen = self._going[pod["metadata"]["uid"]] = self._going.get(pod["metadata"]["uid"], 0) + 1
        if seen > 4 and pod["metadata"].get("deletionGracePeriodSeconds"):
            kubelet.step(self.api, key, {"kubelet": "stop and remove"})

    @property
    def _going(self) -> dict[str, int]:
        found: dict[str, int] = self.__dict__.setdefault("going", {})
        return found

    def create(self, replicas: int, size: int = 2, **spec: Any) -> None:
        template = {"spec": {"containers": [{"name": "main", "image": "tool:1"}]}}
        pods = {"size": size, "workerTemplate": template, **spec.pop("pods", {})}
        whole = {"replicas": replicas, "leaderWorkerTemplate": pods, **spec}
        meta = {"name": "life", "namespace": NS}
        body = {"apiVersion": constants.API_VERSION, "kind": constants.KIND, "metadata": meta, "spec": whole}
        verdict = self.api.create(body, NS)
        assert verdict.object is not None, verdict

    def patch(self, **spec: Any) -> None:
        verdict = self.api.patch((constants.KIND, NS, "life"), {"spec": spec}, CONTENT["merge"])
        assert verdict.object is not None, verdict

    def image(self, name: str) -> None:
        template = {"spec": {"containers": [{"name": "main", "image": name}]}}
        self.patch(leaderWorkerTemplate={"workerTemplate": template})

    def settle(self, seconds: float = 20) -> None:
        """Time passes; a controller that is killed meanwhile is started again a moment later."""
        end = self.api.clock.seconds + seconds
        while self.api.clock.seconds < end:
            try:
                self.api.clock.run(end - self.api.clock.seconds)
            except KilledError:
                end += 3
                self.api.clock.run(0.5)
                self.start()


def plain(world: World) -> None:
    world.create(2, 3)
    world.settle()
    world.api.delete(("Pod", NS, "life-1-2"))
    world.settle()
    world.patch(replicas=1)
    world.settle()


def gang(world: World) -> None:
    world.create(2, 3, scheduling={})
    world.settle()
    world.api.delete(("Pod", NS, "life-0-2"))
    world.settle()
    world.patch(replicas=1)
    world.settle()


def rollout(world: World) -> None:
    rolling = {"maxSurge": 1, "maxUnavailable": 1}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    world.create(3, scheduling={}, rolloutStrategy=strategy)
    world.settle()
    world.image("tool:2")
    world.settle(45)


def partition_and_size(world: World) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": 1}}
    world.create(2, scheduling={}, rolloutStrategy=strategy)
    world.settle()
    world.patch(leaderWorkerTemplate={"size": 3})
    world.settle(25)
    world.api.delete(("Pod", NS, "life-0"))
    world.settle()


def whole_set(world: World) -> None:
    world.create(2, scheduling={"schedulingPolicy": {"gang": {}}})
    world.settle()
    world.patch(replicas=3)
    world.settle()
    world.patch(replicas=0)
    world.settle()


def tree(world: World) -> None:
    policy: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
    world.create(2, 3, scheduling={**policy, "replica": {"leader": {}, "worker": policy}})
    world.settle()
    world.api.delete(("Pod", NS, "life-0-1"))
    world.settle()


def own_services_and_claims(world: World) -> None:
    claim: dict[str, Any] = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"] |= {"resources": {"requests": {"storage": "1Gi"}}}
    pods = {
        "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"},
    }
    world.create(2, networkConfig={"subdomainPolicy": "UniquePerReplica"}, pods=pods)
    world.settle()
    world.patch(replicas=1)
    world.settle()


LIVES: list[Callable[[World], None]] = [
    plain,
    gang,
    rollout,
    partition_and_size,
    whole_set,
    tree,
    own_services_and_claims,
]


def ended(world: World) -> str:
    """Everything but what is random (uids) or tells how it came about (versions, times)."""
    pods = []
    for (kind, _, name), pod in sorted(world.api.objects.items()):
        if kind == "Pod":
            spec = {key: pod["spec"].get(key) for key in ("schedulingGroup", "workloadRef", "subdomain")}
            meta = pod["metadata"]
            pods.append([name, meta["labels"], meta["annotations"], spec, pod["spec"]["containers"][0]["image"]])
    lws = world.api.objects[constants.KIND, NS, "life"]
    status = {key: value for key, value in lws["status"].items() if key != "conditions"}
    told = {one["type"]: one["status"] for one in lws["status"]["conditions"]}
    others = sorted([kind, name, _spec(obj)] for (kind, _, name), obj in world.api.objects.items() if kind in KINDS)
    return json.dumps([pods, status, told.get("Available"), others], sort_keys=True, indent=1)


def _spec(obj: Object) -> Any:
    return obj.get("spec") or (obj["metadata"].get("annotations"), obj.get("data"))


def lived(life: Callable[[World], None], minor: str, number: int = 0, *, refused: bool = False) -> tuple[str, int]:
    world, count = World(minor), 0

    def before(write: Write) -> None:
        nonlocal count
        count += 1
        if count == number and refused:
            world.api.refusals.append((write.verb, write.kind, 1))
        elif count == number:
            world.api.do(write)
            raise KilledError

    world.driver.before_write = before
    life(world)
    return ended(world), count


OLDER = [(gang, "1.35"), (gang, "1.36"), (partition_and_size, "1.36")]
CASES = [*((life, "1.37") for life in LIVES), *OLDER]
IDS = [f"{life.__name__}-{minor}" for life, minor in CASES]


@pytest.mark.parametrize(("life", "minor"), CASES, ids=IDS)
def test_l_59_killed_after_any_write(life: Callable[[World], None], minor: str) -> None:
    expected, writes = lived(life, minor)
    assert '"True"' in expected
    assert writes > 8
    for number in points(writes, life.__name__):
        found, _ = lived(life, minor, number)
        assert found == expected, f"killed after write {number}"


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_refused_at_any_write(life: Callable[[World], None]) -> None:
    expected, writes = lived(life, "1.37")
    for number in points(writes, life.__name__):
        found, _ = lived(life, "1.37", number, refused=True)
        assert found == expected, f"refused at write {number}"
