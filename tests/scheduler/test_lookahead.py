"""Gangs of equal priority that are ready together: as few as can be are left waiting, and nobody is for ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
from tests.scheduler.short import create, group_body
from tests.scheduler.sim import SETTINGS, Sim

from kohort.place.effort import Effort
from kohort.place.highs import SolverStatus
from kohort.place.packing import Packing
from kohort.place.profile import ProfileError, read_profile
from kohort.place.solving import Verdict, answer
from kohort.scheduler import decision
from kohort.scheduler.hardquestions import HardQuestion


@pytest.fixture(autouse=True)
def _calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision has all the time that it needs, however busy the machine is."""
    monkeypatch.setattr(decision, "_HELD", 60.0)


def _sim(*nodes: int, lookahead: int = 10, aside: bool = False, patience: float = 60.0) -> Sim:
    profile = replace(SETTINGS.profile, lookahead=lookahead, patience=patience)
    sim = Sim(settings=replace(SETTINGS, profile=profile), aside=aside)
    for number, cpu in enumerate(nodes):
        create(sim, {"node": f"n{number}", "cpu": str(cpu)})
    return sim


def _gang(sim: Sim, name: str, *sizes: int, minimum: int | None = None, priority: str = "p0") -> None:
    """As a controller makes it: it is ready when its last pod is there."""
    gang = {"gang": len(sizes) if minimum is None else minimum, "priority": priority}
    sim.put("group", name, group_body(gang, composite=False) | {"metadata": {}})
    for number, cpu in enumerate(sizes):
        create(sim, {"pod": f"{name}-{number}", "in": name, "cpu": str(cpu), "priority": priority})
    sim.now += 1


def _bound(sim: Sim) -> dict[str, int]:
    """How many pods of each gang have a node."""
    found: dict[str, int] = {}
    for name, pod in sim.objects["pod"].items():
        if pod["spec"].get("nodeName") and "schedulingGroup" in pod["spec"]:
            group = name.rpartition("-")[0]
            found[group] = found.get(group, 0) + 1
    return found


def _gone(sim: Sim, *gangs: str) -> None:
    for name in [pod for pod in sim.objects["pod"] if pod.rpartition("-")[0] in gangs]:
        sim.delete("pod", name)
    for name in gangs:
        sim.delete("group", name)


@pytest.mark.parametrize(("lookahead", "bound"), [(1, {"a": 2}), (10, {"a": 2, "b": 1})])
def test_gangs_that_fit_only_if_packed_together(lookahead: int, bound: dict[str, int]) -> None:
    """Alone, the first is spread over both nodes."""
    sim = _sim(4, 4, lookahead=lookahead)
    _gang(sim, "a", 2, 2)
    _gang(sim, "b", 4)
    sim.settle()
    assert _bound(sim) == bound


def test_one_after_the_other_where_that_is_as_good() -> None:
    sim = _sim(4)
    _gang(sim, "a", 3)
    _gang(sim, "b", 2)
    sim.settle()
    assert _bound(sim) == {"a": 1}


def test_a_large_gang_is_passed_over_for_more_small_ones_but_not_for_long() -> None:
    sim = _sim(4, patience=60.0)
    _gang(sim, "large", 3)
    _gang(sim, "b", 2)
    _gang(sim, "c", 2)
    sim.settle(10)
    assert _bound(sim) == {"b": 1, "c": 1}
    _gone(sim, "b", "c")
    _gang(sim, "d", 2)
    _gang(sim, "e", 2)
    sim.settle(60)
    assert _bound(sim) == {"d": 1, "e": 1}
    _gone(sim, "d", "e")
    _gang(sim, "f", 2)
    _gang(sim, "g", 2)
    sim.settle(10)
    assert _bound(sim) == {"large": 1}


def test_whoever_is_more_important_comes_first() -> None:
    sim = _sim(4)
    _gang(sim, "b", 2)
    _gang(sim, "c", 2)
    _gang(sim, "important", 3, priority="p10")
    sim.settle()
    assert _bound(sim) == {"important": 1}


def test_minimums_of_all_before_what_is_above_them() -> None:
    sim = _sim(4, 4)
    _gang(sim, "a", 2, 2, 2, minimum=2)
    _gang(sim, "b", 4)
    sim.settle()
    assert _bound(sim) == {"a": 2, "b": 1}


def test_the_same_each_time() -> None:
    nodes = []
    for _ in range(3):
        sim = _sim(4, 4, 3)
        for name, sizes in {"a": (2, 2), "b": (3, 1), "c": (3,), "d": (2, 1)}.items():
            _gang(sim, name, *sizes)
        sim.settle()
        nodes.append({name: pod["spec"].get("nodeName") for name, pod in sim.objects["pod"].items()})
    assert nodes[0] == nodes[1] == nodes[2]


# ---- searched elsewhere

NODES = (8, 8, 7)
GANGS: dict[str, Sequence[int]] = {"a": (2, 2, 4), "b": (2, 4), "c": (6, 3)}  # in one way only: 6 2, 4 4, 2 2 3


def _asked(sim: Sim) -> HardQuestion:
    assert sim.core.questions is not None
    (question,) = sim.core.questions.take()
    return question


def _hard(sim: Sim) -> HardQuestion:
    for name, sizes in GANGS.items():
        _gang(sim, name, *sizes)
    sim.drain()
    return _asked(sim)


def _found(question: HardQuestion) -> Verdict:
    said = answer(msgspec.msgpack.decode(question.data, type=Packing), Effort())
    assert said.status is SolverStatus.FOUND
    return said


def test_others_are_decided_while_gangs_are_searched_for_together() -> None:
    sim = _sim(*NODES, 1, aside=True)
    question = _hard(sim)
    assert question.seconds == 2.0
    assert _bound(sim) == {}
    create(sim, {"pod": "small", "cpu": "1", "select": {"kubernetes.io/hostname": "n3"}})
    sim.drain()
    assert sim.objects["pod"]["small"]["spec"]["nodeName"] == "n3"
    sim.core.answered(question, _found(question), sim.now)
    sim.drain()
    assert _bound(sim) == {name: len(sizes) for name, sizes in GANGS.items()}
    assert not sim.core.questions


def test_a_search_that_found_nothing_leaves_the_order_and_rests() -> None:
    sim = _sim(*NODES, aside=True)
    question = _hard(sim)
    sim.core.answered(question, Verdict(SolverStatus.UNKNOWN), sim.now)
    sim.drain()
    assert "a" in _bound(sim)
    assert len(_bound(sim)) == 2
    _gone(sim, *GANGS)
    for name, sizes in GANGS.items():
        _gang(sim, f"{name}2", *sizes)
    sim.drain()
    assert sim.core.questions is not None
    assert not [one for one in sim.core.questions.take() if one.root == question.root]
    assert "a2" in _bound(sim)


def test_an_answer_that_does_not_hold_any_more() -> None:
    sim = _sim(*NODES, aside=True)
    question = _hard(sim)
    sim.delete("node", "n2")
    create(sim, {"node": "n3", "cpu": "8"})
    sim.core.answered(question, _found(question), sim.now)
    sim.settle(5)
    assert len(_bound(sim)) >= 2
    for name, count in _bound(sim).items():
        assert count == len(GANGS[name])


def test_a_search_without_an_answer_does_not_hold_gangs_for_ever() -> None:
    sim = _sim(*NODES, aside=True)
    _hard(sim)
    sim.settle(10)
    assert len(_bound(sim)) == 2


def test_a_gang_that_goes_while_it_is_searched_for() -> None:
    sim = _sim(*NODES, aside=True)
    question = _hard(sim)
    _gone(sim, "b")
    sim.core.answered(question, _found(question), sim.now)
    sim.drain()
    assert _bound(sim) == {"a": 3, "c": 2}


# ---- the setting


def test_it_is_read_from_a_profile() -> None:
    assert read_profile({"lookahead": 3}).lookahead == 3
    for wrong in (0, 65, "many", True):
        with pytest.raises(ProfileError, match=r"lookahead: found .*; a whole number from 1 to 64 is wanted"):
            read_profile({"lookahead": wrong})
