"""How much a decision may cost. The engine has no clock: whoever asks for a decision brings the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace


def _never() -> bool:
    return False


@dataclass(slots=True)
class Part:
    """Some of an effort; `cut`: it was used up."""

    cut: bool = False


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

    @contextmanager
    def part(self, steps: int) -> Iterator[Part]:
        """Within, only so many steps, if somebody better is to be asked afterwards."""
        kept = max(self.steps - steps, 0) if self.solver_size else 0
        self.steps -= kept
        part = Part()
        try:
            yield part
        finally:
            part.cut = bool(kept) and self.steps <= 0
            self.steps = max(self.steps, 0) + kept
