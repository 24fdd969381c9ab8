"""The engine against the independent model on random small clusters: what it places is right, and it misses nothing.

300 cases by default; KOHORT_PLACE_CASES=2000 for all of them.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from tests.place import model
from tests.place.build import demand_of, placed_of, state_of

from kohort.place.demand import Reason
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.search import Search

CASES = int(os.environ.get("KOHORT_PLACE_CASES", "300"))
BLOCK = 50


def _decide(seed: int, effort: Effort) -> tuple[bool, bool, bool, list[str]]:
    """(placed, proven, fits, mistakes) of one case."""
    case = model.random_case(Random(seed))
    state = state_of(case)
    engine = Engine(state)
    demand = demand_of(state, case.root)
    before = state.used.copy()
    result = Search(engine, effort).place(demand)
    wrong = model.mistakes(case, placed_of(engine, result))
    engine.undo(0)
    assert (state.used == before).all()
    return result.ok, all(one.proven for one in result.outcomes.values()), model.fits(case), wrong


def _is_satisfied(seed: int) -> bool:
    """Nothing is missing: only extras are asked for, which may be refused although the minimum is met."""
    case = model.random_case(Random(seed))
    return _least(case.root) == 0


def _least(group: model.Group) -> int:
    if group.is_leaf:
        return max(group.need - len(group.running), 0)
    return sum(sorted(_least(child) for child in group.children)[: group.need])


@pytest.mark.parametrize("block", range((CASES + BLOCK - 1) // BLOCK))
def test_every_placement_is_right_and_none_is_missed(block: int) -> None:
    for seed in range(block * BLOCK, min((block + 1) * BLOCK, CASES)):
        placed, proven, fits, wrong = _decide(seed, Effort())
        assert not wrong, f"seed {seed}: {wrong}"
        assert proven, f"seed {seed}: the exact solver gave up on a small case"
        assert not placed or fits, f"seed {seed}: placed what the model says cannot be"
        assert placed or not fits or _is_satisfied(seed), f"seed {seed}: a fit exists and was missed"


def test_without_the_solver_misses_are_few_and_say_so() -> None:
    missed, fitting = [], 0
    for seed in range(CASES):
        placed, proven, fits, wrong = _decide(seed, Effort(solver_size=0))
        assert not wrong, f"seed {seed}: {wrong}"
        fitting += fits
        if fits and not placed and not _is_satisfied(seed):
            assert not proven, f"seed {seed}: called impossible, but it fits"
            missed.append(seed)
    print(f"search alone: {len(missed)} of {fitting} fits missed")
    assert len(missed) * 50 <= fitting, missed


def test_tight_packings_are_found_by_the_solver_where_the_search_misses_them() -> None:
    missed = 0
    for seed in range(CASES // 3):
        case = model.tight_case(Random(seed))
        state = state_of(case)
        engine = Engine(state)
        demand = demand_of(state, case.root)
        alone = Search(engine, Effort(solver_size=0)).place(demand)
        assert not model.mistakes(case, placed_of(engine, alone)), f"seed {seed}"
        engine.undo(0)
        if not alone.ok:
            missed += 1
            assert alone.of("g").reason is Reason.NOT_FOUND, f"seed {seed}: {alone.of('g')}"
            assert not alone.of("g").proven
        result = Search(engine).place(demand)
        assert result.ok, f"seed {seed}: it fits by construction"
        assert not model.mistakes(case, placed_of(engine, result)), f"seed {seed}"
    print(f"tight packings: the search alone missed {missed} of {CASES // 3}, with the solver 0")
    assert missed, "no case needs the solver: this test shows nothing"


def test_not_found_is_the_reason_where_the_search_gave_up() -> None:
    case = model.Case([model.Node("n0", 4, 8), model.Node("n1", 4, 8)], [], model.Group("g", 1))
    case.root = model.Group("g", 2, children=[model.Group(n, 1, pods=[model.Kind(3)]) for n in ("a", "b")])
    state = state_of(case)
    result = Search(Engine(state), Effort(steps=1)).place(demand_of(state, case.root))
    assert not result.ok
    assert result.of("g").reason is Reason.NOT_FOUND
    assert not result.of("g").proven
