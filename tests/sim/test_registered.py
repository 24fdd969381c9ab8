"""What becomes of virtual nodes that an earlier start made, and who plays a node."""

from __future__ import annotations

from dataclasses import replace

from tests.controllers.cluster import NS, Cluster, cluster

from kohort.api.kind import Object
from kohort.sim.cluster import Pool, plain
from kohort.sim.kubelet import KubeletSimulator
from kohort.sim.registered import Leftovers, remove, remove_leftovers, taken_over


def ours(count: int, cpu: str = "16", creator: str = "kohort-up", player: str = "") -> tuple[Pool, ...]:
    room = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    return tuple(replace(one, capacity=room, created_by=creator, played_by=player) for one in plain(count))


def pod_of(name: str, node: str) -> Object:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NS}, "spec": spec}


async def start(found: Cluster, pools: tuple[Pool, ...]) -> Leftovers:
    """As `kohort up` does, and ended again."""
    left = await remove_leftovers(found.client, pools, "kohort-up")
    async with KubeletSimulator(found.client, pools, every=True, clock=found.clock) as kubelets:
        await kubelets.ready()
    return left


async def there(found: Cluster) -> dict[str, str]:
    nodes = (await found.client.kind("v1", "Node").list()).items
    return {node["metadata"]["name"]: node["status"]["capacity"]["cpu"] for node in nodes}


async def test_nodes_that_nobody_asks_for_any_more_are_removed() -> None:
    async with cluster() as found:
        assert await start(found, ours(4)) == Leftovers()
        assert await start(found, ours(2)) == Leftovers(removed=("node-2", "node-3"))
        assert set(await there(found)) == {"node-0", "node-1"}
        assert await start(found, ours(2)) == Leftovers()


async def test_a_node_under_a_pod_stays_until_the_pod_has_ended() -> None:
    async with cluster() as found:
        await start(found, ours(3))
        pods = found.client.kind("v1", "Pod")
        await pods.create(pod_of("runs", "node-1"))
        await pods.create(pod_of("over", "node-2"))
        await pods.patch("over", {"status": {"phase": "Succeeded"}}, NS, subresource="status")
        assert await start(found, ours(1)) == Leftovers(removed=("node-2",), kept=("node-1",))
        await pods.patch("runs", {"status": {"phase": "Failed"}}, NS, subresource="status")
        assert await start(found, ours(1)) == Leftovers(removed=("node-1",))


async def test_a_node_that_is_asked_for_otherwise_is_made_anew_unless_it_has_pods() -> None:
    async with cluster() as found:
        await start(found, ours(2))
        await found.client.kind("v1", "Pod").create(pod_of("runs", "node-1"))
        assert await start(found, ours(2, cpu="4")) == Leftovers(replaced=("node-0",), unchanged=("node-1",))
        assert await there(found) == {"node-0": "4", "node-1": "16"}


async def test_nodes_of_somebody_else_are_left_alone() -> None:
    async with cluster() as found:
        await start(found, plain(3))  # of a start that left no mark, or of people
        await start(found, ours(0, creator="kohort-nodes"))
        assert await start(found, ours(1)) == Leftovers(kept=("node-1", "node-2"))
        assert set(await there(found)) == {"node-0", "node-1", "node-2"}


async def phase(found: Cluster, name: str) -> str:
    return str((await found.client.kind("v1", "Pod").get(name, NS))["status"].get("phase"))


async def test_a_node_is_played_by_the_simulator_that_it_names() -> None:
    mine = ours(1, creator="kohort-nodes", player="me")
    async with (
        cluster() as found,
        KubeletSimulator(found.client, mine, every=True, identity="other", clock=found.clock),
    ):
        await found.client.kind("v1", "Pod").create(pod_of("p", "node-0"))
        await found.clock.advance(60)
        assert await phase(found, "p") == "Pending"
        async with KubeletSimulator(found.client, identity="me", clock=found.clock):
            await found.until(lambda: has(found, "p", "Running"))


async def has(found: Cluster, name: str, wanted: str) -> bool:
    return await phase(found, name) == wanted


async def test_nodes_can_be_taken_over_and_are_given_back() -> None:
    async with cluster() as found, KubeletSimulator(found.client, plain(1), every=True, clock=found.clock):
        async with taken_over(found.client, ["node-0"], "me"):
            await found.client.kind("v1", "Pod").create(pod_of("p", "node-0"))
            await found.clock.advance(60)
            assert await phase(found, "p") == "Pending"
        await found.until(lambda: has(found, "p", "Running"))


async def test_a_node_that_goes_takes_its_pods_along_where_nobody_else_collects_them() -> None:
    async with cluster() as found:
        await start(found, ours(2))
        for number in range(2):
            await found.client.kind("v1", "Pod").create(pod_of(f"p{number}", f"node-{number}"))
        await remove(found.client, {"node-0"}, pods=True)
        await remove(found.client, {"node-1"})
        assert await there(found) == {}
        assert [pod["metadata"]["name"] for pod in await found.pods()] == ["p1"]
