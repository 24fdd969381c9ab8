"""What each release cannot express, and how it says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kohort.gang.render import fit, render
from kohort.gang.tree import Claim, Group, Plan, Template

RICH = Template(
    name="t",
    minimum=2,
    topology="rack",
    disruption="all",
    claims=(Claim("gpu", claim="c"), Claim("net", template="n")),
    priority_class="gold",
    priority=7,
    preemption_policy="Never",
)
FLAT = Plan(workload="w", namespace="ns", controller=None, templates=(RICH,), groups=(Group(name="g", template="t"),))
TREE = replace(
    FLAT,
    templates=(
        Template(
            name="root",
            minimum=2,
            children=(Template(name="a", minimum=1), Template(name="mid", children=(Template(name="b"),))),
        ),
    ),
    groups=(
        Group(name="r", template="root"),
        Group(name="r.a", template="a", parent="r"),
        Group(name="r.m", template="mid", parent="r"),
        Group(name="r.m.b", template="b", parent="r.m"),
    ),
)


def test_1_37_expresses_everything() -> None:
    assert fit(FLAT, "1.37") == (FLAT, (), ())
    assert fit(TREE, "1.37") == (TREE, (), ())


def test_1_36_has_no_preemption_policy() -> None:
    fitted, errors, warnings = fit(FLAT, "1.36")
    assert fitted.templates == (replace(RICH, preemption_policy=None),)
    assert errors == ()
    lacks = "Kubernetes 1.36 has no preemption policy of a group (pods keep theirs)"
    assert warnings == (f'templates[t].preemptionPolicy: "Never" is lost: {lacks}',)


def test_1_35_keeps_the_gang_and_names_each_thing_lost() -> None:
    fitted, errors, warnings = fit(FLAT, "1.35")
    assert fitted.templates == (Template(name="t", minimum=2),)
    assert errors == ()
    assert [warning.partition(" is lost")[0] for warning in warnings] == [
        'templates[t].topology: "rack"',
        "templates[t].resourceClaims: gpu, net",
        'templates[t].disruptionMode: "all"',
        'templates[t].priorityClassName: "gold"',
        "templates[t].priority: 7",
        'templates[t].preemptionPolicy: "Never"',
    ]
    assert all("Kubernetes 1.35 has no " in warning for warning in warnings)


@pytest.mark.parametrize("minor", ["1.35", "1.36"])
def test_a_tree_is_refused_by_branch_and_minor(minor: str) -> None:
    rendered = render(TREE, minor)
    assert rendered.objects == ()
    lacks = f"Kubernetes {minor} has no CompositePodGroup for the branch"
    assert [str(error) for error in rendered.errors] == [
        f'templates[root]: Forbidden: {lacks} "root" over a, mid',
        f'templates[mid]: Forbidden: {lacks} "mid" over b',
    ]


def test_a_branch_of_somebody_else_is_refused_too() -> None:
    plan = replace(FLAT, own_workload=False, groups=(Group(name="g", template="t", parent="theirs"),))
    assert [str(error) for error in fit(plan, "1.36").errors] == [
        'groups[g].parent: Forbidden: Kubernetes 1.36 has no CompositePodGroup for the branch "theirs"'
    ]


def test_flatten_keeps_the_leaves_and_says_what_is_weaker() -> None:
    rendered = render(TREE, "1.36", flatten=True)
    assert [found["metadata"]["name"] for found in rendered.objects] == ["w", "r.a", "r.m.b"]
    assert rendered.errors == ()
    assert [warning.rpartition("; ")[2] for warning in rendered.warnings] == ["its leaves start independently"] * 2


def test_flatten_refuses_more_leaves_than_a_list_holds() -> None:
    leaves = tuple(tuple(Template(name=f"{root}{index}") for index in range(5)) for root in "xy")
    roots = tuple(Template(name=f"r{index}", children=children) for index, children in enumerate(leaves))
    rendered = render(replace(FLAT, templates=roots, groups=()), "1.36", flatten=True)
    assert [str(error) for error in rendered.errors] == ["templates: Too many: 10: must have at most 8 items"]


def test_1_35_needs_keys_to_tell_groups_apart() -> None:
    twins = (Group(name="g", template="t"), Group(name="h", template="t"))
    apart = "Kubernetes 1.35 tells it from g of the same template only by replica key"
    assert [str(error) for error in fit(replace(FLAT, groups=twins), "1.35").errors] == [
        f"groups[h].replica_key: Required value: {apart}"
    ]
    same = tuple(replace(group, replica_key="0") for group in twins)
    assert [error.field for error in fit(replace(FLAT, groups=same), "1.35").errors] == ["groups[h].replica_key"]


def test_1_35_has_one_minimum_per_template() -> None:
    plan = replace(FLAT, templates=(Template(name="t", minimum=2),), groups=(Group(name="g", template="t", minimum=5),))
    fitted, _, warnings = fit(plan, "1.35")
    assert fitted.groups[0].minimum is None
    assert warnings == (
        'groups[g].minimum: 5 is lost: on Kubernetes 1.35 all groups of template "t" have its minimum, 2',
    )
