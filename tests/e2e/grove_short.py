"""Sets of cliques in a few words, and what the Grove tests ask most."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Object
from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster, condition

GROVE: Final = "grove.io/v1alpha1"
GANGS: Final = "scheduler.grove.io/v1alpha1"
GATE: Final = "grove.io/podgang-pending-creation"
QUICK: Final = {"sim.kohort.dev/start-seconds": "0.2", "sim.kohort.dev/stop-seconds": "0.1"}


def clique(name: str, replicas: int = 1, least: int | None = None, *, image: str = "tool:1", **more: Any) -> Object:
    """`pod`, `spec`, `annotations` go to where they belong, the rest into the entry itself."""
    pod = {"containers": [{"name": "main", "image": image}], **more.pop("pod", {})}
    spec = {"roleName": name, "replicas": replicas, "podSpec": pod, **more.pop("spec", {})}
    if least is not None:
        spec["minAvailable"] = least
    return {"name": name, "annotations": {**QUICK, **more.pop("annotations", {})}, "spec": spec, **more}


def group(name: str, cliques: list[str], replicas: int = 1, least: int = 1, **more: Any) -> Object:
    return {"name": name, "cliqueNames": cliques, "replicas": replicas, "minAvailable": least, **more}


def cliqueset(
    name: str, *cliques: Object, replicas: int = 1, groups: list[Object] | None = None, **more: Any
) -> Object:
    template: Object = {"cliques": list(cliques), **more.pop("template", {})}
    if groups:
        template["podCliqueScalingGroups"] = list(groups)
    return {
        "apiVersion": GROVE,
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": template, **more},
    }


def binding(name: str = "fabric") -> Object:
    levels = [
        {"domain": "zone", "key": "topology.kubernetes.io/zone"},
        {"domain": "rack", "key": "topology.kubernetes.io/rack"},
        {"domain": "host", "key": "kubernetes.io/hostname"},
    ]
    return {
        "apiVersion": GROVE,
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": name},
        "spec": {"levels": levels},
    }


def rack(name: str = "fabric") -> Object:
    return {"topologyConstraint": {"topologyName": name, "pack": {"required": "rack"}}}


async def shared(c: Cluster, *objects: Object) -> None:
    """Objects of the whole cluster, which another test may have made already."""
    for obj in objects:
        try:
            await c.client.of(obj).create(obj)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise


# ---- looking


def names(objects: list[Object]) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in objects)


def gates(pod: Object) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


def of(pods: list[Object], pclq: str) -> list[Object]:
    return [pod for pod in pods if pod["metadata"]["labels"].get("grove.io/podclique") == pclq]


def membership(pod: Object) -> str:
    """The group of a pod, in the words of its release."""
    spec = pod["spec"]
    if "schedulingGroup" in spec:
        return str(spec["schedulingGroup"]["podGroupName"])
    return "/".join(str(spec["workloadRef"][member]) for member in ("name", "podGroup"))


def image(pod: Object) -> str:
    return str(pod["spec"]["containers"][0]["image"])


async def gangs(c: Cluster) -> list[Object]:
    return await c.every(GANGS, "PodGang")


async def cliques(c: Cluster) -> list[Object]:
    return await c.every(GROVE, "PodClique")


async def uids(c: Cluster, *, pods: bool = False) -> dict[str, str]:
    """Of gangs and groups, by kind and name."""
    found = [*await gangs(c), *await c.workloads(), *await c.composites(), *await c.pod_groups()]
    found += await c.pods() if pods else []
    return {f"{obj['kind']}/{obj['metadata']['name']}": obj["metadata"]["uid"] for obj in found}


async def versions(c: Cluster) -> dict[str, str]:
    found = [*await c.workloads(), *await c.composites(), *await c.pod_groups()]
    return {f"{obj['kind']}/{obj['metadata']['name']}": obj["metadata"]["resourceVersion"] for obj in found}


async def available(c: Cluster, name: str, replicas: int = 1) -> Object:
    """Waits until so many replicas of a set are available and of the generation of today."""

    async def look() -> Object | None:
        found = await c.get(GROVE, "PodCliqueSet", name)
        status = (found or {}).get("status") or {}
        counts = (status.get("availableReplicas"), status.get("updatedReplicas"), status.get("observedGeneration"))
        return found if found and counts == (replicas, replicas, found["metadata"]["generation"]) else None

    found = await c.until(look, what=f"PodCliqueSet {name} with {replicas} available replicas")
    assert found is not None
    return found


async def scale(c: Cluster, kind: str, name: str, replicas: int) -> None:
    await c.patch(GROVE, kind, name, {"spec": {"replicas": replicas}}, "scale")


async def new_image(c: Cluster, name: str, clique_name: str, image_name: str) -> None:
    """Changes one template of a set."""
    found = await c.get(GROVE, "PodCliqueSet", name)
    assert found is not None
    entries = found["spec"]["template"]["cliques"]
    entry = next(one for one in entries if one["name"] == clique_name)
    entry["spec"]["podSpec"]["containers"][0]["image"] = image_name
    await c.patch(GROVE, "PodCliqueSet", name, {"spec": {"template": {"cliques": entries}}})


async def refused(c: Cluster, obj: Object) -> str:
    """What is said against a set: when it is submitted or, by a server without rules in front, in its status.

    In any case none of its pods has a place. It is gone afterwards.
    """
    try:
        await c.create(obj)
    except ApiError as error:
        if error.code not in (403, 422):
            raise
        return error.message
    name = obj["metadata"]["name"]

    async def look() -> str:
        found = await c.get(GROVE, "PodCliqueSet", name)
        errors = (found or {}).get("status", {}).get("lastErrors") or []
        return "; ".join(f"{one['code']}: {one['description']}" for one in errors)

    told = await c.until(look, what=f"{name} telling what is wrong")
    mine = await c.pods(f"app.kubernetes.io/part-of={name}")
    assert [pod["metadata"]["name"] for pod in mine if pod["spec"].get("nodeName")] == []
    await c.delete(GROVE, "PodCliqueSet", name, propagation="Foreground")

    async def away() -> bool:
        return await c.get(GROVE, "PodCliqueSet", name) is None and not await c.pods(
            f"app.kubernetes.io/part-of={name}"
        )

    await c.until(away, what=f"{name} going")
    return told


async def gone(c: Cluster) -> None:
    """Nothing of Grove is left, and nothing that it made."""
    for version, kind in (
        (GROVE, "PodCliqueSet"),
        (GROVE, "PodClique"),
        (GROVE, "PodCliqueScalingGroup"),
        (GANGS, "PodGang"),
        ("v1", "Pod"),
        ("v1", "Service"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ):
        await c.gone(version, kind)

    async def look() -> bool:
        return not [*await c.workloads(), *await c.composites(), *await c.pod_groups()]

    await c.until(look, what="the last group going")


def is_true(obj: Object | None, kind: str) -> bool:
    return (condition(obj, kind) or {}).get("status") == "True"
