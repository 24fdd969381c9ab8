"""A few nodes and what they must hold: all ways of filling one node after the other, the most promising kept.

What was reached is looked at only as far as it is asked for, so that many fillings are one. Where no state had to be
dropped, that nothing was found is a proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kohort.place.packing import Counts
from kohort.place.patterns import Patterns, Which

_FIRST: Final = 24  # states kept at first
_SLACK: Final = 1e-3  # of rounding


@dataclass(slots=True)
class _Step:
    """States after a node: where each came from, and the pattern that led there."""

    parent: Which
    pattern: Which


class SmallFit:
    """`measures`: what pods of each class take, in several ways (resources, prices): what is left must fit by each."""

    def __init__(self, patterns: Patterns, measures: Counts) -> None:
        self._patterns = patterns
        self._measures = measures
        worth = measures @ patterns.counts.T
        self._most = np.maximum.reduceat(worth, patterns.starts[:-1], axis=1)  # measure × node

    def fit(self, nodes: Sequence[int], asked: Counts, wide: int) -> tuple[list[int] | None, bool]:
        """The numbers of patterns, one for each node, that hold what is asked for; or None, and whether that is
        proven."""
        wanted = np.flatnonzero(asked)
        if not len(wanted):
            return [int(self._patterns.starts[node]) for node in nodes], True
        order = sorted(nodes, key=lambda node: int(self._patterns.starts[node + 1] - self._patterns.starts[node]))
        ways = [self._ways(node, asked, wanted) for node in order]
        for width in (_FIRST, wide):
            found, whole = self._filled(order, ways, asked[wanted], wanted, width)
            if found is not None or whole:
                break
        if found is None:
            return None, whole
        by_node = dict(zip(order, found, strict=True))
        return [by_node[node] for node in nodes], True

    def _ways(self, node: int, asked: Counts, wanted: Which) -> tuple[Counts, Which]:
        """Patterns of a node as far as they are asked for, each once, and the number of one such."""
        start = int(self._patterns.starts[node])
        counts = np.minimum(self._patterns.of(node)[:, wanted], asked[wanted])
        _, first = np.unique(_key(counts, asked[wanted]), return_index=True)
        counts = counts[first]
        if len(counts) <= 300:  # what another pattern has and more is left out
            covered = (counts[:, None, :] <= counts[None, :, :]).all(axis=2).sum(axis=1) > 1
            counts, first = counts[~covered], first[~covered]
        return counts, first + start

    def _filled(
        self, order: Sequence[int], ways: Sequence[tuple[Counts, Which]], asked: Counts, wanted: Which, width: int
    ) -> tuple[list[int] | None, bool]:
        measures = self._measures[:, wanted]
        later = self._most[:, list(order)][:, ::-1].cumsum(axis=1)[:, ::-1]
        single = np.array([way.max(axis=0) for way, _ in ways])[::-1].cumsum(axis=0)[::-1]
        states, steps, whole = np.zeros((1, len(asked)), np.float32), list[_Step](), True
        last = len(order) - 1
        for place, (counts, numbers) in enumerate(ways):
            new = np.minimum(states[:, None, :] + counts, asked).reshape(-1, len(asked))
            left = asked - new
            if place == last:
                done = np.flatnonzero(~left.any(axis=1))
                keep = done[:1]
            else:
                slack = (later[:, place + 1] - left @ measures.T) / later[:, place + 1].clip(min=_SLACK)
                tight = slack.min(axis=1)
                ok = np.flatnonzero((tight > -_SLACK) & (left <= single[place + 1]).all(axis=1))
                _, first = np.unique(_key(new[ok], asked), return_index=True)
                keep = ok[first]
                if len(keep) > width:
                    whole = False
                    keep = keep[np.argpartition(-tight[keep], width)[:width]]
            if not len(keep):
                return None, whole
            states = new[keep]
            steps.append(_Step(keep // len(counts), numbers[keep % len(counts)]))
        found, at = list[int](), 0
        for step in reversed(steps):
            found.append(int(step.pattern[at]))
            at = int(step.parent[at])
        return found[::-1], True


def _key(counts: Counts, asked: Counts) -> Which:
    """A number for each row, the same for equal rows only (of what is asked for there are few enough)."""
    base = np.concatenate([[1.0], np.cumprod(asked.astype(np.float64) + 1)[:-1]])
    found: Which = (counts @ base).astype(np.intp)
    return found
