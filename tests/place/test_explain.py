"""Why a gang waits: the reason, the numbers, the nearest miss; and each remedy, applied, helps."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.place.short import HOST, Short, pod_anti_affinity, spread

from kohort.place.claims import Claim
from kohort.place.demand import Branch, Demand, Leaf, Reason
from kohort.place.explain import Explanation, explain, waits
from kohort.place.remedies import Remedy
from kohort.place.search import Search


def _explained(short: Short, root: Demand) -> Explanation:
    mark = short.engine.mark()
    used = short.state.used.copy()
    result = Search(short.engine).place(root)
    assert not result.ok
    explanation = explain(short.engine, root, result)
    assert short.engine.mark() == mark
    assert (short.state.used == used).all()
    return explanation


def _gang(short: Short, size: int, cpu: float = 1, name: str = "g", **leaf: Any) -> Leaf:
    return Leaf(name, [short.pod(f"{name}{n}", cpu) for n in range(size)], leaf.pop("minimum", size), **leaf)


def _remedy(explanation: Explanation, kind: str) -> Remedy:
    return next(remedy for remedy in explanation.remedies if remedy.kind == kind)


def test_too_little_of_a_resource() -> None:
    short = Short(n1=4, n2=4)
    short.run("busy", "n1", 3)
    explanation = _explained(short, _gang(short, 8))
    assert explanation.reason is Reason.INSUFFICIENT
    assert explanation.detail == "8 pods need 8 cpu, 2 nodes have 5 free"
    assert (explanation.need, explanation.can) == (8, 5)
    assert [str(cause) for cause in explanation.causes] == ["2 nodes have room for 5 more"]
    assert str(_remedy(explanation, "nodes")) == "with 1 more node like n1"
    assert str(_remedy(explanation, "minimum")) == "with minCount 5, now"


def test_f5_room_in_pieces() -> None:
    short = Short(n1=1.5, n2=1.5, n3=4)
    short.run("busy", "n3", 2.5)
    explanation = _explained(short, _gang(short, 2, 2))
    assert explanation.reason is Reason.FRAGMENTED
    assert "3 nodes have 4.5 cpu free, in pieces that take 0 of 2 pods of 2" in explanation.detail
    assert explanation.nearest is not None
    assert str(explanation.nearest) == "n3 lacks 0.5 cpu for one more pod"
    assert explanation.nearest.lacks == {"cpu": 500}
    assert str(explanation.causes[0]) == "3 nodes lack cpu (a pod asks 2), 2 of them even when empty"


def test_no_node_is_selected() -> None:
    short = Short(n1=4)
    short.node("n2", 4, taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    explanation = _explained(short, Leaf("g", [short.pod("p", nodeSelector={"pool": "x"})], 1))
    assert explanation.reason is Reason.NO_MATCHING_NODE
    assert [str(cause) for cause in explanation.causes] == ["2 nodes are not selected (pool=x)"]
    assert _remedy(explanation, "label").text == "on nodes labelled pool=x (there is none)"
    full = _explained(short, _gang(short, 5))
    assert "1 node has taint gpu=yes:NoSchedule that it does not tolerate" in [str(cause) for cause in full.causes]


def test_larger_than_any_node() -> None:
    short = Short(n1=4)
    explanation = _explained(short, _gang(short, 1, 9))
    assert explanation.reason is Reason.INSUFFICIENT
    assert "even when empty" in explanation.detail
    assert [str(one) for one in explanation.remedies] == ["on nodes with at least 9 cpu (the largest has 4)"]


def test_a_resource_that_no_node_has() -> None:
    short = Short()
    short.node("n1", 4, more={"example.com/chip": "0"})
    explanation = _explained(short, Leaf("g", [short.pod("p", asks={"example.com/chip": "2"})], 1))
    assert [str(cause) for cause in explanation.causes] == ["1 node has no example.com/chip"]
    assert [str(one) for one in explanation.remedies] == ["on nodes with at least 2 example.com/chip (there is none)"]


def test_a_domain_that_is_too_small() -> None:
    short = Short()
    for name, rack in (("a1", "A"), ("b1", "B"), ("b2", "B"), ("c1", "C"), ("c2", "C")):
        short.node(name, 2, rack=rack)
    short.run("busy", "c1", 1)
    explanation = _explained(short, _gang(short, 6, topology="rack"))
    assert explanation.reason is Reason.DOMAIN_TOO_SMALL
    assert explanation.detail.startswith("rack=B, the largest of 3, is too small")
    assert explanation.nearest is not None
    assert str(explanation.nearest).startswith("rack=B takes 4 of 6")
    assert str(_remedy(explanation, "nodes")) == "with 1 more node like b1 in rack=B"
    assert str(_remedy(explanation, "minimum")) == "with minCount 4, now"
    assert str(_remedy(explanation, "topology")) == "without the constraint to one rack"


def test_t10_no_node_has_the_label() -> None:
    short = Short(n1=4)
    explanation = _explained(short, _gang(short, 2, topology="rack"))
    assert explanation.reason is Reason.NO_MATCHING_NODE
    assert explanation.detail == "no node has the label rack"
    remedies = ["on nodes labelled rack (there is none)", "without the constraint to one rack"]
    assert [str(one) for one in explanation.remedies] == remedies
    tree = _explained(short, Branch("root", [_gang(short, 2, name="a")], 1, "rack"))
    assert "on nodes labelled rack (there is none)" in tree.advice()


def test_t7_members_in_two_domains() -> None:
    short = Short()
    short.node("a", 4, rack="A")
    short.node("b", 4, rack="B")
    explanation = _explained(short, _gang(short, 1, minimum=3, topology="rack", running=[0, 1]))
    assert explanation.reason is Reason.MISCONFIGURED
    assert "2 domains of rack" in explanation.detail


def test_members_that_do_not_exist() -> None:
    short = Short(n1=4)
    explanation = _explained(short, _gang(short, 2, minimum=5))
    assert explanation.reason is Reason.WAITING_FOR_MEMBERS
    assert str(explanation) == "g: WaitingForMembers: 2 of 5 members exist\n  next step: 3 more members have to exist"


def test_rules_between_pods() -> None:
    short = Short(n1=4, n2=4)
    pods = [short.pod(f"p{n}", labels={"a": "b"}, **pod_anti_affinity({"a": "b"})) for n in range(3)]
    explanation = _explained(short, Leaf("g", pods, 3))
    assert explanation.reason is Reason.FRAGMENTED
    assert (explanation.can, explanation.need) == (2, 3)
    assert str(_remedy(explanation, "minimum")) == "with minCount 2, now"


def test_a_claim_that_cannot_be_used() -> None:
    short = Short(n1=4)
    short.state.claims.put("default/c", Claim(usable=False, why="is not bound to a volume yet"))
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    explanation = _explained(short, Leaf("g", [short.pod("p", volumes=[volume])], 1))
    assert explanation.reason is Reason.NO_MATCHING_NODE
    assert [str(cause) for cause in explanation.causes] == ["claim default/c is not bound to a volume yet"]


def test_a_tree_says_at_which_level() -> None:
    short = Short(n1=4, n2=4)
    tree = Branch("root", [_gang(short, 3, name="a"), _gang(short, 3, name="b"), _gang(short, 3, name="c")], 3)
    explanation = _explained(short, tree)
    assert explanation.reason is Reason.BLOCKED_BY_SIBLING
    assert explanation.can == 2
    assert str(_remedy(explanation, "minimum")) == "with minGroupCount 2, now"
    assert [child.level for child in explanation.children] == [1, 1, 1]
    assert {child.reason for child in explanation.children} == {Reason.BLOCKED_BY_SIBLING}
    worse = Branch("root", [_gang(short, 3, name="a"), Branch("mid", [_gang(short, 30, name="deep")], 1)], 2)
    deep = next(one for one in _explained(short, worse).every() if one.group == "deep")
    assert (deep.level, deep.reason) == (2, Reason.INSUFFICIENT)


def test_a_branch_in_one_domain() -> None:
    short = Short()
    for name, zone in (("a", "z1"), ("b", "z2")):
        short.node(name, 4, zone=zone)
    explanation = _explained(short, Branch("root", [_gang(short, 3, name="a"), _gang(short, 3, name="b")], 2, "zone"))
    assert explanation.reason is Reason.DOMAIN_TOO_SMALL
    assert explanation.nearest is not None
    assert "takes 1 of 2 groups" in str(explanation.nearest)


def test_what_is_only_not_found_says_so() -> None:
    short = Short(n1=4, n2=4)
    rule = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": HOST}
    lonely = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    pods = [short.pod("p0", 2, affinity=lonely), short.pod("p1", 4, labels={"a": "b"})]
    explanation = _explained(short, Leaf("g", pods, 2))
    assert explanation.reason is Reason.NOT_FOUND
    assert not explanation.proven
    assert "required affinity" in explanation.detail
    assert "not proven impossible" in str(explanation)


def test_before_a_search_there_is_a_reason_too() -> None:
    assert (
        str(waits("g", Reason.GATED, "p1 has the scheduling gate wait")) == "g: Gated: p1 has the scheduling gate wait"
    )


# ---- remedies are true


def _random(seed: int) -> tuple[Short, Leaf]:
    rng, short = Random(seed), Short()
    for number in range(rng.randint(1, 6)):
        short.node(f"n{number}", rng.randint(1, 6), rack=rng.choice("AB"))
    for number in range(rng.randint(0, 6)):
        node = f"n{rng.randrange(6)}"
        row = short.state.row(node)
        if row is not None and short.state.alloc[row, 0] - short.state.used[row, 0] >= 1000:
            short.run(f"busy{number}", node, 1)
    sizes = [rng.choice([1, 1.5, 2]) for _ in range(rng.choice([1, 1, 2]))]
    pods = [short.pod(f"g{n}", rng.choice(sizes)) for n in range(rng.randint(1, 9))]
    return short, Leaf("g", pods, len(pods), rng.choice([None, "rack"]))


@pytest.mark.parametrize("block", range(6))
def test_every_remedy_helps(block: int) -> None:
    applied: dict[str, int] = {}
    for seed in range(block * 50, block * 50 + 50):
        short, leaf = _random(seed)
        if Search(short.engine).place(leaf).ok:
            continue
        kinds = [remedy.kind for remedy in _explained(short, leaf).remedies]
        for place, kind in enumerate(kinds):
            again, same = _random(seed)
            explanation = _explained(again, same)
            changed = _apply(again, same, explanation, explanation.remedies[place])
            assert Search(again.engine).place(changed).ok, (
                f"seed {seed}: {explanation.remedies[place]} did not help\n{explanation}"
            )
            applied[kind] = applied.get(kind, 0) + 1
    assert applied.get("nodes")


def _apply(short: Short, leaf: Leaf, explanation: Explanation, remedy: Remedy) -> Leaf:
    if remedy.kind == "minimum":
        return Leaf(leaf.name, leaf.pods, remedy.amount, leaf.topology)
    if remedy.kind == "topology":
        return Leaf(leaf.name, leaf.pods, leaf.minimum)
    if remedy.kind == "nodes":
        row = short.state.row(remedy.nodes[0])
        assert row is not None
        for number in range(remedy.amount):
            cpu = int(short.state.alloc[row, 0]) / 1000
            short.node(f"extra{number}", cpu, rack=short.state.node(row).labels["rack"])
        return leaf
    if remedy.kind == "resource":  # so large, and as many as it takes
        cpu = float(remedy.text.split()[5])
        for number in range(len(leaf.pods)):
            short.node(f"large{number}", cpu, rack="A")
        return leaf
    assert remedy.kind == "free"
    _free(short, remedy)
    return leaf


def _free(short: Short, remedy: Remedy) -> None:
    """On each node named, so much less is used, by others than the gang."""
    assert sum(remedy.parts) == remedy.amount
    for name, part in zip(remedy.nodes, remedy.parts, strict=True):
        row = short.state.row(name)
        assert row is not None
        assert short.state.used[row, 0] >= part
        short.state.used[row, 0] -= part
        short.state.usage.add(row)


@pytest.mark.parametrize("nested", [False, True])
def test_a_rule_that_the_solver_has_no_words_for_is_never_called_impossible(nested: bool) -> None:
    """Spread that counts pods without the rule depends on the order: what the search misses is not found, no more."""
    short = Short(n1=6, n2=1)
    pods = [short.pod(f"p{n}", labels={"a": "b"}, **spread({"a": "b"}, HOST)) for n in range(4)]
    pods.append(short.pod("other", labels={"a": "b"}, node_selector={HOST: "n1"}))
    leaf: Demand = Leaf("leaf", pods, 5)
    explanation = _explained(short, Branch("root", [leaf], 1) if nested else leaf)
    assert (explanation.reason, explanation.proven) == (Reason.NOT_FOUND, False)
    assert "too much for the exact solver: spread over pods that do not carry the rule" in explanation.detail


@pytest.mark.parametrize("nested", [False, True])
def test_spread_that_all_its_pods_carry_is_proven_impossible(nested: bool) -> None:
    """n2 has room for one, so n1 may have two."""
    short = Short(n1=6, n2=1)
    pods = [short.pod(f"p{n}", labels={"a": "b"}, **spread({"a": "b"}, HOST)) for n in range(5)]
    leaf: Demand = Leaf("leaf", pods, 5)
    explanation = _explained(short, Branch("root", [leaf], 1) if nested else leaf)
    assert (explanation.reason, explanation.proven) == (Reason.FRAGMENTED, True)
