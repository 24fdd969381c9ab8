"""The same scheduler on the Workload APIs of 1.35 (Workload and tuples) and 1.36 (PodGroup v1alpha2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.kubernetes.test_scheduler import SETTINGS, Cluster, _when, cluster

from kohort.scheduler.loop import Scheduler, running
from kohort.testing.environment import Environment
from kohort.testing.pytest_plugin import require_binaries

GROUP = "scheduling.k8s.io"


async def member(here: Cluster, name: str, link: dict[str, Any]) -> None:
    spec = {
        **link,
        "schedulerName": "kohort",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "example.org/image", "resources": {"requests": {"cpu": "1"}}}],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    await here.pods.create(body, here.namespace)


async def test_1_36_pod_groups() -> None:
    require_binaries("1.36")
    async with Environment("1.36") as env, cluster(env, "old") as here:
        groups = here.client.kind(f"{GROUP}/v1alpha2", "PodGroup")
        body = {"apiVersion": f"{GROUP}/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}}
        body["spec"] = {"schedulingPolicy": {"gang": {"minCount": 3}}}
        async with running(Scheduler(here.client, SETTINGS)) as scheduler:
            assert (scheduler.release.minor, scheduler.release.condition) == ("1.36", "PodGroupScheduled")
            await here.node("n0", "4")
            await groups.create(body, "old")
            for number in range(2):
                await member(here, f"g-{number}", {"schedulingGroup": {"podGroupName": "g"}})
            await asyncio.sleep(0.5)
            assert await here.bound() == {}
            await member(here, "g-2", {"schedulingGroup": {"podGroupName": "g"}})
            await here.until(lambda: _when(here, 3))
            said = await here.until(lambda: here.condition(groups, "g", "PodGroupScheduled"))
            assert said == ("True", "Scheduled")


@pytest.mark.parametrize("replicas", [2])
async def test_1_35_workloads_and_tuples(replicas: int) -> None:
    require_binaries("1.35")
    async with Environment("1.35") as env, cluster(env, "older") as here:
        workloads = here.client.kind(f"{GROUP}/v1alpha1", "Workload")
        body = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Workload", "metadata": {"name": "w"}}
        body["spec"] = {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]}
        async with running(Scheduler(here.client, SETTINGS)) as scheduler:
            assert scheduler.release.minor == "1.35"
            await here.node("n0", "8")
            for replica in range(replicas):
                link = {"workloadRef": {"name": "w", "podGroup": "workers", "podGroupReplicaKey": f"r{replica}"}}
                await member(here, f"r{replica}-0", link)
            await asyncio.sleep(0.5)
            assert {one.reason for one in scheduler.core.pending()} == {"WaitingForPodGroup"}
            await workloads.create(body, "older")
            await asyncio.sleep(0.5)
            assert await here.bound() == {}, "each replica is a gang of its own"
            link = {"workloadRef": {"name": "w", "podGroup": "workers", "podGroupReplicaKey": "r1"}}
            await member(here, "r1-1", link)
            bound = await here.until(lambda: _when(here, 2))
            assert sorted(bound) == ["r1-0", "r1-1"]
