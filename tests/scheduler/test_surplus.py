"""Minimums before surplus: pods above a gang's minimum do not take the room of another gang's minimum (Grove GS8)."""

from __future__ import annotations

from collections import Counter

from tests.scheduler.short import change, create, group_body
from tests.scheduler.sim import Sim


def cluster(nodes: int) -> Sim:
    """A node for each pod."""
    sim = Sim()
    for number in range(nodes):
        create(sim, {"node": f"n{number}", "cpu": "1"})
    return sim


def gang(
    sim: Sim, name: str, least: int, pods: int, *, part_of: str = "", gates: bool = False, priority: str = "p0"
) -> None:
    body = group_body({"gang": least, "priority": priority}, composite=False)
    body["metadata"] = {"labels": {"app.kubernetes.io/part-of": part_of}} if part_of else {}
    sim.put("group", name, body)
    for number in range(pods):
        create(sim, {"pod": f"{name}-{number}", "in": name, "cpu": "1", "gates": gates, "priority": priority})


def placed(sim: Sim) -> Counter[str]:
    return Counter(name.split("-")[0] for name in sim.bound)


def ungate(sim: Sim, *names: str) -> None:
    for pod in [one for one in sim.objects["pod"] if one.split("-")[0] in names]:
        change(sim, f"pod/{pod}", {"ungate": True})


def test_gs8_minimums_of_gangs_that_are_ready_come_before_surplus() -> None:
    sim = cluster(7)
    gang(sim, "base", 3, 6)
    gang(sim, "one", 2, 2)
    gang(sim, "two", 2, 2)
    sim.settle(1)
    assert placed(sim) == {"base": 3, "one": 2, "two": 2}


def test_what_is_left_goes_to_the_surplus_at_once() -> None:
    sim = cluster(8)
    gang(sim, "base", 3, 6)
    gang(sim, "one", 2, 4)
    gang(sim, "two", 2, 2)
    sim.settle()
    assert placed(sim) == {"base": 4, "one": 2, "two": 2}
    waiting = {name for name, reason in sim.pending.items() if reason == "Unschedulable"}
    assert waiting == {"base-4", "base-5", "one-2", "one-3"}


def test_alone_a_gang_is_placed_whole_in_one_decision() -> None:
    sim = cluster(8)
    gang(sim, "base", 3, 6)
    sim.settle()
    assert placed(sim) == {"base": 6}
    assert sim.counts() == {"scheduled": 1}


def test_nobody_is_told_a_failure_while_surplus_waits_its_turn() -> None:
    sim = cluster(10)
    gang(sim, "base", 3, 6)
    gang(sim, "one", 2, 2)
    sim.settle()
    assert placed(sim) == {"base": 6, "one": 2}
    assert not [one for one in sim.events if one.type == "Warning"]


def test_a_gang_of_lower_priority_does_not_hold_surplus_back() -> None:
    sim = cluster(7)
    gang(sim, "low", 2, 2)
    gang(sim, "base", 3, 6, priority="p10")
    sim.settle()
    assert placed(sim) == {"base": 6}


def test_a_minimum_that_does_not_fit_holds_surplus_back_no_longer() -> None:
    sim = cluster(7)
    gang(sim, "base", 3, 6)
    gang(sim, "large", 20, 20)
    sim.settle()
    assert placed(sim) == {"base": 6}


def test_surplus_that_comes_later_waits_behind_minimums() -> None:
    """Of a gang that runs: replicas were added."""
    sim = cluster(4)
    gang(sim, "base", 2, 2)
    sim.settle()
    for number in (2, 3):
        create(sim, {"pod": f"base-{number}", "in": "base", "cpu": "1"})
    gang(sim, "one", 2, 2)
    sim.settle(1)
    assert placed(sim) == {"base": 2, "one": 2}


def test_trees_leave_groups_out_that_the_minimum_does_not_need() -> None:
    sim = cluster(4)
    create(sim, {"composite": "tree", "gang": 1})
    for name in ("ta", "tb"):
        create(sim, {"group": name, "gang": 2, "parent": "tree"})
        for number in range(2):
            create(sim, {"pod": f"{name}-{number}", "in": name, "cpu": "1"})
    gang(sim, "one", 2, 2)
    sim.settle(1)
    assert placed(sim)["one"] == 2
    assert len(sim.bound) == 4


def test_pods_of_a_basic_group_are_no_surplus() -> None:
    sim = cluster(4)
    create(sim, {"group": "basic"})
    for number in range(4):
        create(sim, {"pod": f"basic-{number}", "in": "basic", "cpu": "1"})
    gang(sim, "one", 2, 2)
    sim.settle(1)
    assert placed(sim) == {"basic": 4}


# ---- of one owner


def test_gs8_gates_that_open_when_the_first_gang_has_its_minimum() -> None:
    """As Grove does it: scaled gangs are gated until the base gang of their set is scheduled."""
    sim = cluster(7)
    gang(sim, "base", 3, 6, part_of="set")
    gang(sim, "one", 2, 2, part_of="set", gates=True)
    gang(sim, "two", 2, 2, part_of="set", gates=True)
    sim.settle(2)
    assert placed(sim) == {"base": 3}
    ungate(sim, "one", "two")
    sim.settle(2)
    assert placed(sim) == {"base": 3, "one": 2, "two": 2}


def test_gates_that_never_open_hold_surplus_back_for_a_while_only() -> None:
    sim = cluster(7)
    gang(sim, "base", 3, 6, part_of="set")
    gang(sim, "one", 2, 2, part_of="set", gates=True)
    sim.settle(5)
    assert placed(sim) == {"base": 3}
    sim.settle(sim.settings.surplus_wait)
    assert placed(sim) == {"base": 6}


def test_gates_of_others_hold_nobody_back() -> None:
    sim = cluster(7)
    gang(sim, "base", 3, 6, part_of="set")
    gang(sim, "one", 2, 2, part_of="other", gates=True)
    sim.settle()
    assert placed(sim) == {"base": 6}
