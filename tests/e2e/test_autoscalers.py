"""HorizontalPodAutoscalers without metrics: their limits hold, and their status says why nothing else is done."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllermanager.build import owner

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")


def autoscaler(target: str = "web", **spec: Any) -> Object:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": target}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": ref, "metrics": [{"type": "Resource", "resource": cpu}], **spec},
    }


async def told(cluster: Cluster, *expected: tuple[str, str, str]) -> Object:
    async def look() -> Object | None:
        found = await cluster.get("autoscaling/v2", "HorizontalPodAutoscaler", "web") or {}
        status: Object = found.get("status") or {}
        said = {(one["type"], one["status"], one["reason"]) for one in status.get("conditions") or ()}
        return status if said == set(expected) else None

    return await cluster.until(look, what=f"conditions {expected}")


async def test_the_maximum_and_the_minimum_hold(cluster: Cluster) -> None:
    await cluster.create(autoscaler(minReplicas=2, maxReplicas=3))
    status = await told(cluster, ("AbleToScale", "False", "FailedGetScale"))
    assert "not found" in status["conditions"][0]["message"]
    await cluster.create(owner("ReplicaSet", replicas=5))
    await cluster.running(3)
    status = await told(
        cluster, ("AbleToScale", "True", "SucceededGetScale"), ("ScalingActive", "False", "FailedGetResourceMetric")
    )
    assert (status["currentReplicas"], status["desiredReplicas"]) == (3, 3)
    (said,) = await cluster.events("SuccessfulRescale")
    assert said["message"] == "New size: 3; reason: Current number of replicas above Spec.MaxReplicas"
    await cluster.patch("apps/v1", "ReplicaSet", "web", {"spec": {"replicas": 1}}, "scale")
    await cluster.running(2)
    # Nobody is brought back who was sent away altogether.
    await cluster.patch("apps/v1", "ReplicaSet", "web", {"spec": {"replicas": 0}}, "scale")
    await told(cluster, ("AbleToScale", "True", "SucceededGetScale"), ("ScalingActive", "False", "ScalingDisabled"))
    await cluster.gone("v1", "Pod")
