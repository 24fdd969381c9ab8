"""Others while a hard gang is searched: how long the decision about a small pod takes then, and otherwise.

`python -m bench.search_latency` asks a scheduler core for large instances of some families, with a process beside it
that answers hard questions as in `kohort up`, and for small pods one after the other meanwhile. Printed is the
processor time of the scheduler's thread from a small pod's arrival to its decision, whatever else it did in between.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from time import thread_time

import msgspec
import numpy.ma  # noqa: F401 - as the scheduler does, before its first decision

from bench.search_families import Instance, instance
from kohort.place.demand import Branch, Demand, Leaf
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import GroupObject, Node, Pod
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.solverprocesses import SolverProcesses

_FAMILIES = ("full", "trees", "elastic")
_SPACE, _STAMP = "default", "2026-01-01T00:00:00Z"
_SELF = {"kubernetes.io/hostname": "others"}
_KEPT = {"key": "others", "effect": "NoSchedule"}  # for small pods alone
_PAUSE = 0.01  # seconds between two small pods


class Cluster:
    """An instance as API objects in a core; its small pods go to a node of their own."""

    def __init__(self, question: Instance) -> None:
        self.core = SchedulerCore(SchedulerSettings(), lambda: _STAMP, aside=True)
        self._count = 0
        state = question.engine.state
        free = state.alloc - state.used
        names = state.resources.names
        for row in range(state.rows):
            info = state.node_infos[row]
            if info is not None:
                amounts = {
                    name: f"{value}m" if name == "cpu" else str(value)
                    for name, value in zip(names, free[row].tolist(), strict=False)
                }
                self._node(info.name, info.labels, amounts)
        self._node("others", _SELF, {"cpu": "1000", "memory": "1Ti", "pods": "100000"}, [_KEPT])
        self._names = names
        self._root = question.roots[0]

    def _node(self, name: str, labels: dict[str, str], amounts: dict[str, str], taints: Sequence[object] = ()) -> None:
        body = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": list(taints)},
            "status": {"allocatable": amounts},
        }
        self.core.cache.set_node(msgspec.convert(body, Node))

    def ask(self) -> None:
        """The hard root arrives."""
        self._group(self._root, None)

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

    def _pod(self, name: str, asks: dict[str, str], group: str | None = None) -> None:
        body: dict[str, object] = {"schedulerName": "kohort", "containers": [{"resources": {"requests": asks}}]}
        own = {"nodeSelector": _SELF, "tolerations": [{"key": "others", "operator": "Exists"}]}
        body |= own if group is None else {"schedulingGroup": {"podGroupName": group}}
        self.core.cache.set_pod(msgspec.convert({"metadata": _meta(name), "spec": body}, Pod))

    def small(self) -> float:
        """A small pod arrives and is decided: processor time until then."""
        began = thread_time()
        name = f"small-{self._count}"
        self._count += 1
        self._pod(name, {"cpu": "1m"})
        while (step := self.core.step(0.0)) is not None:
            if step.decision is not None and name in step.decision.assignments:
                return thread_time() - began
        raise AssertionError("a small pod was not placed")


def _meta(name: str) -> dict[str, str]:
    return {"name": name, "namespace": _SPACE, "uid": name, "creationTimestamp": _STAMP}


async def measured(family: str, seed: int, seconds: float) -> tuple[list[float], list[float], bool]:
    """Times of small pods without and with a hard root, and whether that was placed."""
    made = Cluster(instance(family, "large", seed))
    alone = [made.small() for _ in range(200)]
    questions = made.core.questions
    assert questions is not None
    processes = SolverProcesses(1, seconds, lambda question, said: made.core.answered(question, said, 0.0))
    made.ask()
    beside = []
    try:
        while True:
            beside.append(made.small())
            processes.ask(questions.take())
            if not len(questions):
                break
            await asyncio.sleep(_PAUSE)
    finally:
        await processes.close()
    return alone, beside, not made.core.decisions


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
            own, others = f"alone p99 {_p99(alone):6.2f} ms", f"beside it {len(beside):4} p99 {_p99(beside):6.2f} ms"
            longest = f"longest {max(beside) * 1000:6.1f} ms"
            print(f"{family:<8} seed {seed}  {said:<6}  {own}  {others}  {longest}", flush=True)
    return 0


def _p99(times: list[float]) -> float:
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)] * 1000


if __name__ == "__main__":
    sys.exit(main())
