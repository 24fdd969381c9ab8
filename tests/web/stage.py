"""A cluster with something to see on every page: gangs that run, wait, preempt and fail, and a node that is away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from kohort.api.kind import Object
from kohort.embedded import whole
from kohort.kube.client import Client
from kohort.plan.clustercopy import ClusterCopy
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import Level, Pool, read

EXAMPLES = Path(__file__).parents[2] / "examples"
RACK = "topology.kubernetes.io/rack"
LONG = {"sim.kohort.dev/run-seconds": "1000000", "sim.kohort.dev/start-seconds": "0.2"}


def pools() -> tuple[Pool, ...]:
    found = read((EXAMPLES / "cluster.yaml").read_text())
    return tuple(replace(pool, annotations=LONG) for pool in found)


def full(nodes: int, pods: int) -> ClusterCopy:
    """Racks of 32 nodes with 8 GPUs in five zones; gangs of 64 pods, most with a GPU, on all of them."""
    capacity = {"cpu": "96", "memory": "1Ti", "pods": "110", "ephemeral-storage": "1Ti", "nvidia.com/gpu": "8"}
    levels = (Level("topology.kubernetes.io/zone", 5), Level(RACK, max(1, nodes // 160)))
    made = [dict(one) for one in Pool(name="gpu", count=nodes, capacity=capacity, topology=levels).nodes()]
    names = [one["metadata"]["name"] for one in made]
    members = [(number, names[number // pods]) for number in range(nodes * pods) if number % 97]
    groups = sorted({number // 64 for number, _ in members})
    objects = {
        "namespaces": [{"apiVersion": "v1", "kind": "Namespace", "metadata": _meta("lab", "ns")}],
        "nodes": [{**one, "metadata": {**one["metadata"], **_meta(one["metadata"]["name"], "n")}} for one in made],
        "podgroups": [_group(number) for number in groups],
        "pods": [_pod(number, node, number % pods < 8) for number, node in members],
    }
    return ClusterCopy("1.37", objects)


def _meta(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "uid": f"{kind}-{name}", "creationTimestamp": "2026-11-17T00:00:00Z"}


def _group(number: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {**_meta(f"gang-{number}", "g"), "namespace": "lab"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 64}}},
    }


def _pod(number: int, node: str, device: bool) -> Object:
    asked = {"cpu": "1", **({"nvidia.com/gpu": "1"} if device else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**_meta(f"gang-{number // 64}-{number % 64}", "p"), "namespace": "lab"},
        "spec": {
            "nodeName": node,
            "schedulingGroup": {"podGroupName": f"gang-{number // 64}"},
            "containers": [{"name": "c", "image": "i", "resources": {"requests": asked}}],
        },
        "status": {"phase": "Running"},
    }


@asynccontextmanager
async def running(folder: Path, nodes: Iterable[Pool]) -> AsyncIterator[tuple[Server, Client]]:
    server = Server(Settings(folder, "1.37", port=0, in_memory=True))
    async with server, whole(server, tuple(nodes)) as client:
        yield server, client


def job(
    name: str, namespace: str, pods: int, gpus: int, *, priority: str = "", rack: bool = False, fails: bool = False
) -> Object:
    """A gang of pods that take whole devices."""
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "rank",
                "image": "i",
                "resources": {"requests": {"cpu": "8"}, "limits": {"nvidia.com/gpu": str(gpus)}},
            }
        ],
        **({"priorityClassName": priority} if priority else {}),
    }
    template: dict[str, Any] = {"spec": spec}
    if fails:
        ends = {"sim.kohort.dev/run-seconds": "1", "sim.kohort.dev/exit-codes": "2=1"}
        template["metadata"] = {"annotations": ends}
    scheduling: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
    if rack:
        scheduling["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "backoffLimit": 0 if fails else 6,
            "scheduling": scheduling,
            "template": template,
        },
    }


async def create(client: Client, *objects: Object, namespace: str = "default") -> None:
    for obj in objects:
        await client.of(obj).create(obj, obj["metadata"].get("namespace", namespace))


def example(name: str) -> list[Object]:
    return [one for one in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()) if one]


async def play(client: Client) -> None:
    """In this order: what runs, what fails, a node that dies, what preempts, what waits."""
    for name in ("research", "serving", "batch"):
        await create(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name, value in (("low", -10), ("urgent", 1000)):
        await create(
            client,
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value},
        )
    await create(client, *example("podcliqueset-disaggregated"), namespace="serving")
    await create(client, *example("leaderworkerset-inference"), namespace="serving")
    await create(client, *_training("vit", 8), namespace="research")
    await create(client, *example("jobset-tree"), namespace="research")
    await create(client, job("ablation", "research", 4, 4), job("flaky", "batch", 4, 2, fails=True))
    for number in range(4):
        await create(client, job(f"sweep-{number}", "batch", 4, 8, priority="low"))


def _training(name: str, nodes: int) -> list[Object]:
    objects = example("trainjob-rack")
    train = objects[-1]
    train["metadata"]["name"] = name
    train["spec"]["trainer"]["numNodes"] = nodes
    train["spec"]["trainer"]["resourcesPerNode"]["limits"] = {"nvidia.com/gpu": "8"}
    return objects


async def press(client: Client) -> None:
    """Somebody important comes, a node goes, and two do not fit."""
    await create(client, job("deadline", "research", 14, 8, priority="urgent"))
    await create(client, job("rack-hog", "batch", 12, 8, rack=True), job("gpt-xl", "research", 48, 8))
    node = {"metadata": {"annotations": {"sim.kohort.dev/state": "notready"}}}
    await client.kind("v1", "Node").patch("gpu-62", node)
