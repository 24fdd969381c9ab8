"""A simulation is the scheduler: a trace on `kohort up` in virtual time starts at the same seconds on the same nodes.

KOHORT_TRACES=50 tries so many random traces.
"""

from __future__ import annotations

import asyncio
import os
import random
from datetime import timedelta
from typing import Any

import pytest

from kohort.apimachinery import times
from kohort.kube.client import Client
from kohort.sim.cluster import Level, Pool
from kohort.simulate.run import Simulation
from kohort.simulate.trace import Trace, TraceJob
from kohort.testing.cluster import cluster
from kohort.testing.virtual import VirtualLoop

TRACES = int(os.environ.get("KOHORT_TRACES", "2"))
RACK = "example.com/rack"
GPU = "nvidia.com/gpu"
NODES = Pool(
    name="node",
    count=8,
    capacity={"cpu": "32", "memory": "1Ti", "pods": "110", GPU: "8"},
    topology=(Level(RACK, 2),),
)
Starts = dict[str, tuple[int, dict[int, str]]]  # job -> second, node of each pod


def trace(seed: int) -> Trace:
    """Gangs and single pods that compete. No two things happen in the same second: who would be first is left open."""
    rng = random.Random(seed)
    jobs: list[TraceJob] = []
    for number in range(rng.randrange(12, 30)):
        pods = rng.choice((1, 1, 1, 2, 3, 4, 6))
        asks = {
            "cpu": str(rng.choice((1, 4, 8, 16))),
            **({GPU: str(rng.choice((1, 2, 4, 8)))} if rng.random() < 0.7 else {}),
        }
        topology = RACK if pods in {2, 3, 4} and rng.random() < 0.4 else ""
        duration = float(rng.randrange(20, 200))
        jobs.append(TraceJob(f"j{number}", float(rng.randrange(1, 250)), duration, pods, asks, topology=topology))
    jobs.sort(key=lambda one: one.at)
    return Trace(tuple(jobs))


def simulated(asked: Trace) -> Starts | None:
    """None if it depends on the order of what happens in one second: of two events, or of a gang's pods that end."""
    found: list[Starts] = []
    for one_by_one in (False, True):
        outcome = Simulation(asked, NODES.nodes(), one_by_one=one_by_one).run()
        moments = [one.job.at for one in outcome.runs] + [one.ended for one in outcome.runs]
        if len(moments) != len(set(moments)):
            return None
        found.append({one.job.name: (int(one.started), one.nodes) for one in outcome.runs})
    return found[0] if found[0] == found[1] else None


async def submit(client: Client, job: TraceJob) -> None:
    link: dict[str, Any] = {}
    if job.pods > 1 or job.topology:
        constraints = {"schedulingConstraints": {"topology": [{"key": job.topology}]}} if job.topology else {}
        spec = {"schedulingPolicy": {"gang": {"minCount": job.pods}}, **constraints}
        group = {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": job.name},
            "spec": spec,
        }
        await client.of(group).create(group, "test")
        link = {"schedulingGroup": {"podGroupName": job.name}}
    behaviour = {"sim.kohort.dev/run-seconds": str(int(job.duration)), "sim.kohort.dev/start-seconds": "0"}
    resources = {
        "requests": dict(job.requests),
        "limits": {name: one for name, one in job.requests.items() if "/" in name},
    }
    container = {"name": "c", "image": "i", "resources": resources}
    for index in range(job.pods):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{job.name}-{index}", "annotations": behaviour},
            "spec": {**link, "schedulerName": "kohort", "restartPolicy": "Never", "containers": [container]},
        }
        await client.of(pod).create(pod, "test")


def lived(asked: Trace) -> Starts:
    """The embedded cluster; every job is submitted at its second."""

    async def work() -> Starts:
        async with cluster("1.37", pools=[NODES], namespace="test") as found:
            client = found.client
            clock = client.clock
            begin = clock.now().replace(microsecond=0) + timedelta(seconds=2)
            for job in asked.jobs:
                await clock.sleep((begin + timedelta(seconds=job.at) - clock.now()).total_seconds())
                await submit(client, job)
            pods = client.kind("v1", "Pod")
            while any(one["status"].get("phase") != "Succeeded" for one in (await pods.list("test")).items):
                await clock.sleep(20)
            starts: Starts = {}
            for pod in (await pods.list("test")).items:
                name, _, index = pod["metadata"]["name"].rpartition("-")
                said = next(one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled")
                moment = times.parse(said["lastTransitionTime"])
                assert moment is not None
                at = int((moment - begin).total_seconds())
                starts.setdefault(name, (at, {}))[1][int(index)] = pod["spec"].get("nodeName", "")
            return starts

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


@pytest.mark.parametrize("seed", range(TRACES))
def test_the_same_starts_and_nodes(seed: int) -> None:
    asked, found = trace(seed), None
    for number in range(300):
        asked = trace(1000 * seed + number)
        found = simulated(asked)
        if found is not None:
            break
    assert found is not None
    assert lived(asked) == found
