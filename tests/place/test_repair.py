"""What stands between packing and the exact solver: thrift, a part of the effort, placing a few domains anew."""

from __future__ import annotations

from typing import Any

import pytest
from tests.place.short import HOST, Short, pod_affinity

from kohort.place import search
from kohort.place.demand import Branch, Leaf, Reason
from kohort.place.effort import Effort
from kohort.place.exact import SolverStatus
from kohort.place.repair import Repair
from kohort.place.search import Search
from kohort.place.solving import SolverAnswer
from kohort.place.thrift import price, prices, trimmed


def _unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver does not know about whole trees; about parts it is asked by others."""
    unsure = SolverAnswer(SolverStatus.UNKNOWN, why="the exact solver's time was up")
    monkeypatch.setattr(search, "solve", lambda *_, **__: unsure)
    monkeypatch.setattr(Search, "_packed", lambda *_: None)
    monkeypatch.setattr(Search, "_attempt", lambda *_, **__: None)


def test_the_thriftiest_pods_and_children_are_kept() -> None:
    short = Short(n1=8)
    mixed = Leaf("mixed", [short.pod("dear", 3), short.pod("cheap", 1), short.pod("middle", 2)], 2)
    small = Leaf("small", [short.pod("s", 1)], 1)
    few = Leaf("few", [], 1)
    known = prices(short.engine, Branch("all", [mixed, small]).eq_classes)
    assert [pod.key for leaf in trimmed(mixed, known).leaves() for pod in leaf.pods] == ["cheap", "middle"]
    assert trimmed(small, known) is small
    assert price(mixed, known) > price(small, known)
    chosen = trimmed(Branch("root", [mixed, few, small], 2), known)
    assert {leaf.name for leaf in chosen.leaves()} == {"mixed", "small"}


def test_a_part_of_the_effort_ends_and_the_rest_stays() -> None:
    effort = Effort(steps=100)
    with effort.part(10) as part:
        assert effort.spend(10) is False
        assert effort.spent
    assert part.cut
    assert effort.steps == 90
    alone = Effort(steps=100, solver_size=0)
    with alone.part(10) as part:
        assert alone.spend(50)
    assert not part.cut
    assert alone.steps == 50


def test_a_share_of_the_clock_ends_before_the_clock() -> None:
    now = [10.0]
    effort = Effort(left=lambda: now[0], expired=lambda: now[0] <= 0)
    half = effort.smaller(0.5)
    assert not half.expired()
    now[0] = 5.0
    assert half.expired()
    assert not effort.expired()
    assert effort.smaller(0.1, 7).solver_work == 7


def test_what_packing_left_over_is_brought_in(monkeypatch: pytest.MonkeyPatch) -> None:
    _unsure(monkeypatch)
    short = Short(n1=6, n2=6)
    # The largest first: 4 beside 2 on one node, and then 3 and 3 find room only if nothing else was put between.
    sizes = [4, 3, 3, 2]
    pods = [short.pod(f"p{n}", cpu) for n, cpu in enumerate(sizes)]
    result = Search(short.engine).place(Leaf("g", pods, 4))
    assert result.ok
    assert sorted(result.placed) == ["p0", "p1", "p2", "p3"]
    assert (short.state.used <= short.state.alloc).all()


def test_groups_are_placed_anew_as_wholes(monkeypatch: pytest.MonkeyPatch) -> None:
    short = Short()
    for number in range(4):
        short.node(f"n{number}", 5, rack=f"r{number // 2}")
    leaves = [
        Leaf(f"l{n}", [short.pod(f"l{n}-{i}", cpu) for i in range(2)], 2, "rack") for n, cpu in enumerate([3, 2, 3, 2])
    ]
    root = Branch("root", leaves, 4)
    engine, calls = short.engine, []

    def clumsy(group: Any, node_set: Any) -> dict[str, int] | None:
        """Both small groups in one rack first: then only one large group fits beside them."""
        calls.append(group.name)
        rows = {"l1": [0, 1], "l3": [0, 1]}.get(group.name)
        if rows is None:
            return None
        placed = {pod.key: row for pod, row in zip(group.pods, rows, strict=True)}
        for pod in group.pods:
            engine.assume_on(pod.eq_class, placed[pod.key])
        return placed

    placed = Repair(engine, root, engine.all_nodes, Effort()).run(clumsy)
    assert placed is not None
    assert len(calls) == 4
    assert (short.state.used <= short.state.alloc).all()
    assert all(len({row // 2 for key, row in placed.items() if key.startswith(leaf.name)}) == 1 for leaf in leaves)


def test_what_does_not_fit_is_not_found_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    _unsure(monkeypatch)
    short = Short(n1=6, n2=6)
    before = short.state.used.copy()
    result = Search(short.engine).place(Leaf("g", [short.pod(f"p{n}", cpu) for n, cpu in enumerate([4, 4, 3, 1])], 4))
    assert not result.ok
    assert result.of("g").reason is Reason.NOT_FOUND
    assert (short.state.used == before).all()


def test_company_is_searched_for_where_the_solver_has_no_words() -> None:
    short = Short(n1=3, n2=3)
    near = {"a": "b"}
    pods = [short.pod(f"p{n}", cpu, labels=near, **pod_affinity((near, HOST))) for n, cpu in enumerate([2, 1])]
    assert Search(short.engine).place(Leaf("g", pods, 2)).ok
