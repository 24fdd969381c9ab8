"""The other tenant: gangs that are started one after the other, and how long each takes until all its pods run."""

from __future__ import annotations

import asyncio
import time

from tests.abuse.cluster import JOBSETS, Tenant

PODS = 3
GANG_SECONDS = 240.0
_LOOK_SECONDS = 0.02
_PAUSE_SECONDS = 0.2  # in which the last one goes: a gang's time is its own, and this tenant a light one


async def start(tenant: Tenant, name: str) -> float:
    """Seconds from the request until every pod has its node; GANG_SECONDS or more: it has not started."""
    job = {
        "parallelism": PODS,
        "completions": PODS,
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    body = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"gangConfig": {"gangMode": "Gang"}, "replicatedJobs": [{"name": "w", "template": {"spec": job}}]},
    }
    path = JOBSETS.format(tenant.namespace)
    pods = f"/api/v1/namespaces/{tenant.namespace}/pods?labelSelector=jobset.sigs.k8s.io/jobset-name%3D{name}"
    began = time.perf_counter()
    code, found = await tenant.send("POST", path, body)
    if code != 201:
        return GANG_SECONDS
    while (seconds := time.perf_counter() - began) < GANG_SECONDS:
        _, found = await tenant.send("GET", pods)
        if sum(1 for pod in found.get("items", []) if pod["spec"].get("nodeName")) == PODS:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    await tenant.send("DELETE", f"{path}/{name}?propagationPolicy=Background")
    await asyncio.sleep(_PAUSE_SECONDS)
    return seconds


async def series(tenant: Tenant, prefix: str, count: int) -> list[float]:
    return [await start(tenant, f"{prefix}-{number}") for number in range(count)]


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
