"""Nodes that are full to the brim: one pattern for each, chosen by HiGHS among those that lose no more than may be."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kohort.place.coversearch import Ring
from kohort.place.packing import Limit
from kohort.place.patternchoice import choose, choose_within
from kohort.place.patterns import Patterns

ASKS = [(5, 2), (3, 4), (2, 7)]


def _never() -> bool:
    return False


def _planted(seed: int, nodes: int) -> tuple[np.ndarray, Patterns]:
    """How many pods of each class every node has, and the patterns of nodes with just so much room."""
    dice = random.Random(seed)
    held = np.zeros((nodes, len(ASKS)), np.int64)
    for node in range(nodes):
        for number in dice.choices(range(len(ASKS)), k=dice.randint(3, 6)):
            held[node, number] += 1
    free, asks = held @ np.array(ASKS), np.array(ASKS)
    return held, Patterns(free, asks, np.full(held.shape, 9), 10_000)


def _prices(patterns: Patterns, asked: np.ndarray) -> np.ndarray:
    return patterns.prices(asked.astype(np.float32), np.ones(len(ASKS), np.float32))[0]


@pytest.mark.parametrize("seed", range(4))
def test_one_gang_to_the_brim(seed: int) -> None:
    held, patterns = _planted(seed, 20)
    asked = held.sum(axis=0).astype(np.float32)
    chosen = choose(patterns, [Ring(asked)], np.zeros(20, np.intp), _prices(patterns, asked), _never)
    assert chosen is not None
    assert (sum(patterns.counts[one] for one in chosen.values()) >= asked).all()
    assert all(patterns.starts[node] <= one < patterns.starts[node + 1] for node, one in chosen.items())


@pytest.mark.parametrize("seed", range(4))
def test_racks_have_what_is_asked_for_there_and_the_rest_is_anywhere(seed: int) -> None:
    held, patterns = _planted(seed, 20)
    inner = np.repeat([1, 2, 3, 4], 5).astype(np.intp)
    own = [held[inner == rack].sum(axis=0) // 2 for rack in (1, 2, 3, 4)]
    loose = held.sum(axis=0) - sum(own)
    rings = [Ring(loose.astype(np.float32)), *(Ring(one.astype(np.float32), 0) for one in own)]
    chosen = choose(patterns, rings, inner, _prices(patterns, held.sum(axis=0)), _never)
    assert chosen is not None
    seats = np.zeros(held.shape)
    for node, one in chosen.items():
        seats[node] = patterns.counts[one]
    assert (seats.sum(axis=0) >= held.sum(axis=0)).all()
    for rack, wanted in enumerate(own, 1):
        assert (seats[inner == rack].sum(axis=0) >= wanted).all()


def test_one_pod_too_many_has_no_answer() -> None:
    held, patterns = _planted(0, 20)
    asked = held.sum(axis=0).astype(np.float32) + 1
    assert choose(patterns, [Ring(asked)], np.zeros(20, np.intp), _prices(patterns, asked), _never) is None


@pytest.mark.parametrize("seed", range(4))
def test_limits_of_some_nodes_together_are_kept(seed: int) -> None:
    """As planted: of the first class each five nodes have no more than they hold in the answer."""
    held, patterns = _planted(seed, 20)
    asked = held.sum(axis=0).astype(np.float32)
    racks = [list(range(first, first + 5)) for first in range(0, 20, 5)]
    limits = [Limit(rack, [0], int(held[rack, 0].sum())) for rack in racks]
    seats = choose_within(patterns, limits, asked, _prices(patterns, asked), _never)
    assert seats is not None
    assert seats.sum(axis=0).tolist() == asked.tolist()
    assert (seats @ np.array(ASKS) <= held @ np.array(ASKS)).all()
    assert all(seats[one.nodes, 0].sum() <= one.most for one in limits)
