"""How much a decision may cost. The engine has no clock: whoever asks for a decision brings the limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kohort.place.solving import Solver


def _never() -> bool:
    return False


class Part:
    """Some of the steps of an effort, within `with`. `cut`: they were used up."""

    __slots__ = ("_effort", "_kept", "cut")

    def __init__(self, effort: Effort, steps: int) -> None:
        self._effort, self.cut = effort, False
        self._kept = max(effort.steps - steps, 0)

    def __enter__(self) -> Part:
        self._effort.steps -= self._kept
        return self

    def __exit__(self, *_: object) -> None:
        self.cut = bool(self._kept) and self._effort.steps <= 0
        self._effort.steps = max(self._effort.steps, 0) + self._kept


@dataclass(slots=True)
class Effort:
    """Limits of one decision. `expired` may look at a clock; the engine asks it between steps.

    Steps and solver work are counted, not timed, so that the same input has the same answer on a slow machine;
    seconds are a second fence.
    """

    steps: int = 20_000  # groups looked at
    orders: int = 24  # sibling orders tried per branch
    solver_size: int = 20_000  # unknowns that the exact solver is asked to settle; 0: it is not asked
    solver_work: int = 2000  # times that the solver asks whether to go on, some hundred in a second
    solver_seconds: float = 30.0  # wall time of the solver, where nobody has a clock
    expired: Callable[[], bool] = _never
    left: Callable[[], float] | None = None  # seconds that are left, if somebody has a clock
    solver: Solver | None = None  # who settles what is hard; None: whoever asks, at once

    def spend(self, steps: int = 1) -> bool:
        """One more step, or some; False if there is none left."""
        self.steps -= steps
        return not self.spent

    @property
    def seconds(self) -> float:
        """How long the solver may take."""
        return self.solver_seconds if self.left is None else min(self.solver_seconds, self.left())

    @property
    def spent(self) -> bool:
        return self.steps <= 0 or self.expired()

    def smaller(self, share: float, work: int | None = None) -> Effort:
        """The same clock, a share of what is left of it, and of the solver."""
        expired, left = self.expired, self.left
        if left is not None:
            clock, end = left, left() * (1 - share)
            expired, left = (lambda: clock() <= end), (lambda: clock() - end)
        return replace(
            self,
            solver_work=int(self.solver_work * share) if work is None else min(work, self.solver_work),
            solver_seconds=self.solver_seconds * share,
            expired=expired,
            left=left,
        )

    def again(self) -> Effort:
        """The same, for another try. Every decision is one: `replace` would take longer than the rest of this."""
        return Effort(
            self.steps, self.orders, self.solver_size, self.solver_work, self.solver_seconds,
            self.expired, self.left, self.solver,
        )  # fmt: skip

    def part(self, steps: int) -> Part:
        """Within, only so many steps, if somebody better is to be asked afterwards."""
        return Part(self, steps if self.solver_size else self.steps)
