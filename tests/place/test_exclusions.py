"""Nodes that pods may not use: which they are, why, and what would open them. Each remedy, applied, helps."""

from __future__ import annotations

from typing import Any

from tests.place.short import HOST, Short, pod_anti_affinity

from kohort.place.claims import MISSING, Claim
from kohort.place.demand import Leaf, Reason
from kohort.place.explain import Explanation, explain
from kohort.place.search import Search

GPU = "nvidia.com/gpu"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def _explained(short: Short, leaf: Leaf) -> Explanation:
    result = Search(short.engine).place(leaf)
    assert not result.ok
    return explain(short.engine, leaf, result)


def _gpu_cluster(*, taints: Any = (TAINT,)) -> Short:
    short = Short()
    for number in range(2):
        short.node(f"cpu-{number}", 8)
    for number in range(4):
        short.node(f"gpu-{number}", 8, taints=taints, more={GPU: "1"})
    return short


def _gpu_gang(short: Short, size: int, **more: Any) -> Leaf:
    return Leaf("g", [short.pod(f"p{n}", asks={GPU: "1"}, **more) for n in range(size)], size)


def test_tainted_gpu_nodes_beside_cpu_nodes() -> None:
    short = _gpu_cluster()
    explanation = _explained(short, _gpu_gang(short, 4))
    assert explanation.reason is Reason.NO_MATCHING_NODE
    assert explanation.detail == "none of 6 nodes suits its pods"
    assert [str(cause) for cause in explanation.causes] == [
        f"4 nodes have taint {GPU}=present:NoSchedule that it does not tolerate",
        f"2 nodes have no {GPU}",
    ]
    assert explanation.nearest is None
    assert [remedy.text for remedy in explanation.remedies] == [f"if it tolerated taint {GPU}=present:NoSchedule"]
    tolerant = _gpu_gang(short, 4, tolerations=[{"key": GPU, "operator": "Exists"}])
    assert Search(short.engine).place(tolerant).ok


def test_nodes_are_excluded_once_where_domains_are_asked_for() -> None:
    """Of the closest domain its room is told; who is out of the question, of all domains, and not twice."""
    short = Short()
    for number in range(4):
        short.node(f"n{number}", 8, rack="AB"[number // 2])
    leaf = Leaf("g", [short.pod(f"p{n}", 16, asks={GPU: "1"}) for n in range(2)], 2, topology="rack")
    causes = [str(cause) for cause in _explained(short, leaf).causes]
    assert [one for one in causes if GPU in one] == [f"4 nodes have no {GPU}"]
    assert [one for one in causes if "lack cpu" in one] == [
        "2 nodes lack cpu (a pod asks 16), 2 of them even when empty"
    ]


def test_tolerating_is_no_remedy_where_the_nodes_are_too_few() -> None:
    short = _gpu_cluster()
    explanation = _explained(short, _gpu_gang(short, 5))
    assert explanation.remedies == []
    assert "does not tolerate" in explanation.advice()


def test_cordoned_nodes_are_uncordoned() -> None:
    short = _gpu_cluster(taints=[CORDON])
    explanation = _explained(short, _gpu_gang(short, 2))
    assert [str(cause) for cause in explanation.causes] == ["4 nodes are cordoned", f"2 nodes have no {GPU}"]
    assert [remedy.text for remedy in explanation.remedies] == [
        "with 2 nodes uncordoned (kubectl uncordon gpu-0 gpu-1)"
    ]


def test_free_nodes_count_beside_those_that_are_uncordoned() -> None:
    short = Short(n1=4)
    short.node("n2", 4, taints=[CORDON])
    leaf = Leaf("g", [short.pod(f"p{n}") for n in range(6)], 6)
    explanation = _explained(short, leaf)
    assert explanation.reason is Reason.INSUFFICIENT
    texts = [remedy.text for remedy in explanation.remedies]
    assert texts[0] == "with 1 node uncordoned (kubectl uncordon n2)"
    assert "1 node is cordoned" in explanation.advice()


def test_nodes_that_are_not_ready() -> None:
    short = Short()
    short.node("n1", 4, taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    explanation = _explained(short, Leaf("g", [short.pod("p")], 1))
    assert [str(cause) for cause in explanation.causes] == [
        "1 node has taint node.kubernetes.io/not-ready:NoSchedule that it does not tolerate"
    ]
    assert [remedy.text for remedy in explanation.remedies] == [
        "when node n1 has lost taint node.kubernetes.io/not-ready:NoSchedule"
    ]


def test_a_tainted_rack_is_seen_beside_the_others() -> None:
    short = Short()
    short.node("a", 4, rack="A")
    short.node("b", 16, rack="B", taints=[TAINT])
    leaf = Leaf("g", [short.pod(f"p{n}") for n in range(8)], 8, "rack")
    explanation = _explained(short, leaf)
    assert f"1 node has taint {GPU}=present:NoSchedule that it does not tolerate" in explanation.advice()
    assert f"if it tolerated taint {GPU}=present:NoSchedule" in [remedy.text for remedy in explanation.remedies]


def test_a_claim_that_does_not_exist() -> None:
    short = Short(n1=4, n2=4)
    short.state.claims.put("default/c", MISSING)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    explanation = _explained(short, Leaf("g", [short.pod("p", volumes=[volume])], 1))
    assert [str(cause) for cause in explanation.causes] == ["claim default/c does not exist"]
    assert [remedy.text for remedy in explanation.remedies] == ["when claim default/c is created"]


def test_a_claim_that_is_not_bound() -> None:
    short = Short(n1=4, n2=4)
    claim = Claim(usable=False, why="is not bound to a volume yet", remedy="is bound")
    short.state.claims.put("default/c", claim)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    explanation = _explained(short, Leaf("g", [short.pod("p", volumes=[volume])], 1))
    assert "claim default/c is not bound to a volume yet" in explanation.advice()
    assert [remedy.text for remedy in explanation.remedies] == ["when claim default/c is bound"]


def test_a_claim_whose_volume_is_elsewhere() -> None:
    short = Short(n1=4, n2=4)
    there = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": ["n9"]}]}]
    short.state.claims.put("default/c", Claim(terms=there))
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    explanation = _explained(short, Leaf("g", [short.pod("p", volumes=[volume])], 1))
    assert [str(cause) for cause in explanation.causes] == ["2 nodes cannot reach the volume of claim default/c"]


def test_anti_affinity_that_no_placement_satisfies_is_proven_without_a_solver() -> None:
    short = Short(n1=4, n2=4)
    pods = [short.pod(f"p{n}", labels={"a": "b"}, **pod_anti_affinity({"a": "b"})) for n in range(3)]
    explanation = _explained(short, Leaf("g", pods, 3))
    assert explanation.proven
    assert explanation.detail == (
        f"its anti-affinity keeps its pods in different {HOST}: 3 pods need 3 of them, 2 have room"
    )
    assert [remedy.text for remedy in explanation.remedies] == [
        "with 1 more node like n1",
        "with minCount 2, now",
    ]


def test_anti_affinity_with_the_domains_that_others_hold() -> None:
    short = Short()
    for name, zone in (("a", "A"), ("b", "B"), ("c", "C")):
        short.node(name, 4, zone=zone)
    rule = pod_anti_affinity({"a": "b"}, "zone")
    short.run("other", "c", labels={"a": "b"})
    pods = [short.pod(f"p{n}", labels={"a": "b"}, **rule) for n in range(3)]
    explanation = _explained(short, Leaf("g", pods, 3))
    assert "3 pods need 3 of them, 2 have room" in explanation.detail


def test_the_node_without_the_resource_is_not_the_closest() -> None:
    short = Short()
    short.node("cpu-0", 8)
    short.node("gpu-0", 8, more={GPU: "4"})
    short.run("busy", "gpu-0", asks={GPU: "4"})
    explanation = _explained(short, _gpu_gang(short, 1))
    assert explanation.nearest is not None
    assert str(explanation.nearest) == f"gpu-0 lacks 1 {GPU} for one more pod"
    assert f"with 1 {GPU} freed on gpu-0 (held by default/busy)" in [remedy.text for remedy in explanation.remedies]


def test_one_other_node() -> None:
    short = Short(n1=1, n2=1, n3=1, n4=1)
    for node in ("n1", "n2", "n3", "n4"):
        short.run(f"busy-{node}", node, 1)
    explanation = _explained(short, Leaf("g", [short.pod(f"p{n}") for n in range(4)], 4))
    assert "n1, n2, n3 and 1 other" in str(explanation)
    assert "others" not in str(explanation)
