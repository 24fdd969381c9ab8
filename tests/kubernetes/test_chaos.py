"""`kohort run` on real Kubernetes while things die under it in the middle of binding: afterwards every gang is whole
or waits and says why, and no pod was bound a second time.

Big gangs and one trouble each; then random runs (tests.kubernetes.chaos), of which KOHORT_CHAOS says how many
(`KOHORT_CHAOS=200`) and KOHORT_CHAOS_SEED where to begin: a run that failed names its seed. The same in virtual time,
where a seed repeats every request: tests/run/test_chaos. KOHORT_AWAY=60 keeps the API server away for a minute.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.chaos import CALM_SECONDS, Run
from tests.kubernetes.ground import Ground
from tests.support.real import Kubernetes

from kohort.kube.client import Client
from kohort.kube.errors import KubeError
from kohort.kube.informer import Informer
from kohort.testing.cluster import condition
from kohort.testing.environment import Environment
from kohort.testing.pytest_plugin import require_binaries

Json = dict[str, Any]
RBAC = Path(__file__).parents[2] / "deploy" / "rbac.yaml"
GROUPS = ("scheduling.k8s.io/v1beta1", "PodGroup")
NODES, CPU = 4, 16
GANGS = {"a": 40, "b": 22, "c": 22}  # 64 fit: the first and one of the others


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[Kubernetes]:
    require_binaries("1.37")
    with Environment("1.37") as env:
        made = Kubernetes(env, RBAC)
        yield made
        made.stop()


@pytest.fixture
async def client(kubernetes: Kubernetes) -> AsyncIterator[Client]:
    """In a namespace of its own. Nodes exist on paper; they and the pods are gone afterwards."""
    async with Client.connect(kubernetes.env.kubeconfig) as made:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "chaos-"}}
        made.namespace = (await made.kind("v1", "Namespace").create(space))["metadata"]["name"]
        nodes, pods = made.resource("nodes"), made.resource("pods")
        for number in range(NODES):
            name = f"n{number}"
            node = await nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            amounts = {"cpu": str(CPU), "memory": "64Gi", "pods": "110"}
            node["status"] = {"allocatable": amounts, "capacity": amounts}
            await nodes.update(node, subresource="status")
            await nodes.patch(name, {"spec": {"taints": None}})
        yield made
        left = [one["metadata"]["name"] for one in (await pods.list(made.namespace)).items]
        await asyncio.gather(*(pods.delete(name, made.namespace, grace=0) for name in left))
        for number in range(NODES):
            await nodes.delete(f"n{number}")


def group(name: str, size: int) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": size}}}
    return {"apiVersion": GROUPS[0], "kind": GROUPS[1], "metadata": {"name": name}, "spec": spec}


def pod(name: str, group: str) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "kohort", "containers": [container], "schedulingGroup": {"podGroupName": group}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def ask(client: Client, name: str) -> None:
    await client.kind(*GROUPS).create(group(name, GANGS[name]))
    pods = client.resource("pods")
    await asyncio.gather(*(pods.create(pod(f"{name}-{number}", name)) for number in range(GANGS[name])))


# ---- what happens

AWAY = float(os.environ.get("KOHORT_AWAY", "20"))  # seconds


def killed(kubernetes: Kubernetes) -> None:
    kubernetes.kill()
    kubernetes.run({})  # it waits for the lease of the dead


def stopped(kubernetes: Kubernetes) -> None:
    kubernetes.stop()
    kubernetes.run({})


def server_killed(kubernetes: Kubernetes) -> None:
    kubernetes.env.restart(kubernetes.env.gates)


def server_away(kubernetes: Kubernetes) -> None:
    """For longer than a lease lasts."""
    kubernetes.env.stop_component("apiserver")
    time.sleep(AWAY)
    kubernetes.env.restart(kubernetes.env.gates)


def store_paused(kubernetes: Kubernetes) -> None:
    _pause_store(kubernetes, 4.0)


def store_slow(kubernetes: Kubernetes) -> None:
    """It works for a moment of every half second: requests take that long, some longer than the server waits."""
    end = time.monotonic() + 8.0
    while time.monotonic() < end:
        _pause_store(kubernetes, 0.45)
        time.sleep(0.05)


def _pause_store(kubernetes: Kubernetes, seconds: float) -> None:
    etcd = kubernetes.env.pids()["etcd"]
    os.kill(etcd, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(etcd, signal.SIGCONT)


@pytest.mark.parametrize(
    "trouble", [stopped, server_killed, server_away, store_paused, store_slow, killed], ids=lambda one: one.__name__
)
async def test_gangs_are_whole_after(
    kubernetes: Kubernetes, client: Client, trouble: Callable[[Kubernetes], None]
) -> None:
    await asyncio.to_thread(kubernetes.run, {})
    places: dict[str, set[str]] = {}
    first = asyncio.Event()

    def seen(one: Json) -> None:
        if one["spec"].get("nodeName"):
            places.setdefault(one["metadata"]["uid"], set()).add(one["spec"]["nodeName"])
            first.set()

    informer = Informer(client.resource("pods"), namespace=client.namespace)
    informer.handle(added=seen, updated=lambda _, new: seen(new))
    async with informer:
        await informer.ready()
        await ask(client, "a")
        async with asyncio.timeout(90):
            await first.wait()
        await asyncio.to_thread(trouble, kubernetes)
        await ask(client, "b")
        await ask(client, "c")
        async with asyncio.timeout(180):
            while await _wrong(client):
                await asyncio.sleep(0.2)
        await asyncio.sleep(1)
        assert await _wrong(client) == []
    assert all(len(found) == 1 for found in places.values())
    # An API server that has just started refuses everybody until it has read the roles: that is no lack of ours.


async def _wrong(client: Client) -> list[str]:
    """What is not as it should be: the first gang and one of the others are whole, the last one waits and says why."""
    try:
        pods = (await client.resource("pods").list(client.namespace)).items
        groups = {one["metadata"]["name"]: one for one in (await client.kind(*GROUPS).list(client.namespace)).items}
    except KubeError as error:
        return [str(error)]
    bound = Counter(one["metadata"]["name"].split("-")[0] for one in pods if one["spec"].get("nodeName"))
    on = Counter(one["spec"]["nodeName"] for one in pods if one["spec"].get("nodeName"))
    found = [f"{node}: {count} pods" for node, count in on.items() if count > CPU]
    found += [f"{name}: {count} of {GANGS[name]}" for name, count in bound.items() if count != GANGS[name]]
    if len(bound) != 2 or "a" not in bound:
        found.append(f"bound are {sorted(bound)}")
    for name, one in groups.items():
        told = condition(one, "PodGroupInitiallyScheduled")
        if told is None or told["status"] != ("True" if name in bound else "False"):
            found.append(f"{name} says {told}")
    return found


# ---- random runs

RUNS, AT_A_TIME = int(os.environ.get("KOHORT_CHAOS", "8")), 4
SEED = int(os.environ.get("KOHORT_CHAOS_SEED") or random.randrange(1_000_000))


# Longer than runs take that go wrong: what is wrong is said by them, and a time-out would say nothing.
@pytest.mark.timeout(300 + (CALM_SECONDS + 60) * -(-RUNS // AT_A_TIME))
async def test_random_runs(kubernetes: Kubernetes, tmp_path: Path) -> None:
    kubernetes.stop()
    failed: list[str] = []
    seconds: list[float] = []
    free = asyncio.Semaphore(AT_A_TIME)

    async def play(ground: Ground, seed: int) -> None:
        async with free:
            try:
                seconds.append(await Run(ground, seed).play())
            except AssertionError as error:
                failed.append(f"seed {seed}: {error}")
            except Exception:
                failed.append(f"seed {seed}: {traceback.format_exc()}")
            else:
                print(f"seed {seed}: {seconds[-1]:.0f} s; {len(seconds)} runs are well, {len(failed)} are not")
                return
            print(failed[-1])

    async with Ground(kubernetes, tmp_path) as ground:
        await asyncio.gather(*(play(ground, seed) for seed in range(SEED, SEED + RUNS)))
    told = "\n".join(failed)
    assert not failed, f"{len(failed)} of {RUNS} (KOHORT_CHAOS={RUNS} KOHORT_CHAOS_SEED={SEED}):\n{told}"
