"""Lives of LeaderWorkerSets on a whole cluster (spec lws 5; each test is named after its row)."""

from __future__ import annotations

from tests.e2e.lws import Sets

from kohort.testing.cluster import Cluster


async def test_l_15_two_groups_of_three(cluster: Cluster) -> None:
    sets = Sets(cluster)
    await sets.create("duo", replicas=2, size=3)
    await sets.available("duo")
    assert await sets.names() == ["duo-0", "duo-0-1", "duo-0-2", "duo-1", "duo-1-1", "duo-1-2"]
    pod = await cluster.get("v1", "Pod", "duo-1-2")
    assert pod is not None
    assert pod["spec"]["hostname"] == "duo-1-2"
