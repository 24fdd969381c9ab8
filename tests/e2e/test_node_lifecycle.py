"""Nodes that are not well: taints by condition, and pods that leave by taint."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")
_PREFIX = "node.kubernetes.io/"


def pod(name: str, node: str, *tolerations: Object) -> Object:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "nginx"}], "tolerations": list(tolerations)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def tainted(cluster: Cluster, node: str, *wanted: tuple[str, str]) -> None:
    async def look() -> bool:
        taints = (await cluster.client.kind("v1", "Node").get(node))["spec"].get("taints") or ()
        return {(one["key"], one["effect"]) for one in taints} == set(wanted)

    await cluster.until(look, what=f"taints {wanted} of {node}")


async def left(cluster: Cluster, *names: str) -> None:
    async def look() -> bool:
        return {one["metadata"]["name"] for one in await cluster.pods()} == set(names)

    await cluster.until(look, 900, what=f"only {names} left")


async def patch(cluster: Cluster, node: str, body: Any, subresource: str = "") -> None:
    await cluster.client.kind("v1", "Node").patch(node, body, subresource=subresource)


async def test_pods_leave_a_tainted_node_as_they_tolerate_it(cluster: Cluster) -> None:
    maintenance = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}
    await cluster.create(
        pod("plain", "node-0"),
        pod("patient", "node-0", {**maintenance, "tolerationSeconds": 60}),
        pod("stays", "node-0", maintenance),
        pod("elsewhere", "node-1"),
    )
    await cluster.running(4)
    await patch(cluster, "node-0", {"spec": {"taints": [{"key": "maintenance", "value": "x", "effect": "NoExecute"}]}})
    await left(cluster, "patient", "stays", "elsewhere")
    assert await cluster.events("TaintManagerEviction")
    await cluster.sleep(40)
    await left(cluster, "patient", "stays", "elsewhere")
    await left(cluster, "stays", "elsewhere")


async def test_a_node_that_is_not_ready_loses_its_pods_after_five_minutes(cluster: Cluster) -> None:
    await cluster.create(pod("a", "node-0"), pod("b", "node-1"))
    await cluster.running(2)
    await patch(cluster, "node-0", {"metadata": {"annotations": {"sim.kohort.dev/state": "notready"}}})
    await tainted(cluster, "node-0", (f"{_PREFIX}not-ready", "NoSchedule"), (f"{_PREFIX}not-ready", "NoExecute"))
    await cluster.sleep(200)
    await left(cluster, "a", "b")
    await left(cluster, "b")
    await patch(cluster, "node-0", {"metadata": {"annotations": {"sim.kohort.dev/state": None}}})
    await tainted(cluster, "node-0")


async def test_pressure_and_cordoning_keep_pods_away(cluster: Cluster) -> None:
    node = await cluster.client.kind("v1", "Node").get("node-0")
    conditions = [
        {**one, "status": "True"} if one["type"] == "DiskPressure" else one for one in node["status"]["conditions"]
    ]
    await patch(cluster, "node-0", {"status": {"conditions": conditions}}, "status")
    await patch(cluster, "node-0", {"spec": {"unschedulable": True}})
    await tainted(
        cluster, "node-0", (f"{_PREFIX}disk-pressure", "NoSchedule"), (f"{_PREFIX}unschedulable", "NoSchedule")
    )
    await patch(cluster, "node-0", {"status": {"conditions": node["status"]["conditions"]}}, "status")
    await patch(cluster, "node-0", {"spec": {"unschedulable": None}})
    await tainted(cluster, "node-0")
