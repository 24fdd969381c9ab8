"""Budgets, Services, claims, volumes and autoscalers, given to kube-controller-manager 1.37 and to our controllers.

What their statuses say at the end of each act must be equal; names that are made up, uids, times and versions aside.
Pods are bound and made ready by hand, so that both have the same ones.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kohort.api.kind import Object
from kohort.controllermanager import registry
from kohort.controllers.runtime import Runtime
from kohort.kube.client import Client
from kohort.kube.clock import LoopClock
from kohort.server import timestamps
from kohort.server.controllers import PodTermination
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.testing.environment import Environment
from kohort.testing.virtual import VirtualLoop

NS = "acts"
ZONE = "topology.kubernetes.io/zone"
KINDS = (
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "Endpoints"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
)
# What is not compared: made up, of the moment, or said to be different in docs/differences.md (finalizers).
DROPPED = frozenset(
    (
        "uid", "resourceVersion", "creationTimestamp", "managedFields", "generateName", "generation", "finalizers",
        "lastTransitionTime", "lastScaleTime", "lastPhaseTransitionTime", "disruptedPods", "observedGeneration",
        "endpoints.kubernetes.io/last-change-trigger-time", "deletionTimestamp", "deletionGracePeriodSeconds",
    )
)  # fmt: skip
CALM = 2.0


# ---- the objects


def meta(name: str, **more: Any) -> Object:
    return {"name": name, "namespace": NS, **more}


def pod(name: str, app: str = "web", port: int = 8080) -> Object:
    container = {"name": "c", "image": "nginx", "ports": [{"name": "http", "containerPort": port}]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta(name, labels={"app": app}), "spec": spec}


def replicas(name: str, count: int) -> Object:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta(name), "spec": spec}


def budget(name: str, app: str = "web", **spec: Any) -> Object:
    given = {"selector": {"matchLabels": {"app": app}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta(name), "spec": given}


def service(name: str, **spec: Any) -> Object:
    given = {"selector": {"app": "web"}, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta(name, labels={"team": "x"}), "spec": given}


def claim(name: str, size: str = "1Gi", **spec: Any) -> Object:
    given = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta(name), "spec": given}


def volume(name: str, size: str, policy: str = "Retain", **spec: Any) -> Object:
    given = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "hostPath": {"path": "/data"},
        "persistentVolumeReclaimPolicy": policy,
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": given}


def storage_class(name: str, provisioner: str, mode: str = "Immediate") -> Object:
    given = {"provisioner": provisioner, "volumeBindingMode": mode}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, **given}


def autoscaler(name: str, target: str, least: int, most: int) -> Object:
    ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": target}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    spec = {"scaleTargetRef": ref, "minReplicas": least, "maxReplicas": most}
    spec["metrics"] = [{"type": "Resource", "resource": cpu}]
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta(name), "spec": spec}


# ---- the acts


async def opening(client: Client) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {ZONE: "z1"}}}
    await client.kind("v1", "Node").create(node)
    made = [pod(f"p{number}", port=port) for number, port in ((1, 8080), (2, 8080), (3, 9090), (4, 8080))]
    made += [pod("a1", app="alone"), pod("a2", app="alone"), pod("o1", app="owned")]
    made[-1]["metadata"]["ownerReferences"] = [await _owner(client)]
    for number, one in enumerate(made):
        await _runs(client, one, f"10.1.0.{number + 1}", ready=one["metadata"]["name"] not in {"p2", "a2"})
    volumes = (
        volume("small", "1Gi"), volume("middle", "3Gi", "Delete"), volume("large", "10Gi"),
        volume("kept", "1Gi", claimRef={"namespace": NS, "name": "chosen"}),
    )  # fmt: skip
    for one in volumes:
        await client.of(one).create(one)
    await _available(client, len(volumes))
    for one in (
        # One budget for a pod: with several, kube-controller-manager looks at one of them.
        replicas("web", 4), budget("most", maxUnavailable="26%"), budget("number", app="alone", minAvailable=1),
        budget("nobody", app="none", maxUnavailable=1), budget("no-scale", app="owned", maxUnavailable=1),
        service("web", ports=[{"name": "h", "port": 80, "targetPort": "http", "appProtocol": "http"}]),
        service("number", ports=[{"port": 80, "targetPort": 81}], publishNotReadyAddresses=True),
        service("peers", clusterIP="None"), service("nobody", selector={"app": "none"}, ports=[{"port": 80}]),
        storage_class("absent", "disks.example.com"),
        storage_class("later", "disks.example.com", "WaitForFirstConsumer"),
        claim("any", "2Gi", storageClassName=""), claim("chosen", storageClassName=""),
        claim("huge", "99Gi", storageClassName=""), claim("named", storageClassName="", volumeName="large"),
        claim("mismatch", "5Gi", storageClassName="", volumeName="small"), claim("absent", storageClassName="absent"),
        claim("later", storageClassName="later"), claim("no-class", storageClassName="none"),
        replicas("big", 3), budget("share", app="big", minAvailable="50%"),
        autoscaler("down", "big", 1, 2), autoscaler("lost", "nothing", 1, 2), autoscaler("within", "web", 1, 9),
        replicas("zero", 0), autoscaler("off", "zero", 1, 2),
    ):  # fmt: skip
        await client.of(one).create(one, NS)


async def _runs(client: Client, one: Object, address: str, *, ready: bool) -> None:
    pods, name = client.kind("v1", "Pod"), one["metadata"]["name"]
    await pods.create(one)
    await pods.bind(name, "n1", NS)
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"phase": "Running", "conditions": conditions, "podIP": address, "podIPs": [{"ip": address}]}
    await pods.patch(name, {"status": status}, NS, subresource="status")


async def _available(client: Client, count: int) -> None:
    """A claim takes what it finds: all have to be there."""
    for _ in range(200):
        found = (await client.kind("v1", "PersistentVolume").list()).items
        if sum((one.get("status") or {}).get("phase") == "Available" for one in found) == count:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("volumes are not Available")


async def _owner(client: Client) -> Object:
    """Something that has no scale, and whose controller does not mind."""
    made = await client.kind("v1", "ConfigMap").create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("own")}
    )
    uid = made["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": uid, "controller": True}


async def changes(client: Client) -> None:
    pods, claims = client.kind("v1", "Pod"), client.kind("v1", "PersistentVolumeClaim")
    await pods.patch("p2", {"metadata": {"labels": {"app": "gone"}}}, NS)
    gone = {"status": {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}]}}
    await pods.patch("p4", gone, NS, subresource="status")
    await client.kind("v1", "Service").patch("web", {"metadata": {"labels": {"team": "y"}}}, NS)
    await client.kind("policy/v1", "PodDisruptionBudget").patch("most", {"spec": {"maxUnavailable": "76%"}}, NS)
    for name in ("any", "chosen"):  # their volumes are Delete and Retain
        await claims.delete(name, NS)
    await client.kind("v1", "PersistentVolume").delete("large")


# ---- what is compared


def plain(value: Any) -> Any:
    """Without what is not compared; lists of things without an order are in one."""
    if isinstance(value, dict):
        kept = {key: plain(item) for key, item in value.items() if key not in DROPPED}
        return {key: item for key, item in kept.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return sorted((plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


async def look(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for api_version, kind in KINDS:
        space = "" if kind == "PersistentVolume" else NS
        for obj in (await client.kind(api_version, kind).list(space)).items:
            name = obj["metadata"]["name"]
            if kind == "EndpointSlice":
                ports = ",".join(str(port["port"]) for port in obj.get("ports") or ())
                name = f"{obj['metadata']['labels']['kubernetes.io/service-name']} {ports}"
                obj["metadata"].pop("name")
            if (kind, name) == ("HorizontalPodAutoscaler", "down"):
                obj.pop("status")  # of which look it is, depends on the moment
            if kind == "PersistentVolumeClaim":  # its condition Unused is not reproduced
                (obj.get("status") or {}).pop("conditions", None)
            found[f"{kind} {name}"] = plain(obj)
    pods = (await client.kind("v1", "Pod").list(NS)).items
    found["pods"] = sorted(one["metadata"]["labels"]["app"] for one in pods)
    found["replicas"] = (await client.kind("apps/v1", "ReplicaSet").get("big", NS))["spec"]["replicas"]
    return found


async def calm(client: Client, ready: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """When nothing has changed for a while."""
    loop = asyncio.get_running_loop()
    end, since, before = loop.time() + 60, loop.time(), dict[str, Any]()
    while loop.time() < end:
        now = await look(client)
        if now != before or not ready(now):
            since, before = loop.time(), now
        elif loop.time() - since >= CALM:
            return now
        await asyncio.sleep(0.25)
    return before


def opened(found: dict[str, Any]) -> bool:
    """All have been looked at, also those that are looked at every 15 seconds."""
    autoscalers = [one for name, one in found.items() if "Autoscaler" in name and not name.endswith("down")]
    budgets = [one for name, one in found.items() if name.startswith("PodDisruptionBudget")]
    named = found.get("PersistentVolumeClaim named", {}).get("status", {}).get("phase")
    told = all("conditions" in one.get("status", {}) for one in (*autoscalers, *budgets))
    return told and named == "Bound" and found["replicas"] == 2


def changed(found: dict[str, Any]) -> bool:
    volumes = {name.split()[1]: one["status"]["phase"] for name, one in found.items() if "PersistentVolume " in name}
    return volumes.get("middle") == "Failed" and volumes.get("kept") == "Released"


async def played(client: Client) -> list[dict[str, Any]]:
    await client.kind("v1", "Namespace").create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    await opening(client)
    first = await calm(client, opened)
    await changes(client)
    return [first, await calm(client, changed)]


async def on_real(env: Environment) -> list[dict[str, Any]]:
    async with Client.connect(env.kubeconfig, manager="user") as client:
        return await played(client)


@asynccontextmanager
async def ours() -> AsyncIterator[Client]:
    clock = LoopClock(datetime(2026, 11, 1, tzinfo=UTC))
    token = timestamps.NOW.set(clock.now)
    try:
        with tempfile.TemporaryDirectory() as folder:
            chosen = Settings(Path(folder), "1.37", {}, port=0, in_memory=True, listen=False, custom_kinds=False)
            async with Server(chosen, clock) as server, Client.within(server.api, clock=clock) as client:
                for ender in [one for one in server.controllers.controllers if isinstance(one, PodTermination)]:
                    server.controllers.controllers.remove(ender)
                    await ender.stop()
                async with Runtime(client, registry.make(registry.names()), clock=clock) as runtime:
                    await runtime.ready()
                    yield client
    finally:
        timestamps.NOW.reset(token)


async def on_ours() -> list[dict[str, Any]]:
    async with ours() as client:
        return await played(client)


def differences(real: Any, other: Any, path: str = "") -> list[str]:
    if isinstance(real, dict) and isinstance(other, dict):
        names = sorted({*real, *other})
        return [line for name in names for line in differences(real.get(name), other.get(name), f"{path}.{name}")]
    if isinstance(real, list) and isinstance(other, list) and len(real) == len(other):
        return [
            line
            for number, pair in enumerate(zip(real, other, strict=True))
            for line in differences(*pair, f"{path}[{number}]")
        ]
    return [] if real == other else [f"{path}: real {real!r}, ours {other!r}"]


@pytest.mark.timeout(180)
def test_the_same_statuses() -> None:
    with Environment("1.37", ("kcm",)) as env:
        real = asyncio.run(on_real(env))
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(threads=False)) as runner:
        found = runner.run(on_ours())
    assert opened(real[0])
    assert changed(real[1])
    lines = [f"act {act} {line}" for act in (0, 1) for line in differences(real[act], found[act])]
    assert not lines, "\n".join(lines)
