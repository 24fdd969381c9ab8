"""Defragmentation that is switched on, on a whole cluster in virtual time: who moves, when, and when nobody does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.e2e.jobs import INDEX
from tests.e2e.test_healing import RACK, rack, ranks, ring

from kohort.api.kind import Object
from kohort.api.scheduling.defragmentation import Defragmenting
from kohort.place.profile import Profile, ProfileError, read_profile
from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster, cluster
from kohort.testing.virtual import VirtualLoop

MINUTE, HOUR = 60.0, 3600.0
ROLES = [Path(__file__).parents[2] / "deploy" / name for name in ("rbac.yaml", "rbac-jobs.yaml")]
POOLS = (
    Pool(
        name="node",
        count=8,
        capacity={"cpu": "1", "memory": "8Gi", "pods": "110"},
        topology=(Level(RACK, 2),),
    ),
)


def live(body: Callable[[Cluster], Awaitable[None]], settings: Defragmenting | None) -> None:
    async def life() -> None:
        async with cluster("1.37", pools=POOLS, rbac=ROLES, profile=Profile(defragmentation=settings)) as found:
            await body(found)
            assert not found.denied

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(life())


async def spread(cluster: Cluster) -> str:
    """A gang of two in one rack, a Job of one in the other: no rack is free. -> the gang's rack"""
    await cluster.create(ring("ring", 2, topology="rack=required"))
    home = await rack(cluster, (await ranks(cluster, 2))["0"])
    nodes = (await cluster.client.kind("v1", "Node").list()).items
    alone = ring("alone", 1)
    alone["spec"]["template"]["spec"]["nodeSelector"] = {
        RACK: next(one for node in nodes if (one := node["metadata"]["labels"][RACK]) != home)
    }
    await cluster.create(alone)
    await ranks(cluster, 3)
    return home


async def placed(cluster: Cluster) -> dict[str, str]:
    """Pod -> rack, of all that run."""
    found = await cluster.pods("batch.kubernetes.io/job-name")
    alive = [one for one in found if one["status"].get("phase") == "Running"]
    return {one["metadata"]["name"]: await rack(cluster, one) for one in alive}


def test_nothing_is_moved_unless_it_is_switched_on() -> None:
    async def body(cluster: Cluster) -> None:
        await spread(cluster)
        before = await placed(cluster)
        await cluster.sleep(20 * MINUTE)
        assert await placed(cluster) == before

    live(body, None)


def test_a_rack_is_kept_free_and_a_gang_moves_once() -> None:
    async def body(cluster: Cluster) -> None:
        home = await spread(cluster)
        before = await placed(cluster)

        async def freed() -> bool:
            now = await placed(cluster)
            return len(now) == 3 and home not in now.values()

        await cluster.until(freed, 5 * MINUTE, what="the gang in the other rack")
        told = await cluster.events("Defragmented")
        assert {one["involvedObject"]["kind"] for one in told} == {"PodGroup", "Job"}
        assert f"4 nodes of {RACK}={home} are to be free (1 move); 2 pods would fit elsewhere" in told[0]["message"]
        after = await placed(cluster)
        assert len(before.keys() & after.keys()) == 1
        await cluster.sleep(10 * MINUTE)
        assert await placed(cluster) == after
        nodes = (await cluster.client.kind("v1", "Node").list()).items
        assert not any(one["spec"].get("unschedulable") for one in nodes)
        await cluster.create(ring("next", 4, topology="rack=required"))
        await ranks_of(cluster, "next", 4)

    live(body, Defragmenting((("rack", None),), every=MINUTE))


def test_a_gang_that_waits_for_a_rack_starts() -> None:
    async def body(cluster: Cluster) -> None:
        home = await spread(cluster)
        await cluster.create(ring("large", 4, topology="rack=required"))
        await ranks_of(cluster, "large", 4, 10 * MINUTE)
        assert {where for name, where in (await placed(cluster)).items() if name.startswith("large")} == {home}

    live(body, Defragmenting((("rack", 4),), every=MINUTE))


async def ranks_of(cluster: Cluster, job: str, pods: int, seconds: float = MINUTE) -> None:
    async def look() -> bool:
        return sum(name.startswith(job) for name in await placed(cluster)) == pods

    await cluster.until(look, seconds, what=f"{pods} pods of {job}")


@pytest.mark.parametrize("selector", [{"matchExpressions": [{"key": INDEX, "operator": "Exists"}]}, {}])
def test_a_budget_keeps_a_gang_where_it_is(selector: Object) -> None:
    """By the plan; or by the API server, if the scheduler takes a budget for one of nobody."""

    async def body(cluster: Cluster) -> None:
        budget: Object = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep"},
            "spec": {"minAvailable": 3, "selector": selector},
        }
        await cluster.create(budget)
        await spread(cluster)
        before = await placed(cluster)
        await cluster.sleep(5 * MINUTE)
        assert await placed(cluster) == before
        assert bool(await cluster.events("Defragmented")) == (not selector)

    live(body, Defragmenting((("rack", None),), every=MINUTE))


def test_after_a_move_that_does_not_end_well_nothing_is_moved_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    """A quota keeps the gang from coming back: told once, and nobody else is moved before the rest is over."""

    async def body(cluster: Cluster) -> None:
        await spread(cluster)
        quota: Object = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "small"},
            "spec": {"hard": {"pods": "1"}},
        }
        await cluster.create(quota)
        await cluster.sleep(10 * MINUTE)
        assert len({one["message"] for one in await cluster.events("Defragmented")}) == 1

    with caplog.at_level(logging.WARNING):
        live(body, Defragmenting((("rack", None),), every=MINUTE, rest=3 * HOUR, timeout=30.0))
    assert "does not run after 30 s" in caplog.text


def test_the_profile_reads_it_and_tells_all_mistakes() -> None:
    said = {"free": ["rack=4", "zone"], "every": "15m", "moves": 2, "rest": "2h", "timeout": "10m"}
    found = read_profile({"defragmentation": said}).defragmentation
    assert found == Defragmenting((("rack", 4), ("zone", None)), 900.0, 2, 7200.0, 600.0)
    assert read_profile({"defragmentation": {"free": "rack"}}).defragmentation == Defragmenting((("rack", None),))
    assert read_profile({}).defragmentation is None
    with pytest.raises(ProfileError) as wrong:
        read_profile({"defragmentation": {"free": "rack=0", "every": "1s", "moves": 9, "on": True}})
    assert [one.partition(";")[0] for one in wrong.value.mistakes] == [
        "defragmentation.free: found 'rack=0'",
        "defragmentation.every: found '1s'",
        "defragmentation.moves: found 9",
        "defragmentation.on: found True",
    ]
    for nothing in (None, {}, {"every": "10m"}):
        with pytest.raises(ProfileError):
            read_profile({"defragmentation": nothing})
