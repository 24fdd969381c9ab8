"""Prices by patterns stay numbers, however little of a class is asked for and however much of it nodes could hold."""

from __future__ import annotations

import numpy as np

from kohort.place.patterns import Patterns


def test_prices_of_a_class_of_which_nodes_hold_far_more_than_is_asked() -> None:
    nodes = 4
    free = np.full((nodes, 1), 1000, np.int64)
    asks = np.array([[1], [500]], np.int64)
    caps = np.full((nodes, 2), 1 << 20, np.int64)
    patterns = Patterns(free, asks, caps, 100_000)
    demand = np.array([1, 8], np.float32)
    begin = np.array([1, 0.5], np.float32)

    with np.errstate(all="raise", under="ignore"):
        prices, ratio = patterns.prices(demand, begin)

    assert np.isfinite(prices).all()
    assert prices.max() == 1
    assert 0 < ratio < np.inf
