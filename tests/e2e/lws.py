"""What the tests of LeaderWorkerSets ask for and look at."""

from __future__ import annotations

from typing import Any

from kohort.api.kind import Object
from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster, condition

API = "leaderworkerset.x-k8s.io/v1"
KIND = "LeaderWorkerSet"
PREFIX = "leaderworkerset.sigs.k8s.io/"


def container(image: str = "tool:1", **more: Any) -> Object:
    return {"name": "main", "image": image, "resources": {"requests": {"cpu": "1"}}, **more}


def template(image: str = "tool:1", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    notes = {"sim.kohort.dev/start-seconds": "0.2", "sim.kohort.dev/stop-seconds": "1.5", **(annotations or {})}
    return {"metadata": {"annotations": notes}, "spec": {"containers": [container(image)], **spec}}


def lws(name: str, replicas: int = 1, size: int = 2, **more: Any) -> Object:
    """`more`: members of the spec; those of leaderWorkerTemplate and metadata are told apart by their names."""
    inner = (
        *("workerTemplate", "leaderTemplate", "restartPolicy", "subGroupPolicy"),
        *("volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy"),
    )
    outer = ("annotations", "labels", "ownerReferences")
    pods = {"size": size, "workerTemplate": template(), **{key: more[key] for key in inner if key in more}}
    spec = {"replicas": replicas, "leaderWorkerTemplate": pods}
    spec |= {key: value for key, value in more.items() if key not in (*inner, *outer)}
    meta = {"name": name, **{key: more[key] for key in outer if key in more}}
    return {"apiVersion": API, "kind": KIND, "metadata": meta, "spec": spec}


class Sets:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def create(self, name: str, replicas: int = 1, size: int = 2, **more: Any) -> Object:
        return await self.cluster.create(lws(name, replicas, size, **more))

    async def get(self, name: str) -> Object:
        found = await self.cluster.get(API, KIND, name)
        assert found is not None
        return found

    async def patch(self, name: str, spec: Object, subresource: str = "") -> None:
        await self.cluster.patch(API, KIND, name, {"spec": spec}, subresource)

    async def image(self, name: str, image: str, **annotations: str) -> None:
        await self.patch(name, {"leaderWorkerTemplate": {"workerTemplate": template(image, annotations)}})

    async def available(self, name: str, generation: int | None = None) -> Object:
        """Waits until all of the present generation is ready."""

        async def look() -> Object | None:
            found = await self.get(name)
            wanted = found["metadata"]["generation"] if generation is None else generation
            told = condition(found, "Available")
            up = told is not None and told["status"] == "True" and told["observedGeneration"] >= wanted
            return found if up else None

        found = await self.cluster.until(look, what=f"{name} being available")
        assert found is not None
        return found

    async def pods(self, name: str = "") -> dict[str, Object]:
        every = await self.cluster.pods(f"{PREFIX}name={name}" if name else "")
        return {pod["metadata"]["name"]: pod for pod in every}

    async def names(self, name: str = "") -> list[str]:
        return sorted(await self.pods(name))

    async def uids(self, name: str = "") -> dict[str, str]:
        return {key: pod["metadata"]["uid"] for key, pod in (await self.pods(name)).items()}

    async def images(self, name: str = "") -> dict[str, str]:
        return {key: pod["spec"]["containers"][0]["image"] for key, pod in (await self.pods(name)).items()}

    async def settled(self, name: str, **status: int) -> Object:
        """Waits for counters."""

        async def look() -> Object | None:
            whole = await self.get(name)
            found: Object = whole.get("status") or {}
            if found.get("observedGeneration") != whole["metadata"]["generation"]:
                return None
            return found if all(found.get(key, 0) == value for key, value in status.items()) else None

        found = await self.cluster.until(look, what=f"{name} with {status}")
        assert found is not None
        return found

    async def reasons(self) -> set[str]:
        return {str(event["reason"]) for event in await self.cluster.events()}

    async def notes(self, reason: str) -> list[str]:
        return [str(event.get("message") or event.get("note")) for event in await self.cluster.events(reason)]

    async def restart_container(self, pod: str) -> None:
        """As a kubelet tells it when a container has ended and runs again."""
        found = (await self.pods())[pod]
        told = [{**one, "restartCount": 1} for one in found["status"]["containerStatuses"]]
        for one in told:
            one["state"] = {"running": {"startedAt": await self._now(found)}}
        await self.cluster.patch("v1", "Pod", pod, {"status": {"containerStatuses": told}}, "status")

    async def _now(self, pod: Object) -> str:
        """A moment after everything that has happened so far, by the server's clock."""
        stamp = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "now-"}}
        await self.cluster.sleep(1.1)
        made = await self.cluster.create(stamp)
        return str(made["metadata"]["creationTimestamp"])

    async def fail(self, pod: str) -> None:
        await self.cluster.patch("v1", "Pod", pod, {"status": {"phase": "Failed"}}, "status")

    async def renewed(self, before: dict[str, str], names: set[str]) -> None:
        """Waits until exactly these pods are others than they were, and all are up again."""

        async def look() -> bool:
            pods = await self.pods()
            now = {name: pod["metadata"]["uid"] for name, pod in pods.items()}
            changed = {name for name in before if now.get(name) != before[name]}
            up = all(ready(pod) for pod in pods.values())
            return up and changed == names and set(now) == set(before)

        await self.cluster.until(look, what=f"{sorted(names)} being new")

    async def groups(self) -> dict[str, int | None]:
        """PodGroups with their minimums."""
        return {one["metadata"]["name"]: minimum(one["spec"]) for one in await self.cluster.pod_groups()}

    async def bound(self, name: str = "") -> set[str]:
        return {key for key, pod in (await self.pods(name)).items() if pod["spec"].get("nodeName")}


def ready(pod: Object) -> bool:
    told = condition(pod, "Ready")
    return told is not None and told["status"] == "True" and "deletionTimestamp" not in pod["metadata"]


def minimum(spec: Object) -> int | None:
    policy = spec.get("schedulingPolicy") or spec.get("policy") or {}
    found: int | None = (policy.get("gang") or {}).get("minCount")
    return found


def group_of(pod: Object) -> tuple[str, str]:
    """What makes a pod's gang its own: group and, on 1.35, its key in the Workload."""
    spec = pod["spec"]
    link = spec.get("workloadRef") or {}
    return (spec.get("schedulingGroup") or {}).get("podGroupName") or link.get("podGroup") or "", (
        link.get("podGroupReplicaKey") or ""
    )


def label(obj: Object, key: str) -> str | None:
    found: str | None = (obj["metadata"].get("labels") or {}).get(PREFIX + key)
    return found


def env(pod: Object) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0]["env"]}


async def refused(cluster: Cluster, sets: Sets, body: Object) -> None:
    """At admission; a server that does not know our rules takes it, and then the set says why nothing comes of it."""
    code = 201
    try:
        await cluster.create(body)
    except ApiError as error:
        code = error.code

    async def told() -> bool:
        found = condition(await cluster.get(API, KIND, "no"), "WorkloadSchedulingCreated")
        return bool(found and found["reason"] == "InvalidSchedulingConfiguration")

    assert code in (201, 403, 422)
    if code == 201:
        await cluster.until(told, what="the refusal being told")
    await cluster.sleep(1)
    assert not await sets.names()
    assert not await cluster.workloads()
