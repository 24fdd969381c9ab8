"""The tree itself: walking, depth, minimums in force."""

from __future__ import annotations

import pytest

from kohort.gang.tree import Group, Plan, Template

LEAF_A, LEAF_B = Template(name="a", minimum=3), Template(name="b")
BRANCH = Template(name="branch", minimum=1, children=(LEAF_B,))
ROOT = Template(name="root", minimum=2, children=(LEAF_A, BRANCH))
PLAN = Plan(
    workload="w",
    namespace="ns",
    controller=None,
    templates=(ROOT,),
    groups=(
        Group(name="r", template="root"),
        Group(name="r.a", template="a", parent="r"),
        Group(name="r.b", template="branch", parent="r"),
        Group(name="r.b.b", template="b", parent="r.b"),
        Group(name="r.b.a", template="a", parent="r", minimum=5),
    ),
)


def test_walk_is_parents_first() -> None:
    assert [template.name for template in PLAN.walk()] == ["root", "a", "branch", "b"]


@pytest.mark.parametrize(("template", "depth"), [(LEAF_A, 1), (BRANCH, 2), (ROOT, 3)])
def test_depth_counts_the_leaf_level(template: Template, depth: int) -> None:
    assert template.depth == depth


def test_leaf_and_gang() -> None:
    assert (LEAF_A.is_leaf, LEAF_A.is_gang) == (True, True)
    assert (ROOT.is_leaf, LEAF_B.is_gang) == (False, False)
    assert PLAN.is_tree


def test_roots_and_children() -> None:
    assert [group.name for group in PLAN.roots] == ["r"]
    assert [group.name for group in PLAN.children("r")] == ["r.a", "r.b", "r.b.a"]


@pytest.mark.parametrize(("name", "minimum"), [("r", 2), ("r.a", 3), ("r.b.a", 5), ("r.b.b", None)])
def test_minimum_of_the_instance_wins(name: str, minimum: int | None) -> None:
    assert PLAN.minimum(PLAN.group(name)) == minimum
