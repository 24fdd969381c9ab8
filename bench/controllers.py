"""A whole embedded cluster under load, from apply to all Running, with the time of each stage.

    python -m bench.controllers                       # 1,000 JobSets x 4 Jobs x 8 pods on 2,000 nodes; a gang of 5,000
    python -m bench.controllers --scale 0.1 --json
    python -m bench.controllers --only job --profile job.prof
    python -m bench.controllers --real                # the gang of 5,000 on real Kubernetes, same virtual nodes

API server (in memory), controllers, scheduler, virtual nodes and this observer share one process and one core, as in
`kohort up`. A stage ends when the last object has reached it; stages overlap, so their ends are what is told.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.result import yardstick
from kohort import tuning
from kohort.embedded import whole
from kohort.kube.client import Client
from kohort.kube.codec import Meta
from kohort.kube.informer import Informer
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import plain
from kohort.sim.kubelet import KubeletSimulator

JOBSETS, JOBS, PODS, NODES, GANG = 1_000, 4, 8, 2_000, 5_000
TRAINJOBS, TRAIN_NODES = 200, 64
BACKLOG_JOBS, BACKLOG_PODS, BACKLOG_NODES = 9, 1_000, 5_000
REPLICAS, SCALING_GROUPS, CLIQUES, CLIQUE_PODS = 50, 3, 4, 4
STAGES = ("created", "grouped", "pods made", "bound", "running")
CLIENTS = 32
# Seconds of processor time to all Running: how long it takes depends on who else uses the machine.
BARS = {"jobsets": 300.0, "job": 60.0, "trainjobs": 240.0, "cliqueset": 60.0, "backlog": 60.0}


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class Status(msgspec.Struct):
    phase: str = ""


class Pod(msgspec.Struct):
    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


class Thing(msgspec.Struct):
    metadata: Meta


@dataclass
class Case:
    """So many objects to apply, and how many of each there will be."""

    name: str
    bodies: list[dict[str, Any]]
    groups: int
    pods: int
    nodes: int


@dataclass
class Timing:
    """When the last one of each stage was there; `half`: when half of them were."""

    wanted: dict[str, int]
    began: float = field(default_factory=time.perf_counter)
    seen: dict[str, int] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)
    half: dict[str, float] = field(default_factory=dict)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def count(self, stage: str) -> None:
        found = self.seen[stage] = self.seen.get(stage, 0) + 1
        if found * 2 >= self.wanted[stage] and stage not in self.half:
            self.half[stage] = time.perf_counter() - self.began
        if found == self.wanted[stage]:
            self.ends[stage] = time.perf_counter() - self.began
            if stage == STAGES[-1]:
                self.over.set()


def template() -> dict[str, Any]:
    requests = {"cpu": "500m", "memory": "1Gi"}
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"requests": requests}}
    return {
        "metadata": {"annotations": {"sim.kohort.dev/run-seconds": "1000000"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def jobsets(scale: float) -> Case:
    count = max(1, round(JOBSETS * scale))
    job = {"parallelism": PODS, "completions": PODS, "completionMode": "Indexed", "template": template()}
    spec = {
        "gangConfig": {"gangMode": "Gang"},
        "replicatedJobs": [{"name": "w", "replicas": JOBS, "template": {"spec": job}}],
    }
    bodies = [
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": f"set-{number:04}"},
            "spec": spec,
        }
        for number in range(count)
    ]
    return Case("jobsets", bodies, count, count * JOBS * PODS, max(1, round(NODES * scale)))


def _gang_of(pods: int) -> dict[str, Any]:
    return {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "scheduling": {"schedulingPolicy": {"gang": {}}},
        "template": template(),
    }


def backlog(scale: float) -> Case:
    """Gangs of 1,000 on many nodes."""
    pods = max(1, round(BACKLOG_PODS * scale))
    bodies = [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"large-{number}"}, "spec": _gang_of(pods)}
        for number in range(BACKLOG_JOBS)
    ]
    return Case("backlog", bodies, len(bodies), len(bodies) * pods, max(1, round(BACKLOG_NODES * scale)))


def one_job(scale: float) -> Case:
    pods = max(1, round(GANG * scale))
    spec = _gang_of(pods)
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "large"}, "spec": spec}
    return Case("job", [body], 1, pods, max(1, round(NODES * scale)))


def trainjobs(scale: float) -> Case:
    """On the built-in runtime: runtime, snapshot, Workload, PodGroup, JobSet and Job of each come before its pods."""
    count = max(1, round(TRAINJOBS * scale))
    trainer = {"numNodes": TRAIN_NODES, "resourcesPerNode": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    notes = {"annotations": {"sim.kohort.dev/run-seconds": "1000000"}}
    jobs = [{"name": "node", "template": {"spec": {"template": {"metadata": notes}}}}]
    patch = {"manager": "bench.example/run", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer, "runtimePatches": [patch]}
    bodies = [
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": f"train-{number:04}"},
            "spec": spec,
        }
        for number in range(count)
    ]
    return Case("trainjobs", bodies, count, count * TRAIN_NODES, max(1, round(NODES * scale)))


def cliqueset(scale: float) -> Case:
    """One set: every replica is a tree of scaling groups with cliques."""
    replicas, pod = max(1, round(REPLICAS * scale)), template()["spec"]
    names = [[f"c{group}{clique}" for clique in range(CLIQUES)] for group in range(SCALING_GROUPS)]
    cliques = [
        {
            "name": name,
            "spec": {"roleName": name, "replicas": CLIQUE_PODS, "podSpec": {"containers": pod["containers"]}},
        }
        for group in names
        for name in group
    ]
    groups = [{"name": f"g{at}", "cliqueNames": group, "replicas": 1} for at, group in enumerate(names)]
    spec = {"replicas": replicas, "template": {"cliques": cliques, "podCliqueScalingGroups": groups}}
    body = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "chat"}, "spec": spec}
    leaves = replicas * SCALING_GROUPS * CLIQUES
    return Case("cliqueset", [body], leaves, leaves * CLIQUE_PODS, max(1, round(NODES * scale)))


CASES: dict[str, Callable[[float], Case]] = {
    "jobsets": jobsets,
    "job": one_job,
    "trainjobs": trainjobs,
    "cliqueset": cliqueset,
    "backlog": backlog,
}


async def ours(case: Case, stack: AsyncExitStack) -> Client:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    settings = Settings(data=Path(folder), minor="1.37", gates={}, port=0, in_memory=True)
    server = await stack.enter_async_context(Server(settings))
    return await stack.enter_async_context(whole(server, plain(case.nodes)))


async def real(case: Case, stack: AsyncExitStack) -> Client:
    """kube-apiserver, etcd, kube-controller-manager and kube-scheduler, each a process; only the nodes are virtual."""
    from kohort.testing.environment import Environment

    env = stack.enter_context(Environment("1.37", ("kcm", "scheduler")))
    client = await stack.enter_async_context(Client.connect(str(env.kubeconfig)))
    kubelets = KubeletSimulator(client, plain(case.nodes), lifecycle=False, heartbeat=10)
    await stack.enter_async_context(kubelets)
    await kubelets.ready()
    return client


async def measure(case: Case, start: Callable[[Case, AsyncExitStack], Awaitable[Client]] = ours) -> dict[str, Any]:
    wanted = dict(zip(STAGES, (len(case.bodies), case.groups, case.pods, case.pods, case.pods), strict=True))
    async with AsyncExitStack() as stack:
        began = time.perf_counter()
        client = await start(case, stack)
        ready = time.perf_counter() - began
        tuning.settle(calm=True)  # as `kohort up` does
        timing = Timing(wanted)
        for informer in observers(client, timing):
            await stack.enter_async_context(informer)
            await informer.ready()
        timing.began, used = time.perf_counter(), time.process_time()
        await apply(client, case, timing)
        await timing.over.wait()
        seconds = time.process_time() - used
    return {
        "case": case.name,
        "on": "kohort" if start is ours else "kubernetes",
        "objects": len(case.bodies),
        "groups": case.groups,
        "pods": case.pods,
        "nodes": case.nodes,
        "ready": round(ready, 2),
        "ends": {stage: round(timing.ends[stage], 2) for stage in STAGES},
        "half": {stage: round(timing.half[stage], 2) for stage in STAGES},
        "cpu": round(seconds, 2),
        "pods per second": round(case.pods / timing.ends["running"]),
        "memory MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "yardstick": round(yardstick(), 4),
    }


def observers(client: Client, timing: Timing) -> Iterator[Informer[Any]]:
    def pod(old: Pod | None, new: Pod) -> None:
        if old is None:
            timing.count("pods made")
        if new.spec.node_name and (old is None or not old.spec.node_name):
            timing.count("bound")
        if new.status.phase == "Running" and (old is None or old.status.phase != "Running"):
            timing.count("running")

    pods: Informer[Pod] = Informer(client.kind("v1", "Pod", Pod))
    pods.handle(added=lambda new: pod(None, new), updated=pod)
    yield pods
    groups: Informer[Thing] = Informer(client.kind("scheduling.k8s.io/v1beta1", "PodGroup", Thing))
    groups.handle(added=lambda _: timing.count("grouped"))
    yield groups


async def apply(client: Client, case: Case, timing: Timing) -> None:
    left = iter(case.bodies)

    async def work() -> None:
        for body in left:
            await client.of(body).create(body, "default")
            timing.count("created")

    await asyncio.gather(*(work() for _ in range(CLIENTS)))


@contextmanager
def profiled(path: str) -> Iterator[None]:
    if not path:
        yield
        return
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
        profile.dump_stats(path)


def text(found: dict[str, Any]) -> str:
    what = f"{found['on']}: {found['objects']:,} {found['case']}, {found['groups']:,} groups, {found['pods']:,} pods"
    lines = [
        f"{what}, {found['nodes']:,} nodes (cluster ready after {found['ready']:.1f} s)",
        f"  {'stage':<12}{'half at':>10}{'all at':>10}",
    ]
    lines += [f"  {stage:<12}{found['half'][stage]:>8.1f} s{found['ends'][stage]:>8.1f} s" for stage in STAGES]
    bar = (
        f"; promised < {found['bar']:.0f} s of processor time{'  BROKEN' if found['broken'] else '  ok'}"
        if found["bar"]
        else ""
    )
    lines.append(
        f"  {found['pods per second']:,} pods/s, {found['cpu']:.1f} s of processor time, "
        f"{found['memory MiB']:,} MiB at most, yardstick {found['yardstick'] * 1e3:.0f} ms{bar}"
    )
    return "\n".join(lines)


def main() -> int:
    import uvloop

    parser = argparse.ArgumentParser(prog="python -m bench.controllers", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scale", type=float, default=1.0, help="1: the numbers above; 0.1: a tenth of them")
    parser.add_argument("--only", choices=tuple(CASES), help="one of the cases")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--profile", default="", metavar="FILE", help="write what cProfile saw")
    parser.add_argument("--real", action="store_true", help="the case job on real Kubernetes 1.37, for comparison")
    args = parser.parse_args()
    if args.real:
        args.only = "job"
    results = []
    for name in [args.only] if args.only else list(CASES):
        with profiled(args.profile):
            found = uvloop.run(measure(CASES[name](args.scale), real if args.real else ours))
        found["bar"] = BARS[name] if args.scale == 1 and not args.real else None
        found["broken"] = bool(found["bar"]) and found["cpu"] > found["bar"]
        results.append(found)
        if not args.json:
            print(text(found), flush=True)
    if args.json:
        print(json.dumps(results, indent=1))
    return 1 if any(one["broken"] for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
