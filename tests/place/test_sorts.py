"""Sorts of groups: what asks for the same is one, in an order that is the same each time."""

from __future__ import annotations

from tests.place.short import Short

from kohort.place.demand import Branch, Leaf
from kohort.place.sorts import Sort, sort_of


def _tree(short: Short) -> Branch:
    sizes = {"a": 5, "b": 1, "c": 3, "d": 1}
    leaves = [Leaf(name, [short.pod(f"{name}{n}") for n in range(size)], size) for name, size in sizes.items()]
    return Branch("root", leaves, len(leaves))


def test_groups_that_ask_for_the_same_are_one_sort() -> None:
    short = Short()
    short.node("n", 16)
    found = sort_of(short.engine, _tree(short), {}, {})
    assert [(sort.need, count) for sort, count in found.children] == [(5, 1), (1, 2), (3, 1)]


def test_their_order_does_not_depend_on_where_they_are_in_memory() -> None:
    """The exact solver's unknowns follow it, and so does who gets which of equal seats: a plan says where."""
    short = Short()
    short.node("n", 16)
    kept: list[tuple[Sort, object]] = []
    for number in range(200):
        kept.append((sort_of(short.engine, _tree(short), {}, {}), [object()] * number))
        if number % 3:
            kept.pop(len(kept) // 2)  # holes, which new ones fill
    assert {tuple(sort.need for sort, _ in found.children) for found, _ in kept} == {(5, 1, 3)}
