"""Two gangs, and a quota that has room for one: the second gets no pod until there is room, and says so."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api.kind import Object
from kohort.controllers.conditions import condition
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")


def gang(name: str, size: int) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {
        "parallelism": size,
        "completions": size,
        "completionMode": "Indexed",
        "scheduling": {"schedulingPolicy": {"gang": {}}},
        "template": {
            "metadata": {"annotations": {"sim.kohort.dev/run-seconds": "600"}},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        },
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


async def quota(cluster: Cluster, hard: Object) -> None:
    """A ResourceQuota "team" that somebody has counted: before that it says nothing."""
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}}
    await cluster.create({**body, "spec": {"hard": hard}})

    async def counted() -> Object | None:
        found = await cluster.get("v1", "ResourceQuota", "team") or {}
        return found if (found.get("status") or {}).get("used") else None

    await cluster.until(counted, what="a status of the quota")


async def test_the_second_gang_waits_whole(cluster: Cluster) -> None:
    await quota(cluster, {"requests.cpu": "4"})
    await cluster.create(gang("one", 3), gang("two", 3))

    async def waiting() -> Any:
        jobs = [await cluster.get("batch/v1", "Job", name) or {} for name in ("one", "two")]
        found = [condition(job.get("status") or {}, "WaitingForQuota") for job in jobs]
        return next((one for one in found if one is not None and one["status"] == "True"), None)

    told = await cluster.until(waiting, what="a Job that waits for the quota")
    assert "ResourceQuota team leaves" in told["message"]
    assert "raise cpu of ResourceQuota team to 6" in told["message"]
    assert len(await cluster.pods()) == 3
    await cluster.patch("v1", "ResourceQuota", "team", {"spec": {"hard": {"requests.cpu": "6"}}})
    await cluster.running(6)
