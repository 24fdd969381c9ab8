"""Virtual kubelets on the embedded API, in virtual time; with the Job controller, a gang runs from start to end."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.controllers.cluster import NS, Cluster, cluster, job_of

from kohort.api.kind import Object
from kohort.sim.cluster import plain, read
from kohort.sim.kubelet import KubeletSimulator
from kohort.sim.nodelife import STATE


def pod_of(name: str, node: str, **annotations: str) -> Object:
    meta = {"name": name, "namespace": NS, "annotations": {f"sim.kohort.dev/{k}": v for k, v in annotations.items()}}
    spec = {"nodeName": node, "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def phases(found: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in await found.pods()}


async def bind_all(found: Cluster, node: str) -> None:
    for pod in await found.pods():
        if not pod["spec"].get("nodeName"):
            await found.client.kind("v1", "Pod").bind(pod["metadata"]["name"], node, NS)


async def has_phases(found: Cluster, **wanted: str) -> bool:
    return await phases(found) == wanted


async def test_nodes_are_made_once_and_ready() -> None:
    pools = read("pools: [{name: gpu, count: 3, capacity: {nvidia.com/gpu: 8}}]")
    async with cluster() as found:
        for _ in range(2):
            async with KubeletSimulator(found.client, pools, clock=found.clock) as kubelets:
                await kubelets.ready()
                nodes = (await found.client.kind("v1", "Node").list()).items
                assert [node["metadata"]["name"] for node in nodes] == ["gpu-0", "gpu-1", "gpu-2"]
                for node in nodes:
                    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
                    assert node["status"]["conditions"][-1]["status"] == "True"


async def test_pods_run_and_end() -> None:
    async with cluster() as found, KubeletSimulator(found.client, plain(1), clock=found.clock):
        pods: Any = found.client.kind("v1", "Pod")
        await pods.create(pod_of("good", "node-0", **{"run-seconds": "5"}))
        await pods.create(pod_of("bad", "node-0", **{"run-seconds": "5", "exit-code": "3"}))
        await pods.create(pod_of("long", "node-0", **{"run-seconds": "500"}))
        await pods.create(pod_of("elsewhere", "not-ours"))
        await found.until(
            lambda: has_phases(found, good="Succeeded", bad="Failed", long="Running", elsewhere="Pending")
        )
        node = await found.client.kind("v1", "Node").get("node-0")
        host = next(one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP")
        of = {name: (await pods.get(name, NS))["status"] for name in ("good", "bad", "long", "elsewhere")}
        assert all(of[name]["hostIP"] == host for name in ("good", "bad", "long"))
        assert len({of[name]["podIP"] for name in ("good", "bad", "long")}) == 3
        assert of["long"]["podIPs"] == [{"ip": of["long"]["podIP"]}]
        assert "podIP" not in of["elsewhere"]
        await pods.delete("long", NS)
        await found.until(lambda: has_phases(found, good="Succeeded", bad="Failed", elsewhere="Pending"))


async def test_a_gang_job_from_start_to_end() -> None:
    async with (
        cluster() as found,
        found.runtime() as runtime,
        KubeletSimulator(found.client, plain(2), clock=found.clock),
    ):
        await runtime.ready()
        gang: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
        body = job_of("solver", parallelism=3, completions=3, completionMode="Indexed", scheduling=gang)
        body["spec"]["template"]["metadata"] = {"annotations": {"sim.kohort.dev/run-seconds": "20"}}
        await found.client.of(body).create(body)

        async def complete() -> bool:
            await bind_all(found, "node-1")
            conditions = ((await found.job("solver")).get("status") or {}).get("conditions") or ()
            return any(one["type"] == "Complete" for one in conditions)

        await found.until(complete, seconds=120, step=0.5)
        status = (await found.job("solver"))["status"]
        assert (status["succeeded"], status["completedIndexes"]) == (3, "0-2")
        assert all(not pod["metadata"].get("finalizers") for pod in await found.pods())


async def test_a_failed_node_loses_its_pods_and_says_so() -> None:
    async with cluster() as found, KubeletSimulator(found.client, plain(1), clock=found.clock):
        pods, nodes = found.client.kind("v1", "Pod"), found.client.kind("v1", "Node")
        await pods.create(pod_of("p", "node-0", **{"run-seconds": "9999"}))
        await found.until(lambda: has_phases(found, p="Running"))
        await nodes.patch("node-0", {"metadata": {"annotations": {STATE: "failed"}}})

        async def lost() -> bool:
            node = await nodes.get("node-0")
            return node["status"]["conditions"][-1]["status"] == "Unknown"

        await found.until(lost)
        await found.clock.advance(250)
        assert await phases(found) == {"p": "Running"}  # tolerated for five minutes
        await found.until(lambda: has_phases(found), seconds=120, step=5)


async def test_pods_of_a_deleted_node_fail_and_go_after_forty_seconds() -> None:
    async with cluster() as found, KubeletSimulator(found.client, plain(2), clock=found.clock):
        pods, nodes = found.client.kind("v1", "Pod"), found.client.kind("v1", "Node")
        held = pod_of("held", "node-0", **{"run-seconds": "9999"})
        held["metadata"]["finalizers"] = ["example.net/look"]
        await pods.create(held)
        await pods.create(pod_of("p", "node-0", **{"run-seconds": "9999"}))
        await pods.create(pod_of("other", "node-1", **{"run-seconds": "9999"}))
        await found.until(lambda: has_phases(found, held="Running", p="Running", other="Running"))
        await nodes.delete("node-0")
        await found.clock.advance(38)
        assert await phases(found) == {"held": "Running", "p": "Running", "other": "Running"}
        await found.until(lambda: has_phases(found, held="Failed", other="Running"))
        (said,) = [
            one for one in (await pods.get("held", NS))["status"]["conditions"] if one["type"] == "DisruptionTarget"
        ]
        assert (said["reason"], said["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")


async def test_pods_of_a_node_that_comes_back_in_time_stay() -> None:
    async with cluster() as found, KubeletSimulator(found.client, plain(1), clock=found.clock):
        pods, nodes = found.client.kind("v1", "Pod"), found.client.kind("v1", "Node")
        await pods.create(pod_of("p", "node-0", **{"run-seconds": "9999"}))
        await found.until(lambda: has_phases(found, p="Running"))
        node = await nodes.get("node-0")
        await nodes.delete("node-0")
        await found.clock.advance(20)
        await nodes.create(
            {key: value for key, value in node.items() if key != "metadata"}
            | {"metadata": {"name": "node-0", "labels": node["metadata"]["labels"]}}
        )
        await found.clock.advance(60)
        assert await phases(found) == {"p": "Running"}


async def test_a_drained_node_is_emptied() -> None:
    async with cluster() as found, KubeletSimulator(found.client, plain(1), clock=found.clock):
        pods, nodes = found.client.kind("v1", "Pod"), found.client.kind("v1", "Node")
        await pods.create(pod_of("p", "node-0", **{"run-seconds": "9999"}))
        await found.until(lambda: has_phases(found, p="Running"))
        await nodes.patch("node-0", {"metadata": {"annotations": {STATE: "drained"}}})
        await found.until(lambda: has_phases(found))
        assert (await nodes.get("node-0"))["spec"]["unschedulable"] is True


async def test_signs_of_life() -> None:
    async with cluster() as found:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}}
        await found.client.kind("v1", "Namespace").create(space)
        async with KubeletSimulator(found.client, plain(4), clock=found.clock, heartbeat=10):
            leases = found.client.kind("coordination.k8s.io/v1", "Lease")

            async def renewed() -> bool:
                return len((await leases.list("kube-node-lease")).items) == 4

            await found.until(renewed, seconds=30)


async def test_a_thousand_nodes_are_quiet() -> None:
    """Nothing is written for nodes on which nothing happens; signs of life come evenly, not in bursts."""
    async with cluster() as found:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}}
        await found.client.kind("v1", "Namespace").create(space)
        async with KubeletSimulator(found.client, plain(1000), clock=found.clock) as kubelets:
            await kubelets.ready()
            await found.clock.advance(1)
            before = len(found.api.requests)
            await found.clock.advance(600)
            assert [request for request in found.api.requests[before:] if request[0] != "GET"] == []
        async with KubeletSimulator(found.client, plain(0), clock=found.clock, heartbeat=10) as kubelets:
            await kubelets.ready()
            before = len(found.api.requests)
            for _ in range(20):
                await found.clock.advance(0.05)
                await asyncio.sleep(0.001)
            signs = [path for method, path in found.api.requests[before:] if "/leases" in path]
            assert 0 < len(signs) <= 220, "a tenth of them in a second, two requests for the first sign of each"
