"""Clusters on which the chart is installed: the embedded server with the controllers of a control plane, and real
Kubernetes. Both have a scheduler for Kohort's own pods, a node that runs those as processes, and virtual nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.hostnode import LABEL, HostNode, sandbox_problem
from tests.support.hostproxy import LOOPBACK, HostProxy

from kohort.controllermanager import registry as manager
from kohort.controllers.runtime import Runtime
from kohort.gang.compile import CompileContext
from kohort.kinds.controllers import make, probe
from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.scheduler.loop import Scheduler, running
from kohort.scheduler.settings import SchedulerSettings
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import plain
from kohort.sim.kubelet import KubeletSimulator
from kohort.testing.environment.assets import find_helm
from kohort.testing.environment.environment import Environment

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy" / "chart"
SPACE: Final = "kohort-system"
PLANE: Final = ("deployment", "replicaset", "disruption", "endpointslice")
# Kohort's own pods go where they are run, and nobody else's do.
ON_THE_HOST: Final = (
    f'--set-json=nodeSelector={{"{LABEL}":"true"}}',
    f'--set-json=tolerations=[{{"key":"{LABEL}","operator":"Exists"}}]',
)
_HELM_SECONDS: Final = 180


def helm_binary() -> Path:
    found = find_helm()
    if found is None:
        sentence = "helm is not built: run `make chart-test`, or `python -m kohort.testing.environment build --helm`"
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(f"CI has Go, so this must not be skipped: {sentence}", pytrace=False)
        pytest.skip(sentence)
    return found


@dataclass
class Bed:
    """A cluster, its administrator, and helm."""

    client: Client
    kubeconfig: Path
    host: HostNode
    helm_home: Path
    own_crds: bool  # the server brings the definitions along

    async def helm(self, *args: str, check: bool = True) -> str:
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.helm_home)}
        process = await asyncio.create_subprocess_exec(
            str(helm_binary()), *args, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(_HELM_SECONDS):
            said = (await process.communicate())[0].decode()
        assert not check or process.returncode == 0, f"helm {' '.join(args)}\n{said}\n{self.host.said()[-4000:]}"
        return said

    async def release(self, verb: str, **values: Any) -> str:
        """`helm install` or `upgrade` of the chart, until it is ready; in values, __ stands for a dot.

        Without the webhook, unless it is asked for: two processes more, of which most tests have no use.
        """
        chosen = {
            "crds.enabled": not self.own_crds,
            "webhook.enabled": False,
            **{k.replace("__", "."): v for k, v in values.items()},
        }
        sets = [*ON_THE_HOST, *(f"--set-json={name}={json.dumps(value)}" for name, value in chosen.items())]
        more = ("--create-namespace",) if verb == "install" else ()
        return await self.helm(verb, "kohort", str(CHART), "-n", SPACE, *more, "--wait", "--timeout=100s", *sets)


@asynccontextmanager
async def embedded(folder: Path, minor: str = "1.37") -> AsyncIterator[Bed]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Server(Settings(folder / "data", minor, port=0, in_memory=True)))
        client = await stack.enter_async_context(Client.within(server.api, manager="test"))
        while not await client.discovery.versions("leaderworkerset.x-k8s.io", "LeaderWorkerSet"):
            await asyncio.sleep(0.02)
            await client.discovery.refresh()
        ctx = CompileContext(server.ctx.release, server.ctx.gates, server.ctx.options)
        jobs = make(await probe(client, ctx), ["job"])
        await stack.enter_async_context(Runtime(client, [*jobs, *manager.make(PLANE)]))
        placed = Scheduler(client, SchedulerSettings(names=frozenset({"default-scheduler"})))
        await stack.enter_async_context(running(placed))
        host = HostNode(client, server.url, folder / "data" / "pki" / "ca.crt", folder / "host")
        yield await _rest(stack, client, server.settings.kubeconfig_path, host, folder, own_crds=True)


@asynccontextmanager
async def real(env: Environment, folder: Path) -> AsyncIterator[Bed]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.connect(env.kubeconfig, manager="test"))
        host = HostNode(client, env.url, env.ca_file, folder / "host")
        yield await _rest(stack, client, env.kubeconfig, host, folder, own_crds=False)


async def _rest(
    stack: AsyncExitStack, client: Client, kubeconfig: Path, host: HostNode, folder: Path, *, own_crds: bool
) -> Bed:
    why = sandbox_problem()
    if why:
        pytest.skip(f"pods cannot run as processes: {why}")
    await stack.enter_async_context(host)
    kubelets = KubeletSimulator(client, plain(4), lifecycle=False, heartbeat=10.0)
    await (await stack.enter_async_context(kubelets)).ready()
    home = folder / "home"
    home.mkdir()
    return Bed(client, kubeconfig, host, home, own_crds)


@asynccontextmanager
async def bed(
    name: str, folder: Path, environments: Callable[..., Environment], *, services: bool = False
) -> AsyncIterator[Bed]:
    """`embedded`, or a minor of real Kubernetes. `services`: addresses of Kohort's Services lead to its pods."""
    helm_binary()
    if name == "embedded":
        async with embedded(folder) as found:
            yield found
        return
    flags = LOOPBACK if services else ()
    env = await asyncio.to_thread(environments, name, ("kcm", "scheduler"), None, flags)
    async with real(env, folder) as found, HostProxy(found.client, found.host, SPACE):
        try:
            yield found
        finally:
            await _empty(found)


async def _empty(found: Bed) -> None:
    """The environment is there for other tests, too."""
    await found.helm("uninstall", "kohort", "-n", SPACE, "--ignore-not-found", check=False)
    nodes = found.client.kind("v1", "Node")
    for node in (await nodes.list()).items:
        await nodes.delete(node["metadata"]["name"])
    for name in (SPACE, "team-a"):
        with contextlib.suppress(ApiError):
            await found.client.kind("v1", "Namespace").delete(name)
    for pod in (await found.client.kind("v1", "Pod").list()).items:
        with contextlib.suppress(ApiError):
            await found.client.kind("v1", "Pod").delete(pod["metadata"]["name"], pod["metadata"]["namespace"], grace=0)
    while any(one["metadata"]["name"] == SPACE for one in (await found.client.kind("v1", "Namespace").list()).items):
        await asyncio.sleep(0.2)
