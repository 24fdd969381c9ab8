"""Objects back into plans: the property, and what only hand-written objects have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from tests.strategies import plans

from kohort.api.convert.names import group_name
from kohort.gang.render import fit, parse, parse_all, pod_links, render
from kohort.gang.render.common import is_own_workload
from kohort.gang.stand_in import stand_in
from kohort.gang.tree import Group, Member, Plan, Template


def on_paper(plan: Plan, version: str) -> Plan:
    """The plan as its objects tell it: owners are filled in, keys and members are only on pods."""
    uid = stand_in("scheduling.k8s.io/v1beta1", "Workload", {"namespace": plan.namespace, "name": plan.workload})

    def written(group: Group) -> Group:
        owners = tuple(
            replace(owner, uid=uid, api_version=version) if is_own_workload(owner, plan) else owner
            for owner in group.owners
        )
        return replace(group, owners=owners, replica_key=None)

    return replace(plan, groups=tuple(written(group) for group in plan.groups), members=())


@settings(max_examples=60, deadline=None)
@given(plans())
def test_render_then_parse_on_1_37(plan: Plan) -> None:
    fitted = fit(plan, "1.37").plan
    assert fitted == plan
    assert parse(render(plan, "1.37").objects) == on_paper(fitted, "scheduling.k8s.io/v1beta1")


@settings(max_examples=60, deadline=None)
@given(plans())
def test_render_then_parse_on_1_36(plan: Plan) -> None:
    fitted = fit(plan, "1.36", flatten=True).plan
    objects = render(plan, "1.36", flatten=True).objects
    if objects:  # more than eight leaves cannot be flattened
        assert parse(objects) == on_paper(fitted, "scheduling.k8s.io/v1alpha2")


@settings(max_examples=60, deadline=None)
@given(plans(max_depth=1))
def test_render_then_parse_on_1_35_with_pods(plan: Plan) -> None:
    """1.35 knows no names, labels or owners of groups; what it knows comes back."""
    fitted = fit(plan, "1.35").plan
    pods = [
        {"metadata": {"name": f"p{index}", "namespace": plan.namespace}, "spec": link}
        for index, link in enumerate(pod_links(fitted, "1.35").values())
    ]
    groups = tuple(
        Group(
            name=group_name(plan.workload, group.template, group.replica_key),
            template=group.template,
            replica_key=group.replica_key,
        )
        for group in fitted.groups
    )
    members = tuple(Member(source=f"Pod p{index}", count=1, group=group.name) for index, group in enumerate(groups))
    assert parse(render(plan, "1.35").objects, pods) == replace(fitted, groups=groups, members=members)


@settings(max_examples=40, deadline=None)
@given(plans())
def test_groups_alone_render_to_the_same_objects(plan: Plan) -> None:
    objects = render(replace(plan, own_workload=False), "1.37").objects
    assert render(parse(objects), "1.37").objects == objects


def pod(name: str, group: str, owner: str | None = None) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "ns"}
    if owner:
        meta["ownerReferences"] = [{"kind": "Job", "name": owner, "controller": True}]
    return {"kind": "Pod", "metadata": meta, "spec": {"schedulingGroup": {"podGroupName": group}}}


FLAT = Plan(
    workload="w",
    namespace="ns",
    controller=None,
    templates=(Template(name="t", minimum=2),),
    groups=(Group(name="g", template="t"), Group(name="h", template="t")),
)


def test_pods_become_members_by_controller() -> None:
    pods = [pod("a", "g", "j"), pod("b", "g", "j"), pod("c", "h"), pod("d", "elsewhere")]
    assert parse(render(FLAT, "1.37").objects, pods).members == (
        Member(source="Job j", count=2, group="g"),
        Member(source="Pod c", count=1, group="h"),
    )


def test_standalone_groups_are_plans_of_their_own() -> None:
    objects = [
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"single": {}}},
        }
        for name in ("solo", "duet")
    ]
    found = parse_all(objects)
    assert [(plan.workload, plan.own_workload, plan.groups[0].name) for plan in found] == [
        ("", False, "solo"),
        ("", False, "duet"),
    ]
    assert [made for plan in found for made in render(plan, "1.37").objects] == objects


def test_what_a_server_fills_in_is_no_difference() -> None:
    workload, *groups = render(FLAT, "1.37").objects
    for group in groups:
        group["spec"] |= {"disruptionMode": {"single": {}}, "priority": 0}
    workload["spec"]["podGroupTemplates"][0]["schedulingConstraints"] = None
    assert parse([workload, *groups]) == FLAT


def test_template_missing_in_the_workload_is_taken_from_the_group() -> None:
    workload, *groups = render(FLAT, "1.37").objects
    groups[1]["spec"]["workloadRef"]["templateName"] = "gone"
    assert parse([workload, *groups]).templates == (*FLAT.templates, Template(name="gone", minimum=2))


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta1"])
def test_both_versions_of_1_37_are_read(version: str) -> None:
    objects = [found | {"apiVersion": f"scheduling.k8s.io/{version}"} for found in render(FLAT, "1.37").objects]
    assert parse(objects) == FLAT


def test_one_plan_is_expected() -> None:
    with pytest.raises(ValueError, match="expected objects of one Workload, found 2: w, v"):
        parse([*render(FLAT, "1.37").objects, *render(replace(FLAT, workload="v"), "1.37").objects])
