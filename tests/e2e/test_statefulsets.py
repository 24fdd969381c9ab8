"""StatefulSets on a whole cluster: order, volumes, partitions, undo."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllermanager.build import owner
from tests.e2e.test_replicasets import names, settled

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")
WEB = ("apps/v1", "StatefulSet", "web")


async def annotate(cluster: Cluster, value: str | None) -> None:
    await cluster.patch(*WEB, {"spec": {"template": {"metadata": {"annotations": {"x": value}}}}})


def images(pods: list[Object]) -> dict[str, Any]:
    return {pod["metadata"]["name"]: (pod["metadata"].get("annotations") or {}).get("x") for pod in pods}


async def test_a_life_in_order_with_volumes(cluster: Cluster) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    spec: dict[str, Any] = {
        "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": policy,
        "serviceName": "web",
    }
    body = owner("StatefulSet", replicas=3, **spec)
    body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    await cluster.create(body)
    found = await settled(cluster, *WEB, replicas=3, readyReplicas=3, availableReplicas=3, currentReplicas=3)
    pods = {pod["metadata"]["name"]: pod for pod in await cluster.pods()}
    assert sorted(pods) == ["web-0", "web-1", "web-2"]
    ready = [_ready_at(pods[name]) for name in sorted(pods)]
    born = [pods[name]["metadata"]["creationTimestamp"] for name in sorted(pods)]
    assert all(before <= after for before, after in zip(ready, born[1:], strict=False))
    assert found["status"]["currentRevision"] == found["status"]["updateRevision"]
    first = found["status"]["updateRevision"]
    # An update by halves: only ordinals from the partition on.
    await cluster.patch(*WEB, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}})
    await annotate(cluster, "2")
    found = await settled(cluster, *WEB, updatedReplicas=1, currentReplicas=2, readyReplicas=3)
    assert images(await cluster.pods()) == {"web-0": None, "web-1": None, "web-2": "2"}
    assert found["status"]["currentRevision"] == first != found["status"]["updateRevision"]
    await cluster.patch(*WEB, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    found = await settled(cluster, *WEB, updatedReplicas=3, currentReplicas=3, readyReplicas=3)
    assert found["status"]["currentRevision"] == found["status"]["updateRevision"] != first
    # Scaled down, claims go with their pods; up again, there are new ones.
    await cluster.patch(*WEB, {"spec": {"replicas": 1}}, "scale")
    await settled(cluster, *WEB, replicas=1, readyReplicas=1)

    async def one_claim() -> bool:
        return names(await cluster.every("v1", "PersistentVolumeClaim")) == {"data-web-0"}

    await cluster.until(one_claim, what="claims of pods that were scaled away going")
    # undo: the first template is the newest revision again
    await annotate(cluster, None)
    found = await settled(cluster, *WEB, updatedReplicas=1, currentReplicas=1, readyReplicas=1)
    assert found["status"]["updateRevision"] == first
    revisions = await cluster.every("apps/v1", "ControllerRevision")
    assert {one["metadata"]["name"]: one["revision"] for one in revisions}[first] == 3
    await cluster.delete(*WEB)
    await cluster.gone("v1", "Pod")
    await cluster.gone("apps/v1", "ControllerRevision")
    assert await one_claim()  # whenDeleted: Retain


def _ready_at(pod: Object) -> str:
    (found,) = [one for one in pod["status"]["conditions"] if one["type"] == "Ready"]
    return str(found["lastTransitionTime"])
