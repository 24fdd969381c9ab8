"""Trees: minimums first, several orders, memory, limits; and what the exact solver can say."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.place.short import HOST, Short, pod_affinity, pod_anti_affinity, spread

from kohort.place import solving
from kohort.place.claims import Claim
from kohort.place.demand import Branch, Demand, Leaf, PendingPod, Reason
from kohort.place.domains import Bounds
from kohort.place.effort import Effort
from kohort.place.highs import SolverStatus
from kohort.place.search import Search
from kohort.place.solving import SolverAnswer, solve

NO_SOLVER = Effort(solver_size=0)


def _leaf(short: Short, name: str, size: int, cpu: float = 1, minimum: int | None = -1, **more: Any) -> Leaf:
    pods = [short.pod(f"{name}{n}", cpu) for n in range(size)]
    return Leaf(name, pods, size if minimum == -1 else minimum, **more)


def _placed(short: Short, root: Demand, effort: Effort | None = None) -> dict[str, int]:
    """How many pods of each group were placed."""
    result = Search(short.engine, effort).place(root)
    short.engine.undo(0)
    return {name: len(outcome.placed) for name, outcome in result.outcomes.items() if outcome.placed}


def test_p12_minimums_before_extras() -> None:
    short = Short(n1=4)
    root = Branch("root", [_leaf(short, "a", 3, minimum=1), _leaf(short, "b", 2)], 2)
    assert _placed(short, root, NO_SOLVER) == {"a": 2, "b": 2}


def test_groups_that_are_not_needed_wait_for_those_that_are() -> None:
    """The second child of the first branch would take what the second branch needs."""
    short = Short(n1=4)
    early = Branch("early", [_leaf(short, "a", 2), _leaf(short, "b", 2)], 1)
    root = Branch("root", [early, _leaf(short, "c", 2)], 2)
    assert _placed(short, root, NO_SOLVER) == {"a": 2, "c": 2}
    short.node("n2", 2)
    assert _placed(short, root, NO_SOLVER) == {"a": 2, "b": 2, "c": 2}


def test_the_cheaper_children_where_not_all_are_needed() -> None:
    short = Short(n1=4)
    root = Branch("root", [_leaf(short, "big", 3), _leaf(short, "s1", 2), _leaf(short, "s2", 2)], 2)
    assert _placed(short, root, NO_SOLVER) == {"s1": 2, "s2": 2}


def test_a_failed_group_leaves_nothing_behind() -> None:
    short = Short(n1=4)
    root = Branch("root", [_leaf(short, "a", 2), Branch("mid", [_leaf(short, "b", 1), _leaf(short, "c", 9)], 2)], 1)
    result = Search(short.engine).place(root)
    assert set(result.placed) == {"a0", "a1"}
    assert int(short.state.used[0, 0]) == 2000
    assert result.of("b").reason is Reason.BLOCKED_BY_SIBLING
    assert result.of("c").reason is Reason.INSUFFICIENT


def test_an_empty_branch_can_never_be_met() -> None:
    short = Short(n1=4)
    result = Search(short.engine).place(Branch("root", [], 1))
    assert not result.ok
    assert result.of("root").reason is Reason.WAITING_FOR_GROUP


def test_satisfied_by_what_runs_is_no_success_without_a_new_pod() -> None:
    short = Short(n1=2)
    short.run("r0", "n1", 2)
    result = Search(short.engine).place(_leaf(short, "g", 1, minimum=1, running=[0]))
    assert not result.ok
    assert not result.placed


def test_what_was_tried_in_an_untouched_domain_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    short = Short()
    for number in range(8):
        short.node(f"n{number}", 2, rack=f"r{number // 2}", zone="z")
    # Unlike leaves, so that several orders are tried; the last can never fit beside the others.
    leaves = [_leaf(short, f"l{n}", 2, 1 + n % 2, topology="rack") for n in range(4)] + [_leaf(short, "no", 5, 2)]
    looked: list[str] = []
    original = Search._leaf

    def counted(self: Search, leaf: Leaf, node_set: Any) -> Any:
        looked.append(leaf.name)
        return original(self, leaf, node_set)

    monkeypatch.setattr(Search, "_leaf", counted)
    assert _placed(short, Branch("root", leaves, 5, "zone"), Effort(solver_size=0, orders=24)) == {}
    assert len(looked) < 5 * 24


def test_the_limit_of_steps_is_kept() -> None:
    short = Short(n1=3, n2=3)
    leaves = [_leaf(short, f"l{n}", 1, 1 + n % 2) for n in range(9)]
    effort = Effort(steps=30)
    result = Search(short.engine, effort).place(Branch("root", leaves, 9))
    assert result.of("root").reason is Reason.INSUFFICIENT or not result.of("root").proven
    assert effort.steps > -30


def test_a_clock_may_end_the_search() -> None:
    short = Short(n1=3, n2=3)
    root = Branch("root", [_leaf(short, "a", 1, 2), _leaf(short, "b", 1, 3)], 2)
    calls = iter(range(100))
    result = Search(short.engine, Effort(expired=lambda: next(calls) >= 1)).place(root)
    assert not result.ok
    assert result.of("root").reason is Reason.NOT_FOUND
    assert Search(short.engine).place(root).ok


def test_members_on_nodes_that_are_not_known_count_but_pin_nothing() -> None:
    short = Short(n1=1)
    assert _placed(short, _leaf(short, "g", 1, minimum=3, lost=2)) == {"g": 1}
    keyed = Search(short.engine).place(_leaf(short, "g", 1, minimum=3, lost=2, topology=HOST))
    assert keyed.of("g").reason is Reason.MISCONFIGURED
    assert "not known" in keyed.of("g").detail


# ---- domains


def test_a_domain_within_a_domain() -> None:
    short = Short()
    for name, zone, rack in (("a", "z1", "r1"), ("b", "z2", "r1"), ("c", "z2", "r2")):
        short.node(name, 2, zone=zone, rack=rack)
    leaves = [_leaf(short, name, 2, topology="rack") for name in ("x", "y")]
    result = Search(short.engine).place(Branch("root", leaves, 2, "zone"))
    rows = {name: {short.state.node(row).name for row in result.of(name).placed.values()} for name in ("x", "y")}
    assert sorted(map(sorted, rows.values())) == [["b"], ["c"]]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(0, 1 << 47)), min_size=1, max_size=12))
def test_sums_over_domains_are_exact(nodes: list[tuple[str | None, int]]) -> None:
    short = Short()
    for number, (rack, _) in enumerate(nodes):
        short.node(f"n{number}", 1, **({"rack": rack} if rack else {}))
    values = np.zeros(short.state.rows, np.int64)
    values[: len(nodes)] = [value for _, value in nodes]
    parts = short.engine.all_nodes.split("rack")
    found = {parts.node_set(place).value: int(total) for place, total in enumerate(parts.sum(values))}
    expected: dict[str | None, int] = {}
    for rack, value in nodes:
        if rack:
            expected[rack] = expected.get(rack, 0) + value
    assert found == expected


def test_t4_domains_are_ranked_as_kube_scheduler_scores_them() -> None:
    short = Short()
    for rack, size, used in (("A", 2, 0), ("B", 3, 2), ("C", 3, 1)):
        for number in range(size):
            short.node(f"{rack}{number}", 2, rack=rack)
        for number in range(used):
            short.run(f"{rack}-used{number}", f"{rack}{number}")
    parts = short.engine.all_nodes.split("rack")
    ranked = Bounds(short.engine, _leaf(short, "g", 3), parts).ranked()
    assert parts.node_set(ranked[0]).value == "B"


def test_labels_that_change_divide_anew() -> None:
    short = Short()
    short.node("a", 1, rack="r1")
    short.node("b", 1, rack="r2")
    leaf = _leaf(short, "g", 2, topology="rack")
    assert _placed(short, leaf) == {}
    short.node("b", 1, rack="r1")
    assert _placed(short, leaf) == {"g": 2}


# ---- the exact solver


def _answer(short: Short, root: Demand) -> SolverStatus:
    answer = solve(short.engine, [root], short.engine.all_nodes, Effort())
    classes = {pod.key: pod.eq_class for leaf in root.leaves() for pod in leaf.pods}
    left = dict(answer.placed)
    while left:  # spread allows what it allows in some order
        for key, row in list(left.items()):
            fit, _ = short.engine.evaluate(classes[key].signature)
            if short.engine.feasible(classes[key], fit)[row]:
                short.engine.assume_on(classes[key], left.pop(key))
                break
        else:
            raise AssertionError(f"{left} may not be where they were put")
    short.engine.undo(0)
    return answer.status


def _port(number: int) -> dict[str, Any]:
    return {"containers": [{"name": "c", "ports": [{"hostPort": number}]}]}


def test_solver_keeps_pods_apart() -> None:
    short = Short(n1=9, n2=9)
    red, blue = {"c": "red"}, {"c": "blue"}
    shy = [short.pod(f"shy{n}", labels=blue, **pod_anti_affinity(red)) for n in range(3)]
    red_pods = [short.pod(f"red{n}", labels=red) for n in range(3)]
    assert _answer(short, Leaf("g", [*shy, *red_pods], 6)) is SolverStatus.FOUND
    short.run("red", "n1", labels=red)
    short.run("blue", "n2", labels=blue, **pod_anti_affinity(red))
    assert _answer(short, Leaf("g", [*map(_again(short), shy), *map(_again(short), red_pods)], 6)) is SolverStatus.FOUND
    alone = [short.pod(f"alone{n}", labels=red, **pod_anti_affinity(red)) for n in range(2)]
    assert _answer(short, Leaf("g", alone, 2)) is SolverStatus.IMPOSSIBLE


def _again(short: Short) -> Any:
    """The class of a pod after more terms became known."""
    from kohort.place.demand import renewed_pod

    return lambda pod: renewed_pod(pod, short.state.interpod)


def test_solver_knows_ports_and_claims() -> None:
    short = Short(n1=9, n2=9)
    assert _answer(short, Leaf("g", [short.pod(f"p{n}", **_port(80)) for n in range(2)], 2)) is SolverStatus.FOUND
    assert _answer(short, Leaf("g", [short.pod(f"p{n}", **_port(80)) for n in range(3)], 3)) is SolverStatus.IMPOSSIBLE
    short.state.claims.put("default/c", Claim(once=True))
    volume: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    sharing = [short.pod("p0", 1, **volume), short.pod("p1", 2, **volume)]
    assert _answer(short, Leaf("g", sharing, 2)) is SolverStatus.IMPOSSIBLE


def test_solver_pins_a_group_where_its_members_run() -> None:
    short = Short()
    short.node("a", 1, rack="A")
    short.node("b", 9, rack="B")
    leaf = _leaf(short, "g", 2, minimum=3, topology="rack", running=[0])
    assert _answer(short, Branch("root", [leaf], 1)) is SolverStatus.IMPOSSIBLE
    free = _leaf(short, "g", 2, topology="rack")
    assert _answer(short, Branch("root", [free], 1)) is SolverStatus.FOUND


def test_solver_has_no_words_for_company_and_says_so() -> None:
    short = Short(n1=4)
    pods = [short.pod("p0", labels={"a": "b"}, **pod_affinity(({"a": "b"}, HOST))), short.pod("p1", 2)]
    answer = solve(short.engine, [Leaf("g", pods, 2)], short.engine.all_nodes, Effort())
    assert answer.status is SolverStatus.UNKNOWN
    assert "affinity" in answer.why


def test_solver_spreads_pods_evenly() -> None:
    short = Short()
    for zone, size in (("A", 4), ("B", 2), ("C", 1)):
        short.node(zone, size, zone=zone)
    labels = {"a": "b"}

    def pods(count: int) -> list[PendingPod]:
        return [short.pod(f"p{n}", labels=labels, **spread(labels, "zone")) for n in range(count)]

    assert _answer(short, Leaf("g", pods(5), 5)) is SolverStatus.FOUND
    assert _answer(short, Leaf("g", pods(6), 6)) is SolverStatus.IMPOSSIBLE  # a third in A or B, one in C
    short.run("running", "A", labels=labels)
    assert _answer(short, Leaf("g", pods(4), 4)) is SolverStatus.FOUND
    assert _answer(short, Leaf("g", pods(5), 5)) is SolverStatus.IMPOSSIBLE
    least = [short.pod(f"m{n}", labels=labels, **spread(labels, "zone", minDomains=4)) for n in range(3)]
    assert _answer(short, Leaf("g", least, 3)) is SolverStatus.IMPOSSIBLE  # A has one, and one is all it may have


def test_solver_does_not_count_pods_that_only_others_spread_over() -> None:
    short = Short(n1=4, n2=4)
    labels = {"a": "b"}
    pods = [short.pod("p0", labels=labels, **spread(labels, HOST)), short.pod("p1", 2, labels=labels)]
    answer = solve(short.engine, [Leaf("g", pods, 2)], short.engine.all_nodes, Effort())
    assert answer.status is SolverStatus.UNKNOWN
    assert "spread" in answer.why


def test_solver_tells_equal_groups_apart_again() -> None:
    """Equal groups are counted in the model; the way back gives each its own pods, in its own domain."""
    short = Short()
    for rack in range(3):
        for number in range(2):
            short.node(f"r{rack}n{number}", 3, rack=f"r{rack}")
    leaves = [
        Leaf(f"l{n}", [short.pod(f"l{n}-a", 1), short.pod(f"l{n}-b", 2), short.pod(f"l{n}-c", 1)], 2, "rack")
        for n in range(4)
    ]
    root = Branch("root", [Branch("one", leaves[:2], 1), Branch("two", leaves[2:], 1)], 2)
    answer = solve(short.engine, [root], short.engine.all_nodes, Effort())
    assert answer.status is SolverStatus.FOUND
    placed = {
        leaf.name: {key: row for key, row in answer.placed.items() if key.startswith(leaf.name)} for leaf in leaves
    }
    assert [len(one) for one in placed.values() if one] == [2, 2]
    assert all(len({row // 2 for row in one.values()}) <= 1 for one in placed.values())


def test_solver_names_the_seats_where_domains_cross() -> None:
    short = Short()
    for name, rack, power in (("a", "r1", "p1"), ("b", "r1", "p2"), ("c", "r2", "p1")):
        short.node(name, 2, rack=rack, power=power)
    by_rack, by_power = (_leaf(short, key, 4, topology=key) for key in ("rack", "power"))
    assert _answer(short, Branch("root", [by_rack], 1)) is SolverStatus.FOUND
    assert _answer(short, Branch("root", [by_rack, by_power], 2)) is SolverStatus.IMPOSSIBLE
    one, other = (_leaf(short, key, 3, topology=key) for key in ("rack", "power"))
    assert _answer(short, Branch("root", [one, other], 2)) is SolverStatus.FOUND


def test_solver_has_limits() -> None:
    short = Short(n1=4, n2=4)
    leaf = Leaf("g", [short.pod("p0", 3), short.pod("p1", 3), short.pod("p2", 2)], 3)  # which no packing finds
    small = solve(short.engine, [leaf], short.engine.all_nodes, Effort(solver_size=2))
    assert (small.status, small.why) == (SolverStatus.UNKNOWN, "too much for the exact solver: more than 2 unknowns")


def test_unlike_pods_that_fit_by_sums_alone_are_proven_impossible() -> None:
    short = Short()
    short.node("a", 3, more={"memory": "2Gi"})
    short.node("b", 3, more={"memory": "2Gi"})
    # By cpu and memory in sum it fits; no two of the three sizes share a node.
    pods = [short.pod(f"p{n}", 1.6, asks={"memory": f"{n + 1}Mi"}) for n in range(3)]
    result = Search(short.engine).place(Leaf("g", pods, 3))
    assert result.of("g").proven
    assert result.exact


def test_the_solver_is_loaded_when_it_is_first_asked() -> None:
    code = "import sys, kohort.cli.main, kohort.scheduler.decision; print('highspy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"


def test_a_part_that_is_impossible_proves_nothing_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what its minimum can do without, a tree is a smaller question; if that has no answer, the tree may."""
    monkeypatch.setattr(solving, "_packed", lambda *_: SolverAnswer(SolverStatus.UNKNOWN, asked=False))
    short = Short(n1=4)
    large, small = Leaf("large", [short.pod("l", 5)], 1), Leaf("small", [short.pod("s", 3)], 1)
    lean, whole = Branch("root", [large], 1), Branch("root", [large, small], 1)
    said = solving.solve(short.engine, [lean, whole], short.engine.all_nodes, Effort())
    assert said.status is SolverStatus.FOUND
    assert said.placed == {"s": short.state.row("n1")}
    assert solving.solve(short.engine, [lean], short.engine.all_nodes, Effort()).status is SolverStatus.IMPOSSIBLE


def test_an_effort_again_is_the_same_and_another() -> None:
    effort = Effort(1, 2, 3, 4, 5.0, lambda: True, lambda: 6.0, solving.Inline())
    again = effort.again()
    assert again == effort
    assert again.spend(1) is False
    assert effort.steps == 1
