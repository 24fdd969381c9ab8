"""`make companion-bed`: a real Kubernetes with upstream's JobSet and KubeRay managers and virtual nodes, until Ctrl-C.

`python -m tests.support.operators.stay --print NAME` prints a sample that a project publishes, with nothing but
`schedulerName: kohort` and a request of one cpu for each container added.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading

import yaml
from tests.support.operators.bed import WITHOUT_GROUPS, Bed, asking, for_kohort, sample
from tests.support.operators.recipes import OPERATORS

SAMPLES = {"jobset": ("jobset", "jobset-coordinator"), "raycluster": ("kuberay", "raycluster")}


def printed(name: str) -> str:
    made = [asking(for_kohort(one)) for one in sample(*SAMPLES[name])]
    return yaml.safe_dump_all(json.loads(json.dumps(made)), sort_keys=False)  # without anchors


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.operators.stay", description=__doc__)
    parser.add_argument("--operators", default="jobset,kuberay", help=f"of {', '.join(OPERATORS)}")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--cpu", default="4", help="of each node")
    parser.add_argument("--without-groups", action="store_true", help="the gates of the Workload API off")
    parser.add_argument("--print", choices=sorted(SAMPLES), help="a sample, and nothing else")
    chosen = parser.parse_args()
    if chosen.print:
        sys.stdout.write(printed(chosen.print))
        return 0
    names = tuple(chosen.operators.split(","))
    for name in names:
        OPERATORS[name].build()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with Bed(*names, gates=WITHOUT_GROUPS if chosen.without_groups else None) as bed:
        bed.nodes(chosen.nodes, chosen.cpu)
        print(f"export KUBECONFIG={bed.env.kubeconfig}")
        print(f"alias kubectl={bed.env.assets.path('kubectl')}")
        print(
            f"# Kubernetes with {', '.join(names)} and {chosen.nodes} nodes of {chosen.cpu} cpu; Ctrl-C ends it",
            flush=True,
        )
        while not ended.wait(1):
            bed.check()
    return 0


if __name__ == "__main__":
    sys.exit(main())
