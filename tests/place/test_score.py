"""Scores: whole numbers, the same for one row as for many, and as kube-scheduler means them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.place.short import Short

from kohort.place.demand import Leaf
from kohort.place.engine import Engine
from kohort.place.profile import Profile, ProfileError, read_profile
from kohort.place.state import AssignedPod, ClusterState

PROFILES = st.builds(
    Profile,
    strategy=st.sampled_from(["least", "most"]),
    resources=st.sampled_from(
        [("cpu",), ("cpu", "memory"), {"cpu": 3, "memory": 1, "gpu": 5}, ("cpu", "memory", "gpu", "absent")]
    ),
    allocated=st.integers(0, 3),
    balanced=st.integers(0, 3),
)
OFFERS = st.fixed_dictionaries(
    {"cpu": st.integers(0, 9000), "memory": st.integers(0, 1 << 42), "gpu": st.integers(0, 8), "pods": st.just(20)}
)
ASKS = st.fixed_dictionaries({"cpu": st.integers(0, 3000), "memory": st.integers(0, 1 << 34), "gpu": st.integers(0, 2)})


def _cluster(nodes: list[dict[str, int]], running: list[tuple[int, dict[str, int]]], profile: Profile) -> Engine:
    state = ClusterState()
    for number, offers in enumerate(nodes):
        state.put_node(f"n{number}", offers, {})
    for number, (node, asks) in enumerate(running):
        key = AssignedPod(f"u{number}", "default", f"u{number}", {}, state.signatures.of_requests(asks))
        state.put_pod(key, f"n{node % len(nodes)}")
    return Engine(state, profile)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(OFFERS, min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), ASKS), max_size=4),
    ASKS,
    PROFILES,
)
def test_a_row_by_itself_scores_as_among_others(nodes: Any, running: Any, asks: Any, profile: Profile) -> None:
    engine = _cluster(nodes, running, profile)
    _, score = engine.evaluate(engine.state.signatures.of_requests(asks))
    rows = np.arange(engine.state.rows)
    assert score.levels(rows, 1)[:, 0].tolist() == [score.of_row(row) for row in rows.tolist()]
    assert score.load.tolist() == [score.of_row(row) for row in rows.tolist()]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(OFFERS, min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), ASKS), max_size=4),
    ASKS,
    PROFILES,
    st.integers(9, 40),
)
def test_many_at_once_is_one_after_the_other(nodes: Any, running: Any, asks: Any, profile: Profile, count: int) -> None:
    _same_at_once(_cluster(nodes, running, profile), asks, count)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(OFFERS, st.integers(1, 30)), min_size=2, max_size=4),
    st.lists(st.tuples(st.integers(0, 100), ASKS), max_size=20),
    ASKS,
    PROFILES,
    st.integers(9, 14),
)
def test_so_it_is_among_many_more_nodes(sorts: Any, running: Any, asks: Any, profile: Profile, count: int) -> None:
    """Most of them cannot be meant, and are not looked at."""
    nodes = [offers for offers, number in sorts for _ in range(number)]
    _same_at_once(_cluster(nodes, running, profile), asks, count)


def _same_at_once(engine: Engine, asks: dict[str, int], count: int) -> None:
    eq_class = engine.state.interpod.class_of(engine.state.signatures.of_requests(asks), "default", {})
    at_once = engine.assume(eq_class, None, count)
    engine.undo(0)
    one_by_one: list[int] = []
    while len(one_by_one) < count and (taken := engine.assume(eq_class, None, 1)):
        one_by_one += taken
    assert at_once == one_by_one


def test_least_allocated_spreads_most_allocated_packs() -> None:
    for strategy, nodes in (("least", {"n1", "n2"}), ("most", {"n1"})):
        short = Short(Profile(strategy=strategy, balanced=0), n1=8, n2=8)  # type: ignore[arg-type]
        assert set(short.place(*(short.pod(f"p{n}") for n in range(2))).values()) == nodes


def test_devices_can_be_packed() -> None:
    short = Short(Profile(strategy="most", resources={"gpu": 1}, balanced=0))
    short.node("a", more={"gpu": "8"})
    short.node("b", more={"gpu": "8"})
    short.run("one", "b", asks={"gpu": "2"})
    assert short.place(short.pod("p", asks={"gpu": "2"})) == {"p": "b"}


def test_balance_prefers_the_node_whose_shares_meet() -> None:
    short = Short(Profile(allocated=0))
    short.node("a", 10, more={"memory": "10Gi"})
    short.node("b", 10, more={"memory": "10Gi"})
    short.run("cpu", "a", 6)
    short.run("memory", "b", 0, asks={"memory": "6Gi"})
    assert short.place(short.pod("p", 3)) == {"p": "b"}
    assert short.place(short.pod("p", 0, asks={"memory": "3Gi"})) == {"p": "a"}


def test_preferred_node_affinity() -> None:
    short = Short(n1=8)
    short.node("n2", 8, disk="fast")
    short.run("busy", "n2", 3)
    preference = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
    soft = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": preference}]}
    assert short.place(short.pod("p", affinity={"nodeAffinity": soft})) == {"p": "n2"}


def test_ties_go_to_the_first_name() -> None:
    short = Short(b=4, a=4)
    assert short.place(short.pod("p")) == {"p": "a"}


def test_a_nominated_node_is_tried_first() -> None:
    short = Short(n1=4, n2=4)
    assert short.place(short.pod("p", nominated="n2")) == {"p": "n2"}
    short.run("full", "n2", 4)
    assert short.place(short.pod("p", nominated="n2")) == {"p": "n1"}


def test_whoever_has_a_nominated_node_that_is_free_is_among_the_first() -> None:
    """Preemption is half done: where the second was to go is not free yet. It does not take the place of the third."""
    short = Short(n1=1, n2=1, n3=1)
    short.run("leaving", "n2", 1)
    pods = [short.pod(f"p{number}", nominated=f"n{number}") for number in (1, 2, 3)]
    assert short.place(*pods, minimum=2) == {"p1": "n1", "p3": "n3"}


def test_t20_a_nomination_outside_the_domain_is_passed_over() -> None:
    short = Short()
    short.node("a1", 1, rack="A")
    short.node("b1", 2, rack="B")
    pods = [short.pod("p0", nominated="a1"), short.pod("p1")]
    assert set(short.place(*pods, topology="rack").values()) == {"b1"}


# ---- profiles


def test_a_profile_from_a_file() -> None:
    profile = read_profile(
        {
            "strategy": "most",
            "resources": {"cpu": 1, "nvidia.com/gpu": 10},
            "weights": {"balanced": 0, "spread": 5},
            "defaultSpread": [{"topologyKey": "rack", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"}],
        }
    )
    assert profile.strategy == "most"
    assert profile.weights == {"cpu": 1, "nvidia.com/gpu": 10}
    assert (profile.balanced, profile.spread, profile.allocated) == (0, 5, 1)
    assert read_profile({}) == Profile()


def test_all_mistakes_of_a_profile_at_once() -> None:
    with pytest.raises(ProfileError) as caught:
        read_profile(
            {
                "strategy": "fast",
                "resources": {"cpu": 0},
                "weights": {"balanced": "much", "luck": 1},
                "defaultSpread": [{"maxSkew": 1, "whenUnsatisfiable": "Never", "labelSelector": {}}],
                "color": "red",
            }
        )
    fields = [mistake.split(":")[0] for mistake in caught.value.mistakes]
    assert fields == [
        "strategy",
        "resources.cpu",
        "weights.balanced",
        "weights.luck",
        "defaultSpread[0].topologyKey",
        "defaultSpread[0].whenUnsatisfiable",
        "defaultSpread[0].labelSelector",
        "color",
    ]
    assert "'fast'" in str(caught.value)
    assert "least, most" in str(caught.value)
    mistakes: tuple[Any, ...] = (None, [], "most")
    for wrong in mistakes:
        with pytest.raises(ProfileError):
            read_profile(wrong)


def test_leaf_counts_its_classes() -> None:
    short = Short(n1=4)
    leaf = Leaf("g", [short.pod("a"), short.pod("b"), short.pod("c", 2)])
    assert sorted(leaf.eq_classes.values()) == [1, 2]
