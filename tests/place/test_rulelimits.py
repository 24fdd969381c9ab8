"""What pods name is bounded: by pod, by namespace, and in what the engine keeps of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.place.short import HOST, Short, pod_anti_affinity, spread

from kohort.place.rulelimits import (
    MOST_CLAIMS,
    MOST_PORTS,
    MOST_REQUIREMENTS,
    MOST_TERMS,
    MOST_TERMS_OF_NAMESPACE,
    MOST_UNKNOWN_RESOURCES,
    MOST_UNKNOWN_RESOURCES_OF_NAMESPACE,
)
from kohort.place.signatures import Term

_HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def apart(count: int, first: int = 0) -> dict[str, Any]:
    """Anti-affinity to so many different sets of pods."""
    terms = [
        {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": f"a{number}"}}}
        for number in range(first, first + count)
    ]
    return {"affinity": {"podAntiAffinity": {_HARD: terms}}}


def test_different_rules_between_pods_are_limited() -> None:
    short = Short(a=4)
    assert not short.pod("p", **apart(MOST_TERMS)).eq_class.excess
    said = short.pod("q", **apart(MOST_TERMS + 1)).eq_class.excess
    assert said == f"it has 101 different rules between pods (affinity, spread); at most {MOST_TERMS} are accepted"


def test_a_rule_that_is_said_often_counts_once() -> None:
    short = Short(a=4, b=4)
    terms = pod_anti_affinity({"app": "x"})["affinity"]["podAntiAffinity"][_HARD] * 1000
    rules: dict[str, Any] = {"affinity": {"podAntiAffinity": {_HARD: terms}}}
    pods = [short.pod(name, labels={"app": "x"}, **rules) for name in "pq"]
    assert len(pods[0].eq_class.pod_anti_affinity) == 1
    assert sorted(short.place(*pods).values()) == ["a", "b"]


def test_wishes_that_are_said_often_are_added() -> None:
    short = Short(a=4)
    wish = {"weight": 10, "podAffinityTerm": {"topologyKey": HOST, "labelSelector": {}}}
    soft = {"preferredDuringSchedulingIgnoredDuringExecution": [wish] * 3}
    [(weight, _)] = short.pod("p", affinity={"podAffinity": soft}).eq_class.preferred_pod_affinity
    assert weight == 30


def test_values_claims_and_ports_are_limited() -> None:
    short = Short(a=4)
    rule = {"key": HOST, "operator": "NotIn", "values": [f"v{number}" for number in range(MOST_REQUIREMENTS)]}
    nodes = {"nodeAffinity": {_HARD: {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}}
    assert "5001 requirements" in short.pod("p", affinity=nodes).eq_class.excess
    ports = [{"containerPort": 1 + number} for number in range(MOST_PORTS + 1)]
    containers = [{"name": "c", "ports": ports}]
    assert "host ports" in short.pod("q", containers=containers, hostNetwork=True).eq_class.excess
    volumes = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(MOST_CLAIMS + 1)]
    assert "201 claims" in short.pod("r", volumes=volumes).eq_class.excess


def test_a_namespace_has_a_share_and_others_theirs() -> None:
    short = Short(a=100)
    held = [
        short.pod(f"p{n}", **apart(MOST_TERMS, n * MOST_TERMS)) for n in range(MOST_TERMS_OF_NAMESPACE // MOST_TERMS)
    ]
    assert not any(pod.eq_class.excess for pod in held)
    assert "namespace default" in short.pod("q", **apart(1, 10**6)).eq_class.excess
    assert not short.pod("r", namespace="other", **apart(1, 10**6)).eq_class.excess
    assert not short.pod("s", **apart(1)).eq_class.excess, "a rule that is counted already"
    held.clear()
    short.engine = type(short.engine)(short.state)  # nothing is kept warm
    assert not short.pod("t", **apart(1, 10**6)).eq_class.excess, "theirs went with them"


def test_rules_above_the_share_are_not_looked_at_while_their_pod_runs() -> None:
    short = Short(a=100, b=100)
    held = [
        short.pod(f"p{n}", **apart(MOST_TERMS, n * MOST_TERMS)) for n in range(MOST_TERMS_OF_NAMESPACE // MOST_TERMS)
    ]
    short.run("loud", "a", labels={"app": "x"}, **apart(1, 10**6))
    held.clear()
    short.engine = type(short.engine)(short.state)
    term = apart(1, 10**6)
    near = short.pod("q", labels={"app": f"a{10**6}"}, **term)
    [counter] = near.eq_class.pod_anti_affinity
    assert counter.anti_affinity_total == 0
    short.state.remove_pod("loud")
    assert counter.anti_affinity_total == 0
    assert not counter.anti_affinity.any()


def test_labels_that_no_node_has_leave_nothing_behind() -> None:
    short = Short(a=4, b=4)
    for number in range(50):
        selector = {f"k{number}.{one}": "v" for one in range(20)}
        short.place(short.pod(f"p{number}", nodeSelector=selector, **spread({}, f"zone{number}")))
    assert set(short.state.labels) <= {HOST}
    rule = spread({"app": "x"}, "zone7")
    waiting = short.pod("late", labels={"app": "x"}, **rule)
    assert short.place(waiting) == {}
    short.node("a", zone7="one")
    assert short.place(waiting) == {"late": "a"}
    assert short.place(short.pod("later", nodeSelector={"zone7": "one"})) == {"later": "a"}


def test_counts_follow_a_label_that_comes_later() -> None:
    short = Short(a=4, b=4, c=4)
    first = short.pod("p", labels={"app": "x"}, **spread({"app": "x"}, "zone"))
    short.run("on-a", "a", labels={"app": "x"})
    for name in "abc":
        short.node(name, zone="left" if name == "a" else "right")
    assert short.place(first)["p"] in {"b", "c"}


def test_resources_that_no_node_has_are_limited() -> None:
    short = Short(a=4)
    each = MOST_UNKNOWN_RESOURCES_OF_NAMESPACE
    for number in range(MOST_UNKNOWN_RESOURCES + 50):
        asks = {f"x.example/r{number}": "1"}
        last = short.pod(f"p{number}", asks=asks, namespace=f"space-{number // each}")
        assert bool(last.eq_class.excess) == (number >= MOST_UNKNOWN_RESOURCES)
    assert "no node has x.example/r305" in last.eq_class.excess
    assert len(short.state.resources) < MOST_UNKNOWN_RESOURCES + 10
    short.node("b", more={"x.example/r305": "1"})
    assert short.place(short.pod("again", asks={"x.example/r305": "1"})) == {"again": "b"}


def test_one_namespace_does_not_use_up_the_resources_that_no_node_has() -> None:
    """Else pods of others would read that there are too many, not what they wait for."""
    short = Short(a=4)
    for number in range(MOST_UNKNOWN_RESOURCES):
        heavy = short.pod(f"p{number}", asks={f"x.example/r{number}": "1"}, namespace="heavy")
    assert "namespace heavy" in heavy.eq_class.excess
    other = short.pod("other", asks={"x.example/gpu": "1"}, namespace="other")
    assert not other.eq_class.excess
    assert short.place(other) == {}
    short.node("b", more={"x.example/gpu": "1"})
    assert short.place(other) == {"other": "b"}


def test_ports_clash_by_address() -> None:
    def ports(address: str) -> Any:
        return [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": address}]}]

    short = Short(a=4)
    short.run("first", "a", containers=ports("10.0.0.1"))
    assert short.place(short.pod("other", containers=ports("10.0.0.2"))) == {"other": "a"}
    assert short.place(short.pod("same", containers=ports("10.0.0.1"))) == {}
    assert short.place(short.pod("all", containers=ports("0.0.0.0"))) == {}
    short.state.remove_pod("first")
    short.run("everywhere", "a", containers=ports("0.0.0.0"))
    assert short.place(short.pod("other", containers=ports("10.0.0.2"))) == {}
    short.state.remove_pod("everywhere")
    assert not short.state.ports
    assert short.place(short.pod("all", containers=ports("0.0.0.0"))) == {"all": "a"}


def test_a_term_among_many_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a hundred required terms names the ninety-nine others."""
    short = Short(a=4)
    terms = [{"topologyKey": HOST, "labelSelector": {"matchLabels": {f"k{number}": "x"}}} for number in range(100)]
    made = 0
    of = Term.__post_init__

    def counted(term: Term) -> None:
        nonlocal made
        made += 1
        of(term)

    monkeypatch.setattr(Term, "__post_init__", counted)
    rules: dict[str, Any] = {"affinity": {"podAffinity": {_HARD: terms}}}
    classes = {id(short.pod(f"p{number}", **rules).eq_class) for number in range(5)}
    assert len(classes) == 1
    assert made <= 2 * 100 * 5
    first, *rest = short.pod("q", **rules).eq_class.signature.pod_affinity
    assert len(first.also) == len(rest) == 99
    assert hash(first) == hash(replace(first))
    assert first == replace(first)
    assert first not in rest
