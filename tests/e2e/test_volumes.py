"""Volumes on a whole cluster: the default class, claims that wait for their pod, volumes that go with their claim."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")


def claim(name: str = "data", *, size: str = "1Gi", **spec: Any) -> Object:
    given = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": given}


def user(name: str = "user", claim: str = "data") -> Object:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    spec = {"containers": [{"name": "c", "image": "nginx"}], "volumes": [volume]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def volume(name: str, *, size: str = "1Gi", **spec: Any) -> Object:
    given = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "hostPath": {"path": "/data"},
        "persistentVolumeReclaimPolicy": "Retain",
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": given}


async def in_phase(cluster: Cluster, kind: str, name: str, phase: str) -> Object:
    async def look() -> Object | None:
        namespace = cluster.namespace if kind == "PersistentVolumeClaim" else ""
        found = (await cluster.client.kind("v1", kind).list(namespace)).items
        return next((one for one in found if one["metadata"]["name"] == name and one["status"]["phase"] == phase), None)

    return await cluster.until(look, what=f"{kind} {name} {phase}")


async def test_a_claim_gets_its_volume_when_its_pod_has_a_node(cluster: Cluster) -> None:
    made = await cluster.create(claim())
    assert made["spec"]["storageClassName"] == "standard"
    await cluster.until(lambda: cluster.events("WaitForFirstConsumer"))
    await in_phase(cluster, "PersistentVolumeClaim", "data", "Pending")
    await cluster.create(user())
    await cluster.running(1)
    bound = await in_phase(cluster, "PersistentVolumeClaim", "data", "Bound")
    assert bound["status"]["capacity"] == {"storage": "1Gi"}
    name = bound["spec"]["volumeName"]
    assert name == f"pvc-{bound['metadata']['uid']}"
    found = await in_phase(cluster, "PersistentVolume", name, "Bound")
    assert found["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
    assert found["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    # The pod goes, then the claim, and the volume with it.
    await cluster.delete("v1", "Pod", "user")
    await cluster.gone("v1", "Pod")
    await cluster.delete("v1", "PersistentVolumeClaim", "data")
    await cluster.gone("v1", "PersistentVolume")


async def test_claims_take_volumes_that_are_there_the_smallest_that_fits(cluster: Cluster) -> None:
    await cluster.create(volume("large", size="10Gi"), volume("small", size="2Gi"), volume("tiny", size="1Mi"))
    for name in ("large", "small", "tiny"):  # others are not looked at
        await in_phase(cluster, "PersistentVolume", name, "Available")
    await cluster.create(claim(storageClassName=""))
    bound = await in_phase(cluster, "PersistentVolumeClaim", "data", "Bound")
    assert (bound["spec"]["volumeName"], bound["status"]["capacity"]) == ("small", {"storage": "2Gi"})
    await cluster.create(claim("big", size="20Gi", storageClassName=""))
    await in_phase(cluster, "PersistentVolumeClaim", "big", "Pending")
    await cluster.create(volume("huge", size="40Gi"))
    await in_phase(cluster, "PersistentVolumeClaim", "big", "Bound")
    # What was made by hand is kept, and is nobody's until somebody frees it.
    await cluster.delete("v1", "PersistentVolumeClaim", "data")
    await in_phase(cluster, "PersistentVolume", "small", "Released")
    volumes = cluster.client.kind("v1", "PersistentVolume")
    await volumes.patch("small", {"spec": {"claimRef": None}})
    await in_phase(cluster, "PersistentVolume", "small", "Available")
    # One that a claim has stays until the claim goes; if it goes in spite of that, the claim is lost.
    await volumes.delete("huge")
    assert (await in_phase(cluster, "PersistentVolume", "huge", "Bound"))["metadata"]["deletionTimestamp"]
    await volumes.patch("huge", {"metadata": {"finalizers": None}})
    await in_phase(cluster, "PersistentVolumeClaim", "big", "Lost")


async def test_a_claim_that_a_pod_uses_goes_after_the_pod(cluster: Cluster) -> None:
    await cluster.create(claim(), user())
    await cluster.running(1)
    await cluster.delete("v1", "PersistentVolumeClaim", "data")
    await cluster.sleep(30)
    held = await in_phase(cluster, "PersistentVolumeClaim", "data", "Bound")
    assert held["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    await cluster.delete("v1", "Pod", "user")
    await cluster.gone("v1", "PersistentVolumeClaim")
    await cluster.gone("v1", "PersistentVolume")


async def test_a_class_of_ones_own_provisions_at_once(cluster: Cluster) -> None:
    own = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "kohort.dev/volumes",
        "reclaimPolicy": "Retain",
    }
    await cluster.create(claim(storageClassName="fast"))
    await cluster.until(lambda: cluster.events("ProvisioningFailed"))
    await cluster.create(own)
    bound = await in_phase(cluster, "PersistentVolumeClaim", "data", "Bound")
    await cluster.delete("v1", "PersistentVolumeClaim", "data")
    await in_phase(cluster, "PersistentVolume", bound["spec"]["volumeName"], "Released")


async def test_a_provisioner_that_is_not_there_is_waited_for_by_name(cluster: Cluster) -> None:
    ebs = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3"},
        "provisioner": "ebs.csi.aws.com",
    }
    await cluster.create(ebs, claim(storageClassName="gp3"))
    (said,) = await cluster.until(lambda: cluster.events("ExternalProvisioning"))
    assert "'ebs.csi.aws.com'" in said["message"]
    found = await in_phase(cluster, "PersistentVolumeClaim", "data", "Pending")
    assert found["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] == "ebs.csi.aws.com"


async def test_an_ephemeral_volume_lives_as_long_as_its_pod(cluster: Cluster) -> None:
    pod = user()
    template = {"metadata": {"labels": {"of": "user"}}, "spec": claim()["spec"]}
    pod["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    await cluster.create(pod)
    await cluster.running(1)
    made = await in_phase(cluster, "PersistentVolumeClaim", "user-scratch", "Bound")
    assert made["metadata"]["labels"] == {"of": "user"}
    await cluster.delete("v1", "Pod", "user")
    await cluster.gone("v1", "PersistentVolumeClaim")
    # A claim of that name that is somebody else's is not used.
    await cluster.create(claim("user-scratch"), pod)
    (said,) = await cluster.until(lambda: cluster.events("FailedBinding"))
    assert "was not created for the pod" in said["message"]


async def test_a_gang_shares_a_claim_and_starts_together(cluster: Cluster) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {
            "parallelism": 4,
            "completions": 4,
            "completionMode": "Indexed",
            "scheduling": {"schedulingPolicy": {"gang": {}}},
            "template": {"spec": {**user()["spec"], "restartPolicy": "Never"}},
        },
    }
    await cluster.create(claim(accessModes=["ReadWriteMany"]), job)
    await cluster.running(4)
    await in_phase(cluster, "PersistentVolumeClaim", "data", "Bound")
