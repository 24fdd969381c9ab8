"""The exact solver behind the search: settles small questions for good, within a limit.

HiGHS (docs/decisions/0023). It computes with floating point, on rows of small whole numbers; what it finds is checked
with whole numbers before it is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from kohort.place.effort import Effort
from kohort.place.highs import Program, SolverStatus, run
from kohort.place.linear import LinearModel


def settle(
    model: LinearModel, effort: Effort, costs: Sequence[int] | None = None, *, seed: int = 0
) -> tuple[SolverStatus, list[int]]:
    """Values for the unknowns of a model; with costs, the cheapest found (not always the cheapest there is)."""
    asked = program(model)
    asked.cost = None if costs is None else np.array(costs, float)
    status, found = run(asked, effort, seed=seed)
    if status is not SolverStatus.FOUND:
        return status, []
    values = [round(value) for value in found.tolist()]
    return (status, values) if model.holds(values) else (SolverStatus.UNKNOWN, [])


def program(model: LinearModel) -> Program:
    """The model as HiGHS takes it, rows divided by what their factors have in common: then numbers are small, and
    what is too little for any pod is cut off."""
    starts, which, factors, low, high = [0], list[int](), list[int](), list[float](), list[float]()
    for least, most, unknowns, by in model.rows:
        common = gcd(*by) or 1
        which += unknowns
        factors += [one // common for one in by]
        starts.append(len(which))
        low.append(-np.inf if least is None else -(-least // common))
        high.append(np.inf if most is None else most // common)
    return Program(
        np.array(model.upper, float),
        np.array(starts, np.int64),
        np.array(which, np.int64),
        np.array(factors, float),
        np.array(low, float),
        np.array(high, float),
    )
