"""One pattern for every node by HiGHS: for nodes that are full to the brim, where changing one node at a time ends.

At some prices of pods, what all best patterns are worth beyond what is asked for is all that may be lost: a pattern
that loses more on its node alone is in no answer. To the brim that leaves few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kohort.place.coversearch import Ring
from kohort.place.effort import Effort
from kohort.place.highs import Flags, Floats, Program, SolverStatus, run
from kohort.place.packing import Counts, Limit, Numbers, Prices
from kohort.place.patterns import Patterns, Which

_MOST: Final = 6000  # patterns that HiGHS is asked to choose from
_WORK: Final = 150  # times that it asks whether to go on
_SLACK: Final = 1e-3  # of rounding


def choose_within(
    patterns: Patterns, limits: Sequence[Limit], asked: Counts, prices: Prices, expired: Callable[[], bool]
) -> Numbers | None:
    """Seats by node and class, where rules between pods limit some: of its pattern, a node may use less."""
    nodes, classes = len(patterns.starts) - 1, len(asked)
    few = _useful(patterns, np.ones(nodes, bool), float(asked @ prices), prices)
    if few is None:
        return None
    node, counts = patterns.node[few], patterns.counts[few]
    used = len(few) + np.arange(nodes * classes).reshape(nodes, classes)  # unknowns: seats that are used
    rows = [_Row(np.flatnonzero(node == one), None, high=1.0) for one in range(nodes)]
    for one in range(nodes):
        own = np.flatnonzero(node == one)
        for sort in range(classes):
            has = own[counts[own, sort] > 0]
            factor = np.array([*counts[has, sort].astype(float), -1.0])
            rows.append(_Row(np.array([*has, used[one, sort]], np.int64), factor, low=0.0))
    rows += [_Row(used[:, sort], None, low=float(asked[sort])) for sort in range(classes)]
    rows += [_Row(used[np.ix_(one.nodes, one.classes)].ravel(), None, high=float(one.most)) for one in limits]
    upper = np.concatenate([np.ones(len(few)), np.repeat(asked[None], nodes, axis=0).ravel().astype(float)])
    status, values = run(_as_program(upper, rows), Effort(solver_work=_WORK, expired=expired))
    if status is not SolverStatus.FOUND:
        return None
    seats: Numbers = np.rint(values[len(few) :]).astype(np.int64).reshape(nodes, classes)
    for sort, wanted in enumerate(asked.astype(np.int64).tolist()):  # no more than is asked for
        over = np.maximum(np.cumsum(seats[:, sort]) - wanted, 0)
        seats[:, sort] -= np.minimum(over, seats[:, sort])
    return seats


def choose(
    patterns: Patterns, rings: Sequence[Ring], inner: Which, prices: Prices, expired: Callable[[], bool]
) -> dict[int, int] | None:
    """Node -> pattern, so that every ring has what is asked for there and within it; None proves nothing.
    `inner`: the innermost ring of every node, -1 for one that has no part."""
    few = _useful(patterns, inner >= 0, sum(float(ring.asks @ prices) for ring in rings), prices)
    if few is None:
        return None
    program = _program(patterns.node[few], patterns.counts[few], rings, inner)
    status, values = run(program, Effort(solver_work=_WORK, expired=expired))
    if status is not SolverStatus.FOUND:
        return None
    chosen = few[values > 0.5]
    return dict(zip(patterns.node[chosen].tolist(), chosen.tolist(), strict=True))


def _useful(patterns: Patterns, has_part: Flags, asked: float, prices: Prices) -> Which | None:
    """Patterns that lose no more than may be lost; None if there are too many, or what is asked for is too much."""
    worth = patterns.counts @ prices
    best = np.maximum.reduceat(worth, patterns.starts[:-1])
    spare = float(best[has_part].sum()) - asked
    few = np.flatnonzero(has_part[patterns.node] & (best[patterns.node] - worth <= spare + _SLACK))
    return None if spare < -_SLACK or not len(few) or len(few) > _MOST else few


@dataclass(slots=True)
class _Row:
    """Unknowns and their factors (None: 1), between two bounds."""

    index: Numbers
    factor: Floats | None = None
    low: float = -np.inf
    high: float = np.inf


def _program(node: Which, counts: Counts, rings: Sequence[Ring], inner: Which) -> Program:
    """One pattern for a node at the most; and in every ring, of every class, as many seats as it and rings within it
    ask for."""
    asked = [ring.asks.astype(np.float64) for ring in rings]
    for number in range(len(rings) - 1, 0, -1):
        asked[rings[number].around] += asked[number]
    rows = [_Row(np.flatnonzero(node == one), high=1.0) for one in np.unique(node).tolist()]
    at = inner[node]
    for number in range(len(rings) - 1, -1, -1):
        for sort in np.flatnonzero(rings[number].asks if number else asked[0]).tolist():
            seats = np.flatnonzero((at == number) & (counts[:, sort] > 0))
            rows.append(_Row(seats, counts[seats, sort].astype(float), low=float(asked[number][sort])))
        at = np.where(at == number, rings[number].around, at)
    return _as_program(np.ones(len(node)), rows)


def _as_program(upper: Floats, rows: Sequence[_Row]) -> Program:
    return Program(
        upper,
        np.cumsum([0, *(len(row.index) for row in rows)]),
        np.concatenate([row.index for row in rows]),
        np.concatenate([np.ones(len(row.index)) if row.factor is None else row.factor for row in rows]),
        np.array([row.low for row in rows]),
        np.array([row.high for row in rows]),
    )
