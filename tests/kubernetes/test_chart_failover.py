"""Two processes, and whoever leads is killed while gangs are submitted: another takes over, and no gang is left half.

`KOHORT_KILLS=50` kills more often, `KOHORT_KILLS_ON=1.37` on real Kubernetes; the times are printed (`pytest -s`).
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.kubernetes.test_chart_life import gang, own_pods, space
from tests.support.chartbed import SPACE, Bed, bed

from kohort.testing.cluster import Cluster
from kohort.testing.environment.environment import Environment

KILLS = int(os.environ.get("KOHORT_KILLS", "2"))
ON = os.environ.get("KOHORT_KILLS_ON", "embedded")
STOPS = max(2, KILLS // 5)
GRACE = 120.0  # a busy machine; how long it took is printed
pytestmark = pytest.mark.timeout(600 + 120 * KILLS)


@pytest.fixture
async def cluster(tmp_path: Path, kubernetes_environments: Callable[..., Environment]) -> AsyncIterator[Bed]:
    async with bed(ON, tmp_path, kubernetes_environments) as found:
        found.host.longest_pause = 1.0  # processes are killed more often here than a kubelet is patient with
        await found.release("install", replicas=2)
        yield found


async def holder(cluster: Bed) -> str:
    lease = await cluster.client.kind("coordination.k8s.io/v1", "Lease").get("kohort", "kohort-system")
    return str(lease["spec"].get("holderIdentity") or "")


async def leader(cluster: Bed) -> str:
    """The pod whose process works, as it says itself."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as web:
        for pod in await own_pods(cluster):
            name = pod["metadata"]["name"]
            try:
                async with web.get(f"http://127.0.0.1:{cluster.host.port(name)}/readyz") as answer:
                    if answer.status == 200 and await answer.text() == "ok":
                        return str(name)
            except (aiohttp.ClientError, TimeoutError, StopIteration):
                continue
    return ""


async def somebody_stands_by(cluster: Bed, work: Cluster) -> None:
    """Where nobody does, it takes as long as a process takes to start."""

    async def two_are_ready() -> bool:
        deployment = await cluster.client.kind("apps/v1", "Deployment").get("kohort", SPACE)
        return bool(deployment["status"].get("readyReplicas") == 2)

    await work.until(two_are_ready, seconds=GRACE, what="a process that stands by")


async def taken_over(cluster: Bed, work: Cluster, number: signal.Signals) -> float:
    """Send whoever leads a signal; seconds until somebody else works."""
    led = await work.until(lambda: leader(cluster), seconds=GRACE, what="a process that works")
    before = await holder(cluster)
    began = asyncio.get_running_loop().time()
    cluster.host.processes[led].send_signal(number)

    async def another() -> Any:
        now = await holder(cluster)
        return now and now != before and await leader(cluster)

    await work.until(another, seconds=GRACE, what="another process that works")
    return asyncio.get_running_loop().time() - began


def whole(pods: list[dict[str, Any]], size: int) -> dict[str, int]:
    """Of each gang, how many pods have a node."""
    counts: dict[str, int] = {}
    for pod in pods:
        name = pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"]
        counts[name] = counts.get(name, 0) + bool(pod["spec"].get("nodeName"))
    return {name: count for name, count in counts.items() if count not in (0, size)}


async def test_whoever_stands_by_takes_over(cluster: Bed) -> None:
    """One installation for both: installing takes longer than most take-overs."""
    await killed_under_load(cluster)
    await stopped(cluster)


async def killed_under_load(cluster: Bed) -> None:
    work = await space(cluster, "load")
    work.patience = 90
    bound: dict[str, str] = {}  # uid -> node, which never changes
    seconds = []
    for number in range(KILLS):
        await somebody_stands_by(cluster, work)
        await asyncio.gather(*(work.create(gang(f"g{number}-{one}", pods=3)) for one in range(3)))
        seconds.append(await taken_over(cluster, work, signal.SIGKILL))
        print(f"kill {number + 1}: {seconds[-1]:.1f} s", flush=True)

        async def all_started() -> bool:
            pods = await work.pods()
            for pod in pods:
                node = pod["spec"].get("nodeName")
                if node:
                    assert bound.setdefault(pod["metadata"]["uid"], node) == node
            return len(pods) == 9 and not whole(pods, 3) and all(pod["spec"].get("nodeName") for pod in pods)

        await work.until(all_started, what="all gangs, each as a whole")
        for one in range(3):
            await cluster.client.kind("jobset.x-k8s.io/v1alpha2", "JobSet").delete(f"g{number}-{one}", "load")

        async def gone() -> bool:
            return not await work.pods()

        await work.until(gone, what="the end of the gangs")
    print(f"after kill -9: median {statistics.median(seconds):.1f} s, longest {max(seconds):.1f} s of {KILLS}")


async def stopped(cluster: Bed) -> None:
    work = await space(cluster, "calm")
    seconds = []
    for _ in range(STOPS):
        before = {name: process.pid for name, process in cluster.host.processes.items()}
        await somebody_stands_by(cluster, work)
        seconds.append(await taken_over(cluster, work, signal.SIGTERM))

        async def started_again(known: dict[str, int] = before) -> bool:
            return {name: process.pid for name, process in cluster.host.processes.items()} != known

        await work.until(started_again, seconds=GRACE, what="the stopped process, started again")
    print(f"after a clean stop: {', '.join(f'{one:.1f} s' for one in seconds)}")
    assert "stopped: nothing is left half done, the lease is free" in cluster.host.said()
