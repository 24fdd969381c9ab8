"""What stands between packing and the exact solver: thrift, and a part of the effort."""

from __future__ import annotations

from tests.place.short import HOST, Short, pod_affinity

from kohort.place.demand import Branch, Leaf
from kohort.place.effort import Effort
from kohort.place.search import Search
from kohort.place.thrift import price, prices, trimmed


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


def test_company_is_searched_for_where_the_solver_has_no_words() -> None:
    short = Short(n1=3, n2=3)
    near = {"a": "b"}
    pods = [short.pod(f"p{n}", cpu, labels=near, **pod_affinity((near, HOST))) for n, cpu in enumerate([2, 1])]
    assert Search(short.engine).place(Leaf("g", pods, 2)).ok
