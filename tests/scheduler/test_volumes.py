"""Claims that wait for their pods' nodes: which nodes, which volumes; nothing is bound before the volumes are there."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.scheduler.short import create, pod_body
from tests.scheduler.sim import SPACE, Sim
from tests.scheduler.test_binder import Pods

from kohort.kube.clock import VirtualClock
from kohort.scheduler.binder import Binder
from kohort.scheduler.status import Writes
from kohort.scheduler.volumes import SELECTED_NODE

HOST = "kubernetes.io/hostname"
WAIT = {"volumeBindingMode": "WaitForFirstConsumer"}
LOCAL: dict[str, Any] = {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", **WAIT}
CLOUD: dict[str, Any] = {"metadata": {"name": "cloud"}, "provisioner": "disks.example.com", **WAIT}
Json = dict[str, Any]


def cluster(**nodes: str) -> Sim:
    sim = Sim()
    for name, cpu in nodes.items():
        create(sim, {"node": name, "cpu": cpu, "labels": {"zone": name[0]}})
    for body in (LOCAL, CLOUD):
        sim.core.cache.storage.set_class(body["metadata"]["name"], body)
    return sim


def volume(sim: Sim, name: str, node: str, size: str = "10Gi", **spec: Any) -> Json:
    rule = {"key": HOST, "operator": "In", "values": [node]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    body: Json = {
        "metadata": {"name": name, "uid": f"pv-{name}", "resourceVersion": "1"},
        "spec": {"storageClassName": "local", "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Available"},
    }
    body["spec"] |= {"nodeAffinity": affinity, **spec}
    sim.core.cache.storage.set_volume(name, body)
    return body


def claim(sim: Sim, name: str, storage_class: str = "local", size: str = "5Gi", **spec: Any) -> Json:
    wanted = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"], **spec}
    body = {"spec": {**wanted, "resources": {"requests": {"storage": size}}}}
    return sim.put("claim", name, body)


def gang(sim: Sim, *claims: str, cpu: str = "1") -> None:
    create(sim, {"group": "g", "gang": len(claims)})
    for number, name in enumerate(claims):
        body = pod_body({"pod": f"g-{number}", "in": "g", "cpu": cpu})
        body["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        sim.put("pod", f"g-{number}", body)


def test_a_single_pod_sees_the_claims_that_came_before_it() -> None:
    sim = cluster(n0="4", n1="4")
    volume(sim, "disk", "n1")
    claim(sim, "c")
    sim.put("pod", "p", pod_body({"pod": "p", "cpu": "1", "claim": "c"}))
    step = sim.core.step(0.0)
    assert step is not None
    assert step.decision is not None
    assert list(step.decision.assignments.values()) == ["n1"]


def decided(sim: Sim) -> dict[str, str]:
    """Pod -> node of the next decision."""
    step = sim.core.step(sim.now)
    assert step is not None
    assert step.decision is not None
    return {step.decision.members[uid].pod.metadata.name: node for uid, node in step.decision.assignments.items()}


def reason(sim: Sim) -> tuple[str, str]:
    (one,) = sim.core.pending()
    assert one.explanation is not None
    return one.reason, "; ".join(str(cause) for cause in one.explanation.causes)


def test_pods_go_where_free_volumes_are() -> None:
    sim = cluster(a="8", b="8", c="8")
    volume(sim, "pv-b", "b")
    volume(sim, "pv-c", "c")
    claim(sim, "c0")
    claim(sim, "c1")
    gang(sim, "c0", "c1")
    assert sorted(decided(sim).values()) == ["b", "c"]


def test_one_volume_is_not_promised_twice() -> None:
    """Three claims, three volumes, two of them on one node: each pod beside its own."""
    sim = cluster(a="8", b="8", c="8")
    for name, node in (("v1", "a"), ("v2", "a"), ("v3", "b")):
        volume(sim, name, node)
    for number in range(3):
        claim(sim, f"c{number}")
    gang(sim, "c0", "c1", "c2")
    assert sorted(decided(sim).values()) == ["a", "a", "b"]


@pytest.mark.parametrize(
    "spec",
    [
        {"size": "4Gi"},
        {"storageClassName": "other"},
        {"accessModes": ["ReadOnlyMany"]},
        {"volumeMode": "Block"},
        {"claimRef": {"namespace": SPACE, "name": "another"}},
    ],
)
def test_a_volume_that_does_not_fit_the_claim_is_none(spec: Json) -> None:
    sim = cluster(a="8")
    volume(sim, "pv", "a", **spec)
    claim(sim, "c0")
    gang(sim, "c0")
    sim.settle()
    said, cause = reason(sim)
    assert said == "NoMatchingNode"
    assert "default/c0 finds no free volume of class 'local' that fits, and nobody provisions one" in cause


def test_a_volume_that_comes_wakes_the_gang() -> None:
    sim = cluster(a="8")
    claim(sim, "c0")
    gang(sim, "c0")
    sim.settle()
    assert sim.bound == {}
    volume(sim, "pv", "a")
    sim.settle(3.0)
    assert sim.bound == {"g-0": "a"}


def test_a_provisioned_class_says_where() -> None:
    sim = cluster(a="8", b="8")
    topology = {"allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}]}
    sim.core.cache.storage.set_class("cloud", {**CLOUD, **topology})
    claim(sim, "c0", "cloud")
    gang(sim, "c0")
    assert decided(sim) == {"g-0": "b"}


def test_a_claim_that_was_given_a_node_before_a_restart_stays_there() -> None:
    sim = cluster(a="8", b="8")
    body = claim(sim, "c0", "cloud")
    body["metadata"]["annotations"] = {SELECTED_NODE: "b"}
    sim.tell("claim", "c0")
    gang(sim, "c0")
    assert decided(sim) == {"g-0": "b"}


def devices(sim: Sim, allocation: Json | None) -> None:
    status = {} if allocation is None else {"allocation": allocation}
    sim.core.cache.storage.set_devices("default/gpu", {"metadata": {"name": "gpu"}, "status": status})


def test_devices_are_not_allocated_here_and_that_is_said() -> None:
    sim = cluster(a="8", b="8")
    devices(sim, None)
    create(sim, {"group": "g", "gang": 1})
    sim.objects["group"]["g"]["spec"]["resourceClaims"] = [{"name": "x", "resourceClaimTemplateName": "t"}]
    sim.objects["group"]["g"]["status"]["resourceClaimStatuses"] = [{"name": "x", "resourceClaimName": "gpu"}]
    sim.tell("group", "g")
    body = pod_body({"pod": "g-0", "in": "g", "cpu": "1"})
    body["spec"]["resourceClaims"] = [{"name": "x", "resourceClaimTemplateName": "t"}]
    sim.put("pod", "g-0", body)
    sim.settle()
    said = "ResourceClaim default/gpu has no devices allocated, and Kohort does not allocate devices"
    assert reason(sim) == ("NoMatchingNode", said)
    rule = {"key": HOST, "operator": "In", "values": ["b"]}
    devices(sim, {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}})
    sim.settle(3.0)
    assert sim.bound == {"g-0": "b"}


def test_a_claim_from_a_template_that_is_not_made_yet() -> None:
    sim = cluster(a="8")
    body = pod_body({"pod": "p", "cpu": "1"})
    body["spec"]["resourceClaims"] = [{"name": "x", "resourceClaimTemplateName": "t"}]
    sim.put("pod", "p", body)
    sim.settle()
    assert "ResourceClaim default/x (not made yet) does not exist" in reason(sim)[1]


# ---- carried out


class Things:
    """Volumes or claims of a simulated API."""

    def __init__(self) -> None:
        self.patches: dict[str, Json] = {}

    async def patch(self, name: str, body: Json, namespace: str = "", **_: Any) -> None:
        self.patches[name] = body


class Bench:
    def __init__(self) -> None:
        self.sim = cluster(a="8", b="8")
        self.clock = VirtualClock()
        self.jitter = random.Random(1)
        self.pods, self.volumes, self.claims = Pods(self.sim), Things(), Things()
        self.written: list[Writes] = []
        self.binder = Binder(
            self.sim.core,
            self,  # type: ignore[arg-type]
            self.sim.settings,
            self.clock,
            report=self.written.append,
            wake=lambda: None,
        )

    def resource(self, name: str) -> Any:
        return {"pods": self.pods, "persistentvolumes": self.volumes, "persistentvolumeclaims": self.claims}[name]

    def decide(self) -> None:
        step = self.sim.core.step(self.clock.monotonic())
        assert step is not None
        assert step.decision is not None
        self.binder.bind(step.decision)

    def controller_binds(self, name: str, volume_name: str) -> None:
        self.sim.objects["claim"][name]["spec"]["volumeName"] = volume_name
        self.sim.tell("claim", name)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.binder.close()


async def test_static_volumes_first_then_all_pods(bench: Bench) -> None:
    sim = bench.sim
    for name in ("a", "b"):
        volume(sim, f"pv-{name}", name)
    for number in range(2):
        claim(sim, f"c{number}")
    gang(sim, "c0", "c1")
    bench.decide()
    await bench.clock.advance(5.0)
    assert sim.bound == {}
    given = {body["spec"]["claimRef"]["name"]: name for name, body in bench.volumes.patches.items()}
    assert given.keys() == {"c0", "c1"}
    bench.controller_binds("c0", given["c0"])
    await bench.clock.advance(5.0)
    assert sim.bound == {}, "a gang is not started while one of its volumes is missing"
    bench.controller_binds("c1", given["c1"])
    await bench.clock.advance(5.0)
    assert {pod: f"pv-{node}" for pod, node in sim.bound.items()} == {"g-0": given["c0"], "g-1": given["c1"]}


async def test_a_provisioner_is_told_the_node(bench: Bench) -> None:
    claim(bench.sim, "c0", "cloud")
    gang(bench.sim, "c0")
    bench.decide()
    await bench.clock.advance(1.0)
    (patch,) = bench.claims.patches.values()
    node = patch["metadata"]["annotations"][SELECTED_NODE]
    volume(bench.sim, "made", node)
    bench.controller_binds("c0", "made")
    await bench.clock.advance(1.0)
    assert bench.sim.bound == {"g-0": node}


async def test_volumes_that_do_not_come_start_nothing_and_are_told(bench: Bench) -> None:
    claim(bench.sim, "c0", "cloud")
    gang(bench.sim, "c0")
    bench.decide()
    await bench.clock.advance(700.0)
    assert bench.sim.bound == {}
    said = [patch.condition.message for writes in bench.written for patch in writes.patches if patch.condition]
    assert said == ["volumes: default/c0: no volume was bound within 600 s"]
    (one,) = bench.sim.core.pending()
    assert one.reason == "BindingRefused"


async def test_a_volume_made_elsewhere_sends_the_gang_back(bench: Bench) -> None:
    """Two pods share a claim that is provisioned for the node of the first: only once it is there is known where."""
    claim(bench.sim, "c0", "cloud")
    gang(bench.sim, "c0", "c0", cpu="8")
    bench.decide()
    await bench.clock.advance(1.0)
    volume(bench.sim, "made", "a")
    bench.controller_binds("c0", "made")
    await bench.clock.advance(1.0)
    assert bench.sim.bound == {}
