"""How long `kohort simulate` takes for 100,000 jobs: single pods, and gangs of 2.6 pods on average.

python -m bench.simulate [JOBS] [singles|gangs]
"""

from __future__ import annotations

import random
import sys
import time
from typing import Final

from kohort.sim.cluster import Level, Pool
from kohort.simulate.metrics import measure
from kohort.simulate.run import Simulation
from kohort.simulate.trace import Trace, TraceJob
from kohort.tuning import settle

GPU: Final = "nvidia.com/gpu"
NODES: Final = 512
_LOAD: Final = 0.8  # of the devices, on average


def trace(jobs: int, sizes: tuple[int, ...], seed: int = 5) -> Trace:
    """Arrivals at random, so close that the cluster is four fifths full."""
    rng = random.Random(seed)
    made: list[TraceJob] = []
    at = 0.0
    for number in range(jobs):
        pods, gpus, duration = rng.choice(sizes), rng.choice((1, 2, 4, 8)), float(rng.randrange(60, 3600))
        requests = {"cpu": str(4 * gpus), GPU: str(gpus)}
        made.append(TraceJob(f"j{number}", at, duration, pods, requests, user=f"u{number % 20}"))
        at += rng.expovariate(_LOAD * NODES * 8 / (sum(sizes) / len(sizes) * 3.75 * 1830))
    return Trace(tuple(made))


SORTS: Final = {"singles": (1,), "gangs": (1, 1, 2, 2, 3, 3, 4, 5)}  # 2.6 on average


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    nodes = Pool(
        name="node",
        count=NODES,
        capacity={"cpu": "64", "memory": "1Ti", "pods": "110", GPU: "8"},
        topology=(Level("topology.kubernetes.io/rack", 32),),
    )
    settle()
    for sort in sys.argv[2:] or SORTS:
        asked = trace(jobs, SORTS[sort])
        began, busy = time.perf_counter(), time.process_time()
        outcome = Simulation(asked, nodes.nodes()).run()
        took, worked = time.perf_counter() - began, time.process_time() - busy
        found = measure(outcome)
        print(
            f"{sort}: {jobs:,} jobs, {sum(one.pods for one in asked.jobs):,} pods: {took:.1f} s, {worked:.1f} s of "
            f"processor time; {outcome.decisions:,} decisions, {found.utilisation:.0%} in use"
        )


if __name__ == "__main__":
    main()
