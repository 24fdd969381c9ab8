"""Seats for pods with rules between them, on questions made from an answer; and what sums alone prove."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kohort.place.packing import Limit, PackGroup, Packing
from kohort.place.packsearch import find
from kohort.place.seatsearch import SeatSearch
from kohort.place.shortage import Shortage, shortage


def _never() -> bool:
    return False


def _planted(seed: int, nodes: int = 30, classes: int = 9) -> tuple[Packing, list[Limit]]:
    """Every class is on a third of the nodes, once on each; some once in a rack of three. Nodes have little more."""
    dice = random.Random(seed)
    asks = [[dice.randint(1, 9), dice.randint(1, 9)] for _ in range(classes)]
    seats = np.zeros((nodes, classes), np.int64)
    limits = []
    for number in range(classes):
        kept_apart = number % 3 == 0
        racks = dice.sample(range(nodes // 3), nodes // 3 - 2)
        where = (
            [3 * rack + dice.randrange(3) for rack in racks] if kept_apart else dice.sample(range(nodes), nodes // 3)
        )
        seats[where, number] = 1
        if kept_apart:
            limits += [Limit([3 * rack, 3 * rack + 1, 3 * rack + 2], [number]) for rack in range(nodes // 3)]
    free = seats @ np.array(asks) + 2
    pods = {number: int(count) for number, count in enumerate(seats.sum(axis=0))}
    root = PackGroup(sum(pods.values()), pods=pods, leaf=0)
    return Packing(free.tolist(), asks, [[1] * classes] * nodes, [], root, limits), limits


@pytest.mark.parametrize("seed", range(6))
def test_planted_pods_that_keep_apart_are_seated(seed: int) -> None:
    packing, _ = _planted(seed)
    values = find(packing, _never)
    assert values is not None
    assert packing.holds(values)


def test_a_limit_over_several_classes_is_kept() -> None:
    limits = [Limit([node], [0, 1]) for node in range(4)]
    search = SeatSearch(np.full((4, 1), 9), np.array([[1], [1]]), np.full((4, 2), 9), limits)
    seats = search.find(np.array([2, 2]), _never)
    assert seats is not None
    assert (seats.sum(axis=1) == 1).all()


def test_more_pods_than_limits_allow_find_no_seats() -> None:
    limits = [Limit([0, 1], [0]), Limit([2, 3], [0])]
    search = SeatSearch(np.full((4, 1), 9), np.array([[1]]), np.full((4, 1), 9), limits)
    assert search.find(np.array([3]), _never) is None


def test_pieces_smaller_than_any_pod_are_of_no_use() -> None:
    """Two nodes with 5 each have room for four pods of 2, whatever their sum says."""
    root = PackGroup(5, pods={0: 5}, leaf=0)
    packing = Packing([[5], [5]], [[2]], [[2], [2]], [], root)
    assert shortage(packing) == Shortage(0, needed=10, free=10, usable=8, step=2)
    root.need = 4
    assert shortage(packing) is None


def test_sums_are_told_for_the_domain_that_has_most() -> None:
    root = PackGroup(3, level=0, pods={0: 3}, leaf=0)
    packing = Packing([[4], [4], [4]], [[2]], [[2], [2], [2]], [[1, 2, 2]], root)
    assert shortage(packing) is None
    root.code = 1
    assert shortage(packing) == Shortage(0, needed=6, free=4, usable=4, step=2)
