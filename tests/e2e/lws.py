"""What the tests of LeaderWorkerSets ask for and look at."""

from __future__ import annotations

from typing import Any

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster, condition

API = "leaderworkerset.x-k8s.io/v1"
KIND = "LeaderWorkerSet"
PREFIX = "leaderworkerset.sigs.k8s.io/"


def container(image: str = "tool:1", **more: Any) -> Object:
    return {"name": "main", "image": image, "resources": {"requests": {"cpu": "1"}}, **more}


def template(image: str = "tool:1", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    notes = {"sim.kohort.dev/start-seconds": "0.2", "sim.kohort.dev/stop-seconds": "0.2", **(annotations or {})}
    return {"metadata": {"annotations": notes}, "spec": {"containers": [container(image)], **spec}}


def lws(name: str, replicas: int = 1, size: int = 2, **more: Any) -> Object:
    """`more`: members of the spec; those of leaderWorkerTemplate and metadata are told apart by their names."""
    inner = ("workerTemplate", "leaderTemplate", "restartPolicy", "subGroupPolicy", "volumeClaimTemplates")
    inner += ("persistentVolumeClaimRetentionPolicy",)
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
            found = (await self.get(name)).get("status") or {}
            return found if all(found.get(key, 0) == value for key, value in status.items()) else None

        found = await self.cluster.until(look, what=f"{name} with {status}")
        assert found is not None
        return found

    async def reasons(self) -> set[str]:
        return {str(event["reason"]) for event in await self.cluster.events()}

    async def notes(self, reason: str) -> list[str]:
        return [str(event.get("message") or event.get("note")) for event in await self.cluster.events(reason)]
