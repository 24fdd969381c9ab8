"""DaemonSets on a whole cluster: nodes that come, change and go; updates; undo."""

from __future__ import annotations

import pytest
from tests.controllermanager.build import owner
from tests.e2e.test_replicasets import settled

from kohort.testing.cluster import Cluster

# The nodes of a test on real Kubernetes belong to all tests: this one changes them.
pytestmark = [pytest.mark.releases("1.37"), pytest.mark.jobs]
WEB = ("apps/v1", "DaemonSet", "web")


async def spread(cluster: Cluster) -> list[str]:
    return sorted(str(pod["spec"].get("nodeName")) for pod in await cluster.pods())


async def ready_on(cluster: Cluster, count: int) -> None:
    await settled(
        cluster,
        *WEB,
        desiredNumberScheduled=count,
        currentNumberScheduled=count,
        numberReady=count,
        updatedNumberScheduled=count,
    )


async def test_a_life_on_nodes_that_change(cluster: Cluster) -> None:
    nodes = cluster.client.kind("v1", "Node")
    await cluster.create(owner("DaemonSet"))
    await ready_on(cluster, 8)
    assert await spread(cluster) == [f"node-{index}" for index in range(8)]
    # A taint keeps new pods away, and this one drives the old one out.
    await nodes.patch("node-3", {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}})
    await ready_on(cluster, 7)
    await nodes.patch("node-3", {"spec": {"taints": None}})
    await ready_on(cluster, 8)
    # An update, one node at a time; then back, as `kubectl rollout undo` asks for.
    first = {one["metadata"]["name"] for one in await cluster.every("apps/v1", "ControllerRevision")}
    await cluster.patch(*WEB, {"spec": {"template": {"metadata": {"annotations": {"x": "2"}}}}})
    seen = [8]

    async def rolled() -> bool:
        found = await cluster.get(*WEB) or {}
        status, observed = found["status"], found["status"]["observedGeneration"] == found["metadata"]["generation"]
        seen.append(status["numberReady"])
        return bool(observed and status.get("updatedNumberScheduled", 0) == status["numberReady"] == 8)

    await cluster.until(rolled, what="the update")
    assert min(seen) >= 7
    await cluster.patch(*WEB, {"spec": {"template": {"metadata": {"annotations": {"x": None}}}}})
    await cluster.until(rolled, what="the update")
    await ready_on(cluster, 8)
    revisions = {
        one["metadata"]["name"]: one["revision"] for one in await cluster.every("apps/v1", "ControllerRevision")
    }
    assert len(revisions) == 2
    assert {revisions[name] for name in first} == {3}
    await cluster.delete(*WEB)
    await cluster.gone("v1", "Pod")
    await cluster.gone("apps/v1", "ControllerRevision")
