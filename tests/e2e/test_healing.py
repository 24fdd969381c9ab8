"""Gangs that lose members on a whole cluster: spares step in, gangs move, restart and fail, and Jobs above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.e2e.jobs import INDEX, JOB, gang, pod_template

from kohort.api.kind import Object
from kohort.apimachinery.times import seconds
from kohort.cli.defrag import apply_moves, plan_free
from kohort.scheduler.clusterlist import list_cluster
from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster, condition

pytestmark = pytest.mark.releases("1.37")
RACK = "topology.kubernetes.io/rack"
STATE = "sim.kohort.dev/state"


@pytest.fixture
def pools() -> Sequence[Pool]:
    """Two racks of four nodes for one pod each."""
    capacity = {"cpu": "1", "memory": "8Gi", "pods": "110"}
    return (Pool(name="node", count=8, capacity=capacity, topology=(Level(RACK, 2),)),)


def ring(name: str, pods: int, **said: str) -> Object:
    template = pod_template()
    template["metadata"]["annotations"] |= {f"kohort.dev/{key.replace('_', '-')}": text for key, text in said.items()}
    template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    return gang(name, pods, template=template)


async def ranks(cluster: Cluster, pods: int) -> dict[str, Object]:
    """By rank, when so many run."""

    async def look() -> dict[str, Object]:
        found = await cluster.pods("batch.kubernetes.io/job-name")
        alive = [one for one in found if one["status"].get("phase") == "Running" and not _goes(one)]
        return {one["metadata"]["labels"][INDEX]: one for one in alive} if len(alive) == pods else {}

    return await cluster.until(look, 150, what=f"{pods} ranks running")


def _goes(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


async def fail(cluster: Cluster, node: str) -> None:
    """Its kubelet is silent, and the node controller says so."""
    keys, now = ("NoSchedule", "NoExecute"), seconds(cluster.client.clock.now())
    taints = [{"key": "node.kubernetes.io/unreachable", "effect": one, "timeAdded": now} for one in keys]
    body: dict[str, Any] = {"metadata": {"annotations": {STATE: "failed"}}, "spec": {"taints": taints}}
    await cluster.client.kind("v1", "Node").patch(node, body)


async def come_back(cluster: Cluster, node: str) -> None:
    await cluster.client.kind("v1", "Node").patch(
        node, {"metadata": {"annotations": {STATE: None}}, "spec": {"taints": None}}
    )


async def drain(cluster: Cluster, pod: Object) -> None:
    """As kubectl does it."""
    await cluster.client.kind("v1", "Node").patch(pod["spec"]["nodeName"], {"spec": {"unschedulable": True}})
    meta = pod["metadata"]
    await cluster.client.kind("v1", "Pod").evict(meta["name"], meta["namespace"], grace=0)


async def rack(cluster: Cluster, pod: Object) -> str:
    node = await cluster.client.kind("v1", "Node").get(pod["spec"]["nodeName"])
    return str(node["metadata"]["labels"][RACK])


async def spare(cluster: Cluster) -> Object:
    async def look() -> Object | None:
        found = [one for one in await cluster.pods() if "-spare-" in one["metadata"]["name"] and not _goes(one)]
        return next((one for one in found if one["status"].get("phase") == "Running"), None)

    return await cluster.until(look, what="a spare runs")


async def test_a_spare_steps_in_within_five_seconds_in_the_same_rack_with_the_same_rank(cluster: Cluster) -> None:
    await cluster.create(ring("ring", 3, topology="rack=required", spares="1"))
    before = await ranks(cluster, 3)
    standby = await spare(cluster)
    home = await rack(cluster, before["1"])
    assert await rack(cluster, standby) == home
    lost = before["1"]["spec"]["nodeName"]
    await fail(cluster, lost)
    began = cluster.client.clock.monotonic()

    async def healed() -> dict[str, Object]:
        now = await ranks(cluster, 3)
        return now if now["1"]["metadata"]["uid"] != before["1"]["metadata"]["uid"] else {}

    after = await cluster.until(healed, 30, what="a member has taken the place of the spare")
    assert cluster.client.clock.monotonic() - began <= 5.0
    assert after["1"]["spec"]["nodeName"] == standby["spec"]["nodeName"]
    assert await rack(cluster, after["1"]) == home
    for rank in ("0", "2"):
        assert after[rank]["metadata"]["uid"] == before[rank]["metadata"]["uid"]
    assert await cluster.events("Swapped")
    await come_back(cluster, lost)  # it comes back, and the next spare stands by there
    again = await spare(cluster)
    assert again["metadata"]["uid"] != standby["metadata"]["uid"]
    assert again["spec"]["nodeName"] == lost


async def test_spares_go_with_their_gang(cluster: Cluster) -> None:
    await cluster.create(ring("ring", 3, topology="rack=required", spares="1"))
    await ranks(cluster, 3)
    await spare(cluster)
    await cluster.delete(*JOB, "ring", propagation="Background")
    await cluster.gone("v1", "Pod")


async def test_a_gang_moves_to_the_other_rack(cluster: Cluster) -> None:
    await cluster.create(ring("ring", 4, topology="rack=required", replacement="Move"))
    before = await ranks(cluster, 4)
    home = await rack(cluster, before["0"])
    await drain(cluster, before["2"])

    async def moved() -> bool:
        return {await rack(cluster, one) for one in (await ranks(cluster, 4)).values()} != {home}

    await cluster.until(moved, what="all of it in the other rack")
    after = await ranks(cluster, 4)
    assert len({await rack(cluster, one) for one in after.values()}) == 1
    assert await cluster.events("Moved")


async def test_a_job_fails_at_once_with_its_gang(cluster: Cluster) -> None:
    body = ring("ring", 4, topology="rack=required", replacement="Fail")
    rule = {"action": "FailJob", "onPodConditions": [{"type": "kohort.dev/GangFailed", "status": "True"}]}
    body["spec"]["podFailurePolicy"] = {"rules": [rule]}
    await cluster.create(body)
    before = await ranks(cluster, 4)
    await drain(cluster, before["2"])

    async def failed() -> Object | None:
        return condition(await cluster.get(*JOB, "ring"), "Failed")

    told = await cluster.until(failed, 150, what="the Job has failed")
    assert (told["status"], told["reason"]) == ("True", "PodFailurePolicy")


async def test_a_gang_below_its_minimum_is_restarted_after_its_grace(cluster: Cluster) -> None:
    await cluster.create(ring("ring", 4, topology="rack=required", below_minimum="Restart", grace="5s"))
    before = await ranks(cluster, 4)
    await drain(cluster, before["2"])

    async def restarted() -> bool:
        now = await ranks(cluster, 4)
        old = {one["metadata"]["uid"] for one in before.values()}
        return not any(one["metadata"]["uid"] in old for one in now.values())

    await cluster.until(restarted, what="all of it anew, in the rack that has room")
    assert await cluster.events("Restarted")


async def test_a_rack_is_freed_by_moving_the_gang_that_is_in_the_way(cluster: Cluster) -> None:
    """The plan is carried out: the gang runs elsewhere, its old nodes are free and not cordoned any more."""
    await cluster.create(ring("ring", 2, topology="rack=required"))
    before = await ranks(cluster, 2)
    home = await rack(cluster, before["0"])
    nodes = (await cluster.client.kind("v1", "Node").list()).items
    stays = ring("stays", 1)
    stays["spec"]["template"]["spec"]["nodeSelector"] = {
        RACK: next(one for node in nodes if (one := node["metadata"]["labels"][RACK]) != home)
    }
    await cluster.create(stays)
    await ranks(cluster, 3)
    found = plan_free((await list_cluster(cluster.client)).core, "rack", None)
    assert found.domain == home
    assert len(found.moves) == 1
    await apply_moves(cluster.client, found, 100)
    after = await ranks(cluster, 3)
    assert home not in {await rack(cluster, one) for one in after.values()}
    nodes = (await cluster.client.kind("v1", "Node").list()).items
    assert not any(one["spec"].get("unschedulable") for one in nodes)
