"""The exact solver behind the search: settles small questions for good, within a limit.

HiGHS (docs/decisions/0023). It computes with floating point, on rows of small whole numbers; what it finds is checked
with whole numbers before it is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from itertools import count
from math import gcd
from types import ModuleType
from typing import Any, Final

import numpy as np

from kohort.place.effort import Effort
from kohort.place.linear import LinearModel

# One thread and one seed: the same answer each time, unless a fence of time is met first.
_OPTIONS: Final = {"output_flag": False, "threads": 1, "mip_feasibility_tolerance": 1e-7}


class SolverStatus(StrEnum):
    FOUND = "found"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"
    SEARCHING = "searching"  # somebody else is at it: there will be an answer


def settle(
    model: LinearModel, effort: Effort, costs: Sequence[int] | None = None, *, seed: int = 0
) -> tuple[SolverStatus, list[int]]:
    """Values for the unknowns of a model; with costs, the cheapest found (not always the cheapest there is)."""
    highs = solver()
    run = highs.Highs()
    for name, value in _OPTIONS.items():
        run.setOptionValue(name, value)
    run.setOptionValue("random_seed", seed)
    run.setOptionValue("time_limit", max(effort.seconds, 0.0))
    looks = count(1)

    def look(event: Any) -> None:
        if next(looks) > effort.solver_work or effort.expired():
            event.data_in.user_interrupt = 1

    run.cbMipInterrupt.subscribe(look)
    run.passModel(_program(highs, model, costs))
    run.run()
    if run.getModelStatus() == highs.HighsModelStatus.kInfeasible:
        return SolverStatus.IMPOSSIBLE, []
    values = [round(value) for value in run.getSolution().col_value]
    # It computes with floating point: what it found is believed when whole numbers say the same.
    return (SolverStatus.FOUND, values) if values and model.holds(values) else (SolverStatus.UNKNOWN, [])


def _program(highs: ModuleType, model: LinearModel, costs: Sequence[int] | None) -> Any:
    """The model as HiGHS takes it, rows divided by what their factors have in common: then numbers are small, and
    what is too little for any pod is cut off."""
    asked = highs.HighsLp()
    asked.num_col_, asked.num_row_ = len(model.upper), len(model.rows)
    asked.col_cost_ = np.zeros(len(model.upper)) if costs is None else np.array(costs, float)
    asked.col_lower_, asked.col_upper_ = np.zeros(len(model.upper)), np.array(model.upper, float)
    asked.integrality_ = [highs.HighsVarType.kInteger] * len(model.upper)
    starts, which, factors, low, high = [0], list[int](), list[int](), list[float](), list[float]()
    for least, most, unknowns, by in model.rows:
        common = gcd(*by) or 1
        which += unknowns
        factors += [one // common for one in by]
        starts.append(len(which))
        low.append(-highs.kHighsInf if least is None else -(-least // common))
        high.append(highs.kHighsInf if most is None else most // common)
    asked.row_lower_, asked.row_upper_ = np.array(low, float), np.array(high, float)
    matrix = asked.a_matrix_
    matrix.format_ = highs.MatrixFormat.kRowwise
    matrix.start_, matrix.index_, matrix.value_ = np.array(starts), np.array(which), np.array(factors, float)
    return asked


@cache
def solver() -> ModuleType:
    """HiGHS, loaded when it is first needed."""
    import highspy

    found: ModuleType = highspy
    return found
