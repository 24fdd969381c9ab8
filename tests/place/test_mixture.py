"""Pods to choose from are taken so that all fit together, not the cheapest of each leaf."""

from __future__ import annotations

import numpy as np

from kohort.place.mixture import mixed
from kohort.place.packing import PackGroup, Packing
from kohort.place.packsearch import find
from kohort.place.patterns import Patterns


def _never() -> bool:
    return False


def _tree(leaves: int, have: int, need: int) -> PackGroup:
    """Every leaf has as many pods of the one class as of the other, and needs some of them, whichever."""
    children = [PackGroup(need, pods={0: have, 1: have}, leaf=number) for number in range(leaves)]
    return PackGroup(leaves, children=children)


def _patterns(free: list[list[int]], asks: list[list[int]], cap: int) -> Patterns:
    caps = np.full((len(free), len(asks)), cap)
    return Patterns(np.array(free), np.array(asks), caps, 10_000)


def test_a_mixture_of_what_nodes_can_hold_together() -> None:
    """One class takes much cpu, the other much memory: only as many of each fill the nodes."""
    asks, free = [[3, 1], [1, 3]], [[4, 4]] * 10
    tree = _tree(5, 4, 4)
    lean = mixed(tree, _patterns(free, asks, 4), np.ones(2, np.float32), np.random.default_rng(0), 0)
    taken = [sum(leaf.pods.get(number, 0) for leaf in lean.leaves()) for number in (0, 1)]
    assert sum(taken) == 20
    assert abs(taken[0] - taken[1]) <= 4
    assert all(sum(leaf.pods.values()) == leaf.need for leaf in lean.leaves())
    assert all(count <= 4 for leaf in lean.leaves() for count in leaf.pods.values())


def test_planted_mixture_is_found() -> None:
    asks, free = [[3, 1], [1, 3]], [[4, 4]] * 10
    packing = Packing(free, asks, [[4, 4]] * 10, [], _tree(5, 4, 4))
    values = find(packing, _never)
    assert values is not None
    assert packing.holds(values)
    assert sum(value >= 0 for value in values) == 20


def test_leaves_that_need_everything_stay_as_they_are() -> None:
    tree = PackGroup(2, children=[PackGroup(3, pods={0: 3}, leaf=0), PackGroup(2, pods={0: 1, 1: 1}, leaf=1)])
    lean = mixed(tree, _patterns([[9, 9]], [[1, 1], [2, 2]], 4), np.ones(2, np.float32), np.random.default_rng(0), 1)
    assert [leaf.pods for leaf in lean.leaves()] == [{0: 3}, {0: 1, 1: 1}]
