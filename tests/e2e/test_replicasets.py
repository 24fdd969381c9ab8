"""ReplicaSets and ReplicationControllers on a whole cluster."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllermanager.build import owner, template

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")


async def settled(cluster: Cluster, api_version: str, kind: str, name: str, **wanted: Any) -> Object:
    async def look() -> Object | None:
        found = await cluster.get(api_version, kind, name) or {}
        status, generation = found.get("status") or {}, found["metadata"].get("generation")
        right = all(status.get(key, 0) == value for key, value in wanted.items())
        return found if right and status.get("observedGeneration") == generation else None

    return await cluster.until(look, what=f"{kind} {name} with {wanted}")


def names(pods: list[Object]) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods}


async def test_pods_follow_the_number_and_are_adopted_and_released(cluster: Cluster) -> None:
    loose = {**template(), "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "loose", "labels": {"app": "web"}}}
    await cluster.create(loose, owner("ReplicaSet", replicas=3))
    await settled(cluster, "apps/v1", "ReplicaSet", "web", replicas=3, readyReplicas=3, availableReplicas=3)
    pods = await cluster.pods()
    assert len(pods) == 3
    assert "loose" in names(pods)
    assert {pod["metadata"]["ownerReferences"][0]["name"] for pod in pods} == {"web"}
    # One that does not match any more is let go, and replaced.
    await cluster.patch("v1", "Pod", "loose", {"metadata": {"labels": {"app": "debug"}}})
    await cluster.running(3, "app=web")
    freed = await cluster.get("v1", "Pod", "loose")
    assert freed is not None
    assert not freed["metadata"].get("ownerReferences")
    # scale, as kubectl asks for it
    shown = await cluster.client.kind("apps/v1", "ReplicaSet").get("web", cluster.namespace, subresource="scale")
    assert shown["status"] == {"replicas": 3, "selector": "app=web"}
    await cluster.patch("apps/v1", "ReplicaSet", "web", {"spec": {"replicas": 1}}, "scale")
    await settled(cluster, "apps/v1", "ReplicaSet", "web", replicas=1, readyReplicas=1, terminatingReplicas=0)
    # A pod that is deleted is replaced.
    (left,) = await cluster.pods("app=web")
    await cluster.delete("v1", "Pod", left["metadata"]["name"])

    async def replaced() -> bool:
        return names(await cluster.running(1, "app=web")).isdisjoint(names([left]))

    await cluster.until(replaced, what="another pod")
    await cluster.delete("apps/v1", "ReplicaSet", "web")

    async def alone() -> bool:
        return names(await cluster.pods()) == {"loose"}

    await cluster.until(alone, what="only the freed pod left")


async def test_a_replication_controller_and_what_a_quota_refuses(cluster: Cluster) -> None:
    body = owner("ReplicationController", api_version="v1", replicas=2, selector={"app": "web"})
    await cluster.create(body)
    found = await settled(cluster, "v1", "ReplicationController", "web", replicas=2, availableReplicas=2)
    assert "terminatingReplicas" not in found["status"]
    await cluster.patch("v1", "ReplicationController", "web", {"spec": {"replicas": 0}}, "scale")
    await settled(cluster, "v1", "ReplicationController", "web", replicas=0)

    # What a quota refuses is said, and goes when there is room.
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    await cluster.create(quota, owner("ReplicaSet", replicas=2))

    async def failed() -> Object | None:
        return await cluster.condition("apps/v1", "ReplicaSet", "web", "ReplicaFailure")

    found = await cluster.until(failed, what="ReplicaFailure")
    assert found["reason"] == "FailedCreate"
    await cluster.patch("v1", "ResourceQuota", "q", {"spec": {"hard": {"pods": "9"}}})
    await settled(cluster, "apps/v1", "ReplicaSet", "web", replicas=2, readyReplicas=2)
    assert await failed() is None
