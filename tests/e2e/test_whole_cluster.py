"""The cluster as a whole: a Job becomes a gang, starts together, finishes; one that cannot fit says why."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.testing.cluster import Cluster

JOBSET = "jobset.x-k8s.io/v1alpha2"


def job(name: str, pods: int, cpu: str) -> dict[str, Any]:
    """A Job whose pods are one gang in both releases: inferred in 1.36, declared in 1.37."""
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


async def gang(cluster: Cluster, name: str, pods: int, cpu: str) -> None:
    body = job(name, pods, cpu)
    if await cluster.serves("scheduling.k8s.io/v1beta1", "PodGroup"):
        body["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {}}}
    await cluster.create(body)


@pytest.mark.releases("1.36", "1.37")
async def test_a_gang_starts_together_and_finishes(cluster: Cluster) -> None:
    await gang(cluster, "ring", 6, "1")
    await cluster.until(lambda: cluster.condition("batch/v1", "Job", "ring", "Complete"))
    pods = await cluster.pods()
    (group,) = await cluster.pod_groups()
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {group["metadata"]["name"]}
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"] * 6


@pytest.mark.releases("1.36", "1.37")
async def test_a_gang_that_does_not_fit_binds_nothing_and_says_why(cluster: Cluster) -> None:
    await gang(cluster, "giant", 100, "4")

    async def refused() -> Any:
        return [
            found
            for group in await cluster.pod_groups()
            for found in group.get("status", {}).get("conditions", ())
            if found["status"] == "False" and found["type"] != "PodGroupSatisfied"
        ]

    (why,) = await cluster.until(refused)
    assert why["reason"] == "Unschedulable"
    assert "cpu" in why["message"]
    assert [pod for pod in await cluster.pods() if pod["spec"].get("nodeName")] == []


@pytest.mark.releases("1.36", "1.37")
async def test_a_jobset_gang_starts_together_and_is_cleaned_up(cluster: Cluster) -> None:
    worker = job("unused", 2, "1")["spec"]
    jobs = [{"name": "ctl", "replicas": 1, "template": {"spec": worker}}]
    jobs.append({"name": "wrk", "replicas": 2, "template": {"spec": worker}})
    body = {
        "apiVersion": JOBSET,
        "kind": "JobSet",
        "metadata": {"name": "aurora"},
        "spec": {"gangConfig": {"gangMode": "Gang"}, "replicatedJobs": jobs},
    }
    await cluster.create(body)
    await cluster.until(lambda: cluster.condition(JOBSET, "JobSet", "aurora", "Completed"))
    pods = await cluster.pods()
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {"pg-aurora"}
    assert len(pods) == 6

    async def gone() -> bool:
        return not await cluster.pod_groups()

    await cluster.until(gone)


async def test_an_hour_passes_in_no_time(cluster: Cluster) -> None:
    """Virtual time is kept by all: the controllers, the nodes, and the server's stamps."""
    body = job("slow", 1, "1")
    body["spec"]["template"]["metadata"]["annotations"]["sim.kohort.dev/run-seconds"] = "3600"
    await cluster.create(body)
    await cluster.until(lambda: cluster.condition("batch/v1", "Job", "slow", "Complete"), seconds=4000)
    (pod,) = await cluster.pods()
    assert pod["status"]["phase"] == "Succeeded"
