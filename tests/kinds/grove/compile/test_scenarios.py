"""Scenarios of the Grove page about what a set becomes: sections 6.1, 6.2, 6.3 and 6.5, by number."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import pytest
from tests.kinds.grove.api.cases import FABRIC, clique, defaulted, group, on, pcs
from tests.support.plancheck import check_plan

from kohort.api.kind import Context, Object
from kohort.gang.compile import Compilation, CompileContext, Lookup
from kohort.gang.render import pod_link, render
from kohort.gang.tree import Plan
from kohort.kinds.grove.compile import membership, startup
from kohort.kinds.grove.compile.expand import Expansion
from kohort.kinds.grove.compile.podcliqueset import compile_object

FLAT_GATES = frozenset({"GenericWorkload"})
RACK, HOST = "example.net/rack", "kubernetes.io/hostname"


def compiled(obj: Object, ctx: Context | None = None, others: Iterable[Object] = (FABRIC,)) -> Compilation:
    given = ctx or on()
    return compile_object(
        defaulted(obj, given), CompileContext(given.release, given.gates, given.options, Lookup(others))
    )


def plans(obj: Object, ctx: Context | None = None, others: Iterable[Object] = (FABRIC,)) -> dict[str, Plan]:
    done = compiled(obj, ctx, others)
    assert done.errors == ()
    for plan in done.plans:
        assert check_plan(plan) == []
    return {plan.workload: plan for plan in done.plans}


def gangs(obj: Object, others: Iterable[Object] = (FABRIC,)) -> dict[str, list[str]]:
    """PodGang -> `name(min)` of its groups."""
    return {
        found["metadata"]["name"]: [f"{one['name']}({one['minReplicas']})" for one in found["spec"]["podgroups"]]
        for found in compiled(obj, others=others).objects
    }


def rendered(obj: Object, ctx: Context) -> list[Object]:
    found: list[Any] = []
    for plan in plans(obj, ctx).values():
        done = render(plan, ctx.release)
        assert done.errors == ()
        found += done.objects
    return found


def outline(plan: Plan) -> list[str]:
    """`name <- parent: template minimum key` for every group."""
    lines = []
    for found in plan.groups:
        template = plan.template(found.template)
        key = f" {template.topology}" if template.topology else ""
        lines.append(f"{found.name} <- {found.parent or '-'}: {template.name} {template.minimum}{key}")
    return lines


CHAT = pcs(
    "chat",
    clique("router", 2, 1),
    clique("pf-lead", 1),
    clique("pf-work", 3),
    clique("dc-lead", 1),
    clique("dc-work", 2),
    groups=[group("prefill", ["pf-lead", "pf-work"], 3, 1), group("decode", ["dc-lead", "dc-work"], 2, 1)],
)


# ---- 6.1


def test_g1_no_replicas_nothing() -> None:
    done = compiled(pcs("a", clique("x"), replicas=0))
    assert (done.plans, done.objects, done.errors) == ((), (), ())
    assert "replicas is 0" in done.reason


def test_g2_a_gang_for_each_replica() -> None:
    obj = pcs("a", clique("x", 2), replicas=3)
    assert gangs(obj) == {"a-0": ["a-0-x(2)"], "a-1": ["a-1-x(2)"], "a-2": ["a-2-x(2)"]}
    assert sum(member.count for plan in plans(obj).values() for member in plan.members) == 6


def test_g3_the_minimum_is_the_group_the_rest_best_effort() -> None:
    obj = pcs("a", clique("x", 5, 2))
    assert gangs(obj) == {"a-0": ["a-0-x(2)"]}
    assert [member.count for member in plans(obj)["a-0"].members] == [5]


def test_g4_base_and_scaled_gangs() -> None:
    assert gangs(pcs("a", clique("r"), clique("w"), groups=[group("g", ["w"], 4, 2)])) == {
        "a-0": ["a-0-r(1)", "a-0-g-0-w(1)", "a-0-g-1-w(1)"],
        "a-0-g-0": ["a-0-g-2-w(1)"],
        "a-0-g-1": ["a-0-g-3-w(1)"],
    }


def test_g5_the_order_of_groups() -> None:
    cliques = [clique(name) for name in ("p1", "p2", "d1", "d2", "s")]
    obj = pcs("a", *cliques, groups=[group("p", ["p1", "p2"]), group("d", ["d1", "d2"], 2, 2)])
    assert [entry.removesuffix("(1)") for entry in gangs(obj)["a-0"]] == [
        "a-0-s",
        "a-0-p-0-p1",
        "a-0-p-0-p2",
        "a-0-d-0-d1",
        "a-0-d-0-d2",
        "a-0-d-1-d1",
        "a-0-d-1-d2",
    ]


def test_g6_templates_are_found_by_their_whole_name() -> None:
    assert gangs(pcs("a", clique("worker", 1), clique("pworker", 3)))["a-0"] == ["a-0-worker(1)", "a-0-pworker(3)"]


def test_g11_gangs_of_two_sets_meet() -> None:
    first = pcs("a", clique("w"), groups=[group("b", ["w"], 2)])
    second = pcs("a-0-b", clique("x"))
    (error,) = compiled(second, others=[first]).errors
    assert error.field == "metadata.name"
    assert 'PodGang "a-0-b-0"' in error.message


def test_g11_only_the_later_set_is_refused() -> None:
    first = pcs("a", clique("w"), groups=[group("b", ["w"], 2)])
    second = pcs("a-0-b", clique("x"))
    first["metadata"]["creationTimestamp"] = "2026-11-01T00:00:00Z"
    second["metadata"]["creationTimestamp"] = "2026-11-02T00:00:00Z"
    assert compiled(first, others=[second]).errors == ()
    assert len(compiled(second, others=[first]).errors) == 1


def test_g11_another_namespace_or_size_does_not_meet() -> None:
    first = pcs("a", clique("w"), groups=[group("b", ["w"], 2)])
    second = pcs("a-0-b", clique("x"))
    elsewhere = deepcopy(first)
    elsewhere["metadata"]["namespace"] = "other"
    assert compiled(second, others=[elsewhere]).errors == ()
    assert compiled(second, others=[pcs("a", clique("w"), groups=[group("b", ["w"], 1)])]).errors == ()


def test_g11_groups_meet_where_gangs_do_not() -> None:
    """Branch a-0-a-0-g-0: replica 0 of the first's scaling group, and the second's scaled gang."""
    first = pcs("a", clique("r"), clique("w"), groups=[group("g", ["w"])])
    second = pcs("a-0-a", clique("v"), clique("w"), groups=[group("g", ["v", "w"], 2, 1)])
    (error,) = compiled(second, others=[first]).errors
    assert 'CompositePodGroup "a-0-a-0-g-0"' in error.message
    assert compiled(second, on("1.36"), others=[first]).errors == ()


def test_groups_of_one_set_meet() -> None:
    obj = pcs("a", clique("r"), clique("w"), clique("u"), clique("v"))
    obj["spec"]["template"]["podCliqueScalingGroups"] = [group("g", ["w"]), group("a-0-g", ["u", "v"], 2, 1)]
    errors = compiled(obj).errors
    assert [error.value for error in errors] == ["a-0-a-0-g-0"]


# ---- 6.2


def test_g12_phase_1() -> None:
    obj = pcs("a", clique("x", 3))
    (workload,) = rendered(obj, on("1.35"))
    assert workload["apiVersion"] == "scheduling.k8s.io/v1alpha1"
    assert workload["metadata"]["name"] == "a-0"
    assert workload["spec"]["podGroups"] == [{"name": "a-0-x", "policy": {"gang": {"minCount": 3}}}]
    plan = plans(obj, on("1.35"))["a-0"]
    assert pod_link(plan, "a-0-a-0-x", "1.35") == {"workloadRef": {"name": "a-0", "podGroup": "a-0-x"}}


def test_g13_phase_2() -> None:
    obj = pcs("a", clique("x", 3))
    workload, made = rendered(obj, on("1.36"))
    assert workload["apiVersion"] == "scheduling.k8s.io/v1alpha2"
    assert [template["name"] for template in workload["spec"]["podGroupTemplates"]] == ["a-0-x"]
    assert made["metadata"]["name"] == "a-0-a-0-x"
    plan = plans(obj, on("1.36"))["a-0"]
    assert pod_link(plan, "a-0-a-0-x", "1.36") == {"schedulingGroup": {"podGroupName": "a-0-a-0-x"}}


def test_g14_flat_on_1_37() -> None:
    obj = pcs("a", clique("x", 3), clique("y"), priorityClassName="gold")
    workload, first, _ = rendered(obj, on(gates=FLAT_GATES))
    assert workload["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert first["spec"]["workloadRef"] == {"workloadName": "a-0", "templateName": "a-0-x"}
    assert first["spec"]["priorityClassName"] == "gold"
    assert {template["priorityClassName"] for template in workload["spec"]["podGroupTemplates"]} == {"gold"}


def test_g14_flat_on_request() -> None:
    assert not plans(CHAT, on("1.37", "GroveFlat"))["chat-0"].is_tree


@pytest.mark.parametrize("minor", ["1.35", "1.36", "1.37"])
def test_g15_option_off(minor: str) -> None:
    ctx = on(minor, without=("GroveGangScheduling",))
    done = compiled(CHAT, ctx)
    assert done.plans == ()
    assert "GroveGangScheduling is off" in done.reason
    assert len(done.objects) == 4
    pod: Object = {"metadata": {"labels": {}}, "spec": {}}
    membership.prepare(pod, CHAT, ctx)
    assert pod["spec"] == {"schedulerName": "default-scheduler"}


def test_g16_other_schedulers_read_podgangs() -> None:
    obj = pcs("a", clique("x", pod={"schedulerName": "kai-scheduler"}))
    done = compiled(obj, on("1.37", "GroveKai"))
    assert done.plans == ()
    assert "kai-scheduler" in done.reason
    assert done.objects[0]["metadata"]["labels"]["grove.io/scheduler-name"] == "kai-scheduler"


def test_g17_eight_templates() -> None:
    obj = pcs("a", *(clique(f"c{i}") for i in range(8)))
    assert len(plans(obj, on("1.36"))["a-0"].templates) == 8


def test_g18_nine_groups_are_an_error_of_compilation_too() -> None:
    obj = pcs("a", clique("s"), clique("v"), clique("w"), groups=[group("g", ["v", "w"], 4, 4)])
    done = compiled(obj, on("1.36"))
    assert done.plans == ()
    assert done.objects == ()
    assert "9" in done.errors[0].message


def test_g19_a_scaled_gang_has_its_own_workload() -> None:
    plan = plans(pcs("a", clique("r"), clique("w"), groups=[group("g", ["w"], 4, 2)]), on("1.36"))["a-0-g-0"]
    assert outline(plan) == ["a-0-g-0-a-0-g-2-w <- -: a-0-g-2-w 1"]


def test_g20_topology_on_1_36_is_an_error_of_compilation_too() -> None:
    done = compiled(pcs("a", clique("x"), pack="rack"), on("1.36"))
    assert [error.field for error in done.errors] == ["spec.template.topologyConstraint"]


def test_g21_priority_on_1_36_is_the_pods_alone() -> None:
    obj = pcs("a", clique("x"), priorityClassName="gold")
    for made in rendered(obj, on("1.36", gates=FLAT_GATES)):
        assert "priorityClassName" not in str(made)
    # Behind that gate a group has a priority, so it must be that of its pods.
    assert all("'priorityClassName': 'gold'" in str(made) for made in rendered(obj, on("1.36")))
    pod: Object = {"metadata": {"labels": {"grove.io/podgang": "a-0", "grove.io/podclique": "a-0-x"}}, "spec": {}}
    membership.prepare(pod, obj, on("1.36"))
    assert pod["spec"]["priorityClassName"] == "gold"


def test_d3_a_flat_gang_of_several_groups_is_warned_about() -> None:
    (warning,) = compiled(CHAT, on("1.36")).warnings
    assert str(warning).startswith("GangNotAtomic")
    assert compiled(pcs("a", clique("x")), on("1.36")).warnings == ()
    assert compiled(CHAT).warnings == ()


# ---- 6.3


def test_g28_example_b() -> None:
    found = plans(CHAT)
    assert list(found) == ["chat-0", "chat-0-prefill-0", "chat-0-prefill-1", "chat-0-decode-0"]
    assert outline(found["chat-0"]) == [
        "chat-0 <- -: gang 3",
        "chat-0-chat-0-prefill <- chat-0: sg-prefill 1",
        "chat-0-chat-0-prefill-0 <- chat-0-chat-0-prefill: sgr-prefill 2",
        "chat-0-chat-0-decode <- chat-0: sg-decode 1",
        "chat-0-chat-0-decode-0 <- chat-0-chat-0-decode: sgr-decode 2",
        "chat-0-chat-0-router <- chat-0: pg-router 1",
        "chat-0-chat-0-prefill-0-pf-lead <- chat-0-chat-0-prefill-0: pg-pf-lead 1",
        "chat-0-chat-0-prefill-0-pf-work <- chat-0-chat-0-prefill-0: pg-pf-work 3",
        "chat-0-chat-0-decode-0-dc-lead <- chat-0-chat-0-decode-0: pg-dc-lead 1",
        "chat-0-chat-0-decode-0-dc-work <- chat-0-chat-0-decode-0: pg-dc-work 2",
    ]
    assert outline(found["chat-0-prefill-1"]) == [
        "chat-0-prefill-1 <- -: gang 2",
        "chat-0-prefill-1-chat-0-prefill-2-pf-lead <- chat-0-prefill-1: pg-pf-lead 1",
        "chat-0-prefill-1-chat-0-prefill-2-pf-work <- chat-0-prefill-1: pg-pf-work 3",
    ]


def test_g29_structure_not_size_counts() -> None:
    plan = plans(pcs("a", clique("v"), clique("w"), groups=[group("g", ["v", "w"], 9, 9)]))["a-0"]
    assert plan.template("sg-g").minimum == 9
    assert [found.template for found in plan.groups].count("sgr-g") == 9
    assert sum(plan.template(found.template).is_leaf for found in plan.groups) == 18
    assert plan.templates[0].depth == 4


def test_g32_one_group_needs_no_branch() -> None:
    assert outline(plans(pcs("a", clique("x"), pack="rack"))["a-0"]) == [f"a-0-a-0-x <- -: pg-x 1 {RACK}"]


def test_g33_two_keys_need_a_branch() -> None:
    assert outline(plans(pcs("a", clique("x", pack="host"), pack="rack"))["a-0"]) == [
        f"a-0 <- -: gang 1 {RACK}",
        f"a-0-a-0-x <- a-0: pg-x 1 {HOST}",
    ]


def test_g33_the_same_key_twice_is_one() -> None:
    plan = plans(pcs("a", clique("x", pack="rack"), pack="rack"))["a-0"]
    assert outline(plan) == [f"a-0-a-0-x <- -: pg-x 1 {RACK}"]


def test_g34_the_key_of_a_scaling_group_is_on_its_replicas() -> None:
    plan = plans(pcs("a", clique("v"), clique("w"), groups=[group("g", ["v", "w"], 2, 2, pack="host")]))["a-0"]
    keys = {found.name: plan.template(found.template).topology for found in plan.groups}
    assert keys["a-0-a-0-g-0"] == keys["a-0-a-0-g-1"] == HOST
    assert keys["a-0-a-0-g"] is None
    assert keys["a-0"] is None


def test_g35_a_scaled_gang_has_the_key_of_its_scaling_group() -> None:
    obj = pcs("a", clique("v"), clique("w"), groups=[group("g", ["v", "w"], 2, 1, pack="host")], pack="rack")
    found = plans(obj)
    assert found["a-0-g-0"].template("gang").topology == HOST
    assert found["a-0"].template("gang").topology == RACK
    assert RACK not in str(found["a-0-g-0"])


def test_g36_or_else_that_of_the_set() -> None:
    obj = pcs("a", clique("v"), clique("w"), groups=[group("g", ["v", "w"], 2, 1)], pack="rack")
    assert plans(obj)["a-0-g-0"].template("gang").topology == RACK


def test_g37_preferred_topology_fails_closed() -> None:
    obj = pcs("a", clique("x"), topologyConstraint={"topologyName": "fabric", "pack": {"preferred": "host"}})
    done = compiled(obj)
    assert (done.plans, done.objects) == ((), ())
    assert [error.field for error in done.errors] == ["spec.template.topologyConstraint.pack.preferred"]


def test_preferred_topology_for_our_own_scheduler_is_an_annotation_of_the_groups() -> None:
    wish: dict[str, Any] = {
        "topologyConstraint": {"topologyName": "fabric", "pack": {"required": "rack", "preferred": "host"}}
    }
    ours = {"schedulerName": "kohort"}
    obj = pcs("a", clique("x", pod=ours), clique("y", pod=ours), **wish)
    plan = plans(obj)["a-0"]
    said = {found.name: found.annotations for found in plan.groups}
    assert said["a-0"] == {"kohort.dev/topology": f"{HOST}=preferred"}
    assert said["a-0-a-0-x"] == {}
    assert plan.template("gang").topology == RACK
    alone = plans(pcs("a", clique("x", pod=ours), **wish))["a-0"]
    assert [found.annotations for found in alone.groups] == [{"kohort.dev/topology": f"{HOST}=preferred"}]


def test_g38_narrower_parent() -> None:
    done = compiled(pcs("a", clique("x", pack="rack"), pack="host"))
    assert [error.field for error in done.errors] == ["spec.template.topologyConstraint"]


def test_the_binding_must_be_there() -> None:
    (error,) = compiled(pcs("a", clique("x"), pack="rack"), others=()).errors
    assert error.field == "spec.template.topologyConstraint.topologyName"
    assert "fabric" in error.message


def test_g39_priority_is_everywhere() -> None:
    obj = deepcopy(CHAT)
    obj["spec"]["template"]["priorityClassName"] = "gold"
    for plan in plans(obj).values():
        assert {template.priority_class for template in plan.walk()} == {"gold"}
    for made in rendered(obj, on()):
        if made["kind"] != "Workload":
            assert made["spec"]["priorityClassName"] == "gold"
    labels = {"grove.io/podgang": "chat-0", "grove.io/podclique": "chat-0-router"}
    pod: Object = {"metadata": {"labels": labels}, "spec": {}}
    membership.prepare(pod, obj, on())
    assert pod["spec"] == {
        "schedulerName": "default-scheduler",
        "priorityClassName": "gold",
        "schedulingGroup": {"podGroupName": "chat-0-chat-0-router"},
    }


def test_g40_the_order_of_creation() -> None:
    made = [found["kind"] for found in rendered(CHAT, on())][:11]
    assert made == ["Workload"] + ["CompositePodGroup"] * 5 + ["PodGroup"] * 5


def test_g41_a_minimum_of_0_cannot_be_mapped() -> None:
    obj = defaulted(pcs("a", clique("x")))
    obj["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] = 0
    done = compiled(obj)
    assert done.plans == ()
    assert [error.field for error in done.errors] == ["spec.template.cliques[0].spec.minAvailable"]


def test_g42_a_level_that_vanished() -> None:
    obj = pcs("a", clique("x", 2), pack="rack")
    less = deepcopy(FABRIC)
    del less["spec"]["levels"][1]
    assert compiled(obj, others=[less]).errors[0].field == "spec.template.topologyConstraint.pack.required"
    obj["metadata"]["uid"] = "8f5a"  # a server has it: it stays
    dropped = compiled(obj, others=[less])
    assert dropped.errors == ()
    assert "topologyConstraint" not in dropped.objects[0]["spec"]
    assert "annotations" not in dropped.objects[0]["metadata"]


# ---- 6.5


def test_g58_live_sizes_count_not_the_template() -> None:
    obj = pcs("a", clique("w", 2), groups=[group("g", ["w"], 5)])
    live = [
        {"kind": "PodCliqueScalingGroup", "metadata": {"name": "a-0-g", "namespace": "t"}, "spec": {"replicas": 2}},
        {"kind": "PodClique", "metadata": {"name": "a-0-g-0-w", "namespace": "t"}, "spec": {"replicas": 7}},
    ]
    found = plans(obj, others=live)
    assert list(found) == ["a-0", "a-0-g-0"]
    assert [member.count for member in found["a-0"].members] == [7]
    assert found["a-0"].templates[0].minimum == 2


def test_a_scaling_group_below_its_minimum_keeps_its_groups() -> None:
    obj = pcs("a", clique("w"), groups=[group("g", ["w"], 2, 2)])
    live = [{"kind": "PodCliqueScalingGroup", "metadata": {"name": "a-0-g", "namespace": "t"}, "spec": {"replicas": 1}}]
    plan = plans(obj, others=live)["a-0"]
    assert [(member.source, member.count) for member in plan.members] == [
        ("PodClique a-0-g-0-w", 1),
        ("PodClique a-0-g-1-w", 0),
    ]


@pytest.mark.parametrize(
    ("minor", "pod"),
    [
        ("1.35", {"workloadRef": {"name": "w", "podGroup": "p"}}),
        ("1.36", {"schedulingGroup": {"podGroupName": "p"}}),
        ("1.37", {"schedulingGroup": {"podGroupName": "p"}}),
    ],
)
def test_g60_the_escape_hatch(minor: str, pod: Object) -> None:
    obj = pcs("a", *(clique(f"c{i}", pod=pod) for i in range(9)))
    done = compiled(obj, on(minor))
    assert (done.plans, done.errors) == ((), ())
    assert done.objects[0]["metadata"]["labels"]["grove.io/external-workload-managed"] == "true"
    made: Object = {"metadata": {"labels": {}}, "spec": deepcopy(pod)}
    membership.prepare(made, obj, on(minor))
    assert made["spec"] == pod | {"schedulerName": "default-scheduler"}


@pytest.mark.parametrize("missing", ["grove.io/podgang", "grove.io/podclique"])
def test_g63_a_pod_without_its_labels_is_not_built(missing: str) -> None:
    labels = {"grove.io/podgang": "a-0", "grove.io/podclique": "a-0-x"}
    del labels[missing]
    with pytest.raises(membership.MissingLabelError, match=missing):
        membership.prepare({"metadata": {"labels": labels}, "spec": {}}, pcs("a", clique("x")), on())


@pytest.mark.parametrize("minor", ["1.35", "1.36", "1.37"])
def test_the_link_from_labels_is_that_of_the_plan(minor: str) -> None:
    for plan in plans(CHAT, on(minor)).values():
        for member in plan.members:
            labels = {"grove.io/podgang": plan.workload, "grove.io/podclique": member.source.split()[-1]}
            assert member.group is not None
            assert membership.link(labels, on(minor)) == pod_link(plan, member.group, minor)


def test_g65_in_order() -> None:
    obj = pcs(
        "a",
        clique("r"),
        clique("lead"),
        clique("work"),
        groups=[group("g", ["lead", "work"], 3, 2)],
        cliqueStartupType="CliqueStartupTypeInOrder",
    )
    waits = startup.waits_for(Expansion(defaulted(obj)))
    both = [("a-0-g-0-lead", 1), ("a-0-g-1-lead", 1)]
    assert waits == {
        "a-0-r": [],
        "a-0-g-0-lead": [("a-0-r", 1)],
        "a-0-g-0-work": both,
        "a-0-g-1-lead": [("a-0-r", 1)],
        "a-0-g-1-work": both,
        "a-0-g-2-lead": [],
        "a-0-g-2-work": [("a-0-g-2-lead", 1)],
    }


def test_g67_leader_and_workers() -> None:
    found = plans(pcs("a", clique("lead"), clique("work", 7), groups=[group("g", ["lead", "work"], 2, 1)]))
    replica = found["a-0"].template("sgr-g")
    assert replica.minimum == 2
    assert [leaf.minimum for leaf in replica.children] == [1, 7]
    root = found["a-0-g-0"].template("gang")
    assert root.minimum == 2
    assert [leaf.minimum for leaf in root.children] == [1, 7]


# ---- ownership


def test_everything_of_a_gang_belongs_to_its_podgang() -> None:
    live = {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {"name": "chat-0", "namespace": "t", "uid": "11aa"},
    }
    plan = plans(CHAT, others=[live])["chat-0"]
    for owners in (plan.owners, *(found.owners for found in plan.groups)):
        assert [(owner.kind, owner.name, owner.uid, owner.controller) for owner in owners] == [
            ("PodGang", "chat-0", "11aa", True)
        ]


def test_d28_labels_of_upstream_objects() -> None:
    plan = plans(CHAT)["chat-0"]
    assert plan.labels == {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "chat",
        "app.kubernetes.io/component": "workload",
        "grove.io/podgang": "chat-0",
    }
    components = {found.labels["app.kubernetes.io/component"] for found in plan.groups}
    assert components == {"podgroup", "compositepodgroup"}


def test_a_scaling_group_without_cliques_has_gangs_without_groups() -> None:
    obj = pcs("a", clique("x"), groups=[group("g", [], 2, 1)])
    assert list(gangs(obj)) == ["a-0", "a-0-g-0"]
    assert list(plans(obj)) == ["a-0"]


@pytest.mark.parametrize("obj", [pcs("a", clique("x"), replicas=2**31 - 1), pcs("a", clique("x"))])
def test_a_size_out_of_reach_is_said_not_written_out(obj: Object) -> None:
    if obj["spec"]["replicas"] == 1:
        obj["spec"]["template"]["podCliqueScalingGroups"] = [group("g", ["x"], 2**31 - 1, 2**31 - 1)]
    done = compiled(obj)
    assert [error.field for error in done.errors] == ["spec.replicas"]
    assert compiled(pcs("a-0-g", clique("x")), others=[obj]).errors == ()
