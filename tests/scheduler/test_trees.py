"""Membership by counters: roots, broken chains, flips that go up and come back."""

from __future__ import annotations

import itertools
from typing import Any

from tests.support.steps import counted

from kohort.scheduler.model import GroupSpec, ObjectMeta, Pod, composite_key
from kohort.scheduler.trees import BrokenChain, Group, GroupTrees, PodInfo

_numbers = itertools.count()


def member(**more: Any) -> PodInfo:
    number = next(_numbers)
    return PodInfo(Pod(ObjectMeta(name=f"p{number}", namespace="x", uid=f"u{number}")), number, **more)


def leaf(name: str, minimum: int | None = None, parent: str | None = None) -> GroupSpec:
    above = composite_key("x", parent) if parent else None
    return GroupSpec(f"x/{name}", "x", name, minimum=minimum, parent=above)


def composite(name: str, minimum: int | None = None, parent: str | None = None) -> GroupSpec:
    above = composite_key("x", parent) if parent else None
    return GroupSpec(composite_key("x", name), "x", name, kind="CompositePodGroup", minimum=minimum, parent=above)


def root_of(trees: GroupTrees, key: str) -> Group | BrokenChain:
    group = trees.get(key)
    assert group is not None
    return trees.root(group)


def test_q2_pods_that_come_before_their_group_count_once_it_is_there() -> None:
    trees = GroupTrees()
    for _ in range(3):
        trees.join("x/g", member())
    assert root_of(trees, "x/g") == BrokenChain("x/g")
    group = trees.set(leaf("g", 3))
    assert trees.root(group) is group
    assert group.ready
    assert group.waiting


def test_p10_a_tree_is_ready_when_enough_children_are() -> None:
    trees = GroupTrees()
    root = trees.set(composite("root", 2))
    trees.set(leaf("a", 1, "root"))
    trees.set(leaf("b", 2, "root"))
    trees.join("x/a", member())
    trees.join("x/b", member())
    assert (root.ready, root.ready_children) == (False, 1)
    late = member()
    trees.join("x/b", late)
    assert root.ready
    trees.leave("x/b", late)
    assert not root.ready


def test_q7_a_gate_of_one_member_holds_the_root() -> None:
    trees = GroupTrees()
    root = trees.set(composite("root"))
    trees.set(leaf("a", 1, "root"))
    held = member(gated=True)
    trees.join("x/a", held)
    assert root.gated
    trees.leave("x/a", held)
    held.gated = False
    trees.join("x/a", held)
    assert not root.gated


def test_f23_a_pending_member_that_is_being_deleted_is_none() -> None:
    trees = GroupTrees()
    group = trees.set(leaf("g", 2))
    trees.join("x/g", member())
    trees.join("x/g", member(leaving=True))
    assert not group.ready


def test_p8_the_chain_is_broken_where_a_parent_is_missing() -> None:
    trees = GroupTrees()
    trees.set(leaf("a", 1, "middle"))
    trees.set(composite("middle", 1, "root"))
    assert root_of(trees, "x/a") == BrokenChain("composite/x/root")
    root = trees.set(composite("root", 1))
    assert root_of(trees, "x/a") is root
    trees.drop(composite_key("x", "middle"))
    assert root_of(trees, "x/a") == BrokenChain("composite/x/middle")
    assert not root.children


def test_p18_a_circle_of_parents_is_told() -> None:
    trees = GroupTrees()
    trees.set(composite("x", 1, "y"))
    trees.set(composite("y", 1, "x"))
    trees.set(leaf("a", 1, "x"))
    trees.join("x/a", member())
    found = root_of(trees, "x/a")
    assert isinstance(found, BrokenChain)
    assert found.cycle
    trees.drop(composite_key("x", "y"))
    root = trees.set(composite("y", 1))
    assert root_of(trees, "x/a") is root
    assert (root.ready, root.ready_children) == (True, 1)


def test_x10_a_group_and_a_composite_may_have_the_same_name() -> None:
    trees = GroupTrees()
    root = trees.set(composite("same", 1))
    group = trees.set(leaf("same", 1, "same"))
    assert trees.root(group) is root


def test_settled_means_bound_for_certain() -> None:
    trees = GroupTrees()
    root = trees.set(composite("root", 1))
    group = trees.set(leaf("a", 2, "root"))
    pods = [member(), member()]
    for one in pods:
        trees.join("x/a", one)
        trees.move("x/a", one, "n1", assumed=True)
    assert not group.settled
    for one in pods:
        trees.move("x/a", one, "n1", assumed=False)
    assert group.settled
    assert root.settled
    trees.move("x/a", pods[0], "", assumed=False)
    assert not root.settled


def test_names_that_nobody_uses_are_forgotten() -> None:
    trees = GroupTrees()
    one = member()
    trees.join("x/g", one)
    trees.set(leaf("g", 1, "root"))
    trees.drop("x/g")
    trees.leave("x/g", one)
    assert list(trees) == []


def test_the_cost_of_a_member_does_not_grow_with_the_group() -> None:
    def cost(pods: int) -> int:
        trees = GroupTrees()
        trees.set(composite("root", 1))
        trees.set(leaf("g", pods, "root"))
        members = [member() for _ in range(pods)]
        with counted() as steps:
            for one in members:
                trees.join("x/g", one)
        return steps.count

    assert cost(10_000) <= 10.1 * cost(1000)
