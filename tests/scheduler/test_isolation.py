"""A fault, or a tree that nobody means, concerns one root: it is marked, and tried again; all else goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.scheduler.short import create, pod_body
from tests.scheduler.sim import Sim
from tests.scheduler.test_histories import usage

from kohort.place.engine import Engine
from kohort.scheduler import snapshot
from kohort.scheduler.decision import Decider
from kohort.scheduler.validate import DEEPEST


def cluster(nodes: int = 4) -> Sim:
    sim = Sim()
    for number in range(nodes):
        create(sim, {"node": f"n{number}", "cpu": "4"})
    return sim


def gang(sim: Sim, name: str, pods: int = 2, **more: Any) -> None:
    create(sim, {"group": name, "gang": pods, **more})
    for number in range(pods):
        create(sim, {"pod": f"{name}-{number}", "in": name, "cpu": "1"})


def chain(sim: Sim, length: int, *, from_the_top: bool = True) -> None:
    links = [{"composite": f"c{number}", "gang": 1, "parent": f"c{number - 1}"} for number in range(1, length)]
    links.insert(0, {"composite": "c0", "gang": 1})
    for link in links if from_the_top else reversed(links):
        create(sim, link)
    gang(sim, "deep", parent=f"c{length - 1}")


@pytest.mark.parametrize("from_the_top", [True, False])
@pytest.mark.parametrize("length", [300, 3000])
def test_chained_composites_stop_nobody_else(length: int, from_the_top: bool) -> None:
    sim = cluster()
    chain(sim, length, from_the_top=from_the_top)
    gang(sim, "other")
    sim.settle(5)
    assert set(sim.bound) == {"other-0", "other-1"}
    said = sim.condition("pod", "deep-0", "PodScheduled")
    assert said is not None
    assert f"default/c0 has {length + 1} levels; at most {DEEPEST} are accepted" in said["message"]
    top = sim.condition("composite", "c0", "CompositePodGroupInitiallyScheduled")
    assert top is not None
    assert "levels; at most" in top["message"]
    assert json.dumps(msgspec.to_builtins(snapshot.dump(sim.core, snapshot.ObjectStore())))


def test_a_deep_chain_that_lacks_members_says_so() -> None:
    sim = cluster()
    chain(sim, 300)
    sim.delete("pod", "deep-0")
    sim.settle(5)
    [waiting] = [one for one in sim.core.pending() if one.key == "default/c0"]
    assert (waiting.queue, waiting.reason) == ("gated", "Misconfigured")
    assert sim.core.notices(sim.now + 60)


def test_as_deep_as_is_accepted_is_placed() -> None:
    sim = cluster()
    chain(sim, DEEPEST - 1)
    sim.settle(5)
    assert set(sim.bound) == {"deep-0", "deep-1"}


def test_parents_in_a_circle_stop_nobody_else() -> None:
    sim = cluster()
    for number in range(50):
        create(sim, {"composite": f"c{number}", "gang": 1, "parent": f"c{(number + 1) % 50}"})
    gang(sim, "lost", parent="c7")
    gang(sim, "other")
    sim.settle(5)
    assert set(sim.bound) == {"other-0", "other-1"}
    [one, _] = [one for one in sim.core.pending() if one.key.startswith("default/lost")]
    assert (one.reason, "its own ancestors" in one.detail) == ("Misconfigured", True)


# ---- faults


TAINT = [{"key": "apart", "effect": "NoSchedule"}]


class _PlantedError(Exception):
    pass


def several() -> Sim:
    """Gangs that fit in any order, one that cannot, one that preempts where only it may go, a tree, a pod alone."""
    sim = cluster(3)
    create(sim, {"node": "apart", "cpu": "2", "labels": {"zone": "z"}, "taints": TAINT})
    create(sim, {"pod": "low", "cpu": "2", "node": "apart"})
    gang(sim, "a")
    gang(sim, "b", 3)
    create(sim, {"composite": "t", "gang": 2})
    gang(sim, "t1", 1, parent="t")
    gang(sim, "t2", 1, parent="t")
    create(sim, {"pod": "alone", "cpu": "1"})
    create(sim, {"group": "large", "gang": 9})
    for number in range(9):
        create(sim, {"pod": f"large-{number}", "in": "large", "cpu": "4"})
    tolerations = [{"key": "apart", "operator": "Exists"}]
    create(sim, {"pod": "high", "cpu": "2", "priority": "p10", "select": {"zone": "z"}, "tolerations": tolerations})
    return sim


def placed(sim: Sim) -> set[str]:
    return set(sim.bound)


def count(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, fail: Callable[[int], bool]) -> list[int]:
    """The calls of a method, some of which fail."""
    calls: list[int] = []
    original = getattr(owner, name)

    def counted(self: Any, *args: Any, **more: Any) -> Any:
        calls.append(len(calls))
        if fail(calls[-1]):
            raise _PlantedError(f"planted in call {calls[-1]} of {name}")
        return original(self, *args, **more)

    monkeypatch.setattr(owner, name, counted)
    return calls


POINTS = [(Decider, "decide"), (Decider, "demand"), (Decider, "_preempt"), (Engine, "_move"), (Engine, "evaluate")]


@pytest.mark.parametrize(("owner", "name"), POINTS, ids=lambda one: getattr(one, "__name__", one))
def test_a_fault_at_any_moment_of_any_decision_delays_that_root_only(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        calls = count(patch, owner, name, lambda _: False)
        whole = several()
        whole.settle(30)
    for at in range(0, len(calls), max(len(calls) // 40, 1)):
        with monkeypatch.context() as patch:
            count(patch, owner, name, lambda call, at=at: call == at)  # type: ignore[misc]
            sim = several()
            sim.settle(30)
        told = [one for one in sim.core.faults if isinstance(one.error, _PlantedError)]
        assert len(told) <= 1  # a queueing hint that fails is only asked again
        assert placed(sim) == placed(whole), at
        fresh = Sim(settings=sim.settings, objects=sim.objects, now=sim.now)
        fresh.restart()
        assert usage(fresh.core) == usage(sim.core), at  # nothing of the failed decision is left


def test_a_root_that_always_fails_is_marked_and_tried_ever_later(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Decider.decide

    def fail(self: Decider, root: Any, **more: Any) -> Any:
        if getattr(root, "key", "") == "default/bad":
            raise _PlantedError("always")
        return decide(self, root, **more)

    monkeypatch.setattr(Decider, "decide", fail)
    sim = cluster()
    gang(sim, "bad")
    sim.settle()
    gang(sim, "good")
    sim.settle(300)
    assert set(sim.bound) == {"good-0", "good-1"}
    for kind, name, type_ in (("pod", "bad-0", "PodScheduled"), ("group", "bad", "PodGroupInitiallyScheduled")):
        said = sim.condition(kind, name, type_)
        assert said is not None
        assert said["reason"] == "SchedulerError"
        assert "_PlantedError: always" in said["message"]
    assert [one.text for one in sim.events if one.regarding.name == "bad"] == [
        "SchedulerError: the scheduler failed on it and tries again: _PlantedError: always"
    ]
    assert 5 <= len(sim.core.faults) <= 10  # after 1, 2, 4, 8 … seconds
    assert [fault.first for fault in sim.core.faults].count(True) == 1
    [waiting] = list(sim.core.pending())
    assert (waiting.queue, waiting.reason) == ("backoff", "SchedulerError")


def test_a_pod_with_hundreds_of_rules_is_told_and_stops_nobody_else() -> None:
    sim = cluster()
    rules = [
        {"maxSkew": 1, "topologyKey": f"k{key}", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        for key in range(200)
    ]
    for number in range(10):
        body = pod_body({"cpu": "1"})
        body["spec"]["topologySpreadConstraints"] = rules
        sim.put("pod", f"loud-{number}", body)
    gang(sim, "other")
    sim.settle(5)
    assert set(sim.bound) == {"other-0", "other-1"}
    said = sim.condition("pod", "loud-3", "PodScheduled")
    assert said is not None
    assert "200 different rules between pods (affinity, spread); at most 100 are accepted" in said["message"]
    assert {one.reason for one in sim.core.pending()} == {"Misconfigured"}
