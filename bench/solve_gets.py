"""GETs of others while `kohort up` searches for a place for a hard gang.

    python -m bench.solve_gets                    # a gang that fits, and is hard to find a place for: searched for 5 s
    python -m bench.solve_gets --seed 2 --full 0.85

The cluster is a process of its own, asked over HTTPS. Nodes that the pods of a gang fill to the last hundredth, in
processors and in memory, are made in it, then the gang; meanwhile somebody else gets a Namespace a hundred times a
second, whatever the answers do. Told are the times of the answers before the gang came, while its objects were written,
and while it was searched for.
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
from random import Random
from typing import Any

from bench.latency import percentile
from bench.result import yardstick
from bench.search_families import Instance, Plot
from kohort.kube.client import Client
from kohort.place.demand import Leaf

_SPACE = "default"
_EVERY = 0.01  # seconds from one GET to the next
_BEFORE = 3.0  # seconds of GETs on the quiet cluster
_BAR = 50.0  # milliseconds
_PHASES = ("quiet", "writing", "searching")
_UP = (sys.executable, "-m", "kohort.cli.main", "up", "--port", "0", "--nodes", "0", "--in-memory", "--no-dashboard")


def hard(seed: int, low: float, least: int) -> Instance:
    """Pods are laid on 200 nodes; what they leave free there is taken, but for a little."""
    plot = Plot(Random(seed), "large", twin=False)
    asks = [one for host in plot.hosts for one in plot.lay([host], plot.rng.randint(least, least + 4))]
    plot.build(low)
    plot.rng.shuffle(asks)
    return Instance(plot.engine, [plot.leaf("hard", asks)])


def nodes(question: Instance) -> Iterator[dict[str, Any]]:
    """With what is free on them as all they have: nothing else runs there."""
    state = question.engine.state
    free = (state.alloc - state.used).tolist()
    for row, info in enumerate(state.node_infos):
        if info is None:
            continue
        amounts = {
            name: f"{value}m" if name == "cpu" else str(value)
            for name, value in zip(state.resources.names, free[row], strict=False)
        }
        ready = {"type": "Ready", "status": "True", "reason": "Bench", "message": ""}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": info.name, "labels": dict(info.labels)},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
        }


def gang(question: Instance) -> Iterator[dict[str, Any]]:
    (root,) = question.roots
    assert isinstance(root, Leaf)
    policy = {"gang": {"minCount": root.need}}
    yield {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": root.name},
        "spec": {"schedulingPolicy": policy},
    }
    names = question.engine.state.resources.names
    for pod in root.pods:
        signature = pod.eq_class.signature
        asks = dict(zip((names[one] for one in signature.columns), signature.amounts.tolist(), strict=True))
        asks.pop("pods", None)
        requests = {name: f"{value}m" if name == "cpu" else str(value) for name, value in asks.items()}
        container = {"name": "main", "image": "registry.example/train:1", "resources": {"requests": requests}}
        spec = {"containers": [container], "schedulingGroup": {"podGroupName": root.name}}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod.key}, "spec": spec}


class Gets:
    """By the clock; a late answer does not keep the next from being asked for."""

    def __init__(self, client: Client) -> None:
        self._namespaces = client.kind("v1", "Namespace")
        self.phase = _PHASES[0]
        self.seconds: dict[str, list[float]] = {name: [] for name in _PHASES}

    async def run(self) -> None:
        at = time.perf_counter()
        async with asyncio.TaskGroup() as under_way:
            while True:
                under_way.create_task(self._one(self.phase, at))
                at += _EVERY
                await asyncio.sleep(max(0.0, at - time.perf_counter()))

    async def _one(self, phase: str, at: float) -> None:
        await self._namespaces.get(_SPACE)
        self.seconds[phase].append(time.perf_counter() - at)


async def measure(kubeconfig: str, question: Instance, seconds: float) -> tuple[Gets, bool]:
    """And whether the gang was placed within that time."""
    async with Client.connect(kubeconfig) as client, Client.connect(kubeconfig) as other:
        for node in nodes(question):
            await client.of(node).create(node)
        await asyncio.sleep(1.0)  # until nobody has anything to do
        gets = Gets(other)
        asking = asyncio.create_task(gets.run())
        try:
            await asyncio.sleep(_BEFORE)
            gets.phase = "writing"
            bodies = list(gang(question))
            for body in bodies:
                await client.of(body).create(body, _SPACE)
            gets.phase = "searching"
            placed = await _placed(client, bodies[-1]["metadata"]["name"], seconds)
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    return gets, placed


async def _placed(client: Client, pod: str, seconds: float) -> bool:
    """Whether it is, within so many seconds."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        await asyncio.sleep(0.1)
        if (await client.kind("v1", "Pod").get(pod, _SPACE))["spec"].get("nodeName"):
            return True
    return False


@contextmanager
def cluster(seconds: float) -> Iterator[tuple[str, int]]:
    """The kubeconfig of a `kohort up` that searches for so long, and its process."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile.yaml"
        profile.write_text(json.dumps({"search": {"seconds": seconds}}))
        more = ("--data-dir", folder, "--profile", str(profile), "--controllers", "*,-node-lifecycle")
        process = subprocess.Popen([*_UP, *more], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if re.search(r"https://[\w.:]+", line := process.stdout.readline()) is None:
                raise RuntimeError(f"the cluster did not start: {line}")
            yield str(Path(folder) / "kubeconfig"), process.pid
        finally:
            process.terminate()
            process.wait(30)


def solver_seconds(pid: int) -> float:
    """Processor time of the children that search."""
    found = 0.0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        stat = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        found += (int(stat[11]) + int(stat[12])) / 100
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.solve_gets", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--full", type=float, default=0.99, help="how full nodes are at least")
    parser.add_argument("--pods", type=int, default=3, help="of each node, at least; at most four more")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5.0, help="of the search")
    parser.add_argument("--json", action="store_true", help="for machines")
    args = parser.parse_args()
    question = hard(args.seed, args.full, args.pods)
    with cluster(args.seconds) as (kubeconfig, pid):
        gets, placed = asyncio.run(measure(kubeconfig, question, args.seconds))
        solver = solver_seconds(pid)
    told = {
        phase: {
            "gets": len(found),
            **{f"p{share}": round(percentile(found, share / 100) * 1e3, 1) for share in (50, 99, 100)},
        }
        for phase, found in gets.seconds.items()
        if found
    }
    if args.json:
        print(json.dumps({"placed": placed, "solver seconds": solver, "milliseconds": told, "yardstick": yardstick()}))
        return 0
    for phase, one in told.items():
        times = f"p50 {one['p50']:.1f} ms, p99 {one['p99']:.1f} ms, longest {one['p100']:.1f} ms"
        print(f"{phase:<10} {one['gets']:5} GETs: {times}")
    print(f"{'placed' if placed else 'waits'}; {solver:.1f} s of processor time in children that search")
    print(f"yardstick {yardstick() * 1e3:.0f} ms")
    return 1 if told.get("searching", {}).get("p99", 0.0) > _BAR else 0


if __name__ == "__main__":
    sys.exit(main())
