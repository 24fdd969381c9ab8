"""JobSets in a few words, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

import pytest

from kohort.api.kind import Object
from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster

VERSION: Final = "jobset.x-k8s.io/v1alpha2"
JOBSET: Final = (VERSION, "JobSet")
JOB: Final = ("batch/v1", "Job")
PREFIX: Final = "jobset.sigs.k8s.io/"
GANG: Final[dict[str, Any]] = {"gangConfig": {"gangMode": "Gang"}}
REPLICAS: Final[dict[str, Any]] = {"gangConfig": {"gangMode": "ReplicatedGang"}}


def pod(seconds: float | None = 1.0, code: int = 0, **spec: Any) -> Object:
    """A pod template. `seconds`: how long it runs; None: until it is told to stop."""
    notes = {"sim.kohort.dev/start-seconds": "0.2", "sim.kohort.dev/exit-code": str(code)}
    notes["sim.kohort.dev/run-seconds"] = "100000" if seconds is None else str(seconds)
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"annotations": notes},
        "spec": {"restartPolicy": "Never", "containers": [container], **deepcopy(spec)},
    }


def rj(
    name: str,
    replicas: int = 1,
    parallelism: int | None = 1,
    completions: int | None = -1,
    *,
    runs: Object | None = None,
    job: Object | None = None,
    notes: dict[str, str] | None = None,
    **fields: Any,
) -> Object:
    """rj(replicas x parallelism / completions) of the spec's notation; completions are as many unless it says so."""
    spec: Object = {"backoffLimit": 0, "template": runs or pod(), **(job or {})}
    if parallelism is not None:
        spec["parallelism"] = parallelism
    completions = parallelism if completions == -1 else completions
    if completions is not None:
        spec["completions"] = completions
    template: Object = {"spec": spec}
    if notes:
        template["metadata"] = {"annotations": notes}
    return {"name": name, "replicas": replicas, "template": template, **fields}


def jobset(name: str, *jobs: Object, notes: dict[str, str] | None = None, **spec: Any) -> Object:
    meta: Object = {"name": name}
    if notes:
        meta["annotations"] = notes
    return {"apiVersion": VERSION, "kind": "JobSet", "metadata": meta, "spec": {"replicatedJobs": list(jobs), **spec}}


async def refused(cluster: Cluster, obj: Object) -> dict[str, str]:
    """The fields that a create is refused for, with what is said of each; it must be 422."""
    with pytest.raises(ApiError) as error:
        await cluster.create(obj)
    assert error.value.code == 422
    return {str(cause.get("field")): str(cause.get("message")) for cause in error.value.details.get("causes") or ()}


async def status(cluster: Cluster, name: str) -> Object:
    return ((await cluster.get(*JOBSET, name)) or {}).get("status") or {}


async def ended(cluster: Cluster, name: str, how: str = "Completed") -> Object:
    """Waits for the end."""

    async def look() -> Object | None:
        return await cluster.condition(*JOBSET, name, how)

    return await cluster.until(look, what=f"{name} {how}") or {}


async def has(cluster: Cluster, name: str, look: Callable[[Object], Any]) -> Object:
    """Waits until a JobSet's status is as wanted."""

    async def ask() -> Object | None:
        found = await status(cluster, name)
        return found if look(found) else None

    return await cluster.until(ask, what=f"status of {name}") or {}


async def jobs(cluster: Cluster) -> dict[str, Object]:
    return {job["metadata"]["name"]: job for job in await cluster.every(*JOB)}


async def live(cluster: Cluster) -> list[Object]:
    """Pods that have not ended and are not about to."""
    return [
        pod
        for pod in await cluster.pods()
        if pod["status"].get("phase") not in {"Succeeded", "Failed"} and not pod["metadata"].get("deletionTimestamp")
    ]


async def pods(cluster: Cluster, count: int) -> list[Object]:
    """Waits until so many pods live."""

    async def look() -> list[Object]:
        found = await live(cluster)
        return found if len(found) == count else []

    return await cluster.until(look, what=f"{count} pods")


def group_of(pod: Object) -> str:
    """What a pod says of its group, in any release."""
    spec = pod["spec"]
    if "schedulingGroup" in spec:
        return str(spec["schedulingGroup"]["podGroupName"])
    link = spec.get("workloadRef")
    return "/".join(link[key] for key in ("name", "podGroup", "podGroupReplicaKey") if key in link) if link else ""


async def groups(cluster: Cluster) -> dict[str, int | None]:
    """Minimums by name of the PodGroup; on 1.35 by name of the group within the Workload."""
    made = await cluster.pod_groups()
    if made:
        return {one["metadata"]["name"]: minimum(one["spec"]) for one in made}
    inside = [group for one in await cluster.workloads() for group in one["spec"].get("podGroups") or ()]
    return {group["name"]: (group["policy"].get("gang") or {}).get("minCount") for group in inside}


def minimum(block: Object) -> int | None:
    found: int | None = (block["schedulingPolicy"].get("gang") or {}).get("minCount")
    return found


async def no_groups(cluster: Cluster) -> bool:
    return not (await cluster.workloads() or await cluster.pod_groups() or await cluster.composites())


async def told(cluster: Cluster, reason: str) -> list[Object]:
    """Waits for an event."""

    async def look() -> list[Object]:
        return await cluster.events(reason)

    return await cluster.until(look, what=f"event {reason}")


async def provide(cluster: Cluster) -> None:
    """Volumes for claims, by hand, where no storage class has them made (a control plane without a provisioner)."""
    for claim in await cluster.every("v1", "PersistentVolumeClaim"):
        if claim["spec"].get("storageClassName"):
            continue
        name = claim["metadata"]["name"]
        spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/srv"}}
        await cluster.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
        await cluster.patch("v1", "PersistentVolumeClaim", name, {"spec": {"volumeName": name}})
        await cluster.patch("v1", "PersistentVolumeClaim", name, {"status": {"phase": "Bound"}}, "status")
