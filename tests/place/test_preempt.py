"""Preemption: units, budgets, who goes first, and how far from the least possible."""

from __future__ import annotations

import os
from itertools import combinations
from random import Random
from typing import Any

import pytest
from tests.place import model
from tests.place.build import pending
from tests.place.short import HOST, Short, pod_anti_affinity

from kohort.place.cheapestvictims import fewest_by_rows, fewest_by_sums
from kohort.place.demand import Branch, Demand, Leaf
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.leastdisruption import VictimArrays
from kohort.place.preempt import Preemption, Preemptor
from kohort.place.search import Search
from kohort.place.state import AssignedPod, ClusterState
from kohort.place.victims import Budget, GroupInfo, Rank, VictimSet, find_victim_sets, violating

CASES = int(os.environ.get("KOHORT_PREEMPT_CASES", "150"))


def _run(short: Short, name: str, node: str, cpu: float = 1, **pod: Any) -> None:
    group, priority, started = pod.pop("group", None), pod.pop("priority", 0), pod.pop("started", "")
    obj = short.obj(name, cpu, **pod)
    signature = short.state.signatures.of_spec(obj["spec"])
    labels = obj["metadata"]["labels"]
    short.state.put_pod(AssignedPod(name, "default", name, labels, signature, priority, group, started), node)


def _plan(short: Short, root: Demand, groups: Any = None, budgets: Any = (), priority: int = 100) -> Preemption | None:
    return Preemptor(short.engine, find_victim_sets(short.state, groups or {}), budgets).plan(root, priority)


def _gone(plan: Preemption | None) -> set[str]:
    assert plan is not None
    return {victim.pod.name for victim_set in plan.victims for victim in victim_set.pods}


def _gang(short: Short, size: int, cpu: float = 1, **leaf: Any) -> Leaf:
    return Leaf("g", [short.pod(f"g{n}", cpu) for n in range(size)], size, **leaf)


# ---- units


def test_units_of_a_tree() -> None:
    short = Short(n1=10)
    groups = {
        "single": GroupInfo(),
        "all": GroupInfo(disrupt_all=True, priority=7),
        "leaf": GroupInfo("whole", priority=1),
        "whole": GroupInfo(None, True, 9, composite=True),
        "orphan": GroupInfo("missing", priority=3),
    }
    for name, group in {"plain": None, "s1": "single", "a1": "all", "a2": "all", "l1": "leaf", "o1": "orphan"}.items():
        _run(short, name, "n1", group=group, priority=50)
    victim_sets = {victim_set.name: victim_set for victim_set in find_victim_sets(short.state, groups)}
    assert {name: (len(u.pods), u.priority, u.rank) for name, u in victim_sets.items()} == {
        "plain": (1, 50, Rank.POD),
        "s1": (1, 0, Rank.GROUP),
        "group all": (2, 7, Rank.GROUP),
        "group whole": (1, 9, Rank.COMPOSITE),
        "o1": (1, 3, Rank.GROUP),
    }


def test_members_beyond_the_minimum_are_surplus_the_youngest_first() -> None:
    short = Short(n1=10)
    for number in range(4):
        _run(short, f"m{number}", "n1", group="v", started=f"2026-01-0{number + 1}T00:00:00Z")
    victim_sets = {
        victim_set.name: victim_set for victim_set in find_victim_sets(short.state, {"v": GroupInfo(minimum=2)})
    }
    assert [victim_sets[f"m{n}"].breaks for n in range(4)] == [True, True, False, False]


def test_budgets_are_used_up_from_the_most_important_on() -> None:
    victim_sets = [VictimSet(name, (), 0, Rank.POD, started) for name, started in (("old", "1"), ("new", "2"))]
    short = Short(n1=4)
    _run(short, "old", "n1", started="1")
    _run(short, "new", "n1", started="2")
    victim_sets = find_victim_sets(short.state, {})
    assert violating(victim_sets, [Budget("b", frozenset({"old", "new"}), 1)]) == {"new"}
    assert violating(victim_sets, [Budget("b", frozenset({"old"}), 0)]) == {"old"}
    assert violating(victim_sets, []) == set()


# ---- plans


def test_nothing_goes_unless_the_gang_then_fits() -> None:
    short = Short(n1=3)
    _run(short, "low1", "n1", priority=10)
    _run(short, "low2", "n1", priority=10)
    _run(short, "high", "n1", priority=500)
    assert _plan(short, _gang(short, 3)) is None
    assert _gone(_plan(short, _gang(short, 2))) == {"low1", "low2"}


def test_free_nodes_before_taken_ones() -> None:
    short = Short(n1=2, n2=2)
    _run(short, "a", "n1")
    _run(short, "b", "n1")
    assert _gone(_plan(short, _gang(short, 3))) < {"a", "b"}


def test_a_unit_that_goes_anyway_makes_its_other_nodes_free() -> None:
    """Two gangs of two, one pod of each on every node: taking one gang whole is enough."""
    short = Short(n1=2, n2=2)
    for node in ("n1", "n2"):
        _run(short, f"x-{node}", node, group="x")
        _run(short, f"y-{node}", node, group="y")
    groups = {name: GroupInfo(disrupt_all=True) for name in "xy"}
    gone = _gone(_plan(short, _gang(short, 2), groups))
    assert gone in ({"x-n1", "x-n2"}, {"y-n1", "y-n2"})


def test_surplus_members_before_whole_gangs() -> None:
    short = Short(n1=2, n2=2)
    for number, node in enumerate(("n1", "n1")):
        _run(short, f"tight{number}", node, group="tight", started="2026-01-09T00:00:00Z")
    for number, node in enumerate(("n2", "n2")):
        _run(short, f"loose{number}", node, group="loose", started="2026-01-01T00:00:00Z")
    groups = {"tight": GroupInfo(minimum=2), "loose": GroupInfo(minimum=1)}
    assert len(_gone(_plan(short, _gang(short, 1), groups)) & {"loose0", "loose1"}) == 1


def test_of_equal_victims_the_one_that_lost_least_work() -> None:
    short = Short(n1=1, n2=1, n3=1)
    for number, day in enumerate((3, 9, 5), 1):
        _run(short, f"v{number}", f"n{number}", started=f"2026-01-0{day}T00:00:00Z")
    assert _gone(_plan(short, _gang(short, 1))) == {"v2"}


def test_a_broken_budget_is_the_last_resort() -> None:
    short = Short(n1=1, n2=1)
    _run(short, "guarded", "n1", started="9")
    _run(short, "free", "n2", started="1")
    budget = Budget("b", frozenset({"guarded"}), 0)
    plan = _plan(short, _gang(short, 1), budgets=[budget])
    assert _gone(plan) == {"free"}
    both = _plan(short, _gang(short, 2), budgets=[budget])
    assert both is not None
    assert both.over_budget == 1


def test_more_victims_rather_than_a_budget_or_a_gang_that_is_broken() -> None:
    """One large pod under a budget, one of a gang that needs it, or four small ones."""
    short = Short(n1=4, n2=4, n3=4, n4=4)
    _run(short, "guarded", "n1", 4)
    _run(short, "member", "n2", 4, group="gang")
    for number in range(4):
        _run(short, f"small-{number}", f"n{3 + number // 2}", 2)
    groups = {"gang": GroupInfo(disrupt_all=True)}
    budget = Budget("b", frozenset({"guarded"}), 0)
    two = _plan(short, _gang(short, 2, 4), groups, [budget])
    assert _gone(two) == {f"small-{number}" for number in range(4)}
    three = _plan(short, _gang(short, 3, 4), groups, [budget])
    assert _gone(three) == {"member", *(f"small-{number}" for number in range(4))}


def test_by_sums_and_by_nodes_what_must_go_at_the_least() -> None:
    short = Short(n1=4, n2=4)
    for number in range(8):
        _run(short, f"v{number}", f"n{1 + number // 4}")
    arrays = VictimArrays(short.engine, find_victim_sets(short.state, {}), set())
    assert fewest_by_sums(short.engine, _gang(short, 2, 3), arrays) == 6
    assert fewest_by_rows(short.engine, _gang(short, 2, 3), arrays) == 6
    assert fewest_by_sums(short.engine, _gang(short, 1, 2.5), arrays) == 3
    assert fewest_by_rows(short.engine, _gang(short, 1, 2.5), arrays) == 3


def test_a_pod_that_keeps_away_from_the_preemptor_goes_though_there_is_room() -> None:
    short = Short(n1=8)
    _run(short, "shy", "n1", **pod_anti_affinity({"app": "g"}))
    root = Leaf("g", [short.pod("g0", labels={"app": "g"})], 1)
    assert _gone(_plan(short, root)) == {"shy"}


def test_v24_the_domain_that_costs_least() -> None:
    short = Short()
    for name, rack in (("a1", "A"), ("a2", "A"), ("b1", "B"), ("b2", "B"), ("b3", "B")):
        short.node(name, 2, rack=rack)
    for number, node in enumerate(("a1", "a1", "a2", "a2", "b1", "b1", "b2", "b2")):
        _run(short, f"w{number}", node, priority=10)
    assert len(_gone(_plan(short, _gang(short, 3, topology="rack")))) == 1


def test_leaves_of_a_tree_go_to_the_racks_that_cost_least() -> None:
    short = Short()
    for number in range(6):
        short.node(f"n{number}", 2, rack=f"r{number // 2}")
    for number in (0, 1, 2, 3):
        _run(short, f"w{number}", f"n{number}", 2, priority=10)
    leaves = [Leaf(name, [short.pod(f"{name}{n}", 2) for n in range(2)], 2, "rack") for name in "ab"]
    assert len(_gone(_plan(short, Branch("root", leaves, 2)))) == 2


def test_the_state_is_untouched_by_planning() -> None:
    short = Short(n1=2, n2=2)
    for number in range(4):
        _run(short, f"w{number}", f"n{number % 2 + 1}", labels={"a": "b"}, **pod_anti_affinity({"never": "seen"}))
    before = short.state.used.copy()
    assert _plan(short, _gang(short, 3)) is not None
    assert _plan(short, _gang(short, 30)) is None
    assert (short.state.used == before).all()
    assert short.engine.mark() == 0


# ---- a pod alone: kube-scheduler's ranking of nodes (5.5)


def _pod_plan(short: Short, groups: Any = None, budgets: Any = (), cpu: float = 1, **pod: Any) -> Preemption | None:
    leaf = Leaf("p", [short.pod("p", cpu, **pod)])
    return Preemptor(short.engine, find_victim_sets(short.state, groups or {}), budgets).plan_pod(leaf, 100)


def test_a_pod_alone_takes_the_node_with_the_lowest_top_priority() -> None:
    short = Short(n1=2, n2=2)
    for name, node, priority in (("a", "n1", 1), ("b", "n1", 50), ("c", "n2", 20), ("d", "n2", 20)):
        _run(short, name, node, priority=priority)
    assert _gone(_pod_plan(short, cpu=2)) == {"c", "d"}
    assert _gone(_pod_plan(short, cpu=1)) == {"a"}


def test_a_pod_alone_then_the_lowest_sum_then_the_fewest_then_the_latest() -> None:
    short = Short(n1=2, n2=2, n3=2)
    for name, node, priority in (("a", "n1", 20), ("b", "n1", 19), ("c", "n2", 20), ("d", "n2", 5)):
        _run(short, name, node, priority=priority)
    _run(short, "e", "n3", 2, priority=20, started="2026-01-01T00:00:00Z")
    assert _gone(_pod_plan(short, cpu=2)) == {"e"}
    short.node("n4", 2)
    _run(short, "f", "n4", 2, priority=20, started="2026-01-02T00:00:00Z")
    assert _gone(_pod_plan(short, cpu=2)) == {"f"}


def test_a_pod_alone_prefers_to_keep_budgets() -> None:
    short = Short(n1=1, n2=1)
    _run(short, "guarded", "n1", priority=1)
    _run(short, "free", "n2", priority=50)
    assert _gone(_pod_plan(short, budgets=[Budget("b", frozenset({"guarded"}), 0)])) == {"free"}


def test_a_pod_alone_takes_a_whole_gang_along() -> None:
    short = Short(n1=2, n2=2)
    _run(short, "x", "n1", group="v")
    _run(short, "y", "n2", group="v")
    plan = _pod_plan(short, {"v": GroupInfo(disrupt_all=True)}, cpu=2, nodeSelector={HOST: "n1"})
    assert _gone(plan) == {"x", "y"}
    assert plan is not None
    assert plan.result.placed == {"p": short.state.row("n1")}


def test_a_pod_alone_that_fits_nowhere_evicts_nobody() -> None:
    short = Short(n1=2)
    _run(short, "x", "n1")
    assert _pod_plan(short, cpu=3) is None
    assert _pod_plan(short, nodeSelector={"no": "where"}) is None


# ---- freed room is kept for its owner


def test_freed_room_is_kept_until_its_owner_lands_or_gives_up() -> None:
    short = Short(n1=2)
    _run(short, "w0", "n1")
    _run(short, "w1", "n1")
    root = _gang(short, 2)
    plan = _plan(short, root)
    assert plan is not None
    reservation = plan.reservation(short.engine, root, 100)
    assert reservation.nodes() == {"g0": "n1", "g1": "n1"}
    for name in _gone(plan):
        short.state.remove_pod(name)
    short.engine.reservations.put(reservation)
    thief = Leaf("thief", [short.pod("t")], 1)

    def fits(leaf: Leaf, priority: int) -> bool:
        with short.engine.respecting_nominations(leaf.name, priority):
            mark = short.engine.mark()
            ok = Search(short.engine).place(leaf).ok
            short.engine.undo(mark)
        return ok

    assert not fits(thief, 100), "an equal may not take it"
    assert fits(thief, 101), "one more important may"
    assert fits(root, 100), "its owner finds it free"
    short.engine.reservations.drop("g")
    assert fits(thief, 0)
    assert short.engine.mark() == 0


def test_company_that_is_only_expected_is_none() -> None:
    short = Short(n1=4)
    red = Leaf("red", [short.pod("r", labels={"colour": "red"})], 1)
    short.engine.reservations.put(Preemption((), Search(short.engine).place(red)).reservation(short.engine, red, 5))
    short.engine.undo(0)
    rule = {"labelSelector": {"matchLabels": {"colour": "red"}}, "topologyKey": HOST}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    with short.engine.respecting_nominations("p", 0):
        assert not Search(short.engine).place(Leaf("p", [short.pod("p", affinity=affinity)], 1)).ok


def test_a_reservation_on_a_node_that_went_away_counts_for_nothing() -> None:
    short = Short(n1=1, n2=1)
    leaf = _gang(short, 2)
    short.engine.reservations.put(Preemption((), Search(short.engine).place(leaf)).reservation(short.engine, leaf, 5))
    short.engine.undo(0)
    short.state.remove_node("n2")
    short.node("n3", 1)
    with short.engine.respecting_nominations("p", 0):
        assert Search(short.engine).place(Leaf("p", [short.pod("p")], 1)).placed == {"p": short.state.row("n3")}


# ---- against the optimum, on random small clusters


def _random(seed: int) -> tuple[model.Case, list[list[tuple[model.Kind, str]]], int]:
    """A full little cluster: victim units, each of one or more pods, and a gang."""
    rng = Random(seed)
    nodes = [model.Node(f"n{n}", rng.randint(2, 4), 99, {"rack": rng.choice("ab")}) for n in range(rng.randint(2, 4))]
    case = model.Case(nodes, [], model.Group("g", 1))
    victim_sets: list[list[tuple[model.Kind, str]]] = []
    assignments: list[tuple[model.Kind, str]] = []
    for _ in range(rng.randint(3, 7)):
        victim_set = []
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            seat = (model.Kind(rng.randint(1, 2)), rng.choice(nodes).name)
            if model.allows(case, assignments, seat[0], model.node_of(case, seat[1])):
                assignments.append(seat)
                victim_set.append(seat)
        if victim_set:
            victim_sets.append(victim_set)
    eq_classes = [model.Kind(rng.randint(1, 3)) for _ in range(rng.choice([1, 1, 2]))]
    pods = [rng.choice(eq_classes) for _ in range(rng.randint(1, 3))]
    case.root = model.Group("g", len(pods), rng.choice([None, None, "rack"]), pods)
    return case, victim_sets, seed


def _optimum(case: model.Case, victim_sets: list[list[tuple[model.Kind, str]]]) -> tuple[int, int] | None:
    """(units, pods) of the cheapest set of victims, trying them all."""
    best: tuple[int, int] | None = None
    for count in range(len(victim_sets) + 1):
        for gone in combinations(range(len(victim_sets)), count):
            case.others = [
                seat for number, victim_set in enumerate(victim_sets) if number not in gone for seat in victim_set
            ]
            if model.fits(case):
                cost = (count, sum(len(victim_sets[number]) for number in gone))
                best = cost if best is None else min(best, cost)
        if best is not None:
            return best
    return None


@pytest.mark.parametrize(("effort", "percent"), [(Effort(), 100), (Effort(solver_size=0), 85)], ids=["exact", "alone"])
def test_victims_against_the_optimum(effort: Effort, percent: int) -> None:
    planned = optimal = extra = 0
    for seed in range(CASES):
        case, victim_sets, _ = _random(seed)
        state = ClusterState()
        for node in case.nodes:
            state.put_node(node.name, {"cpu": node.cpu * 1000, "memory": 99 << 30, "pods": 110}, node.labels)
        groups = {}
        for number, victim_set in enumerate(victim_sets):
            groups[f"u{number}"] = GroupInfo(disrupt_all=True)
            for place, (eq_class, where) in enumerate(victim_set):
                signature = state.signatures.of_requests({"cpu": eq_class.cpu * 1000})
                uid = f"u{number}-{place}"
                state.put_pod(AssignedPod(uid, "default", uid, {}, signature, 0, f"u{number}"), where)
        pods = [pending(state, f"g/{number}", eq_class) for number, eq_class in enumerate(case.root.pods)]
        root = Leaf("g", pods, len(pods), case.root.key)
        engine = Engine(state)
        best = _optimum(case, victim_sets)
        if Search(engine).place(root).ok:
            engine.undo(0)
            assert best == (0, 0), seed
            continue
        found = find_victim_sets(state, groups)
        if best is not None and case.root.key is None:
            arrays = VictimArrays(engine, found, set())
            assert fewest_by_sums(engine, root, arrays) <= best[0], seed
            assert fewest_by_rows(engine, root, arrays) <= best[0], seed
        plan = Preemptor(engine, found, effort=effort).plan(root, 100)
        assert (plan is None) == (best is None), f"seed {seed}: {plan} against {best}"
        if plan is None or best is None:
            continue
        case.others = [
            seat
            for number, victim_set in enumerate(victim_sets)
            if f"group u{number}" not in {u.name for u in plan.victims}
            for seat in victim_set
        ]
        placed = {"g": {int(key[2:]): state.node(row).name for key, row in plan.result.placed.items()}}
        assert not model.mistakes(case, placed), f"seed {seed}"
        planned += 1
        optimal += len(plan.victims) == best[0]
        extra += len(plan.victims) - best[0]
    print(f"preemption: {optimal} of {planned} plans have the fewest victims possible; {extra} units too many in all")
    assert optimal * 100 >= planned * percent
