"""Rules between pods: affinity, anti-affinity, spread, host ports; also between pods of one gang."""

from __future__ import annotations

from typing import Any

import pytest
from tests.place.short import HOST, Short, likes, pod_affinity, pod_anti_affinity, spread

from kohort.place.profile import Profile, default_constraints

RED, BLUE = {"colour": "red"}, {"colour": "blue"}


def _rack(name: str, rack: str | None, short: Short, cpu: float = 4) -> None:
    short.node(name, cpu, **({"rack": rack} if rack else {}))


# ---- anti-affinity


def test_f12_members_keep_apart() -> None:
    short = Short(n1=4, n2=4)
    pods = [short.pod(f"p{n}", labels=RED, **pod_anti_affinity(RED)) for n in range(2)]
    assert sorted(short.place(*pods).values()) == ["n1", "n2"]
    short.state.remove_node("n2")
    assert short.place(*pods) == {}


def test_a_rule_that_comes_later_speaks_of_a_pod_seen_before() -> None:
    """The class of the plain pod is made before anybody keeps away from it."""
    short = Short(n1=8)
    plain = short.pod("plain", labels=RED)
    shy = short.pod("shy", **pod_anti_affinity(RED))
    assert short.place(plain, shy) == {}
    assert short.place(shy, plain) == {}
    short.node("n2", 8)
    assert len(set(short.place(plain, shy).values())) == 2


def test_a_pod_on_a_node_is_counted_once_for_a_term_it_brings_itself() -> None:
    short = Short(n1=8, n2=8)
    short.run("first", "n1", labels=RED, **pod_anti_affinity(RED))
    (counter,) = short.state.interpod.counters()
    assert (counter.total, counter.anti_affinity_total) == (1, 1)
    short.state.remove_pod("first")
    assert (counter.total, counter.anti_affinity_total) == (0, 0)


def test_anti_affinity_works_against_newcomers_too() -> None:
    short = Short(n1=8, n2=8)
    short.run("shy", "n1", **pod_anti_affinity(RED))
    assert short.place(short.pod("p", labels=RED)) == {"p": "n2"}


def test_a_node_without_the_label_is_in_no_domain() -> None:
    short = Short()
    _rack("a", "r1", short)
    _rack("b", None, short)
    pods = [short.pod(f"p{n}", labels=RED, **pod_anti_affinity(RED, "rack")) for n in range(3)]
    placed = short.place(*pods)
    assert sorted(placed.values()) == ["a", "b", "b"]


def test_other_namespaces_are_other_pods_unless_named() -> None:
    short = Short(n1=8)
    short.run("far", "n1", labels=RED, namespace="other")
    assert short.place(short.pod("p", **pod_anti_affinity(RED)))
    assert not short.place(short.pod("p", **pod_anti_affinity(RED, namespaces=["other"])))


def test_namespaces_are_selected_by_their_labels_now() -> None:
    short = Short(n1=8)
    short.run("far", "n1", labels=RED, namespace="other")
    rule = pod_anti_affinity(RED, namespaceSelector={"matchLabels": {"team": "x"}})
    assert short.place(short.pod("p", **rule))
    short.state.interpod.set_namespace("other", {"team": "x"})
    assert not short.place(short.pod("p", **rule))
    short.state.interpod.set_namespace("other", None)
    assert short.place(short.pod("p", **rule))


def test_labels_that_no_rule_looks_at_count_nothing_anew() -> None:
    short = Short(n1=8)
    short.run("far", "n1", labels=RED, namespace="other")
    interpod = short.state.interpod
    interpod.set_namespace("other", {"team": "x"})
    assert not short.place(short.pod("p", **pod_anti_affinity(RED, namespaceSelector={"matchLabels": {"team": "x"}})))
    counters = list(interpod.counters())
    interpod.set_namespace("other", {"team": "x", "cost": "much"})
    interpod.set_namespace("empty", {})
    assert all(one is other for one, other in zip(interpod.counters(), counters, strict=True))
    interpod.set_namespace("other", {"team": "y"})
    assert not any(one is other for one, other in zip(interpod.counters(), counters, strict=True))


def test_rules_of_pods_that_have_gone_are_forgotten() -> None:
    short = Short(n1=1000)
    for number in range(300):
        short.run(f"p{number}", "n1", labels=RED, **pod_anti_affinity({"app": f"a{number}"}))
    interpod = short.state.interpod
    assert len(list(interpod.counters())) == 300
    for number in range(1, 300):
        short.state.remove_pod(f"p{number}")
    assert short.engine.tidy() == 299
    assert len(list(interpod.counters())) == 1
    assert short.engine.tidy() == 0
    assert not short.place(short.pod("q", labels={"app": "a0"}))  # who is there still has its rule


def test_rules_of_pods_that_were_never_placed_are_forgotten_when_nobody_asks_any_more() -> None:
    short = Short(n1=8)
    for number in range(300):
        short.place(short.pod(f"p{number}", labels=RED, **pod_anti_affinity({"app": f"a{number}"})))
    interpod = short.state.interpod
    short.engine.tidy()  # they were asked for a moment ago
    assert len(list(interpod.counters())) > 200
    short.engine.tidy()
    assert list(interpod.counters()) == []


# ---- affinity


def test_the_first_of_its_kind_may_start_anywhere() -> None:
    short = Short()
    for name, rack in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        _rack(name, rack, short, 1)
    pods = [short.pod(f"p{n}", labels=RED, **pod_affinity((RED, "rack"))) for n in range(2)]
    placed = short.place(*pods)
    assert set(placed.values()) == {"a1", "a2"}


def test_who_wants_its_own_company_starts_where_all_find_room() -> None:
    short = Short()
    for name, rack, cpu in (("b1", "b", 3), ("a1", "a", 2), ("a2", "a", 2)):
        _rack(name, rack, short, cpu)
    pods = [short.pod(f"p{n}", labels=RED, **pod_affinity((RED, "rack"))) for n in range(4)]
    assert set(short.place(*pods).values()) == {"a1", "a2"}


def test_who_wants_company_it_is_not_itself_needs_it_there() -> None:
    short = Short(n1=4, n2=4)
    assert short.place(short.pod("p", **pod_affinity((RED, HOST)))) == {}
    short.run("red", "n2", labels=RED)
    assert short.place(short.pod("p", **pod_affinity((RED, HOST)))) == {"p": "n2"}


def test_all_terms_must_be_met_by_the_same_pod() -> None:
    """kube-scheduler counts a pod for required affinity only if it matches every term."""
    short = Short(n1=8)
    short.run("red", "n1", labels=RED)
    short.run("large", "n1", labels={"size": "large"})
    rule = pod_affinity((RED, HOST), ({"size": "large"}, HOST))
    assert short.place(short.pod("p", **rule)) == {}
    short.run("both", "n1", labels={**RED, "size": "large"})
    assert short.place(short.pod("p", **rule)) == {"p": "n1"}


def test_preferences_of_pods_on_nodes_count_for_newcomers() -> None:
    short = Short(n1=8, n2=8)
    short.run("friend", "n2", 1, **likes(RED, HOST, 100))
    short.run("balance", "n1", 2)
    assert short.place(short.pod("p", labels=RED)) == {"p": "n2"}
    short.state.remove_pod("friend")
    short.run("foe", "n2", 1, **likes(RED, HOST, 100, eq_class="podAntiAffinity"))
    assert short.place(short.pod("p", labels=RED)) == {"p": "n1"}


# ---- spread


def test_spread_is_even_within_the_skew() -> None:
    short = Short()
    _rack("a", "r1", short)
    _rack("b", "r2", short)
    pods = [short.pod(f"p{n}", labels=RED, **spread(RED, "rack")) for n in range(4)]
    placed = short.place(*pods)
    assert sorted(placed.values()) == ["a", "a", "b", "b"]


def test_pods_on_their_way_out_are_not_counted() -> None:
    short = Short()
    _rack("a", "r1", short)
    _rack("b", "r2", short, 0)
    short.run("going", "a", labels=RED, terminating=True)
    assert short.place(short.pod("p", labels=RED, **spread(RED, "rack"))) == {"p": "a"}
    short.run("staying", "a", labels=RED)
    assert short.place(short.pod("p", labels=RED, **spread(RED, "rack"))) == {}


def test_a_pod_that_begins_to_terminate_is_counted_no_more() -> None:
    short = Short()
    _rack("a", "r1", short)
    _rack("b", "r2", short, 0)
    pod = short.pod("p", labels=RED, **spread(RED, "rack"))
    short.run("one", "a", labels=RED)
    assert short.place(pod) == {}
    short.run("one", "a", labels=RED, terminating=True)
    assert short.place(pod) == {"p": "a"}
    short.state.remove_pod("one")
    assert all((counter.staying == 0).all() and counter.total == 0 for counter in short.state.interpod.counters())


def test_min_domains_keeps_the_least_at_zero() -> None:
    short = Short()
    _rack("a", "r1", short)
    two = [short.pod(f"p{n}", labels=RED, **spread(RED, "rack", minDomains=2)) for n in range(2)]
    assert short.place(*two) == {}
    assert short.place(two[0]) == {"p0": "a"}


@pytest.mark.parametrize(("policy", "placed"), [("Honor", {"p": "a"}), ("Ignore", {})])
def test_nodes_the_pod_does_not_select_are_no_domains(policy: str, placed: dict[str, str]) -> None:
    short = Short()
    short.node("a", rack="r1", pool="x")
    short.node("b", rack="r2")
    short.run("one", "a", labels=RED)
    rule = spread(RED, "rack", nodeAffinityPolicy=policy)
    assert short.place(short.pod("p", labels=RED, nodeSelector={"pool": "x"}, **rule)) == placed


def test_pods_on_nodes_that_do_not_count_are_not_counted() -> None:
    short = Short()
    short.node("a", rack="r1", pool="x")
    short.node("a2", rack="r1")
    short.node("b", 1, rack="r2", pool="x")
    short.run("elsewhere", "a2", labels=RED)
    short.run("full", "b")
    assert short.place(short.pod("p", labels=RED, nodeSelector={"pool": "x"}, **spread(RED, "rack"))) == {"p": "a"}


def test_match_label_keys_count_only_this_revision() -> None:
    short = Short()
    _rack("a", "r1", short)
    _rack("b", "r2", short, 0)
    short.run("old", "a", labels={**RED, "hash": "1"})
    rule = spread(RED, "rack", matchLabelKeys=["hash"])
    assert short.place(short.pod("p", labels={**RED, "hash": "2"}, **rule)) == {"p": "a"}
    assert short.place(short.pod("p", labels={**RED, "hash": "1"}, **rule)) == {}


def test_preferred_spread_chooses_the_emptier_domain() -> None:
    short = Short()
    _rack("a", "r1", short)
    _rack("b", "r2", short)
    short.run("load", "b", 2)
    short.run("red", "a", 0, labels=RED)
    assert short.place(short.pod("p", labels=RED, **spread(RED, "rack", hard=False))) == {"p": "b"}


def test_cluster_defaults_apply_to_pods_without_constraints() -> None:
    rule = {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    profile = Profile(default_spread=(rule,))
    short = Short(profile)
    _rack("a", "r1", short)
    _rack("b", "r2", short)
    short.run("load", "b", 2)
    short.run("red", "a", 0, labels=RED)
    obj = short.obj("p", labels=RED)
    defaults = default_constraints(profile, {"matchLabels": RED})
    eq_class = short.state.equivalence_class(obj, defaults=defaults)
    assert short.engine.assume(eq_class, None, 1) == [short.state.row("b")]
    own = short.state.equivalence_class({**obj, "spec": {**obj["spec"], **spread(BLUE, "rack")}}, defaults=defaults)
    mine, theirs = own.signature.spread_constraints, eq_class.signature.spread_constraints
    assert [one.term.text for one in mine] != [one.term.text for one in theirs]


# ---- host ports


def _port(number: int, ip: str = "", protocol: str = "TCP") -> dict[str, Any]:
    return {"containers": [{"name": "c", "ports": [{"hostPort": number, "hostIP": ip, "protocol": protocol}]}]}


@pytest.mark.parametrize(
    ("held", "wanted", "fits"),
    [
        (_port(80), _port(80), False),
        (_port(80), _port(81), True),
        (_port(80), _port(80, protocol="UDP"), True),
        (_port(80, "10.0.0.1"), _port(80, "10.0.0.2"), True),
        (_port(80, "10.0.0.1"), _port(80), False),
    ],
)
def test_host_ports(held: dict[str, Any], wanted: dict[str, Any], fits: bool) -> None:
    short = Short(n1=4)
    short.run("held", "n1", **held)
    assert bool(short.place(short.pod("p", **wanted))) is fits
    short.state.remove_pod("held")
    assert short.place(short.pod("p", **wanted))
    assert not any(short.state.ports.values())


def test_a_sidecar_holds_its_host_port_too() -> None:
    short = Short(n1=4)
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}
    short.run("held", "n1", initContainers=[sidecar])
    assert not short.place(short.pod("p", **_port(80)))


def test_members_that_want_the_same_port_go_to_different_nodes() -> None:
    short = Short(n1=4, n2=4)
    assert len(set(short.place(*(short.pod(f"p{n}", **_port(80)) for n in range(2))).values())) == 2
    assert not short.place(*(short.pod(f"p{n}", **_port(80)) for n in range(3)))


# ---- counters are forgotten with the shapes that need them


def test_terms_that_nobody_has_any_more_are_swept() -> None:
    short = Short(n1=400)
    for number in range(1000):
        short.run("p", "n1", labels={"job": f"j{number}"}, **pod_anti_affinity({"job": f"j{number}"}))
    assert len(list(short.state.interpod.counters())) < 600
    assert len(short.state.signatures) < 600
