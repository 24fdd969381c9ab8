"""Our JobSet controller on real Kubernetes: its API server, Job controller, collector and scheduler; our nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from kohort.api.crd import crd
from kohort.api.kind import Object
from kohort.api.options import context
from kohort.controllers.runtime import Runtime
from kohort.gang.compile import CompileContext
from kohort.kinds.controllers import make, probe
from kohort.kinds.jobset.api import JOBSET
from kohort.kube.client import Client
from kohort.sim.cluster import Pool
from kohort.sim.kubelet import KubeletSimulator
from kohort.testing.environment import Environment
from kohort.testing.pytest_plugin import require_binaries

NS = "default"
SECONDS = 90.0
RACK = "example.com/rack"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def env() -> Iterator[Environment]:
    require_binaries("1.37")
    with Environment("1.37", with_=("kcm", "scheduler")) as made:
        client = made.client()
        client.create(DEFINITIONS, crd([JOBSET]))
        end = time.monotonic() + 30
        while client.request("GET", "/apis/jobset.x-k8s.io/v1alpha2/jobsets").code != 200:
            assert time.monotonic() < end, "the definition is not served"
            time.sleep(0.2)
        yield made


@pytest_asyncio.fixture
async def client(env: Environment) -> AsyncIterator[Client]:
    base = context("1.37")
    ctx = CompileContext(base.release, base.gates, base.options)
    pools = [Pool(name=f"rack-{rack}", count=2, labels={RACK: rack}) for rack in "ab"]
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.connect(env.kubeconfig, manager="kohort"))
        client.namespace = NS
        kubelets = await stack.enter_async_context(KubeletSimulator(client, pools, lifecycle=False, heartbeat=10))
        names = ("jobset", "jobset-placement")
        runtime = await stack.enter_async_context(Runtime(client, make(await probe(client, ctx), names)))
        await kubelets.ready()
        await runtime.ready()
        yield client


async def until(look: Callable[[], Awaitable[Any]], what: str) -> Any:
    end = time.monotonic() + SECONDS
    while not (found := await look()):
        assert time.monotonic() < end, f"{what} did not happen"
        await asyncio.sleep(0.2)
    return found


def jobset(name: str, seconds: str, *, notes: dict[str, str] | None = None, **spec: Any) -> Object:
    """As users write it: nobody has filled in what webhooks would."""
    pod = {"containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]}
    annotations = {"sim.kohort.dev/run-seconds": seconds, "sim.kohort.dev/start-seconds": "0.1"}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    job = {"parallelism": 2, "completions": 2, "template": template}
    jobs = [{"name": "w", "replicas": 2, "template": {"spec": job}}]
    meta = {"name": name, **({"annotations": notes} if notes else {})}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": meta,
        "spec": {"replicatedJobs": jobs, **spec},
    }


async def running(client: Client, name: str) -> list[Object]:
    labels = f"jobset.sigs.k8s.io/jobset-name={name}"
    found = (await client.kind("v1", "Pod").list(NS, labels=labels)).items
    return [pod for pod in found if pod["status"].get("phase") == "Running"]


async def test_a_gang_on_real_kubernetes(client: Client) -> None:
    jobsets = client.kind("jobset.x-k8s.io/v1alpha2", "JobSet")
    await jobsets.create(jobset("aurora", "3", gangConfig={"gangMode": "Gang"}))

    async def together() -> list[Object]:
        found = await running(client, "aurora")
        return found if len(found) == 4 else []

    pods = await until(together, "four pods running")
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {"pg-aurora"}
    group = await client.kind("scheduling.k8s.io/v1beta1", "PodGroup").get("pg-aurora")
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}

    async def completed() -> Any:
        return (await jobsets.get("aurora")).get("status", {}).get("terminalState") == "Completed"

    await until(completed, "the end")

    async def gone() -> bool:
        left = await client.kind("scheduling.k8s.io/v1beta1", "PodGroup").list(NS)
        return not left.items

    await until(gone, "the group going")


async def test_exclusive_placement_without_webhooks(client: Client) -> None:
    notes = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
    await client.kind("jobset.x-k8s.io/v1alpha2", "JobSet").create(jobset("hawk", "600", notes=notes))

    async def placed() -> list[Object]:
        found = await running(client, "hawk")
        return found if len(found) == 4 else []

    racks: dict[str, set[str]] = {}
    for pod in await until(placed, "four pods running"):
        job = pod["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"]
        racks.setdefault(job, set()).add(pod["spec"]["nodeName"].rpartition("-")[0])
    assert sorted(map(len, racks.values())) == [1, 1]
    assert racks["0"] != racks["1"]
