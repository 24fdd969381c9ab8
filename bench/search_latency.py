"""Others while a hard gang is searched: how long the decision about a small pod takes then, and otherwise.

`python -m bench.search_latency` asks a scheduler core for large instances of some families, with a process beside it
that answers hard questions as in `kohort up`. Meanwhile small pods arrive by the clock, one every 5 ms, whatever the
scheduler does: one that arrives in the middle of somebody else's decision waits for the rest of it. Printed is how long
it was from then to its decision. The clock is that of a machine of its own: processor time of the scheduler, and the
time for which it had nothing to do. Behind it, in brackets, the same by the clock on the wall, with whatever else the
machine did meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter, process_time

import msgspec
import numpy.ma  # noqa: F401 - as the scheduler does, before its first decision

from bench.search_families import Instance, instance
from kohort.place.demand import Branch, Demand, Leaf
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import GroupObject, Node, Pod
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.solverprocesses import SolverProcesses

_FAMILIES = ("full", "trees", "elastic", "running", "queue")
Waited = tuple[float, float]  # seconds by our own clock, and by that on the wall
_SPACE, _STAMP = "default", "2026-01-01T00:00:00Z"
_SELF = {"kubernetes.io/hostname": "others"}
_KEPT = {"key": "others", "effect": "NoSchedule"}  # for small pods alone
_EVERY = 0.005  # seconds from one small pod to the next
_IDLE = 0.0002  # seconds between two looks if there is nothing to do
_AFTER = 20  # small pods that come when the hard root is decided


class Cluster:
    """An instance as API objects in a core; its small pods go to a node of their own."""

    def __init__(self, question: Instance) -> None:
        self.core = SchedulerCore(SchedulerSettings(), lambda: _STAMP, aside=True)
        self._count = 0
        state = question.engine.state
        free = state.alloc - state.used
        names = state.resources.names
        members = Counter(row for root in question.roots for row in root.running)
        for row in range(state.rows):
            info = state.node_infos[row]
            if info is not None:
                amounts = {
                    name: f"{value}m" if name == "cpu" else str(value + members[row] * (name == "pods"))
                    for name, value in zip(names, free[row].tolist(), strict=False)
                }
                self._node(info.name, info.labels, amounts)
        self._node("others", _SELF, {"cpu": "1000", "memory": "1Ti", "pods": "100000"}, [_KEPT])
        self._names = names
        self._nodes = [None if info is None else info.name for info in state.node_infos]
        self._roots = question.roots
        self.hard: set[str] = set()  # roots of which nothing is placed yet

    def _node(
        self, name: str, labels: Mapping[str, str], amounts: dict[str, str], taints: Sequence[object] = ()
    ) -> None:
        body = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": list(taints)},
            "status": {"allocatable": amounts},
        }
        self.core.cache.set_node(msgspec.convert(body, Node))

    def ask(self) -> None:
        """What is hard arrives."""
        for root in self._roots:
            self._group(root, None)
            self.hard.add(root.name)

    def _group(self, group: Demand, parent: str | None) -> None:
        composite = isinstance(group, Branch)
        gang = {"minGroupCount" if composite else "minCount": group.need}
        spec: dict[str, object] = {"schedulingPolicy": {"gang": gang}}
        if parent is not None:
            spec["parentCompositePodGroupName"] = parent
        if group.topology is not None:
            spec["schedulingConstraints"] = {"topology": [{"key": group.topology}]}
        self.core.cache.set_group(
            msgspec.convert({"metadata": _meta(group.name), "spec": spec}, GroupObject), composite=composite
        )
        for child in group.children if isinstance(group, Branch) else ():
            self._group(child, group.name)
        for pod in group.pods if isinstance(group, Leaf) else ():
            signature = pod.eq_class.signature
            asks = {
                self._names[column]: value
                for column, value in zip(signature.columns.tolist(), signature.amounts.tolist(), strict=True)
            }
            self._pod(
                pod.key,
                {name: f"{value}m" if name == "cpu" else str(value) for name, value in asks.items() if name != "pods"},
                group.name,
            )
        for number, row in enumerate(group.running if isinstance(group, Leaf) else ()):
            self._pod(f"{group.name}-runs-{number}", {}, group.name, self._nodes[row])

    def _pod(self, name: str, asks: dict[str, str], group: str | None = None, node: str | None = None) -> None:
        body: dict[str, object] = {"schedulerName": "kohort", "containers": [{"resources": {"requests": asks}}]}
        own = {"nodeSelector": _SELF, "tolerations": [{"key": "others", "operator": "Exists"}]}
        body |= own if group is None else {"schedulingGroup": {"podGroupName": group}}
        body |= {} if node is None else {"nodeName": node}
        self.core.cache.set_pod(msgspec.convert({"metadata": _meta(name), "spec": body}, Pod))

    def small(self) -> str:
        """A small pod arrives."""
        name = f"small-{self._count}"
        self._count += 1
        self._pod(name, {"cpu": "1m"})
        return name


def _meta(name: str) -> dict[str, str]:
    return {"name": name, "namespace": _SPACE, "uid": name, "creationTimestamp": _STAMP}


class OwnClock:
    """Seconds of our processor, and those for which there was nothing to do."""

    def __init__(self) -> None:
        self._idle = 0.0

    def now(self) -> float:
        return process_time() + self._idle

    async def idle(self) -> None:
        before, spent = perf_counter(), process_time()
        await asyncio.sleep(_IDLE)
        self._idle += min(max(perf_counter() - before - (process_time() - spent), 0.0), 5 * _IDLE)


class Arrivals:
    """Small pods that come by the clock, and how long each waited: by that clock, and by the one on the wall."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self.clock = cluster, OwnClock()
        self._looked = (self.clock.now(), perf_counter())
        self._next = self._looked[0]
        self._waiting: dict[str, tuple[float, float]] = {}
        self.waited: list[Waited] = []

    def due(self) -> None:
        """Those whose time has come, since the last look or just now."""
        now, wall = self.clock.now(), perf_counter()
        then, wall_then = self._looked
        while self._next <= now:
            share = (self._next - then) / (now - then or 1.0)
            self._waiting[self._cluster.small()] = (self._next, wall_then + (wall - wall_then) * share)
            self._next += _EVERY
        self._looked = (now, wall)

    def decided(self, names: Iterable[str]) -> None:
        for name in names:
            if (came := self._waiting.pop(name, None)) is not None:
                self.waited.append((self.clock.now() - came[0], perf_counter() - came[1]))


async def driven(cluster: Cluster, arrivals: Arrivals, processes: SolverProcesses, *, count: int = 0) -> None:
    """As the scheduler's loop: steps, and between them whatever has arrived. Until so many small pods are decided or,
    if none are said, some after the last question was answered."""
    core, after = cluster.core, _AFTER
    assert core.questions is not None
    while count > len(arrivals.waited) or (not count and after):
        arrivals.due()
        step = core.step(0.0)
        if step is not None and step.decision is not None:
            arrivals.decided(step.decision.assignments)
            if step.decision.assignments:
                cluster.hard.discard(step.decision.root.rpartition("/")[2])
            settled = not len(core.questions) and core.slices.under_way is None
            after = after - 1 if settled else _AFTER
        processes.ask(core.questions.take())
        await (asyncio.sleep(0) if step is not None else arrivals.clock.idle())


async def measured(family: str, seed: int, seconds: float) -> tuple[list[Waited], list[Waited], bool]:
    """Times of small pods without and with what is hard, and whether that was placed."""
    made = Cluster(instance(family, "large", seed))
    processes = SolverProcesses(1, seconds, lambda question, said: made.core.answered(question, said, 0.0))
    try:
        alone = Arrivals(made)
        await driven(made, alone, processes, count=200)
        made.ask()
        beside = Arrivals(made)
        await driven(made, beside, processes)
    finally:
        made.core.close()
        await processes.close()
    return alone.waited, beside.waited, not made.hard


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.search_latency", description=__doc__)
    parser.add_argument("--family", choices=_FAMILIES, action="append")
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    wanted = parser.parse_args()
    for family in wanted.family or _FAMILIES:
        for seed in range(wanted.count):
            alone, beside, placed = asyncio.run(measured(family, seed, wanted.seconds))
            said = "placed" if placed else "waits"
            own = f"alone p99 {_p99(alone, 0):5.1f} ms"
            others = f"beside it {len(beside):4}: p99 {_p99(beside, 0):5.1f} ms, longest {_p99(beside, 0, 1.0):5.1f} ms"
            wall = f"(wall: {_p99(beside, 1):5.1f}, {_p99(beside, 1, 1.0):5.1f})"
            print(f"{family:<8} seed {seed}  {said:<6}  {own}  {others}  {wall}", flush=True)
    return 0


def _p99(times: list[Waited], which: int, share: float = 0.99) -> float:
    ordered = sorted(one[which] for one in times)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000


if __name__ == "__main__":
    sys.exit(main())
