"""There and back: what both sides can express survives, for arbitrary plans."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace

from hypothesis import given, settings
from tests.strategies import plans

from kohort.api import admit
from kohort.api.convert import convert
from kohort.api.kind import Context, Object
from kohort.api.releases import RELEASES
from kohort.gang.render import fit, pod_links, render
from kohort.gang.tree import Plan

FEW = settings(max_examples=40, deadline=None)


def expressible(plan: Plan) -> Plan:
    """As far as 1.36 goes."""
    return fit(plan, "1.36").plan


def pods(plan: Plan, minor: str) -> list[Object]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{index}", "namespace": plan.namespace},
            "spec": {"containers": [{"name": "c", "image": "registry.example/app:1"}], **link},
        }
        for index, link in enumerate(pod_links(plan, minor).values())
    ]


@FEW
@given(plans(max_depth=1))
def test_1_36_and_1_37_there_and_back(plan: Plan) -> None:
    plan = expressible(plan)
    old, new = render(plan, "1.36").objects, render(plan, "1.37").objects
    up = convert(old, "1.37", recreate=False)
    assert (up.objects, up.warnings) == (new, ())
    down = convert(new, "1.36", recreate=False)
    assert (down.objects, down.warnings) == (old, ())
    assert json.dumps(convert(up.objects, "1.36", recreate=False).objects) == json.dumps(old)


@FEW
@given(plans(max_depth=1))
def test_1_35_there_and_back_by_way_of_both(plan: Plan) -> None:
    plan = fit(plan, "1.35").plan
    before = [*render(plan, "1.35").objects, *pods(plan, "1.35")]
    for minor in ("1.36", "1.37"):
        there = convert(before, minor, recreate=False)
        assert there.warnings == there.errors == ()
        back = convert(there.objects, "1.35", recreate=False)
        assert json.dumps(back.objects) == json.dumps(before)
        assert back.warnings == ()


@FEW
@given(plans())
def test_v1alpha3_and_v1beta1_are_the_same_byte_for_byte(plan: Plan) -> None:
    beta = render(plan, "1.37").objects
    alpha = convert(beta, "v1alpha3").objects
    assert {found["apiVersion"] for found in alpha} == {"scheduling.k8s.io/v1alpha3"}
    assert json.dumps(convert(alpha, "v1beta1").objects) == json.dumps(beta)
    assert [without_version(found) for found in alpha] == [without_version(found) for found in beta]


def without_version(obj: Object) -> str:
    return json.dumps({name: value for name, value in obj.items() if name != "apiVersion"})


@FEW
@given(plans())
def test_nothing_given_is_changed(plan: Plan) -> None:
    given = [*render(plan, "1.37").objects, *pods(plan, "1.37")]
    before = deepcopy(given)
    for minor in RELEASES:
        convert(given, minor, flatten=True)
        assert given == before


@FEW
@given(plans())
def test_results_are_valid_where_they_go(plan: Plan) -> None:
    objects = [*render(plan, "1.37").objects, *pods(plan, "1.37")]
    for minor, found in RELEASES.items():
        ctx = Context.of(minor, gates=found.gates)
        for obj in convert(objects, minor, flatten=True).objects:
            assert admit.check(obj, ctx) == []


@FEW
@given(plans())
def test_flattening_agrees_with_the_renderer(plan: Plan) -> None:
    """Converting what was rendered is rendering for the other side."""
    plan = replace(plan, groups=tuple(replace(group, owners=()) for group in plan.groups), owners=())
    done = convert(render(plan, "1.37").objects, "1.36", flatten=True)
    rendered = render(plan, "1.36", flatten=True)
    assert bool(done.errors) == bool(rendered.errors)
    assert done.objects == rendered.objects


@FEW
@given(plans(max_depth=1))
def test_gangs_stay_apart_on_1_35(plan: Plan) -> None:
    """Pods share a tuple of 1.35 exactly where they shared a PodGroup."""
    minimums = {template.name: template.minimum for template in plan.templates}
    plan = replace(plan, groups=tuple(replace(group, minimum=None) for group in plan.groups))
    objects = [*render(plan, "1.37").objects, *pods(plan, "1.37")]
    done = convert(objects, "1.35").objects
    links = [json.dumps(found["spec"]["workloadRef"]) for found in done if found["kind"] == "Pod"]
    assert len(set(links)) == len(plan.groups)
    assert done[0]["spec"]["podGroups"] == [
        {"name": name, "policy": {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}}
        for name, minimum in minimums.items()
    ]
