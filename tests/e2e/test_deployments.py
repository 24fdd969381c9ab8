"""Deployments on a whole cluster: what kubectl create, scale, set image, rollout undo and pause lead to."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllermanager.build import owner
from tests.e2e.test_replicasets import settled

from kohort.api.kind import Object
from kohort.controllermanager.deployment import constants
from kohort.testing.cluster import Cluster, condition

pytestmark = pytest.mark.releases("1.37")
WEB = ("apps/v1", "Deployment", "web")


def image(name: str) -> Object:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}}


async def set_image(cluster: Cluster, name: str) -> None:
    deployments = cluster.client.kind("apps/v1", "Deployment")
    await deployments.patch("web", image(name), cluster.namespace, kind="strategic")


async def rolled_out(cluster: Cluster, replicas: int) -> Object:
    """As `kubectl rollout status` sees it."""
    return await settled(
        cluster,
        *WEB,
        replicas=replicas,
        updatedReplicas=replicas,
        availableReplicas=replicas,
        terminatingReplicas=0,
    )


async def sets(cluster: Cluster) -> dict[str, int]:
    """Pods by image."""
    found = await cluster.every("apps/v1", "ReplicaSet")
    return {
        one["spec"]["template"]["spec"]["containers"][0]["image"]: one["spec"]["replicas"]
        for one in found
        if "deletionTimestamp" not in one["metadata"]
    }


def reason(obj: Object, type_: str) -> tuple[str, str]:
    found = condition(obj, type_) or {}
    return found.get("status", ""), found.get("reason", "")


async def test_a_life_create_scale_set_image_undo_pause(cluster: Cluster) -> None:
    await cluster.create(owner("Deployment", replicas=4, revisionHistoryLimit=1))
    found = await rolled_out(cluster, 4)
    assert found["metadata"]["generation"] == 1  # its own annotation is no change of what is wanted
    assert found["metadata"]["annotations"] == {constants.REVISION: "1"}
    assert reason(found, "Progressing") == ("True", constants.COMPLETE)
    assert reason(found, "Available") == ("True", constants.ENOUGH)
    await set_image(cluster, "nginx:2")
    seen: list[tuple[int, int]] = []

    async def watched() -> bool:
        now = await cluster.get(*WEB) or {}
        state = now["status"]
        seen.append((state.get("replicas", 0), state.get("availableReplicas", 0)))
        return bool(state.get("updatedReplicas", 0) == state.get("replicas") == state.get("availableReplicas") == 4)

    await cluster.until(watched, what="the second revision")
    assert max(total for total, _ in seen) <= 5  # 25 % of surge
    assert min(up for _, up in seen) >= 3
    found = await rolled_out(cluster, 4)
    assert found["metadata"]["annotations"] == {constants.REVISION: "2"}
    assert await sets(cluster) == {"nginx": 0, "nginx:2": 4}
    # scale by the subresource, whose selector an autoscaler uses
    deployments = cluster.client.kind("apps/v1", "Deployment")
    shown = await deployments.get("web", cluster.namespace, subresource="scale")
    assert shown["status"] == {"replicas": 4, "selector": "app=web"}
    await cluster.patch(*WEB, {"spec": {"replicas": 2}}, "scale")
    await rolled_out(cluster, 2)
    # undo: the old ReplicaSet is the new one again, under a new number
    await set_image(cluster, "nginx")
    found = await rolled_out(cluster, 2)
    assert found["metadata"]["annotations"] == {constants.REVISION: "3"}
    assert await sets(cluster) == {"nginx": 2, "nginx:2": 0}
    # paused, nothing rolls, but it scales
    await cluster.patch(*WEB, {"spec": {"paused": True}})
    await set_image(cluster, "nginx:3")
    await cluster.patch(*WEB, {"spec": {"replicas": 3}})
    found = await settled(cluster, *WEB, replicas=3, availableReplicas=3, terminatingReplicas=0)
    assert reason(found, "Progressing") == ("Unknown", constants.PAUSED)
    assert await sets(cluster) == {"nginx": 3}  # one old revision is kept, and what runs is old now
    await cluster.patch(*WEB, {"spec": {"paused": False}})
    found = await rolled_out(cluster, 3)
    assert reason(found, "Progressing") == ("True", constants.COMPLETE)

    async def trimmed() -> bool:
        return await sets(cluster) == {"nginx": 0, "nginx:3": 3}

    await cluster.until(trimmed, what="revisionHistoryLimit 1")
    await cluster.delete(*WEB, propagation="Foreground")
    await cluster.gone("apps/v1", "ReplicaSet")
    await cluster.gone("v1", "Pod")


async def test_recreate_a_collision_and_a_rollout_that_takes_too_long(cluster: Cluster) -> None:
    await cluster.create(owner("Deployment", replicas=2, strategy={"type": "Recreate"}, progressDeadlineSeconds=30))
    await rolled_out(cluster, 2)
    (first,) = await cluster.every("apps/v1", "ReplicaSet")
    await set_image(cluster, "nginx:2")

    async def both() -> Any:
        pods = await cluster.pods()
        return len({pod["spec"]["containers"][0]["image"] for pod in pods}) > 1 and pods

    async def rolled() -> bool:
        assert not await both()
        return await sets(cluster) == {"nginx": 0, "nginx:2": 2}

    await cluster.until(rolled, what="all old pods gone before a new one comes")
    await rolled_out(cluster, 2)
    # Somebody else has the name that the next ReplicaSet would get: the first one, freed of its owner and changed.
    await cluster.patch("apps/v1", "ReplicaSet", first["metadata"]["name"], {"metadata": {"ownerReferences": None}})
    labels = {"metadata": {"labels": {"app": "other", "pod-template-hash": None}}}
    await cluster.patch("apps/v1", "ReplicaSet", first["metadata"]["name"], labels)
    await set_image(cluster, "nginx")
    found = await rolled_out(cluster, 2)
    assert found["status"]["collisionCount"] == 1
    # Pods that nobody can place make no progress.
    nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"no": "where"}}}}}
    await cluster.patch(*WEB, nowhere)

    async def late() -> Object | None:
        now = await cluster.get(*WEB)
        return now if reason(now or {}, "Progressing")[1] == constants.TIMED_OUT else None

    found = await cluster.until(late, what="ProgressDeadlineExceeded")
    assert reason(found, "Progressing") == ("False", constants.TIMED_OUT)
    assert reason(found, "Available") == ("False", constants.TOO_FEW)
