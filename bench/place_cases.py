"""Clusters and gangs for the placement benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import process_time

from kohort.place.demand import Branch, Leaf, PendingPod, Result
from kohort.place.engine import Engine
from kohort.place.search import Search
from kohort.place.state import AssignedPod, ClusterState

HOST, RACK, ZONE = "kubernetes.io/hostname", "rack", "zone"
NODE = {"cpu": 4000, "memory": 32 << 30, "pods": 110}
SMALL = {"cpu": 100, "memory": 100 << 20}


def cluster(nodes: int, racks: int = 50, zones: int = 5) -> Engine:
    state = ClusterState()
    for number in range(nodes):
        labels = {HOST: f"n{number}", RACK: f"r{number * racks // nodes}", ZONE: f"z{number * zones // nodes}"}
        state.put_node(f"n{number}", NODE, labels)
    return Engine(state)


def gang(engine: Engine, name: str, size: int, key: str | None = None, asks: dict[str, int] | None = None) -> Leaf:
    state = engine.state
    eq_class = state.interpod.class_of(state.signatures.of_requests(asks or SMALL), "default", {})
    return Leaf(name, [PendingPod(f"{name}-{number}", eq_class) for number in range(size)], size, key)


def ranked(engine: Engine, name: str, size: int, preferred: tuple[str, ...], asks: dict[str, int]) -> Leaf:
    """A gang whose pods have ranks."""
    leaf = gang(engine, name, size, None, asks)
    pods = [replace(pod, rank=(number,)) for number, pod in enumerate(leaf.pods)]
    return replace(leaf, pods=pods, preferred=preferred)


def tree(engine: Engine, branches: int = 8, leaves: int = 8, pods: int = 16) -> Branch:
    """One zone; each branch in one rack of it; each leaf fills one node."""
    asks = {"cpu": 4000 // pods, "memory": 1 << 30}
    racks = [
        Branch(f"b{b}", [gang(engine, f"b{b}-l{n}", pods, HOST, asks) for n in range(leaves)], leaves, RACK)
        for b in range(branches)
    ]
    return Branch("root", racks, branches, ZONE)


def decide(engine: Engine, leaf: Leaf) -> Result:
    """A decision, and its pods bound: all that a scheduler's loop does besides I/O."""
    mark = engine.mark()
    result = Search(engine).place(leaf)
    engine.undo(mark)
    for pod in leaf.pods:
        row = result.placed.get(pod.key)
        if row is not None:
            seat(engine.state, pod, leaf.name, engine.state.node(row).name)
    return result


def seat(state: ClusterState, pod: PendingPod, group: str, node: str) -> None:
    state.put_pod(
        AssignedPod(pod.key, "default", pod.key, pod.labels, pod.eq_class.signature, 0, f"default/{group}"), node
    )


def fill(engine: Engine, per_node: int, asks: dict[str, int], groups: int = 0, skip: int = 0) -> None:
    """Running pods on every node but the first so many; with groups, every so many of them are one gang's."""
    state = engine.state
    signature = state.signatures.of_requests(asks)
    nodes = [name for name in (f"n{number}" for number in range(skip, state.rows)) if state.row(name) is not None]
    total = per_node * len(nodes)
    size = total // groups if groups else 0
    for number in range(total):
        group = f"default/v{number // size}" if groups else None
        labels = {"app": f"a{number % 50}", "job": f"j{number // 10}"}
        uid = f"00000000-0000-4000-8000-{number:012}"
        started = f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z"
        key = AssignedPod(uid, "default", f"pod-{number}", labels, signature, 0, group, started)
        state.put_pod(key, nodes[number % len(nodes)])


def fill_node(engine: Engine, node: str, count: int, asks: dict[str, int]) -> None:
    """Running pods on one node."""
    signature = engine.state.signatures.of_requests(asks)
    for number in range(count):
        name = f"{node}-other-{number}"
        engine.state.put_pod(AssignedPod(name, "default", name, {}, signature, 0, None), node)


def spent(work: Callable[[], object]) -> float:
    """Processor time: what the work costs, whatever else the machine does."""
    begin = process_time()
    work()
    return process_time() - begin


def least(make: Callable[[], Callable[[], object]], times: int) -> float:
    """The least of some runs, each made ready anew."""
    return min(spent(make()) for _ in range(times))
