"""Rollouts of LeaderWorkerSets on a whole cluster (spec lws 3.3; each test is named after its row of section 5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.e2e.lws import Sets, label, ready, template

from kohort.testing.cluster import Cluster, condition

NEVER = {"sim.kohort.dev/never-ready": "true"}


@pytest.fixture
def sets(cluster: Cluster) -> Sets:
    return Sets(cluster)


async def up(sets: Sets, cluster: Cluster, size: int) -> set[int]:
    """The indices of groups of which all pods are ready."""
    pods = await sets.pods()
    names = {name for name, pod in pods.items() if ready(pod)}
    return {
        int(str(label(pod, "group-index")))
        for name, pod in pods.items()
        if label(pod, "worker-index") == "0" and {name, *(f"{name}-{number}" for number in range(1, size))} <= names
    }


@asynccontextmanager
async def watched(sets: Sets, cluster: Cluster, size: int = 2) -> AsyncIterator[list[set[int]]]:
    """Which groups were ready, all the time."""
    seen: list[set[int]] = []

    async def look() -> None:
        while True:
            seen.append(await up(sets, cluster, size))
            await cluster.sleep(0.1)

    task = asyncio.create_task(look())
    try:
        yield seen
    finally:
        task.cancel()


async def by_group(sets: Sets) -> str:
    """The images of groups, in their order."""
    images = await sets.images()
    return " ".join(images[name].removeprefix("tool:") for name in sorted(images) if name.count("-") == 1)


async def test_l_36_one_group_after_the_other(cluster: Cluster, sets: Sets) -> None:
    await sets.create("rev", replicas=3)
    await sets.available("rev")
    async with watched(sets, cluster) as seen:
        await sets.image("rev", "tool:2")
        found = await sets.available("rev")
    assert await by_group(sets) == "2 2 2"
    assert min(map(len, seen)) == 2
    assert {3 - len(one) for one in seen} == {0, 1}
    assert found["status"]["updatedReplicas"] == 3
    assert condition(found, "UpdateInProgress")["status"] == "False"  # type: ignore[index]
    assert {"Updating replica 2", "Updating replica 1", "Updating replica 0"} <= set(await sets.notes("GroupsUpdating"))

    async def one_revision() -> bool:
        return len(await cluster.every("apps/v1", "ControllerRevision")) == 1

    await cluster.until(one_revision, what="the old revision going")


@pytest.mark.parametrize(("replicas", "most"), [(4, 2), (5, "50%")])
async def test_l_37_two_at_a_time(cluster: Cluster, sets: Sets, replicas: int, most: int | str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": most}}
    await sets.create("rev", replicas=replicas, rolloutStrategy=strategy)
    await sets.available("rev")
    async with watched(sets, cluster) as seen:
        await sets.image("rev", "tool:2")
        await sets.available("rev")
    assert min(map(len, seen)) == replicas - 2


@pytest.mark.parametrize(("replicas", "surge", "unavailable", "most"), [(2, 1, 0, 3), (4, 2, 1, 6), (2, 5, 0, 4)])
async def test_l_38_surge(cluster: Cluster, sets: Sets, replicas: int, surge: int, unavailable: int, most: int) -> None:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    await sets.create(
        "rev", replicas=replicas, rolloutStrategy={"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    )
    await sets.available("rev")
    async with watched(sets, cluster) as seen:
        await sets.image("rev", "tool:2")
        await sets.available("rev")
        await sets.settled("rev", replicas=replicas, updatedReplicas=replicas)
    assert min(map(len, seen)) >= replicas - unavailable
    assert max(max(one, default=0) for one in seen) == most - 1
    assert any("deleting surge" in note for note in await sets.notes("GroupsProgressing"))


def partition(number: int, **more: int) -> dict[str, Any]:
    rolling = {"partition": number, **more}
    return {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}}


async def test_l_39_partition(cluster: Cluster, sets: Sets) -> None:
    await sets.create("rev", replicas=3, **partition(2))
    await sets.available("rev")
    await sets.image("rev", "tool:2")
    await sets.available("rev")
    assert await by_group(sets) == "1 1 2"
    await sets.patch("rev", partition(1))
    await sets.settled("rev", updatedReplicas=2, readyReplicas=3)
    assert await by_group(sets) == "1 2 2"
    before = await sets.uids()
    await cluster.delete("v1", "Pod", "rev-0-1")
    await sets.renewed(before, {"rev-0", "rev-0-1"})
    assert await by_group(sets) == "1 2 2"
    assert len(await cluster.every("apps/v1", "ControllerRevision")) == 2
    await sets.patch("rev", partition(0))
    await sets.settled("rev", updatedReplicas=3, readyReplicas=3)
    assert await by_group(sets) == "2 2 2"


async def test_l_40_partition_with_surge(sets: Sets) -> None:
    await sets.create("rev", replicas=3, **partition(2, maxSurge=1))
    await sets.available("rev")
    assert len(await sets.names()) == 6
    await sets.image("rev", "tool:2")
    await sets.settled("rev", readyReplicas=4, updatedReplicas=2)
    assert await by_group(sets) == "1 1 2 2"
    await sets.patch("rev", partition(0, maxSurge=1))
    await sets.settled("rev", replicas=3, readyReplicas=3, updatedReplicas=3)
    assert await by_group(sets) == "2 2 2"


@pytest.mark.parametrize("third", ["tool:1", "tool:3"])
async def test_l_41_a_template_that_never_gets_ready(cluster: Cluster, sets: Sets, third: str) -> None:
    await sets.create("rev", replicas=3)
    await sets.available("rev")
    before = await sets.uids()
    await sets.patch("rev", {"leaderWorkerTemplate": {"workerTemplate": template("tool:2", NEVER)}})
    await sets.settled("rev", readyReplicas=2, updatedReplicas=1)
    await cluster.sleep(10)
    assert await by_group(sets) == "1 1 2"
    usual: dict[str, object] = template(third)
    usual["metadata"]["annotations"]["sim.kohort.dev/never-ready"] = None  # type: ignore[index]
    await sets.patch("rev", {"leaderWorkerTemplate": {"workerTemplate": usual}})
    await sets.available("rev")
    assert await by_group(sets) == " ".join([third[-1]] * 3)
    after = await sets.uids()
    kept = {name for name in before if before[name] == after[name]}
    assert kept == ({"rev-0", "rev-0-1", "rev-1", "rev-1-1"} if third == "tool:1" else set())


async def test_l_42_an_unready_group_is_replaced_first(cluster: Cluster, sets: Sets) -> None:
    await sets.create("rev", replicas=3)
    await sets.available("rev")
    told = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await cluster.patch("v1", "Pod", "rev-1", {"metadata": {"annotations": NEVER}})
    await cluster.patch("v1", "Pod", "rev-1", {"status": {"conditions": [told]}}, "status")
    await sets.settled("rev", readyReplicas=2)
    async with watched(sets, cluster) as seen:
        await sets.image("rev", "tool:2")
        await sets.available("rev")
    assert await by_group(sets) == "2 2 2"
    assert min(map(len, seen)) == 2
    first = next(one for one in seen if one != {0, 2})
    assert 1 in first  # the ill one was back before another one went


async def test_l_43_an_old_group_comes_back_old(cluster: Cluster, sets: Sets) -> None:
    await sets.create("rev", replicas=3)
    await sets.available("rev")
    await sets.patch("rev", {"leaderWorkerTemplate": {"size": 3, "workerTemplate": template("tool:2", NEVER)}})
    await sets.settled("rev", readyReplicas=2, updatedReplicas=1)
    await cluster.sleep(5)
    before = await sets.uids()
    await cluster.delete("v1", "Pod", "rev-0-1")

    async def back() -> bool:
        pods = await sets.pods()
        new = {name for name in before if name in pods and pods[name]["metadata"]["uid"] != before[name]}
        return new == {"rev-0", "rev-0-1"} and all(ready(pods[name]) for name in new)

    await cluster.until(back, what="the old group being back")
    assert await by_group(sets) == "1 1 2"
    assert "rev-0-2" not in await sets.names()
    assert "rev-2-2" in await sets.names()


async def test_l_44_scale_during_a_rollout(cluster: Cluster, sets: Sets) -> None:
    await sets.create("rev", replicas=2)
    await sets.available("rev")
    new = {"leaderWorkerTemplate": {"workerTemplate": template("tool:2")}}
    await sets.patch("rev", {"replicas": 4, **new})
    await sets.settled("rev", replicas=4, readyReplicas=4, updatedReplicas=4)
    await sets.patch("rev", {"replicas": 2, "leaderWorkerTemplate": {"workerTemplate": template("tool:3")}})
    await sets.settled("rev", replicas=2, readyReplicas=2, updatedReplicas=2)
    assert await by_group(sets) == "3 3"


async def test_l_45_what_makes_a_revision(cluster: Cluster, sets: Sets) -> None:
    await sets.create("rev", replicas=2)
    await sets.available("rev")
    before = await sets.uids()
    for change in ({"startupPolicy": "LeaderReady"}, partition(1)):
        await sets.patch("rev", dict(change))
        await sets.available("rev")
    await cluster.sleep(3)
    assert await sets.uids() == before
    assert len(await cluster.every("apps/v1", "ControllerRevision")) == 1
    await sets.patch("rev", {"leaderWorkerTemplate": {"restartPolicy": "None"}, **partition(0)})
    await sets.available("rev")
    await sets.renewed(before, set(before))
