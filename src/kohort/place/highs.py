"""HiGHS, asked in arrays: whole (or some continuous) unknowns from 0 up, rows between two bounds, least cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import count
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kohort.place.effort import Effort

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# One thread and one seed: the same answer each time, unless a fence of time is met first.
_OPTIONS: Final = {"output_flag": False, "threads": 1, "mip_feasibility_tolerance": 1e-7}


class SolverStatus(StrEnum):
    FOUND = "found"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"
    SEARCHING = "searching"  # somebody else is at it: there will be an answer


@dataclass(slots=True)
class Program:
    """Rows one after the other: row r has the unknowns index[start[r]:start[r + 1]] with these factors."""

    upper: Floats
    start: Numbers
    index: Numbers
    factor: Floats
    low: Floats
    high: Floats
    cost: Floats | None = None
    continuous: Flags | None = None  # unknowns that need not be whole
    lower: Floats | None = None


def run(
    program: Program,
    effort: Effort,
    *,
    seed: int = 0,
    gap: float | None = None,
    slack: float | None = None,
    nodes: int | None = None,
) -> tuple[SolverStatus, Floats]:
    """The cheapest values found in this effort, up to a gap (`slack`: in the unit of costs), or after so many nodes of
    its tree."""
    highs = solver()
    asked = highs.Highs()
    for name, value in _OPTIONS.items():
        asked.setOptionValue(name, value)
    asked.setOptionValue("random_seed", seed)
    asked.setOptionValue("time_limit", max(effort.seconds, 0.0))
    if gap is not None:
        asked.setOptionValue("mip_rel_gap", gap)
    if slack is not None:
        asked.setOptionValue("mip_abs_gap", slack)
    if nodes is not None:
        asked.setOptionValue("mip_max_nodes", nodes)
    looks = count(1)

    def look(event: Any) -> None:
        if next(looks) > effort.solver_work or effort.expired():
            event.data_in.user_interrupt = 1

    asked.cbMipInterrupt.subscribe(look)
    asked.passModel(_as_given(highs, program))
    asked.run()
    if asked.getModelStatus() == highs.HighsModelStatus.kInfeasible:
        return SolverStatus.IMPOSSIBLE, np.zeros(0)
    values = np.array(asked.getSolution().col_value, float)
    feasible = asked.getInfo().primal_solution_status == highs.SolutionStatus.kSolutionStatusFeasible
    return (SolverStatus.FOUND, values) if feasible and len(values) else (SolverStatus.UNKNOWN, np.zeros(0))


def _as_given(highs: ModuleType, program: Program) -> Any:
    size = len(program.upper)
    asked = highs.HighsLp()
    asked.num_col_, asked.num_row_ = size, len(program.low)
    asked.col_cost_ = np.zeros(size) if program.cost is None else program.cost
    asked.col_lower_ = np.zeros(size) if program.lower is None else program.lower
    asked.col_upper_ = program.upper
    whole, any_ = highs.HighsVarType.kInteger, highs.HighsVarType.kContinuous
    loose = np.zeros(size, bool) if program.continuous is None else program.continuous
    asked.integrality_ = [any_ if one else whole for one in loose.tolist()]
    asked.row_lower_, asked.row_upper_ = program.low, program.high
    matrix = asked.a_matrix_
    matrix.format_ = highs.MatrixFormat.kRowwise
    matrix.start_, matrix.index_, matrix.value_ = program.start, program.index, program.factor
    return asked


@cache
def solver() -> ModuleType:
    """HiGHS, loaded when it is first needed."""
    import highspy

    found: ModuleType = highspy
    return found
