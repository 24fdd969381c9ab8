"""Gangs of pods that name no group, on a whole cluster: the scheduler, what it writes, and what people are told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.test_explain import asked

from kohort.scheduler.rootstatus import RootState
from kohort.testing.cluster import Cluster

Json = dict[str, Any]
RAY: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "rayclusters.ray.io"},
    "spec": {
        "group": "ray.io",
        "scope": "Namespaced",
        "names": {
            "plural": "rayclusters",
            "singular": "raycluster",
            "kind": "RayCluster",
            "listKind": "RayClusterList",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def asking(name: str, pods: int, cpu: str) -> Json:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "annotations": {"kohort.dev/gang": "true"}},
        "spec": {
            "replicas": pods,
            "podManagementPolicy": "Parallel",
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"schedulerName": "kohort", "containers": [container]},
            },
        },
    }


async def told(cluster: Cluster, pod: Json) -> str:
    found = (one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled")
    return str(next((one.get("message") for one in found), ""))


async def test_a_statefulset_that_asks_starts_together_or_waits_and_says_why(cluster: Cluster) -> None:
    """With nothing of the Workload API."""
    await cluster.create(asking("fits", 4, "1"))
    await cluster.create(asking("giant", 100, "4"))

    async def settled() -> Any:
        pods = await cluster.pods()
        bound = [one for one in pods if one["metadata"]["name"].startswith("fits") and one["spec"].get("nodeName")]
        waits = [one for one in pods if "grouped by rule replicas" in await told(cluster, one)]
        return len(bound) == 4 and len(waits) == 100

    await cluster.until(settled)
    (waits,), _ = await asked(cluster, "statefulset", "giant")
    assert (waits.kind, waits.name, waits.state) == ("Gang", "giant", RootState.WAITING)
    assert waits.grouped.startswith("grouped by rule replicas (StatefulSet ")
    assert waits.explanation is not None
    events = (await cluster.client.kind("v1", "Event").list(cluster.namespace)).items
    on_owner = [
        one for one in events if one["involvedObject"]["kind"] == "StatefulSet" and one["reason"] == "FailedScheduling"
    ]
    assert any("grouped by rule replicas" in one["message"] for one in on_owner)
    pods = [one for one in await cluster.pods() if one["metadata"]["name"].startswith("giant")]
    assert not any(one["spec"].get("nodeName") for one in pods)


@pytest.mark.releases("1.37")
async def test_an_operator_that_comes_after_the_scheduler(cluster: Cluster) -> None:
    """Its kind is found when the first pod needs it."""
    await cluster.create(RAY)

    async def served() -> Any:
        await cluster.client.discovery.refresh()
        return await cluster.client.discovery.versions("ray.io", "RayCluster")

    await cluster.until(served)
    spec = {"headGroupSpec": {}, "workerGroupSpecs": [{"groupName": "w", "replicas": 2, "minReplicas": 0}]}
    made = await cluster.create(
        {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "sample"}, "spec": spec}
    )

    async def pod(name: str, kind: str, group: str) -> None:
        owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "sample", "uid": made["metadata"]["uid"]}
        labels = {"ray.io/cluster": "sample", "ray.io/node-type": kind, "ray.io/group": group}
        meta = {"name": name, "labels": labels, "ownerReferences": [{**owner, "controller": True}]}
        containers = [{"name": "ray", "image": "ray", "resources": {"requests": {"cpu": "1"}}}]
        body = {"schedulerName": "kohort", "containers": containers}
        await cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body})

    await pod("head", "head", "headgroup")
    await pod("w-0", "worker", "w")

    async def waits() -> Any:
        return ["grouped by rule ray" in await told(cluster, one) for one in await cluster.pods()] == [True, True]

    await cluster.until(waits)
    (root,), _ = await asked(cluster, "raycluster", "sample")
    assert (root.kind, root.name, root.pending, root.missing) == ("GangTree", "sample", 2, 1)
    await pod("w-1", "worker", "w")

    async def runs() -> Any:
        return all(one["spec"].get("nodeName") for one in await cluster.pods())

    await cluster.until(runs)
