"""Scenarios of the Grove page that an API server decides: sections 6.1, 6.2, 6.3 and 6.5."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.kinds.grove.api.cases import FABRIC, clique, defaulted, group, on, pcs

from kohort.api import admit
from kohort.api.errors import FieldError
from kohort.api.kind import Context, Object
from kohort.api.registry import find
from kohort.kinds.grove.api import topology

FLAT_GATES = frozenset({"GenericWorkload"})  # 1.37 that does not serve CompositePodGroup


def faults(obj: Object, ctx: Context) -> list[FieldError]:
    return admit.check(obj, ctx)


def fields(obj: Object, ctx: Context) -> list[str]:
    return [fault.field for fault in faults(obj, ctx)]


def changed(old: Object, change: Any, ctx: Context) -> list[str]:
    stored = defaulted(old)
    new = deepcopy(stored)
    change(new["spec"]["template"])
    kind = find(new["apiVersion"], new["kind"])
    assert kind is not None
    return [fault.field for fault in kind.validate_update(new, stored, ctx)]


# ---- 6.1


def test_g7_names_together_are_at_most_45_characters() -> None:
    obj = pcs("p" * 20, clique("c" * 11), groups=[group("g" * 15, ["c" * 11])])
    assert fields(obj, on()) == ["spec.template.podCliqueScalingGroups[0].cliqueNames[0]"]
    assert "46" in faults(obj, on())[0].message
    assert faults(pcs("p" * 20, clique("c" * 10), groups=[group("g" * 15, ["c" * 10])]), on()) == []


def test_g8_a_dot_is_refused_only_where_groups_are_made() -> None:
    obj = pcs("a", clique("x.y"))
    assert fields(obj, on()) == ["spec.template.cliques[0].name"]
    assert faults(obj, on(without=("GroveGangScheduling",))) == []


def test_g8_a_dot_in_the_name_of_set_or_scaling_group() -> None:
    assert fields(pcs("a.b", clique("x")), on()) == ["metadata.name"]
    obj = pcs("a", clique("x"), groups=[group("g.h", ["x"])])
    assert fields(obj, on()) == ["spec.template.podCliqueScalingGroups[0].name"]


def test_g9_no_replicas_become_one_but_the_minimum_is_taken_before() -> None:
    obj = pcs("a", clique("x", 0, 1))
    assert faults(obj, on()) == []
    assert defaulted(obj)["spec"]["template"]["cliques"][0]["spec"]["replicas"] == 1
    assert fields(pcs("a", clique("x", 0)), on()) == ["spec.template.cliques[0].spec.minAvailable"]


def test_g10_scaling_group_minimum_above_its_replicas() -> None:
    obj = pcs("a", clique("x"), groups=[group("g", ["x"], 2, 3)])
    assert fields(obj, on()) == ["spec.template.podCliqueScalingGroups[0].minAvailable"]


# ---- 6.2, 6.3


def test_g17_eight_groups_fit_a_flat_gang() -> None:
    obj = pcs("a", *(clique(f"c{i}") for i in range(8)))
    for ctx in (on("1.35"), on("1.36"), on("1.37", gates=FLAT_GATES)):
        assert faults(obj, ctx) == []


@pytest.mark.parametrize("ctx", [on("1.35"), on("1.36"), on("1.37", gates=FLAT_GATES), on("1.37", "GroveFlat")])
def test_g18_nine_groups_do_not(ctx: Context) -> None:
    obj = pcs("a", clique("s"), clique("v"), clique("w"), groups=[group("g", ["v", "w"], 4, 4)])
    (fault,) = faults(obj, ctx)
    assert fault.field == "spec.template.cliques"
    assert "9" in fault.message
    assert "8" in fault.message


@pytest.mark.parametrize("minor", ["1.35", "1.36"])
@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (pcs("a", clique("x"), pack="rack"), "spec.template.topologyConstraint"),
        (
            pcs("a", clique("x"), groups=[group("g", ["x"], pack="rack")]),
            "spec.template.podCliqueScalingGroups[0].topologyConstraint",
        ),
    ],
)
def test_g20_topology_is_refused_before_1_37(minor: str, obj: Object, path: str) -> None:
    (fault,) = faults(obj, on(minor))
    assert fault.field == path
    assert "KEP-5732" in fault.message


def test_g20_topology_is_refused_on_flat_1_37() -> None:
    assert fields(pcs("a", clique("x"), pack="rack"), on(gates=FLAT_GATES)) == ["spec.template.topologyConstraint"]


def test_g29_replicas_do_not_count_in_a_tree() -> None:
    obj = pcs("a", clique("v"), clique("w"), groups=[group("g", ["v", "w"], 9, 9)])
    assert faults(obj, on()) == []


def test_g30_nine_standalone_cliques() -> None:
    (fault,) = faults(pcs("a", *(clique(f"c{i}") for i in range(9))), on())
    assert (fault.field, fault.value) == ("spec.template.cliques", 9)


def test_g31_nine_cliques_in_one_scaling_group() -> None:
    names = [f"c{i}" for i in range(9)]
    (fault,) = faults(pcs("a", *map(clique, names), groups=[group("g", names)]), on())
    assert fault.field == "spec.template.podCliqueScalingGroups[0].cliqueNames"


def test_nine_scaling_groups() -> None:
    names = [f"c{i}" for i in range(9)]
    obj = pcs("a", *map(clique, names), groups=[group(f"g{name}", [name]) for name in names])
    assert fields(obj, on()) == ["spec.template.podCliqueScalingGroups"]


@pytest.mark.parametrize("level", ["set", "group", "clique"])
def test_g37_preferred_topology_is_refused(level: str) -> None:
    obj = pcs("a", clique("x"), groups=[group("g", ["x"])])
    template = obj["spec"]["template"]
    owner, path = {
        "set": (template, "spec.template"),
        "group": (template["podCliqueScalingGroups"][0], "spec.template.podCliqueScalingGroups[0]"),
        "clique": (template["cliques"][0], "spec.template.cliques[0]"),
    }[level]
    owner["topologyConstraint"] = {"topologyName": "fabric", "pack": {"required": "rack", "preferred": "host"}}
    assert fields(obj, on()) == [f"{path}.topologyConstraint.pack.preferred"]
    assert faults(obj, on(without=("GroveGangScheduling",))) == []


def test_g38_a_parent_narrower_than_its_child() -> None:
    obj = pcs("a", clique("x", pack="rack"), pack="host")
    (fault,) = topology.check_binding(obj, FABRIC)
    assert fault.field == "spec.template.topologyConstraint"
    assert "narrower" in fault.message


def test_g39_the_priority_of_a_clique_is_that_of_the_set() -> None:
    silver = pcs("a", clique("x", pod={"priorityClassName": "silver"}), priorityClassName="gold")
    assert fields(silver, on()) == ["spec.template.cliques[0].spec.podSpec.priorityClassName"]
    assert fields(silver, on(gates=FLAT_GATES)) == ["spec.template.cliques[0].spec.podSpec.priorityClassName"]
    assert fields(silver, on("1.36")) == ["spec.template.cliques[0].spec.podSpec.priorityClassName"]
    assert faults(silver, on("1.36", gates=FLAT_GATES)) == []
    gold = pcs("a", clique("x", pod={"priorityClassName": "gold"}), clique("y"), priorityClassName="gold")
    assert faults(gold, on()) == []


def test_a_class_that_no_group_may_have() -> None:
    critical = pcs("a", clique("x"), priorityClassName="system-cluster-critical")
    assert fields(critical, on()) == ["spec.template.priorityClassName"]
    assert faults(critical, on("1.36", gates=FLAT_GATES)) == []


# ---- 6.5


@pytest.mark.parametrize("ctx", [on(), on(without=("GroveGangScheduling",))])
def test_g56_minimum_is_frozen(ctx: Context) -> None:
    def raise_minimum(template: Any) -> None:
        template["cliques"][0]["spec"]["minAvailable"] = 3

    path = "spec.template.cliques[0].spec.minAvailable"
    assert changed(pcs("a", clique("x", 3, 2)), raise_minimum, ctx) == [path]


def test_g57_cliques_are_frozen() -> None:
    def add(template: Any) -> None:
        template["cliques"].append(defaulted(pcs("b", clique("y")))["spec"]["template"]["cliques"][0])

    assert changed(pcs("a", clique("x")), add, on()) == ["spec.template.cliques[1].name"]


def test_g58_template_replicas_are_free() -> None:
    def scale(template: Any) -> None:
        template["podCliqueScalingGroups"][0]["replicas"] = 5

    assert changed(pcs("a", clique("x"), groups=[group("g", ["x"], 2)]), scale, on()) == []


HATCH = {"1.35": {"workloadRef": {"name": "w", "podGroup": "p"}}, "1.37": {"schedulingGroup": {"podGroupName": "p"}}}


@pytest.mark.parametrize("minor", HATCH)
def test_g59_a_template_names_its_group_only_with_the_option(minor: str) -> None:
    obj = pcs("a", clique("x", pod=HATCH[minor]))
    (member,) = HATCH[minor]
    off = on(minor, without=("GroveGangScheduling",))
    assert fields(obj, off) == [f"spec.template.cliques[0].spec.podSpec.{member}"]
    assert faults(obj, on(minor)) == []


def test_g60_nothing_of_the_groups_is_checked_behind_the_hatch() -> None:
    nine = [clique(f"c{i}", pod=HATCH["1.37"] | {"priorityClassName": "silver"}) for i in range(9)]
    assert faults(pcs("a", *nine, pack="rack"), on()) == []
    assert faults(pcs("a", *nine), on(gates=FLAT_GATES)) == []


def test_g61_all_cliques_or_none_name_their_group() -> None:
    obj = pcs("a", clique("x", pod=HATCH["1.37"]), clique("y"))
    assert fields(obj, on()) == ["spec.template.cliques[0].spec.podSpec.schedulingGroup"]


def test_the_group_that_a_template_names_is_frozen() -> None:
    def rename(template: Any) -> None:
        template["cliques"][0]["spec"]["podSpec"]["schedulingGroup"]["podGroupName"] = "q"

    path = "spec.template.cliques[0].spec.podSpec.schedulingGroup"
    assert changed(pcs("a", clique("x", pod=HATCH["1.37"])), rename, on()) == [path]


def test_g62_the_kind_that_is_not_served_is_named() -> None:
    obj = pcs("a", clique("x"))
    (fault,) = faults(obj, on("1.36", gates=frozenset()))
    assert "Workload" in fault.message
    assert "KEP-4671" in fault.message
    assert faults(obj, on("1.36")) == []


def test_g64_a_circle_counts_for_explicit_only() -> None:
    circle = [clique("b", startsAfter=["c"]), clique("c", startsAfter=["b"])]
    explicit = pcs("a", *circle, cliqueStartupType="CliqueStartupTypeExplicit")
    assert fields(explicit, on()) == ["spec.template.cliques"]
    assert faults(pcs("a", *circle), on()) == []


def test_g66_all_cliques_have_one_scheduler() -> None:
    obj = pcs("a", clique("x", pod={"schedulerName": "kohort"}), clique("y"))
    assert fields(obj, on()) == ["spec.template.cliques[1].spec.podSpec.schedulerName"]


# ---- beyond the table


def test_a_scheduler_must_be_enabled() -> None:
    obj = pcs("a", clique("x", pod={"schedulerName": "kai-scheduler"}))
    assert fields(obj, on()) == ["spec.template.cliques[0].spec.podSpec.schedulerName"]
    assert faults(obj, on("1.37", "GroveKai")) == []


def test_g16_limits_of_the_workload_api_do_not_bind_other_schedulers() -> None:
    nine = [clique(f"c{i}", pod={"schedulerName": "kai-scheduler"}) for i in range(9)]
    obj = pcs("a", *nine, topologyConstraint={"topologyName": "fabric", "pack": {"preferred": "host"}})
    assert faults(obj, on("1.36", "GroveKai")) == []


def test_a_standalone_clique_called_like_a_member() -> None:
    """PodClique a-0-g-0-w would be both."""
    obj = pcs("a", clique("w"), clique("g-0-w"), groups=[group("g", ["w"])])
    assert fields(obj, on()) == ["spec.template.cliques[1].name"]


def test_d24_claims_that_nobody_would_make_are_warned_about() -> None:
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]}
    obj = pcs("a", clique("x", pod=claims))
    gates = frozenset({"GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"})
    (warning,) = admit.create(obj, on(gates=gates)).warnings
    assert "DRAWorkloadResourceClaims" in warning
    assert admit.create(obj, on()).warnings == ()


def test_an_old_pack_domain_may_be_said_anew() -> None:
    old = pcs("a", clique("x"), topologyConstraint={"topologyName": "fabric", "packDomain": "rack"})
    assert fields(old, on()) == ["spec.template.topologyConstraint.packDomain"]

    def migrate(template: Any) -> None:
        template["topologyConstraint"] = {"topologyName": "fabric", "pack": {"required": "rack"}}

    def change(template: Any) -> None:
        template["topologyConstraint"] = {"topologyName": "fabric", "pack": {"required": "host"}}

    assert changed(old, migrate, on()) == []
    assert changed(old, change, on()) == ["spec.template.topologyConstraint"]


def test_all_faults_are_said_at_once() -> None:
    obj = pcs("a", clique("x", 1, 2, pod={"nodeName": "n"}), clique("x", -1), terminationDelay="0s")
    assert set(fields(obj, on())) == {
        "spec.template.cliques[0].spec.minAvailable",
        "spec.template.cliques[0].spec.podSpec.nodeName",
        "spec.template.cliques[1]",
        "spec.template.cliques[1].spec.roleName",
        "spec.template.cliques[1].spec.replicas",
        "spec.template.cliques[1].spec.minAvailable",
        "spec.template.terminationDelay",
    }
