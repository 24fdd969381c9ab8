"""Which nodes suit, and how many pods each takes: one rule of kube-scheduler's default profile after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.place.short import HOST, Short

from kohort.place.claims import Claim, any_of, resource_claim, volume_claim
from kohort.place.fit import SignatureFit, suits

TAINT = {"key": "dedicated", "value": "infra", "effect": "NoSchedule"}


def _affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _rule(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ({}, {"a", "b"}),
        ({"nodeSelector": {"gpu": "a100"}}, {"b"}),
        ({"nodeSelector": {"gpu": "h100"}}, set()),
        (_affinity(_rule("gpu", "Exists")), {"b"}),
        (_affinity(_rule("gpu", "DoesNotExist")), {"a"}),
        (_affinity(_rule("gpu", "NotIn", "a100")), {"a"}),
        (_affinity(_rule("gpu", "In", "h100"), _rule("rank", "Gt", "3")), {"a"}),
        (_affinity({}), set()),
        (_affinity(), set()),
        (_affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}), {"b"}),
        ({"tolerations": [{"key": "dedicated", "operator": "Exists"}]}, {"a", "b", "t"}),
        ({"nodeName": "b"}, {"b"}),
        ({"nodeName": "nowhere"}, set()),
    ],
)
def test_nodes_that_suit(spec: dict[str, Any], nodes: set[str]) -> None:
    short = Short()
    short.node("a", rank="5")
    short.node("b", gpu="a100", rank="2")
    short.node("t", taints=[TAINT])
    eq_class = short.pod("p", **spec).eq_class
    fit, _ = short.engine.evaluate(eq_class.signature)
    assert {short.state.node(int(row)).name for row in np.flatnonzero(fit.suits)} == nodes


def test_a_cordoned_node_takes_only_who_tolerates_it() -> None:
    short = Short()
    short.state.set_node(
        {"metadata": {"name": "n"}, "spec": {"unschedulable": True}, "status": {"allocatable": {"cpu": 4, "pods": 9}}}
    )
    assert short.place(short.pod("p")) == {}
    everything = [{"operator": "Exists"}]
    assert short.place(short.pod("p", tolerations=everything)) == {"p": "n"}


def test_a_merely_disliked_node_is_the_last_choice() -> None:
    short = Short()
    short.node("a", taints=[{**TAINT, "effect": "PreferNoSchedule"}])
    short.node("b")
    short.run("busy", "b", 2)
    assert short.place(short.pod("p")) == {"p": "b"}


def test_a_resource_that_no_node_ever_named() -> None:
    short = Short(n1=4)
    pod = short.pod("p", asks={"example.com/never-seen": "1"})
    assert short.place(pod) == {}
    short.node("n2", more={"example.com/never-seen": "2"})
    assert short.place(pod) == {"p": "n2"}


def test_pods_per_node_are_a_resource() -> None:
    short = Short()
    short.node("n", 100, more={"pods": "2"})
    assert short.place(*(short.pod(f"p{n}", 0) for n in range(2)))
    assert not short.place(*(short.pod(f"p{n}", 0) for n in range(3)))


# ---- claims


def test_f13_one_pod_at_a_time_for_a_read_write_once_pod_claim() -> None:
    short = Short(n1=8)
    short.state.claims.put("default/c1", Claim(once=True))
    short.state.claims.put("default/c2", Claim(once=True))
    one, two = (short.pod(f"p{n}", volumes=[_volume("c1")]) for n in range(2))
    assert short.place(one, two) == {}
    assert len(short.place(one, short.pod("p2", volumes=[_volume("c2")]))) == 2
    short.run("holder", "n1", volumes=[_volume("c1")])
    assert short.place(short.pod("p0", volumes=[_volume("c1")])) == {}
    short.state.remove_pod("holder")
    assert short.place(short.pod("p0", volumes=[_volume("c1")])) == {"p0": "n1"}


def test_a_claim_nobody_knows_keeps_its_pods_waiting() -> None:
    short = Short(n1=4)
    pod = short.pod("p", volumes=[_volume("later")])
    assert short.place(pod) == {}
    short.state.claims.put("default/later", Claim())
    assert short.place(pod) == {"p": "n1"}


def test_an_ephemeral_claim_is_called_after_pod_and_volume() -> None:
    short = Short(n1=4)
    short.state.claims.put("default/p-scratch", Claim())
    assert short.place(short.pod("p", volumes=[{"name": "scratch", "ephemeral": {}}])) == {"p": "n1"}


def test_claims_that_say_nothing_do_not_tell_shapes_apart() -> None:
    short = Short(n1=4)
    for name in ("c1", "c2"):
        short.state.claims.put(f"default/{name}", Claim())
    one, two = (short.pod(f"p{n}", volumes=[_volume(f"c{n + 1}")]) for n in range(2))
    assert one.eq_class is two.eq_class


def _volume(claim: str) -> dict[str, Any]:
    return {"name": "v", "persistentVolumeClaim": {"claimName": claim}}


PVC: dict[str, Any] = {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "v"}}
UNBOUND: dict[str, Any] = {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("claim", "nodes"),
    [
        (volume_claim(PVC, {"metadata": {}, "spec": {}}), {"a", "b", "plain"}),
        (volume_claim(PVC, None), set()),
        (
            volume_claim(
                PVC,
                {
                    "metadata": {},
                    "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [_rule(HOST, "In", "b")]}}},
                },
            ),
            {"b"},
        ),
        # A node without any zone label may take a volume of any zone.
        (volume_claim(PVC, {"metadata": {"labels": {ZONE: "z1__z3"}}, "spec": {}}), {"a", "plain"}),
        (volume_claim(UNBOUND), set()),
        (volume_claim(UNBOUND, None, {"volumeBindingMode": "Immediate"}), set()),
        (volume_claim(UNBOUND, None, {"volumeBindingMode": "WaitForFirstConsumer"}), {"a", "b", "plain"}),
        (
            volume_claim(
                UNBOUND,
                None,
                {
                    "volumeBindingMode": "WaitForFirstConsumer",
                    "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["z2"]}]}],
                },
            ),
            {"b"},
        ),
        (volume_claim({**PVC, "metadata": {"name": "c", "deletionTimestamp": "now"}}, {"metadata": {}}), set()),
        (resource_claim({"status": {}}), set()),
        (resource_claim({"status": {"allocation": {}}}), {"a", "b", "plain"}),
        (
            resource_claim(
                {"status": {"allocation": {"nodeSelector": {"nodeSelectorTerms": [_rule(HOST, "In", "a")]}}}}
            ),
            {"a"},
        ),
    ],
)
def test_where_claims_can_be_used(claim: Claim, nodes: set[str]) -> None:
    short = Short()
    short.node("a", **dict[str, Any]({ZONE: "z1"}))
    short.node("b", **dict[str, Any]({ZONE: "z2"}))
    short.node("plain")
    short.state.claims.put("default/c", claim)
    pod = short.pod("p", volumes=[_volume("c")])
    fit, _ = short.engine.evaluate(pod.eq_class.signature)
    assert {short.state.node(int(row)).name for row in np.flatnonzero(fit.suits)} == nodes


def test_a_claim_shared_by_a_group_follows_its_allocation() -> None:
    short = Short(n1=4, n2=4)
    obj = short.obj("p")
    short.state.claims.put("claim/default/shared", resource_claim({}))
    nowhere = short.state.equivalence_class(obj, claims=["claim/default/shared"])
    assert short.engine.assume(nowhere, None, 1) == []
    short.state.claims.put("claim/default/shared", resource_claim({"status": {"allocation": {}}}))
    free = short.state.equivalence_class(obj, claims=["claim/default/shared"])
    assert free.signature.claims == ()
    selector = {"nodeSelectorTerms": [_rule(HOST, "In", "n2")]}
    allocated = resource_claim({"status": {"allocation": {"nodeSelector": selector}}})
    short.state.claims.put("claim/default/shared", allocated)
    bound = short.state.equivalence_class(obj, claims=["claim/default/shared"])
    assert short.engine.assume(bound, None, 1) == [short.state.row("n2")]


def test_claims_that_say_the_same_do_not_tell_shapes_apart() -> None:
    short = Short(n1=4, n2=4)
    terms = [_rule(HOST, "In", "n2")]
    for number in range(3):
        short.state.claims.put(f"default/c{number}", Claim(terms=terms))
    eq_classes = {short.pod(f"p{number}", volumes=[_volume(f"c{number}")]).eq_class for number in range(3)}
    (eq_class,) = eq_classes
    assert short.engine.assume(eq_class, None, 2) == [short.state.row("n2")] * 2


def test_terms_that_name_values_of_one_label_are_looked_up_at_once() -> None:
    other = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n9"]}]}
    found = any_of([[_rule(HOST, "In", "n1")], [_rule(HOST, "In", "n2"), other], []])
    assert found == [{"matchExpressions": [{"key": HOST, "operator": "In", "values": {"n1", "n2"}}]}, other]
    assert any_of([[other], None]) is None


# ---- vectors and rows agree

KEYS, VALUES = st.sampled_from(["a", "b", "c"]), st.sampled_from(["1", "2", "30", ""])
LABELS = st.dictionaries(KEYS, VALUES)
RULES = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    KEYS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    st.lists(VALUES, min_size=1, max_size=2),
)
TAINTS = st.lists(
    st.builds(
        lambda key, value, effect: {"key": key, "value": value, "effect": effect},
        KEYS,
        VALUES,
        st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
    ),
    max_size=2,
)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 14), st.integers(1, 3)), max_size=40))
def test_the_total_follows_the_room_of_every_row(placed: list[tuple[int, int]]) -> None:
    short = Short()
    for number in range(15):
        short.node(f"n{number}", 4 + number % 3)
    eq_class = short.pod("p").eq_class
    fit = short.engine.fit(eq_class.signature)
    for row, count in placed:
        short.engine.assume_many(eq_class, np.array([row]), np.array([count]))
        if count == 2:  # not after every change: some rows one by one, many at once
            fit.refresh()
    assert short.engine.total(eq_class) == short.engine.room(eq_class).sum()
    short.engine.undo(0)
    assert short.engine.total(eq_class) == sum(4 + number % 3 for number in range(15))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(LABELS, TAINTS), min_size=1, max_size=6),
    LABELS,
    st.none() | st.lists(st.builds(lambda rules: {"matchExpressions": rules}, st.lists(RULES, max_size=2)), max_size=2),
    st.lists(st.sampled_from([{"operator": "Exists"}, {"key": "a", "operator": "Exists"}, {"key": "b", "value": "1"}])),
)
def test_all_rows_at_once_is_each_row_by_itself(nodes: Any, selector: Any, terms: Any, tolerations: Any) -> None:
    short = Short()
    for number, (labels, taints) in enumerate(nodes):
        short.node(f"n{number}", taints=taints, **labels)
    spec: dict[str, Any] = {"nodeSelector": selector, "tolerations": tolerations}
    if terms is not None:
        spec |= _affinity(*terms)
    signature = short.pod("p", **spec).eq_class.signature
    fit = SignatureFit(short.state, signature)
    fit.refresh()
    for row, node_info in enumerate(short.state.node_infos):
        assert bool(fit.suits[row]) == (node_info is not None and suits(short.state, signature, node_info))
