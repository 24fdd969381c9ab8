"""A large question taken apart: the outline allows what the model allows, and what is found meets every row."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from tests.place.short import HOST, Short, pod_anti_affinity, spread

from kohort.place.decompose import taken_apart
from kohort.place.demand import Branch, Demand, Leaf
from kohort.place.effort import Effort
from kohort.place.exact import settle
from kohort.place.exact_model import SolverQuestion
from kohort.place.highs import Floats, SolverStatus
from kohort.place.linear import LinearModel
from kohort.place.outline import NotSeparable, Outline, bundles
from kohort.place.standing import seat

_SIZES = (1, 2, 3, 5)
_RACKS = 15


def _plot(seed: int, racks: int) -> tuple[Short, dict[int, list[int]], Random]:
    """Racks of three nodes, and what was laid on each node; each has room for a little more."""
    dice, short = Random(seed), Short()
    laid = {number: [dice.choice(_SIZES) for _ in range(dice.randint(2, 4))] for number in range(racks * 3)}
    for number, sizes in laid.items():
        cpu = sum(sizes) + dice.randint(1, 2)
        short.node(f"n{number}", cpu, rack=f"r{number // 3}", zone=f"z{number // 3 % 2}")
    return short, laid, dice


def _gang(seed: int, racks: int = 30) -> tuple[Short, Demand]:
    short, laid, dice = _plot(seed, racks)
    sizes = [size for some in laid.values() for size in some]
    dice.shuffle(sizes)
    return short, Leaf("g", [short.pod(f"p{n}", size) for n, size in enumerate(sizes)], len(sizes))


def _racks(seed: int, racks: int = _RACKS) -> tuple[Short, Demand]:
    """A leaf per rack that is held to some rack, with a pod that it can do without; the rest goes anywhere."""
    short, laid, dice = _plot(seed, racks)
    leaves, rest = [], []
    for rack in range(racks):
        sizes = [size for node in range(rack * 3, rack * 3 + 3) for size in laid[node]]
        rest.append(sizes.pop())
        pods = [short.pod(f"l{rack}-{n}", size) for n, size in enumerate([*sizes, 5])]
        leaves.append(Leaf(f"l{rack}", pods, len(sizes), "rack"))
    dice.shuffle(leaves)
    anywhere = Leaf("rest", [short.pod(f"r{n}", size) for n, size in enumerate(rest)], len(rest))
    return short, Branch("root", [anywhere, *leaves], len(leaves) + 1)


def _hosts(seed: int, racks: int = _RACKS) -> tuple[Short, Demand]:
    """Pairs that share a node, two racks of them to a branch that is held to a rack."""
    short, laid, _ = _plot(seed, racks)
    branches = []
    for rack in range(racks):
        pairs = [laid[node][:2] for node in range(rack * 3, rack * 3 + 2)]
        leaves = [
            Leaf(f"b{rack}-{n}", [short.pod(f"b{rack}-{n}-{i}", size) for i, size in enumerate(pair)], 2, HOST)
            for n, pair in enumerate(pairs)
        ]
        branches.append(Branch(f"b{rack}", leaves, 2, "rack"))
    return short, Branch("root", branches, len(branches))


def _rules(seed: int, racks: int = _RACKS) -> tuple[Short, Demand]:
    """Some keep apart by node, some by rack, some are spread over zones."""
    short, laid, _ = _plot(seed, racks)
    apart, lonely, even = {"app": "apart"}, {"app": "lonely"}, {"app": "even"}
    pods = [short.pod(f"a{n}", 1, labels=apart, **pod_anti_affinity(apart)) for n in range(len(laid) // 2)]
    pods += [short.pod(f"r{n}", 1, labels=lonely, **pod_anti_affinity(lonely, "rack")) for n in range(racks // 2)]
    pods += [short.pod(f"s{n}", 1, labels=even, **spread(even, "zone")) for n in range(10)]
    return short, Leaf("g", pods, len(pods))


_FAMILIES = pytest.mark.parametrize("family", [_gang, _racks, _hosts, _rules], ids=lambda one: one.__name__[1:])
Family = Callable[..., tuple[Short, Demand]]


@_FAMILIES
@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_in_parts_meets_the_whole(family: Family, seed: int) -> None:
    short, root = family(seed)
    question = SolverQuestion(short.engine, root, short.engine.all_nodes, 20_000)
    parts = taken_apart(question.model)
    assert parts is not None
    values = parts.search(Effort())
    assert values is not None
    assert question.model.holds(values)
    assert seat(short.engine, root, question.answer(values))
    assert (short.state.used <= short.state.alloc).all()


@_FAMILIES
def test_the_outline_allows_what_the_model_allows(family: Family) -> None:
    short, root = family(7, 6)
    model = SolverQuestion(short.engine, root, short.engine.all_nodes, 20_000).model
    status, values = settle(model, Effort())
    assert status is SolverStatus.FOUND
    parts = bundles(model)
    outline = Outline(model, parts)
    plan = np.zeros(len(outline._upper))
    outline.take(plan, np.array(values, float), set(range(len(parts))))
    for number, bundle in enumerate(parts):
        for kind, some in bundle.kinds.items():
            assert outline.total(plan, number, kind) == sum(values[one] for one in some)
    for low, high, terms in outline._rows:
        total = sum(plan[one] * factor for one, factor in terms.items())
        assert low - 1e-6 <= total <= high + 1e-6


def test_what_a_bundle_could_not_take_is_not_planned_for_it_again() -> None:
    short, root = _gang(1)
    model = SolverQuestion(short.engine, root, short.engine.all_nodes, 20_000).model
    parts = bundles(model)
    outline = Outline(model, parts)
    plan = outline.solved(Effort(), 0)
    assert plan is not None

    def totals(values: Floats, number: int) -> list[int]:
        return [outline.total(values, number, kind) for kind in parts[number].kinds]

    before = totals(plan, 0)
    outline.forbid(plan, 0)
    other = outline.shifted(plan, {0, 1, 2, 3}, Effort(), 1)
    assert other is not None
    assert any(now < then for now, then in zip(totals(other, 0), before, strict=True))
    assert all(totals(other, number) == totals(plan, number) for number in range(4, len(parts)))


def test_a_row_that_cuts_through_bundles_is_not_taken_apart() -> None:
    short, root = _gang(0)
    model = SolverQuestion(short.engine, root, short.engine.all_nodes, 20_000).model
    assert taken_apart(model) is not None
    first = {kind: [one for one, (_, other) in model.at.items() if other == kind] for kind in range(1)}[0]
    model.rule([(one, 1) for one in first[::7]], most=3)
    with pytest.raises(NotSeparable):
        Outline(model, bundles(model))
    assert taken_apart(model) is None


def test_what_is_small_is_not_taken_apart() -> None:
    short = Short(a=4, b=4)
    root = Leaf("g", [short.pod("p0", 1), short.pod("p1", 2)], 2)
    assert taken_apart(SolverQuestion(short.engine, root, short.engine.all_nodes, 100).model) is None
    assert taken_apart(LinearModel()) is None
