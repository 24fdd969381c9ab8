"""A soak: `kohort run` beside a server for a long time, with gangs that come and go, and its memory all the while.

make soak KOHORT_SOAK=30        # minutes; 5 unless said. Exit code 1: memory grew
make soak KOHORT_SOAK_ON=1.37   # on real Kubernetes of that version; the embedded server unless said

The first third is for warming up: caches, allocator. Of the rest, a line is drawn through the samples (least squares);
flat is a slope under `_FLAT` MiB an hour, or one that ends within 3 % of where it began.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from kohort.api.crd import crds
from kohort.controllers.runtime import Runtime
from kohort.gang.compile import CompileContext
from kohort.kinds.controllers import make, probe
from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import plain
from kohort.sim.kubelet import KubeletSimulator
from kohort.testing.environment import Environment

ROOT: Final = Path(__file__).parents[1]
MINUTES: Final = float(os.environ.get("KOHORT_SOAK", "5"))
ON: Final = os.environ.get("KOHORT_SOAK_ON", "")
JOBSET: Final = ("jobset.x-k8s.io/v1alpha2", "JobSet")
_EVERY: Final = float(os.environ.get("KOHORT_SOAK_EVERY", "1"))  # seconds between two gangs
_ALIVE: Final = 20  # gangs at once
_SAMPLE: Final = 5.0  # seconds
_FLAT: Final = 8.0  # MiB an hour


def gang(number: int) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}}
    container = {"name": "c", "image": "registry.example/c:1", "command": ["sleep", "86400"], "resources": resources}
    pod = {"restartPolicy": "Never", "schedulerName": "kohort", "containers": [container]}
    job = {"spec": {"parallelism": 4, "completions": 4, "template": {"spec": pod}}}
    spec = {"gangConfig": {"gangMode": "Gang"}, "replicatedJobs": [{"name": "w", "replicas": 1, "template": job}]}
    return {"apiVersion": JOBSET[0], "kind": JOBSET[1], "metadata": {"name": f"g{number}"}, "spec": spec}


def resident(process: subprocess.Popen[bytes]) -> float:
    """MiB."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) / 1024


def slope(samples: list[tuple[float, float]]) -> float:
    """Least squares, of (seconds, MiB): MiB an hour."""
    middle = [sum(column) / len(samples) for column in zip(*samples, strict=True)]
    spread = sum((moment - middle[0]) ** 2 for moment, _ in samples)
    return 3600 * sum((moment - middle[0]) * (size - middle[1]) for moment, size in samples) / (spread or 1.0)


def is_flat(samples: list[tuple[float, float]]) -> bool:
    grown = slope(samples) * (samples[-1][0] - samples[0][0]) / 3600
    return slope(samples) < _FLAT or grown < 0.03 * samples[0][1]


async def load(client: Client, end: float) -> int:
    """One gang after the other; the oldest goes when there are enough. Says how many."""
    alive: deque[str] = deque()
    jobsets, number = client.kind(*JOBSET), 0
    while time.monotonic() < end:
        body = gang(number)
        await jobsets.create(body, "default")
        alive.append(body["metadata"]["name"])
        number += 1
        if len(alive) > _ALIVE:
            with contextlib.suppress(ApiError):
                await jobsets.delete(alive.popleft(), "default")
        await asyncio.sleep(_EVERY)
    return number


async def sampled(process: subprocess.Popen[bytes], end: float) -> list[tuple[float, float]]:
    found, began = [], time.monotonic()
    while time.monotonic() < end:
        assert process.poll() is None, "kohort run has ended"
        found.append((time.monotonic() - began, resident(process)))
        await asyncio.sleep(_SAMPLE)
    return found


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[tuple[Client, Path]]:
    """A server of our own whose controllers are those for Jobs only: the others are those of `kohort run`."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Server(Settings(folder / "data", port=0, in_memory=True)))
        client = await stack.enter_async_context(Client.within(server.api, manager="soak"))
        while not await client.discovery.versions("leaderworkerset.x-k8s.io", "LeaderWorkerSet"):
            await asyncio.sleep(0.02)
            await client.discovery.refresh()
        ctx = CompileContext(server.ctx.release, server.ctx.gates, server.ctx.options)
        await stack.enter_async_context(Runtime(client, make(await probe(client, ctx), ["job"])))
        yield client, server.settings.kubeconfig_path


@asynccontextmanager
async def kubernetes(version: str) -> AsyncIterator[tuple[Client, Path]]:
    """kube-apiserver, etcd and kube-controller-manager."""
    async with Environment(version, ["kcm"]) as env:
        await asyncio.to_thread(env.kubectl, "apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(crds()))
        async with Client.connect(env.kubeconfig, manager="soak") as client:
            yield client, env.kubeconfig


async def soak(folder: Path, minutes: float) -> tuple[int, int, list[tuple[float, float]]]:
    """Gangs that came, pods that run at the end, samples."""
    async with AsyncExitStack() as stack:
        client, kubeconfig = await stack.enter_async_context(kubernetes(ON) if ON else embedded(folder))
        kubelets = KubeletSimulator(client, plain(20), lifecycle=False, heartbeat=10.0)
        await (await stack.enter_async_context(kubelets)).ready()
        argv = [sys.executable, "-m", "kohort.cli.main", "run", "--kubeconfig", str(kubeconfig)]
        with (folder / "run.log").open("wb") as log:
            process = subprocess.Popen(
                [*argv, "--listen", "127.0.0.1:0"], env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, stdout=log,
                stderr=log,
            )  # fmt: skip
        try:
            end = time.monotonic() + 60 * minutes
            gangs, samples = await asyncio.gather(load(client, end), sampled(process, end))
            pods = (await client.kind("v1", "Pod").list("default")).items
            return gangs, sum(pod["status"].get("phase") == "Running" for pod in pods), samples
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 60)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="kohort-soak-") as folder:
        gangs, running, samples = asyncio.run(soak(Path(folder), MINUTES))
    warm = samples[len(samples) // 3 :]
    flat = is_flat(warm)
    text = (
        f"{gangs} gangs of 4 pods in {MINUTES:g} min, {running} pods run at the end; kohort run: "
        f"{samples[0][1]:.1f} MiB at the start, {warm[0][1]:.1f} after a third, {warm[-1][1]:.1f} at the end, "
        f"largest {max(size for _, size in samples):.1f}; slope of the last two thirds {slope(warm):+.1f} MiB an hour: "
    )
    sys.stdout.write(f"{text}{'flat' if flat else 'it grows'}\n")
    return 0 if flat and running else 1


if __name__ == "__main__":
    sys.exit(main())
