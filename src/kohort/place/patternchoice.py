"""One pattern for every node by HiGHS: for nodes that are full to the brim, where changing one node at a time ends.

At some prices of pods, what all best patterns are worth beyond what is asked for is all that may be lost: a pattern
that loses more on its node alone is in no answer. To the brim that leaves few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from kohort.place.coversearch import Ring
from kohort.place.effort import Effort
from kohort.place.highs import Program, SolverStatus, run
from kohort.place.packing import Counts, Prices
from kohort.place.patterns import Patterns, Which

_MOST: Final = 6000  # patterns that HiGHS is asked to choose from
_WORK: Final = 150  # times that it asks whether to go on
_SLACK: Final = 1e-3  # of rounding


def choose(
    patterns: Patterns, rings: Sequence[Ring], inner: Which, prices: Prices, expired: Callable[[], bool]
) -> dict[int, int] | None:
    """Node -> pattern, so that every ring has what is asked for there and within it; None proves nothing.
    `inner`: the innermost ring of every node, -1 for one that has no part."""
    has_part = inner >= 0
    worth = patterns.counts @ prices
    best = np.maximum.reduceat(worth, patterns.starts[:-1])
    lost = best[patterns.node] - worth
    spare = float(best[has_part].sum() - sum(float(ring.asks @ prices) for ring in rings))
    few = np.flatnonzero(has_part[patterns.node] & (lost <= spare + _SLACK))
    if spare < -_SLACK or not len(few) or len(few) > _MOST:
        return None
    program = _program(patterns.node[few], patterns.counts[few], rings, inner)
    status, values = run(program, Effort(solver_work=_WORK, expired=expired))
    if status is not SolverStatus.FOUND:
        return None
    chosen = few[values > 0.5]
    return dict(zip(patterns.node[chosen].tolist(), chosen.tolist(), strict=True))


def _program(node: Which, counts: Counts, rings: Sequence[Ring], inner: Which) -> Program:
    """One pattern for a node at the most; and in every ring, of every class, as many seats as it and rings within it
    ask for."""
    asked = [ring.asks.astype(np.float64) for ring in rings]
    for number in range(len(rings) - 1, 0, -1):
        asked[rings[number].around] += asked[number]
    index = [np.flatnonzero(node == one) for one in np.unique(node).tolist()]
    factor, low = [np.ones(len(one)) for one in index], [-np.inf] * len(index)
    high = [1.0] * len(index)
    at = inner[node]
    for number in range(len(rings) - 1, -1, -1):
        for sort in np.flatnonzero(rings[number].asks if number else asked[0]).tolist():
            seats = np.flatnonzero((at == number) & (counts[:, sort] > 0))
            index.append(seats)
            factor.append(counts[seats, sort].astype(float))
            low.append(float(asked[number][sort]))
            high.append(np.inf)
        at = np.where(at == number, rings[number].around, at)
    return Program(
        np.ones(len(node)),
        np.cumsum([0, *(len(one) for one in index)]),
        np.concatenate(index),
        np.concatenate(factor),
        np.array(low),
        np.array(high),
    )
