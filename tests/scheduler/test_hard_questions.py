"""A hard root is searched for elsewhere: others are decided meanwhile, and the answer is used if it still holds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.scheduler.short import create, group_body
from tests.scheduler.sim import Sim

from kohort.childprocess import ChildProcess
from kohort.kube.client import Client
from kohort.place.effort import Effort
from kohort.place.highs import SolverStatus
from kohort.place.linear import LinearModel
from kohort.place.packing import Packing
from kohort.place.solving import HardModel, Verdict, answer
from kohort.scheduler import slices, solverprocesses
from kohort.scheduler.hardquestions import HardQuestion
from kohort.scheduler.loop import Scheduler, running
from kohort.scheduler.metrics import Metrics
from kohort.scheduler.solverprocesses import SolverProcesses
from kohort.server.server import Server
from kohort.server.settings import Settings as ServerSettings

# The greedy way and packing do not find it; there is exactly one way to fill three nodes of 8, 8 and 7.
NODES, SIZES = (8, 8, 7), (2, 2, 6, 4, 2, 4, 3)


def _sim(nodes: Sequence[int] = NODES) -> Sim:
    sim = Sim(aside=True)
    for number, cpu in enumerate(nodes):
        create(sim, {"node": f"n{number}", "cpu": str(cpu)})
    return sim


def _gang(sim: Sim, sizes: Sequence[int] = SIZES, name: str = "g") -> None:
    sim.put("group", name, group_body({"gang": len(sizes), "priority": "p0"}, composite=False) | {"metadata": {}})
    for number, cpu in enumerate(sizes):
        create(sim, {"pod": f"{name}-{number}", "in": name, "cpu": str(cpu)})
    sim.drain()


def _open(sim: Sim) -> list[HardQuestion]:
    assert sim.core.questions is not None
    return sim.core.questions.take()


def _answer(sim: Sim, question: HardQuestion) -> Verdict:
    """A packing that was not found is followed by a question to the exact solver: the last word."""
    model: HardModel
    if question.kind == "Packing":
        model = msgspec.msgpack.decode(question.data, type=Packing)
    else:
        model = msgspec.msgpack.decode(question.data, type=LinearModel)
    said = answer(model, Effort())
    sim.core.answered(question, said, sim.now)
    sim.drain()
    if said.status is SolverStatus.UNKNOWN and not question.last:
        for following in _open(sim):
            said = _answer(sim, following)
    return said


def _said(sim: Sim) -> str:
    condition = sim.condition("pod", "g-0", "PodScheduled")
    assert condition is not None
    return str(condition["message"])


def test_a_cluster_that_changes_all_the_time_does_not_keep_it_at_the_first_question() -> None:
    """What patterns do not find is asked of the exact solver next, though it is not the very same question any more."""
    sim = _sim((*NODES, 10))
    _gang(sim, (*SIZES, 9))
    kinds = []
    for number in range(2):
        (question,) = _open(sim)
        kinds.append(question.kind)
        create(sim, {"pod": f"other-{number}", "cpu": "0.001", "node": "n3"})
        sim.core.answered(question, Verdict(SolverStatus.UNKNOWN), sim.now)
        sim.drain()
    assert kinds == ["Packing", "LinearModel"]


def test_others_are_decided_while_a_hard_gang_is_searched() -> None:
    sim = _sim((*NODES, 1))
    _gang(sim)
    assert "not found yet, still searching" in _said(sim)
    (question,) = _open(sim)
    create(sim, {"pod": "other", "cpu": "1", "select": {"kubernetes.io/hostname": "n3"}})
    sim.drain()
    assert sim.bound == {"other": "n3"}
    assert _answer(sim, question).status is SolverStatus.FOUND
    assert len(sim.bound) == 1 + len(SIZES)
    assert len(sim.core.questions or ()) == 0


def test_what_was_found_is_not_used_when_somebody_took_the_room() -> None:
    sim = _sim()
    _gang(sim)
    (question,) = _open(sim)
    create(sim, {"pod": "thief", "cpu": "1"})
    sim.drain()
    assert sim.bound.keys() == {"thief"}
    assert _answer(sim, question).status is SolverStatus.FOUND
    assert sim.bound.keys() == {"thief"}
    sim.remove_pod("thief")
    sim.settle(60)
    for question in _open(sim):
        _answer(sim, question)
    sim.settle(60)
    assert len(sim.bound) == len(SIZES)


def test_one_question_at_a_time_for_a_root() -> None:
    sim = _sim()
    _gang(sim)
    assert len(_open(sim)) == 1
    create(sim, {"node": "n3", "cpu": "1"})
    sim.settle(60)
    assert not _open(sim)
    assert "still searching" in _said(sim)


def test_not_found_yet_becomes_impossible_and_is_not_asked_again() -> None:
    sim = _sim((6, 6))
    metrics = Metrics(sim.core, "p")
    _gang(sim, (4, 4, 3, 1))
    assert "NotFoundInTime" in _said(sim)
    (question,) = _open(sim)
    assert _answer(sim, question).status is SolverStatus.IMPOSSIBLE
    sim.settle(400)
    assert "NotFoundInTime" not in _said(sim)
    assert "still searching" not in _said(sim)
    assert not _open(sim)
    for step in sim.steps:
        if step.decision is not None:
            metrics.decided(step.decision, 0.001)
    assert b'kohort_scheduler_search_results_total{result="searching"} 2.0' in metrics.text()
    assert b'result="not_found"' not in metrics.text()
    assert b"kohort_scheduler_searches 0.0" in metrics.text()


def test_nobody_goes_before_the_search_has_ended() -> None:
    sim = _sim((6, 6, 1))
    create(sim, {"pod": "small", "cpu": "1", "node": "n2", "priority": "p0"})
    sim.put("group", "g", group_body({"gang": 4, "priority": "p9"}, composite=False) | {"metadata": {}})
    for number, cpu in enumerate((4, 4, 3, 1)):
        create(sim, {"pod": f"g-{number}", "in": "g", "cpu": str(cpu), "priority": "p9"})
    sim.drain()
    assert not sim.evicted
    (question,) = _open(sim)
    assert _answer(sim, question).status is SolverStatus.IMPOSSIBLE
    sim.settle(60)
    assert not sim.bound.keys() - {"small"}  # it would not help, and so nobody went
    assert not sim.evicted


def test_a_root_that_is_gone_gets_no_answer() -> None:
    sim = _sim()
    _gang(sim)
    (question,) = _open(sim)
    for number in range(len(SIZES)):
        sim.delete("pod", f"g-{number}")
    sim.drain()
    _answer(sim, question)
    assert not sim.bound
    assert len(sim.core.questions or ()) == 0


def test_a_node_that_is_gone_is_not_bound_to() -> None:
    sim = _sim()
    _gang(sim)
    (question,) = _open(sim)
    sim.delete("node", "n2")
    create(sim, {"node": "n4", "cpu": "7"})  # in the same row of the arrays
    sim.drain()
    _answer(sim, question)
    assert not sim.bound
    for question in _open(sim):
        _answer(sim, question)
    assert set(sim.bound.values()) == {"n0", "n1", "n4"}


# ---- processes


def _model(most: int) -> LinearModel:
    """Two and three, some of each, that make seven; with `most` up to ten of each."""
    model = LinearModel()
    two, three = model.unknown(most), model.unknown(most)
    model.rule([(two, 2), (three, 3)], least=7, most=7)
    return model


@dataclass
class _Asked:
    seconds: float = 20.0
    answers: dict[str, Verdict] = field(default_factory=dict)

    async def of(self, **models: LinearModel) -> SolverProcesses:
        processes = SolverProcesses(1, self.seconds, lambda question, said: self.answers.update({question.root: said}))
        questions = [
            HardQuestion(name, "LinearModel", msgspec.msgpack.encode(model), lambda _: {})
            for name, model in models.items()
        ]
        processes.ask(questions)
        while len(self.answers) < len(models):
            await asyncio.sleep(0.01)
        return processes


async def test_a_process_answers_one_question_after_the_other() -> None:
    asked = _Asked()
    processes = await asked.of(can=_model(10), cannot=_model(1))
    try:
        assert asked.answers["can"].values == [2, 1]
        assert asked.answers["cannot"].status is SolverStatus.IMPOSSIBLE
        assert processes.started == 1
    finally:
        await processes.close()


async def test_a_process_that_dies_has_found_nothing_and_another_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    run, children = ChildProcess.run, list[ChildProcess]()

    async def doomed(module: str) -> ChildProcess:
        child = await run(module)
        if not children:
            child.kill()
        children.append(child)
        return child

    monkeypatch.setattr(ChildProcess, "run", doomed)
    asked = _Asked()
    processes = await asked.of(first=_model(10), second=_model(10))
    try:
        assert asked.answers["first"].status is SolverStatus.UNKNOWN
        assert asked.answers["second"].values == [2, 1]
    finally:
        await processes.close()


async def test_a_process_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solverprocesses, "_MODULE", "timeit")  # reads nothing, says nothing that is a frame
    monkeypatch.setattr(solverprocesses, "_GRACE", 0.0)
    asked = _Asked(seconds=0.2)
    processes = await asked.of(one=_model(10))
    await processes.close()
    assert asked.answers["one"].status is SolverStatus.UNKNOWN


# ---- all of it, with the clock of this machine


@pytest.mark.parametrize("large", [slices.LARGE, 1], ids=["in one piece", "in slices"])
async def test_a_live_scheduler_places_what_a_process_found(
    tmp_path: Path, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "LARGE", large)
    monkeypatch.setattr(slices, "SLICE", -1.0)
    async with (
        Server(ServerSettings(tmp_path, port=0, in_memory=True)) as server,
        Client.within(server.api) as client,
    ):
        nodes, pods = client.resource("nodes"), client.resource("pods")
        for number, cpu in enumerate(NODES):
            amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
            meta = {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}}
            await nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": meta})
            await nodes.patch(f"n{number}", {"status": {"allocatable": amounts}}, subresource="status")
            await nodes.patch(f"n{number}", {"spec": {"taints": None}})
        group: dict[str, Any] = {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g"},
        }
        group["spec"] = {"schedulingPolicy": {"gang": {"minCount": len(SIZES)}}}
        await client.of(group).create(group, "default")
        for number, cpu in enumerate(SIZES):
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
            spec = {"schedulerName": "kohort", "containers": [container], "schedulingGroup": {"podGroupName": "g"}}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"g-{number}"}, "spec": spec}
            await pods.create(body, "default")
        async with running(Scheduler(client)) as scheduler, asyncio.timeout(60):
            while not all(one["spec"].get("nodeName") for one in (await pods.list("default")).items):
                await asyncio.sleep(0.05)
            assert b'kohort_scheduler_search_results_total{result="searching"}' in scheduler.metrics.text()
