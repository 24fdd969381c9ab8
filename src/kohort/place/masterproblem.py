"""The master problem of column generation: a configuration for each domain, so that every group is in one of them.

Configurations need not be whole here. What groups no configuration covers yet is the cost; the prices that follow from
it say which further configurations would help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from kohort.place.highs import Floats, Program, solver

_OPTIONS: Final = {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}


class MasterProblem:
    """`wanted`: how many groups there are of each sort. Columns are numbered in the order in which they came."""

    def __init__(self, domains: int, wanted: Sequence[int]) -> None:
        self._domains, self._wanted = domains, [float(one) for one in wanted]
        self._columns: list[tuple[list[int], list[float]]] = []
        self.upper: list[float] = []
        asked = self._asked = solver().Highs()
        for name, value in _OPTIONS.items():
            asked.setOptionValue(name, value)
        for _ in range(domains):
            asked.addRow(-np.inf, 1.0, 0, [], [])
        for sort, count in enumerate(self._wanted):
            asked.addRow(count, np.inf, 0, [], [])
            asked.addCol(1.0, 0.0, np.inf, 1, [domains + sort], [1.0])

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, domain: int, sorts: Sequence[int]) -> int:
        """A configuration of a domain; its number."""
        counts = Counter(sorts)
        rows, factors = [domain, *(self._domains + sort for sort in counts)], [1.0, *map(float, counts.values())]
        self._asked.addCol(0.0, 0.0, 1.0, len(rows), rows, factors)
        self._columns.append((rows, factors))
        self.upper.append(1.0)
        return len(self._columns) - 1

    def bound(self, column: int, low: float, high: float) -> None:
        """How much of a configuration there must be, and may be."""
        self._asked.changeColBounds(len(self._wanted) + column, low, high)
        self.upper[column] = high

    def solve(self) -> tuple[float, Floats]:
        """How many groups are not covered, and how much there is of each configuration."""
        self._asked.run()
        values = np.array(self._asked.getSolution().col_value)
        return float(values[: len(self._wanted)].sum()), values[len(self._wanted) :]

    def prices(self) -> tuple[Floats, Floats]:
        """Of the last solution: what it costs to use a domain, and what a group of each sort is worth."""
        duals = np.array(self._asked.getSolution().row_dual)
        return -duals[: self._domains], duals[self._domains :]

    def program(self) -> Program:
        """The same with whole configurations, all groups covered."""
        rows: list[list[tuple[int, float]]] = [[] for _ in range(self._domains + len(self._wanted))]
        for column, (where, factors) in enumerate(self._columns):
            for row, factor in zip(where, factors, strict=True):
                rows[row].append((column, factor))
        return Program(
            np.array(self.upper),
            np.cumsum([0, *(len(row) for row in rows)]),
            np.array([column for row in rows for column, _ in row], np.int64),
            np.array([factor for row in rows for _, factor in row]),
            np.array([*[-np.inf] * self._domains, *self._wanted]),
            np.array([*[1.0] * self._domains, *[np.inf] * len(self._wanted)]),
        )
