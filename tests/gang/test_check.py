"""check_plan: plans of the strategy pass; each rule has a plan that breaks it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.strategies import plans
from tests.support.plancheck import check_plan

from kohort.api.errors import ErrorKind
from kohort.gang.tree import Claim, Controller, Group, Member, Owner, Plan, Template

LEAF = Template(name="a", minimum=2)
TREE = Template(name="root", minimum=1, children=(LEAF, Template(name="b")))


def plan(*templates: Template, groups: tuple[Group, ...] = (), **more: object) -> Plan:
    return replace(
        Plan(workload="w", namespace="ns", controller=None, templates=templates, groups=groups),
        **more,  # type: ignore[arg-type]
    )


def chain(depth: int) -> Template:
    found = Template(name=f"t{depth}")
    for level in range(depth - 1, 0, -1):
        found = Template(name=f"t{level}", children=(found,))
    return found


@settings(max_examples=60, deadline=None)
@given(plans())
def test_plans_of_the_strategy_are_valid(found: Plan) -> None:
    assert check_plan(found) == []


K = ErrorKind
BROKEN = {
    "no template": (plan(), K.REQUIRED, "templates"),
    "leaf beside branch at the top": (plan(replace(LEAF, name="x"), TREE), K.INVALID, "templates"),
    "nine leaves": (plan(*(Template(name=f"t{n}") for n in range(9))), K.TOO_MANY, "templates"),
    "nine children": (
        plan(Template(name="r", children=tuple(Template(name=f"t{n}") for n in range(9)))),
        K.TOO_MANY,
        "templates[0].children",
    ),
    "five levels": (plan(chain(5)), K.INVALID, "templates[0]"),
    "template name is no label": (plan(replace(LEAF, name="a.b")), K.INVALID, "templates[0].name"),
    "template name repeats in another branch": (
        plan(TREE, Template(name="other", children=(LEAF,))),
        K.DUPLICATE,
        "templates[1].children[0].name",
    ),
    "mixed priority classes": (plan(LEAF, Template(name="b", priority_class="gold")), K.INVALID, "templates"),
    "mixed priorities": (plan(LEAF, Template(name="b", priority=0)), K.INVALID, "templates"),
    "minimum 0": (plan(replace(LEAF, minimum=0)), K.INVALID, "templates[0].minimum"),
    "topology key": (plan(replace(LEAF, topology="A.b/c")), K.INVALID, "templates[0].topology"),
    "claims of a branch": (
        plan(replace(TREE, claims=(Claim("gpu", claim="c"),))),
        K.INVALID,
        "templates[0].claims",
    ),
    "five claims": (
        plan(replace(LEAF, claims=tuple(Claim(f"c{n}", claim="c") for n in range(5)))),
        K.TOO_MANY,
        "templates[0].claims",
    ),
    "claim twice": (
        plan(replace(LEAF, claims=(Claim("c", claim="c"), Claim("c", claim="d")))),
        K.DUPLICATE,
        "templates[0].claims[1]",
    ),
    "claim without source": (plan(replace(LEAF, claims=(Claim("c"),))), K.INVALID, "templates[0].claims[0]"),
    "priority too high": (plan(replace(LEAF, priority=10**9 + 1)), K.INVALID, "templates[0].priority"),
    "preemption policy": (
        plan(replace(LEAF, preemption_policy="Sometimes")),
        K.NOT_SUPPORTED,
        "templates[0].preemption_policy",
    ),
    "workload name": (plan(LEAF, workload="W"), K.INVALID, "workload"),
    "no workload name": (plan(LEAF, workload=""), K.REQUIRED, "workload"),
    "controller kind": (
        plan(LEAF, controller=Controller(api_group="", kind="Pod%", name="x")),
        K.INVALID,
        "controller.kind",
    ),
    "two controllers": (
        plan(
            LEAF,
            owners=tuple(Owner(api_version="v1", kind="Pod", name=n, uid=n, controller=True) for n in "ab"),
        ),
        K.INVALID,
        "owners",
    ),
    "label value": (plan(LEAF, labels={"a": "x" * 64}), K.INVALID, "labels[a]"),
    "group name": (plan(LEAF, groups=(Group(name="G_1", template="a"),)), K.INVALID, "groups[0].name"),
    "group name twice": (
        plan(LEAF, groups=(Group(name="g", template="a"), Group(name="g", template="a", replica_key="1"))),
        K.DUPLICATE,
        "groups[1].name",
    ),
    "unknown template": (plan(LEAF, groups=(Group(name="g", template="z"),)), K.INVALID, "groups[0].template"),
    "minimum of a basic group": (
        plan(Template(name="a"), groups=(Group(name="g", template="a", minimum=2),)),
        K.INVALID,
        "groups[0].minimum",
    ),
    "parent missing": (plan(TREE, groups=(Group(name="g", template="a"),)), K.REQUIRED, "groups[0].parent"),
    "parent unknown": (
        plan(TREE, groups=(Group(name="g", template="a", parent="r"),)),
        K.INVALID,
        "groups[0].parent",
    ),
    "parent comes later": (
        plan(TREE, groups=(Group(name="g", template="a", parent="r"), Group(name="r", template="root"))),
        K.INVALID,
        "groups[0].parent",
    ),
    "parent of another template": (
        plan(
            TREE,
            Template(name="two", children=(Template(name="c"),)),
            groups=(Group(name="r", template="root"), Group(name="g", template="c", parent="r")),
        ),
        K.INVALID,
        "groups[1].parent",
    ),
    "replica key is no label": (
        plan(LEAF, groups=(Group(name="g", template="a", replica_key="K_1"),)),
        K.INVALID,
        "groups[0].replica_key",
    ),
    "replica key twice": (
        plan(LEAF, groups=(Group(name="g", template="a"), Group(name="h", template="a"))),
        K.INVALID,
        "groups[1].replica_key",
    ),
    "member of no group": (
        plan(LEAF, members=(Member(source="Job j", count=1, group="g"),)),
        K.INVALID,
        "members[0].group",
    ),
    "member of a branch": (
        plan(
            TREE,
            groups=(Group(name="r", template="root"),),
            members=(Member(source="Job j", count=1, group="r"),),
        ),
        K.INVALID,
        "members[0].group",
    ),
    "negative member": (
        plan(LEAF, members=(Member(source="Job j", count=-1, group=None),)),
        K.INVALID,
        "members[0].count",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_each_rule_is_reported_at_its_field(case: str) -> None:
    found, kind, field = BROKEN[case]
    assert [(error.kind, error.field) for error in check_plan(found)] == [(kind, field)]


def test_all_findings_at_once() -> None:
    found = check_plan(plan(replace(LEAF, minimum=0, topology="")))
    assert [error.field for error in found] == ["templates[0].minimum", "templates[0].topology"]


def test_delegated_plan_may_hang_beneath_somebody_elses_branch() -> None:
    found = plan(LEAF, groups=(Group(name="g", template="a", parent="theirs"),), own_workload=False)
    assert check_plan(found) == []


def test_four_levels_are_allowed() -> None:
    assert check_plan(plan(chain(4))) == []
