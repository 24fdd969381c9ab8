"""The search for a packing against every way there is, on questions small enough to try them all."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.place.packing import Limit, PackGroup, Packing
from kohort.place.packsearch import find
from kohort.place.patterns import Patterns, TooManyPatterns


def _never() -> bool:
    return False


def _packing(free: list[list[int]], asks: list[list[int]], racks: list[int], root: PackGroup) -> Packing:
    caps = [[min((f // a for f, a in zip(node, ask, strict=True) if a), default=0) for ask in asks] for node in free]
    return Packing(free, asks, caps, [racks], root)


def _exists(packing: Packing) -> bool:
    count = int(packing.demand().sum())
    return any(packing.holds(list(values)) for values in product(range(-1, len(packing.free)), repeat=count))


_amounts = st.lists(st.integers(1, 6), min_size=2, max_size=2)
_nodes = st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2), min_size=3, max_size=3)


@settings(max_examples=60, deadline=None)
@given(_nodes, st.lists(_amounts, min_size=2, max_size=2), st.lists(st.integers(0, 3), min_size=2, max_size=2))
def test_one_gang_on_few_nodes_is_decided(free: list[list[int]], asks: list[list[int]], counts: list[int]) -> None:
    pods = {number: count for number, count in enumerate(counts) if count}
    packing = _packing(free, asks, [1, 1, 2], PackGroup(sum(counts), pods=pods, leaf=0))
    if not pods:
        return
    values = find(packing, _never)
    assert (values is not None) == _exists(packing)
    assert values is None or packing.holds(values)


@settings(max_examples=60, deadline=None)
@given(_nodes, st.lists(_amounts, min_size=2, max_size=2), st.data())
def test_groups_in_racks_with_more_than_they_need(
    free: list[list[int]], asks: list[list[int]], data: st.DataObject
) -> None:
    children = []
    for number in range(2):
        pods = {data.draw(st.integers(0, 1)): data.draw(st.integers(1, 2))}
        need = data.draw(st.integers(1, sum(pods.values())))
        children.append(PackGroup(need, level=0, pods=pods, leaf=number))
    packing = _packing(free, asks, [1, 1, 2], PackGroup(data.draw(st.integers(1, 2)), children=children))
    values = find(packing, _never)
    assert (values is not None) == _exists(packing)
    assert values is None or packing.holds(values)


@pytest.mark.parametrize(
    ("values", "right"),
    [
        ([0, 0, 1], True),
        ([0, 1, 1], False),
        ([0, 0, -1], False),
        ([2, 0, 0], False),
        ([0, 0, 2], True),
        ([0, 0], False),
    ],
)
def test_an_answer_is_checked(values: list[int], right: bool) -> None:
    held = PackGroup(2, level=0, pods={0: 2}, leaf=0)
    root = PackGroup(2, children=[held, PackGroup(1, pods={1: 1}, leaf=1)])
    packing = _packing([[4, 9], [4, 9], [4, 9]], [[2, 1], [3, 1]], [1, 2, 2], root)
    assert packing.holds(values) is right


def test_an_answer_keeps_to_limits_and_to_the_domain_that_a_group_must_take() -> None:
    packing = _packing([[4, 9], [4, 9]], [[2, 1]], [1, 2], PackGroup(2, pods={0: 2}, leaf=0))
    assert packing.holds([0, 0])
    packing.limits = [Limit([0], [0], 1)]
    assert not packing.holds([0, 0])
    assert packing.holds([0, 1])
    packing.root = PackGroup(2, level=0, code=2, pods={0: 2}, leaf=0)
    assert packing.holds([1, 1])
    packing.limits = []
    assert not packing.holds([0, 0])
    assert find(packing, _never) == [1, 1]


def test_patterns_are_all_fillings_that_leave_no_room() -> None:
    free, asks = np.array([[7, 7], [0, 0]]), np.array([[3, 2], [2, 3]])
    patterns = Patterns(free, asks, np.full((2, 2), 5), 100)
    assert sorted(map(tuple, patterns.of(0).tolist())) == [(0, 2), (1, 1), (2, 0)]
    for a, b in patterns.of(0).tolist():
        used = a * asks[0] + b * asks[1]
        assert (used <= free[0]).all()
        assert not any((used + ask <= free[0]).all() for ask in asks)
    assert patterns.of(1).tolist() == [[0, 0]]
    with pytest.raises(TooManyPatterns):
        Patterns(np.array([[90, 90]]), asks, np.full((1, 2), 50), 10)


def test_prices_below_the_demand_prove_that_it_does_not_fit() -> None:
    free, asks = np.array([[4], [4]]), np.array([[3]])
    patterns = Patterns(free, asks, np.full((2, 1), 9), 100)
    assert patterns.prices(np.array([3.0], np.float32), np.ones(1, np.float32))[1] < 1
    assert patterns.prices(np.array([2.0], np.float32), np.ones(1, np.float32))[1] >= 1
