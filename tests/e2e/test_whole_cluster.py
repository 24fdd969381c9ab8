"""The embedded cluster as a whole: a Job becomes a gang, starts together, finishes; one that cannot fit says why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.cli.cluster import whole
from kohort.kube.client import Client
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import plain

SECONDS = 60.0


@pytest.fixture(params=["1.36", "1.37"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    settings = Settings(data=tmp_path, minor=request.param, gates={}, port=0, in_memory=True)
    async with Server(settings) as server, whole(server, plain(4)) as client:
        yield client


def job(name: str, pods: int, cpu: str) -> dict[str, Any]:
    """A Job whose pods are one gang in both generations: inferred in 1.36, declared in 1.37."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    annotations = {"sim.kohort.dev/run-seconds": "0.2"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }


async def until(look: Callable[[], Any]) -> Any:
    """The first true answer."""
    async with asyncio.timeout(SECONDS):
        while not (found := await look()):
            await asyncio.sleep(0.02)
        return found


def condition(obj: dict[str, Any], kind: str) -> dict[str, Any] | None:
    return next((c for c in obj.get("status", {}).get("conditions", ()) if c["type"] == kind), None)


async def gang(client: Client, name: str, pods: int, cpu: str) -> None:
    body = job(name, pods, cpu)
    if "v1beta1" in await client.discovery.versions("scheduling.k8s.io", "PodGroup"):
        body["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {}}}
    await client.kind("batch/v1", "Job").create(body)


async def group_of(client: Client, name: str) -> dict[str, Any] | None:
    (version, *_) = await client.discovery.versions("scheduling.k8s.io", "PodGroup")
    groups = (await client.kind(f"scheduling.k8s.io/{version}", "PodGroup").list()).items
    return next((group for group in groups if group["metadata"]["name"].startswith(name)), None)


async def test_a_gang_starts_together_and_finishes(client: Client) -> None:
    await gang(client, "ring", 6, "1")

    async def complete() -> Any:
        return condition(await client.kind("batch/v1", "Job").get("ring"), "Complete")

    await until(complete)
    pods = (await client.kind("v1", "Pod").list()).items
    group = await group_of(client, "ring")
    assert group is not None
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {group["metadata"]["name"]}
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"] * 6


async def test_a_gang_that_does_not_fit_binds_nothing_and_says_why(client: Client) -> None:
    await gang(client, "giant", 100, "4")

    async def refused() -> Any:
        group = await group_of(client, "giant")
        return group and next(
            (c for c in group.get("status", {}).get("conditions", ()) if c["status"] == "False"), None
        )

    why = await until(refused)
    assert why["reason"] == "Unschedulable"
    assert "cpu" in why["message"]
    pods = (await client.kind("v1", "Pod").list()).items
    assert [pod for pod in pods if pod["spec"].get("nodeName")] == []


async def test_a_jobset_gang_starts_together_and_is_cleaned_up(client: Client) -> None:
    worker = job("unused", 2, "1")["spec"]
    jobs = [{"name": "ctl", "replicas": 1, "template": {"spec": worker}}]
    jobs.append({"name": "wrk", "replicas": 2, "template": {"spec": worker}})
    body = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "aurora"},
        "spec": {"gangConfig": {"gangMode": "Gang"}, "replicatedJobs": jobs},
    }
    jobsets = client.kind("jobset.x-k8s.io/v1alpha2", "JobSet")
    await jobsets.create(body)

    async def completed() -> Any:
        return condition(await jobsets.get("aurora"), "Completed")

    await until(completed)
    pods = (await client.kind("v1", "Pod").list()).items
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {"pg-aurora"}
    assert len(pods) == 6

    async def gone() -> bool:
        return await group_of(client, "pg-aurora") is None

    await until(gone)
