"""How much a decision may cost. The engine has no clock: whoever asks for a decision brings the limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _never() -> bool:
    return False


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
    solver_seconds: float = 2.0  # wall time of the solver
    expired: Callable[[], bool] = _never

    def spend(self) -> bool:
        """One more step; False if there is none left."""
        self.steps -= 1
        return not self.spent

    @property
    def spent(self) -> bool:
        return self.steps <= 0 or self.expired()
