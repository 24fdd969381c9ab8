"""Random networks, and the best that can be had of them by a solver that knows nothing of the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import highspy
from tests.place.short import HOST, Short

from kohort.place.demand import PendingPod
from kohort.place.levels import Hierarchy

LEVELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/block", "topology.kubernetes.io/rack", HOST)


@dataclass(slots=True)
class Network:
    """A cluster with 4 levels; `room` is how many pods of 1 cpu each node takes."""

    short: Short
    room: dict[str, int]
    paths: dict[str, tuple[str, ...]]  # node -> its domain at each level, the wider ones in its name

    def pods(self, count: int) -> list[PendingPod]:
        return [replace(self.short.pod(f"p{number}"), rank=(number,)) for number in range(count)]

    def hierarchy(self) -> Hierarchy:
        return self.short.engine.all_nodes.tree(LEVELS)


def network(rng: Random, most: int = 64, nodes: int = 40) -> Network:
    short = Short()
    room: dict[str, int] = {}
    paths: dict[str, tuple[str, ...]] = {}
    for number in range(rng.randint(3, nodes)):
        zone, block, rack = rng.randint(0, 2), rng.randint(0, 2), rng.randint(0, 2)
        names = (f"z{zone}", f"z{zone}b{block}", f"z{zone}b{block}r{rack}", f"n{number}")
        free = rng.choice((0, 1, 1, 2, 4, 8, min(most, 16)))
        short.node(names[-1], free, **dict(zip(LEVELS[:-1], names[:-1], strict=True)))
        room[names[-1]], paths[names[-1]] = free, names
    return Network(short, room, paths)


def optimum(room: dict[str, int], paths: dict[str, tuple[str, ...]], need: int, levels: list[int]) -> list[int]:
    """The fewest domains at each of the levels, the first counting most, that have so many seats: one solve each."""
    best: list[int] = []
    for level in levels:
        solver, opened = _model(room, paths, need)
        for earlier, most in zip(levels, best, strict=False):
            solver.addConstr(solver.qsum(opened[earlier].values()) <= most)
        solver.minimize(solver.qsum(opened[level].values()))
        best.append(round(solver.getObjectiveValue()))
    return best


def _model(
    room: dict[str, int], paths: dict[str, tuple[str, ...]], need: int
) -> tuple[highspy.Highs, list[dict[str, highspy.highs.highs_var]]]:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    opened: list[dict[str, highspy.highs.highs_var]] = [{} for _ in LEVELS]
    seats = {}
    for node, free in room.items():
        seats[node] = solver.addIntegral(lb=0, ub=free)
        for level, name in enumerate(paths[node]):
            if name not in opened[level]:
                opened[level][name] = solver.addBinary()
            solver.addConstr(seats[node] <= max(free, 1) * opened[level][name])
    solver.addConstr(solver.qsum(seats.values()) == need)
    return solver, opened
