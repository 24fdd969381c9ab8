"""Linear constraints over whole numbers: what an exact solver is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


class NotExpressible(Exception):  # noqa: N818 - a limit of the model, not a failure
    """A question the model has no words for, or one too large."""


@dataclass(slots=True)
class LinearModel:
    """Whole unknowns from 0 to `upper`; rows of (least, most, unknowns, factors).

    What else is known of it is for taking it apart: which unknowns count something on one node (`at`: the node, and
    what is counted), which rows are about an amount of a node, and which nodes no rule tells apart (`sites`).
    """

    upper: list[int] = field(default_factory=list)
    rows: list[tuple[int | None, int | None, list[int], list[int]]] = field(default_factory=list)
    at: dict[int, tuple[int, int]] = field(default_factory=dict)
    amounts: dict[int, int] = field(default_factory=dict)  # number of a row -> which amount
    sites: dict[int, list[int]] = field(default_factory=dict)  # node -> its domains
    kinds: int = 0

    def unknown(self, upper: int) -> int:
        self.upper.append(upper)
        return len(self.upper) - 1

    def kind(self, count: int = 1) -> int:
        """Numbers for things that are counted on nodes: the first of so many."""
        self.kinds += count
        return self.kinds - count

    def rule(self, terms: Iterable[tuple[int, int]], least: int | None = None, most: int | None = None) -> None:
        unknowns, factors = [], []
        for unknown, factor in terms:
            unknowns.append(unknown)
            factors.append(factor)
        self.rows.append((least, most, unknowns, factors))

    def holds(self, values: Sequence[int]) -> bool:
        """Whether these values meet every row."""
        if any(not 0 <= value <= upper for value, upper in zip(values, self.upper, strict=True)):
            return False
        for least, most, unknowns, factors in self.rows:
            total = sum(values[unknown] * factor for unknown, factor in zip(unknowns, factors, strict=True))
            if (least is not None and total < least) or (most is not None and total > most):
                return False
        return True
