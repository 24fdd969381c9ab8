"""`make companion`: build the operators, then random workloads on a half-full cluster.

Half of the cluster is taken by plain pods. JobSets, LeaderWorkerSets, RayClusters, PyTorchJobs, TFJobs and MPIJobs of
random sizes come and go, a node is lost with its pods and comes back. Every gang must start as a whole or not at all,
whatever waits must have a reason, and everything must have its turn once others go. The samples that the projects
publish are played by tests/kubernetes/test_operators.py.
"""

from __future__ import annotations

import argparse
import collections
import random
import statistics
import sys
import threading
import time
from typing import Any, Final

from tests.support.operators.bed import WITHOUT_GROUPS, Bed, pod_spec
from tests.support.operators.random_workloads import Workload, random_workload, workload_of
from tests.support.operators.recipes import OPERATORS
from tests.support.operators.timeline import Gang, PodWatch

Json = dict[str, Any]
_NODES: Final = 4
_CPUS: Final = 6
_LOST: Final = "virtual-1"
_PATIENCE: Final = (
    90.0  # seconds that a gang may be bound in part, or a pod be without a reason: the machine may be busy
)
_STANDSTILL: Final = 180.0  # seconds without a start while there is room for everything


class Course:
    """A run: what was asked for, what was seen."""

    def __init__(self, bed: Bed, number: int, seed: int) -> None:
        self.bed = bed
        self.number = number
        self.dice = random.Random(seed)
        self.begin = time.monotonic()
        self.workloads: dict[str, Workload] = {}  # that are there
        self.gangs: dict[str, dict[str, Gang]] = {}  # of all workloads there ever were
        self.faults: dict[str, str] = {}
        self.kinds: collections.Counter[str] = collections.Counter()
        self.losses = 0
        self._lock = threading.Lock()
        self._awake = 0.0  # seconds
        self._since: dict[str, float] = {}  # what is wrong, and since when

    def run(self) -> None:
        command = [str(self.bed.env.assets.path("kubectl")), f"--kubeconfig={self.bed.env.kubeconfig}"]
        watch = PodWatch(command, self.see)
        try:
            self._half_full()
            for index in range(self.number):
                self._step(index)
            self.bed.env.kubectl("uncordon", _LOST)
            self._drain()
        finally:
            watch.close()

    def see(self, kind: str, pod: Json, now: float) -> None:
        name = workload_of(pod)
        with self._lock:
            workload, gangs = self.workloads.get(name), self.gangs.get(name)
            if workload is None or gangs is None:
                return
            gang = gangs.get(workload.gang_of(pod))
            if gang is None:
                self.faults[f"{name}: unknown"] = f"{pod['metadata']['name']} belongs to no gang that was expected"
            else:
                gang.see(kind, pod, now)

    # ---- steps

    def _half_full(self) -> None:
        taken = _NODES * _CPUS // 2
        pods = {"metadata": {"labels": {"app": "half"}}, "spec": {**pod_spec(), "restartPolicy": "Always"}}
        spec = {"replicas": taken, "selector": {"matchLabels": {"app": "half"}}, "template": pods}
        self.bed.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "half"}, "spec": spec})
        self.bed.until(lambda: sum("nodeName" in one["spec"] for one in self.bed.pods("app")) == taken, "half", 120)

    def _step(self, index: int) -> None:
        name = f"w{index}"
        workload = random_workload(name, self.dice)
        self.kinds[workload.body["kind"]] += 1
        with self._lock:
            self.workloads[name] = workload
            self.gangs[name] = {gang: Gang(size) for gang, size in workload.gangs.items()}
        self.bed.apply(workload.body)
        if index % 3 == 2:
            self._settle()
        running = self._running()
        if len(running) > 3 or len(self.workloads) > 12:
            self._delete(self.dice.sample(running, min(2, len(running))))
        if index % 10 == 5:  # a node is lost with its pods, while gangs may be on their way to it
            self.losses += 1
            self.bed.env.kubectl("cordon", _LOST)
            self.bed.env.kubectl("delete", "pods", f"--field-selector=spec.nodeName={_LOST}", "--wait=false")
        if index % 10 == 8:
            self.bed.env.kubectl("uncordon", _LOST)
        if index % 10 == 9:
            print(
                f"{index + 1} of {self.number} after {time.monotonic() - self.begin:.0f} s: {self.told()}", flush=True
            )

    def _running(self) -> list[str]:
        """Whose gangs have all started."""
        with self._lock:
            return sorted(one for one in self.workloads if all(gang.ran for gang in self.gangs[one].values()))

    def _of_use(self) -> list[str]:
        """The same of one replica at least. The others wait for room that the scheduler may keep for older workloads,
        and those wait for it."""
        with self._lock:
            return sorted(
                name
                for name, one in self.workloads.items()
                if any(all(self.gangs[name][gang].ran for gang in unit) for unit in one.units)
            )

    def _delete(self, names: list[str]) -> None:
        for name in names:
            self.bed.delete(self.workloads[name].kind, name)
            with self._lock:
                del self.workloads[name]

    def _settle(self) -> None:
        """Until no gang is bound in part and every pod that waits says why; what does not come to that is a fault."""
        end = self._awake + _PATIENCE + 5
        while self._unsettled() and self._awake < end:
            self._pause(0.5)

    def _pause(self, seconds: float) -> None:
        """Patience is counted in time that this process was awake: one that is starved looks at others as starved."""
        self.bed.check()
        begin = time.monotonic()
        time.sleep(seconds)
        self._awake += min(time.monotonic() - begin, 2 * seconds)

    def _unsettled(self) -> bool:
        now, wrong = time.monotonic(), {}
        with self._lock:
            for name in self.workloads:
                for part, gang in self.gangs[name].items():
                    if gang.partly(now):
                        wrong[f"{name}/{part}: partly started"] = gang
                    if gang.silent:
                        wrong[f"{name}/{part}: {len(gang.silent)} pods wait without a reason"] = gang
            self._since = {what: self._since.get(what, self._awake) for what in wrong}
            for what, since in self._since.items():
                if self._awake - since > _PATIENCE:
                    self._fault(what, wrong[what])
        return bool(wrong)

    def _fault(self, what: str, gang: Gang) -> None:
        if what not in self.faults:
            self.faults[what] = f"{len(gang.started)} of {gang.size} bound\n{gang.told(self.begin)}"
            print(f"{what}: {self.faults[what]}", flush=True)

    def _drain(self) -> None:
        """Everything that waits gets its turn when others go: what does not, holds itself up."""
        last = self._awake
        while self.workloads and self._awake - last < _STANDSTILL:
            self._settle()
            running = self._running() or self._of_use()
            if running:
                last = self._awake
                self._delete(running)
            self._pause(1)
        with self._lock:
            for name in self.workloads:
                for part, gang in self.gangs[name].items():
                    if not gang.ran:
                        self._fault(f"{name}/{part}: never started", gang)

    def told(self) -> str:
        with self._lock:
            gangs = [gang for parts in self.gangs.values() for gang in parts.values()]
            took = [one for gang in gangs for one in gang.took]
            longest = statistics.median(took) if took else 0.0, max(took, default=0.0)
            whole = sum(gang.ran for gang in gangs)
            again = len(took) - whole
        return (
            f"{whole} of {len(gangs)} gangs started as a whole, {again} of them once more after a loss"
            f", first to last binding {longest[0]:.2f} s median, {longest[1]:.2f} s at most"
            f", {self.losses} node losses, {self.bed.restarts} restarts of operators, {len(self.faults)} faults"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.operators", description=__doc__)
    parser.add_argument("--workloads", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-groups", action="store_true", help="the gates of the Workload API off")
    parser.add_argument("--build-only", action="store_true")
    chosen = parser.parse_args()
    for name in OPERATORS:
        OPERATORS[name].build()
    if chosen.build_only:
        return 0
    with Bed(*OPERATORS, gates=WITHOUT_GROUPS if chosen.without_groups else None) as bed:
        bed.run()
        bed.nodes(_NODES, str(_CPUS))
        course = Course(bed, chosen.workloads, chosen.seed)
        course.run()
        if course.faults:
            print(f"---- kohort run\n{bed.log('run')[-20_000:]}")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(course.kinds.items()))
    groups = "without" if chosen.without_groups else "with"
    print(f"{chosen.workloads} workloads ({kinds}), seed {chosen.seed}, {groups} the Workload API: {course.told()}")
    return 1 if course.faults else 0


if __name__ == "__main__":
    sys.exit(main())
