"""Rules of Grove's kinds that no scenario and no recording has: claims, durations, incomplete objects, other kinds."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinds.grove.api.cases import FABRIC, clique, defaulted, group, on, pcs

from kohort.api import admit
from kohort.api.options import known_option
from kohort.api.registry import find, kinds
from kohort.apimachinery import duration
from kohort.kinds.grove.api import OPTIONS, mnnvl

TEMPLATE = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}}}


def fields(obj: dict[str, Any]) -> list[str]:
    return [fault.field for fault in admit.check(obj, on())]


@pytest.mark.parametrize(
    ("text", "stored", "length"),
    [
        ("4h", "4h0m0s", 4 * 3600 * 10**9),
        ("90m", "1h30m0s", 5400 * 10**9),
        ("90s", "1m30s", 90 * 10**9),
        ("1.5s", "1.5s", 1_500_000_000),
        ("1500ms", "1.5s", 1_500_000_000),
        ("1ms", "1ms", 1_000_000),
        ("1.5us", "1.5µs", 1_500),
        ("7ns", "7ns", 7),
        ("-1m", "-1m0s", -60 * 10**9),
        ("0", "0s", 0),
        (".5h", "30m0s", 1800 * 10**9),
    ],
)
def test_durations_as_go_prints_them(text: str, stored: str, length: int) -> None:
    assert duration.canonical(text) == stored
    assert duration.nanoseconds(text) == length


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        ({"name": "t", "scope": "PerReplica"}, []),
        ({"name": "t", "scope": "PerReplica", "namespace": "n"}, ["resourceSharing[0].namespace"]),
        ({"name": "elsewhere", "scope": "AllReplicas", "namespace": "n"}, []),
        ({"name": "", "scope": "AllReplicas"}, ["resourceSharing[0].name"]),
        (
            {"name": "t", "scope": "AllReplicas", "filter": {"childCliqueNames": ["x", "z"]}},
            ["resourceSharing[0].filter.childCliqueNames[1]"],
        ),
        (
            {"name": "t", "scope": "AllReplicas", "filter": {"childScalingGroupNames": ["h"]}},
            ["resourceSharing[0].filter.childScalingGroupNames[0]"],
        ),
    ],
)
def test_sharing(sharing: dict[str, Any], expected: list[str]) -> None:
    templates = [{"name": "t", "templateSpec": TEMPLATE}]
    obj = pcs("a", clique("x"), groups=[group("g", ["x"])], resourceClaimTemplates=templates, resourceSharing=[sharing])
    assert fields(obj) == [f"spec.template.{path}" for path in expected]


def test_sharing_twice_and_in_a_scaling_group() -> None:
    twice = [{"name": "t", "scope": "AllReplicas"}] * 2
    assert fields(pcs("a", clique("x"), resourceSharing=twice)) == ["spec.template.resourceSharing[1].name"]
    obj = pcs("a", clique("x"), clique("y"), groups=[group("g", ["x"])])
    obj["spec"]["template"]["podCliqueScalingGroups"][0]["resourceSharing"] = [
        {"name": "t", "scope": "PerReplica", "filter": {"childCliqueNames": ["y"]}}
    ]
    path = "spec.template.podCliqueScalingGroups[0].resourceSharing[0].filter.childCliqueNames[0]"
    assert fields(obj) == [path]


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"template": None},
        {"template": {}},
        {"template": {"cliques": [{}]}},
        {"template": {"cliques": [{"name": "x"}]}},
        {"template": {"cliques": [{"name": "x", "spec": {}}], "podCliqueScalingGroups": [{}]}},
        {"template": {"cliques": [], "topologyConstraint": {}}},
    ],
)
def test_incomplete_objects_are_refused_not_tripped_over(spec: Any) -> None:
    obj = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "a"}, "spec": spec}
    assert admit.check(obj, on())


def test_repeated_keys_in_lists_of_a_pod() -> None:
    containers = [
        {"name": "m", "image": "i", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]},
        {"name": "m", "image": "i", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]},
    ]
    path = "spec.template.cliques[0].spec.podSpec.containers"
    assert fields(pcs("a", clique("x", pod={"containers": containers}))) == [f"{path}[1]", f"{path}[0].ports[1]"]


def test_a_binding_of_a_scheduler_with_topology_objects() -> None:
    obj = deepcopy(FABRIC)
    obj["spec"]["schedulerTopologyBindings"] = [{"schedulerName": "kai-scheduler", "topologyReference": "x"}]
    assert not admit.create(obj, on()).accepted
    assert admit.create(obj, on("1.37", "GroveKai")).accepted


def test_kinds_and_their_names() -> None:
    found = {kind.kind: (kind.plural, kind.short_names, kind.namespaced) for kind in kinds("grove.io")}
    assert found == {
        "PodCliqueSet": ("podcliquesets", ("pcs",), True),
        "PodClique": ("podcliques", ("pclq",), True),
        "PodCliqueScalingGroup": ("podcliquescalinggroups", ("pcsg",), True),
        "ClusterTopologyBinding": ("clustertopologybindings", ("ct",), False),
    }
    assert [(kind.kind, kind.short_names) for kind in kinds("scheduler.grove.io")] == [("PodGang", ("pg",))]


def test_scale_subresources() -> None:
    selectors = {kind.kind: kind.scale.selector for kind in kinds("grove.io") if kind.scale}
    assert selectors == {
        "PodCliqueSet": ".status.hpaPodSelector",
        "PodClique": ".status.hpaPodSelector",
        "PodCliqueScalingGroup": ".status.selector",
    }


def test_options_are_known_to_the_command_line() -> None:
    assert all(known_option(name) for name in OPTIONS)


# ---- properties

CLIQUES = st.builds(
    lambda name, replicas, minimum, scaled: (name, replicas, minimum, scaled),
    st.sampled_from(["r", "lead", "work", "x-y", "Z", "a.b"]),
    st.integers(-1, 4),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 6),
)


@st.composite
def sets(draw: st.DrawFn) -> dict[str, Any]:
    """Any, right or wrong."""
    cliques = []
    for name, replicas, minimum, scaled in draw(st.lists(CLIQUES, max_size=4)):
        more = {"autoScalingConfig": {"maxReplicas": scaled}} if scaled is not None else {}
        cliques.append(clique(name, replicas, minimum, **more))
    names = st.sampled_from(["r", "lead", "work", "nobody"])
    groups = [
        group(f"g{index}", draw(st.lists(names, max_size=3)), draw(st.integers(0, 3)), draw(st.integers(0, 3)))
        for index in range(draw(st.integers(0, 2)))
    ]
    obj = pcs("a", *cliques, groups=groups, pack=draw(st.sampled_from([None, "rack", "Row"])))
    if draw(st.booleans()):
        obj["spec"]["template"]["terminationDelay"] = draw(st.sampled_from(["0s", "90m", "-1h", "1.5h"]))
    return obj


@settings(max_examples=50, deadline=None)
@given(sets())
def test_defaulting_twice_is_defaulting_once(obj: dict[str, Any]) -> None:
    kind = find("grove.io/v1alpha1", "PodCliqueSet")
    assert kind is not None
    once = defaulted(obj)
    twice = deepcopy(once)
    kind.default(twice, on())
    assert twice == once
    assert kind.validate(twice, on()) == kind.validate(once, on())


@settings(max_examples=50, deadline=None)
@given(sets())
def test_a_set_may_be_written_back_unchanged(obj: dict[str, Any]) -> None:
    kind = find("grove.io/v1alpha1", "PodCliqueSet")
    assert kind is not None
    stored = defaulted(obj)
    if not kind.validate(stored, on()):
        assert kind.validate_update(deepcopy(stored), stored, on()) == []


MNNVL = "grove.io/mnnvl-group"


@pytest.mark.parametrize(("value", "refused"), [("none", 0), ("workers", 1), ("", 2), ("Not_A_Label", 2)])
@pytest.mark.parametrize("place", ["metadata", "cliques", "podCliqueScalingGroups"])
def test_a_multi_node_nvlink_group_is_refused_where_nobody_makes_compute_domains(
    value: str, refused: int, place: str
) -> None:
    body = deepcopy(plain_set())
    owner = body["metadata"] if place == "metadata" else body["spec"]["template"][place][0]
    owner["annotations"] = {MNNVL: value}
    found = [one.field for one in admit.check(body, on())]
    assert len(found) == refused
    assert all(one.endswith(f"annotations.{MNNVL}") for one in found)


def test_a_multi_node_nvlink_group_stays_as_it_is() -> None:
    old, new = plain_set(), plain_set()
    new["metadata"]["annotations"] = {MNNVL: "none"}
    assert [one.field for one in mnnvl.check_update(new, old)] == [f"metadata.annotations.{MNNVL}"]
    assert not list(mnnvl.check_update(new, new))


def plain_set() -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "image": "i"}]}
    cliques = [{"name": "a", "spec": {"roleName": "a", "replicas": 1, "podSpec": pod}}]
    groups = [{"name": "g", "cliqueNames": ["a"], "replicas": 1, "minAvailable": 1}]
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "x"},
        "spec": {"replicas": 1, "template": {"cliques": cliques, "podCliqueScalingGroups": groups}},
    }
