"""PodDisruptionBudgets on a whole cluster: their status follows the pods, and evictions follow their status."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllermanager.build import owner, template

from kohort.api.kind import Object
from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")


def budget(name: str = "web", **spec: Any) -> Object:
    given = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": given}


async def status_with(cluster: Cluster, name: str = "web", **wanted: Any) -> Object:
    async def look() -> Object | None:
        found = await cluster.get("policy/v1", "PodDisruptionBudget", name) or {}
        status: Object = found.get("status") or {}
        return status if all(status.get(key) == value for key, value in wanted.items()) else None

    return await cluster.until(look, what=f"status of {name} with {wanted}")


async def test_an_eviction_spends_the_budget_until_another_pod_is_ready(cluster: Cluster) -> None:
    await cluster.create(budget(maxUnavailable=1), owner("ReplicaSet", replicas=3))
    status = await status_with(
        cluster, currentHealthy=3, desiredHealthy=2, disruptionsAllowed=1, expectedPods=3, observedGeneration=1
    )
    (said,) = status["conditions"]
    assert (said["type"], said["status"], said["reason"]) == ("DisruptionAllowed", "True", "SufficientPods")
    first, second, _ = await cluster.pods()
    pods = cluster.client.kind("v1", "Pod")
    await pods.evict(first["metadata"]["name"], cluster.namespace)
    with pytest.raises(ApiError) as refused:
        await pods.evict(second["metadata"]["name"], cluster.namespace)
    assert refused.value.code == 429
    # The ReplicaSet makes another one, and the budget has room again.
    status = await status_with(cluster, currentHealthy=3, disruptionsAllowed=1)
    assert not status.get("disruptedPods")
    await pods.evict(second["metadata"]["name"], cluster.namespace)
    # A larger set: a percentage is of what should be there, not of what is.
    await cluster.patch("policy/v1", "PodDisruptionBudget", "web", {"spec": {"maxUnavailable": "50%"}})
    await cluster.patch("apps/v1", "ReplicaSet", "web", {"spec": {"replicas": 5}}, "scale")
    await status_with(cluster, expectedPods=5, desiredHealthy=2, currentHealthy=5, disruptionsAllowed=3)


async def test_pods_that_nobody_controls_count_for_a_number(cluster: Cluster) -> None:
    await cluster.create(budget(minAvailable=1))
    await status_with(cluster, disruptionsAllowed=0, expectedPods=0, desiredHealthy=1)
    assert [one["message"] for one in await cluster.events("NoPods")] == ["No matching pods found"]
    for name in ("a", "b"):
        meta = {"name": name, "labels": {"app": "web"}}
        await cluster.create({**template(), "apiVersion": "v1", "kind": "Pod", "metadata": meta})
    await status_with(cluster, disruptionsAllowed=1, expectedPods=2, currentHealthy=2)
    await cluster.patch("policy/v1", "PodDisruptionBudget", "web", {"spec": {"minAvailable": "50%"}})
    await status_with(cluster, disruptionsAllowed=0, expectedPods=0, observedGeneration=2)
    assert await cluster.events("UnmanagedPods")


async def test_a_kind_without_a_scale_allows_nothing_and_says_so(cluster: Cluster) -> None:
    pods = {**template(), "spec": {**template()["spec"], "restartPolicy": "Never"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"parallelism": 2, "template": pods},
    }
    await cluster.create(budget(maxUnavailable=1), job)
    await cluster.running(2)
    why = "jobs.batch does not implement the scale subresource"

    async def failed() -> bool:
        status = ((await cluster.get("policy/v1", "PodDisruptionBudget", "web")) or {}).get("status") or {}
        (said,) = status.get("conditions") or [{}]
        return (said.get("reason"), said.get("message"), status["disruptionsAllowed"]) == ("SyncFailed", why, 0)

    await cluster.until(failed, what="SyncFailed")
