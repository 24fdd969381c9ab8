"""A gang of 8 on an idle `kohort up`: how long from apply until all of it is bound, and until all of it runs.

    python -m bench.latency               # 100 gangs, one after the other; each is gone before the next comes
    python -m bench.latency --gangs 20 --json

The cluster is a process of its own, asked over HTTPS, as by kubectl. Its pods start as soon as they are bound (on
virtual nodes they take a second unless they say otherwise), so what is told is Kohort's own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.controllers import Pod
from bench.result import yardstick
from kohort.kube.client import Client
from kohort.kube.informer import Informer

GANGS, SIZE = 100, 8
_UP = (sys.executable, "-m", "kohort.cli.main", "up", "--port", "0")


def job(name: str, size: int) -> dict[str, Any]:
    notes = {"sim.kohort.dev/start-seconds": "0", "sim.kohort.dev/run-seconds": "1000000"}
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"requests": {"cpu": "500m"}}}
    spec = {
        "parallelism": size,
        "completions": size,
        "completionMode": "Indexed",
        "scheduling": {"schedulingPolicy": {"gang": {}}},
        "template": {
            "metadata": {"annotations": {**notes, "sim.kohort.dev/stop-seconds": "0"}},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]},
        },
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


class Gang:
    """The one gang that is there: how far its pods are."""

    def __init__(self, pods: Informer[Pod], size: int) -> None:
        self._size, self._changed = size, asyncio.Event()
        self._there: dict[str, Pod] = {}
        pods.handle(added=self._seen, updated=lambda _, new: self._seen(new), deleted=self._gone)

    def _seen(self, pod: Pod) -> None:
        self._there[pod.metadata.uid] = pod
        self._changed.set()

    def _gone(self, pod: Pod) -> None:
        self._there.pop(pod.metadata.uid, None)
        self._changed.set()

    async def bound(self) -> None:
        while sum(bool(pod.spec.node_name) for pod in self._there.values()) < self._size:
            await self._next()

    async def running(self) -> None:
        while sum(pod.status.phase == "Running" for pod in self._there.values()) < self._size:
            await self._next()

    async def over(self) -> None:
        while self._there:
            await self._next()

    async def _next(self) -> None:
        self._changed.clear()
        await self._changed.wait()


async def measure(kubeconfig: str, gangs: int, size: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"bound": [], "running": []}
    async with Client.connect(kubeconfig) as client, Informer(client.kind("v1", "Pod", Pod)) as pods:
        await pods.ready()
        gang, jobs = Gang(pods, size), client.kind("batch/v1", "Job")
        for number in range(-3, gangs):  # the first ones warm it up
            began = time.perf_counter()
            await jobs.create(job(f"gang-{number + 3}", size), "default")
            await gang.bound()
            bound = time.perf_counter() - began
            await gang.running()
            running = time.perf_counter() - began
            if number >= 0:
                found["bound"].append(bound)
                found["running"].append(running)
            await jobs.delete(f"gang-{number + 3}", "default", propagation="Background")
            await gang.over()
    return found


@contextmanager
def cluster() -> Iterator[str]:
    """The kubeconfig of a `kohort up` with its usual virtual nodes."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([*_UP, "--data-dir", folder], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if re.search(r"https://[\w.:]+", line := process.stdout.readline()) is None:
                raise RuntimeError(f"the cluster did not start: {line}")
            yield str(Path(folder) / "kubeconfig")
        finally:
            process.terminate()
            process.wait(30)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--gangs", type=int, default=GANGS)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--json", action="store_true", help="for machines")
    args = parser.parse_args()
    with cluster() as kubeconfig:
        found = asyncio.run(measure(kubeconfig, args.gangs, args.size))
    told = {
        stage: {f"p{share}": round(percentile(values, share / 100) * 1e3, 1) for share in (50, 99)}
        for stage, values in found.items()
    }
    if args.json:
        print(json.dumps({"gangs": args.gangs, "size": args.size, "milliseconds": told, "yardstick": yardstick()}))
        return 0
    for stage, one in told.items():
        print(
            f"{args.gangs} gangs of {args.size}, apply to all {stage}: p50 {one['p50']:.0f} ms, p99 {one['p99']:.0f} ms"
        )
    print(f"yardstick {yardstick() * 1e3:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
