"""Where the time goes from the start of the scheduler's process to its first binding, on a real kube-apiserver.

    python -m bench.e2e.timeline                          # 1,000 nodes, 100 gangs of 10 that wait
    python -m bench.e2e.timeline --nodes 5000 --gangs 9 --size 1000 --runs 3

Each line is a moment: seconds after the process was started, and its processor time until then; the median of the runs.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.e2e import objects
from bench.e2e.apiserver import fresh, listed, send
from bench.e2e.binding_watch import BindingWatch
from bench.e2e.cases import Case
from bench.ready import compiled, environment
from kohort.testing.environment.probe import free_ports

_SECONDS = 60.0
_CHILD = "import gc, os; gc.disable(); os.environ['OPENBLAS_NUM_THREADS'] = '1'; import bench.e2e.marks as m; m.child()"
MOMENTS = (
    "Python runs",
    "the client is loaded, lists are asked for",
    "nodes are answered",
    "pods are answered",
    "everything is loaded",
    "the cache is filled",
    "the first decision is made",
    "the first binding is answered",
    "all bindings are answered",
)


async def run(case: Case, kubernetes: str) -> dict[int, tuple[float, float]]:
    with fresh(kubernetes) as (env, target), tempfile.TemporaryDirectory() as folder:
        for calls in (
            objects.ground(),
            objects.nodes(case),
            objects.measured_groups(case),
            objects.measured_pods(case),
        ):
            await send(target, calls)
        since = (await listed(target)).metadata.resource_version
        (port,) = free_ports(1)
        file = Path(folder) / "moments"
        began = time.monotonic()
        told = {"TIMELINE_BEGAN": repr(began), "TIMELINE_FILE": str(file), "TIMELINE_PODS": str(case.pods)}
        options = ["--kubeconfig", str(env.kubeconfig), "--scheduler-name", objects.SCHEDULER]
        command = [sys.executable, "-c", _CHILD, *options, "--listen", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, env={**environment(), **told})
        try:
            async with asyncio.timeout(_SECONDS):
                async with BindingWatch(target, since) as watch:
                    await watch.until(case.pods)
        finally:
            process.terminate()
            process.wait(30)
        rows = (line.split() for line in file.read_text().splitlines())
        return {int(number): (float(wall), float(cpu)) for number, wall, cpu in rows}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.e2e.timeline", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gangs", type=int, default=100)
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kubernetes", default="1.37", metavar="MINOR")
    args = parser.parse_args()
    compiled()
    case = Case("timeline", args.nodes, args.gangs, args.size)
    found = [asyncio.run(run(case, args.kubernetes)) for _ in range(args.runs)]
    print(f"{'seconds':>8}{'processor':>11}")
    for number, name in enumerate(MOMENTS):
        both = [one[number] for one in found if number in one]
        if both:
            wall, cpu = (statistics.median(one[place] for one in both) for place in (0, 1))
            print(f"{wall:8.3f}{cpu:11.3f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
