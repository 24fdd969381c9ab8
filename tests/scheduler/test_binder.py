"""Bindings and evictions against an API that refuses, forgets to answer, or was faster than we know."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.scheduler.short import create
from tests.scheduler.sim import Sim

from kohort.kube.clock import VirtualClock
from kohort.kube.errors import ApiError, TransportError
from kohort.scheduler.binder import Binder
from kohort.scheduler.schedulingcycle import Step
from kohort.scheduler.status import Writes


def refusal(code: int, reason: str = "") -> ApiError:
    return ApiError(code, {"kind": "Status", "code": code, "reason": reason, "message": "refused"})


class Pods:
    """The pods of a simulated API as a client's resource; `faults` are raised first, one per call of that verb."""

    def __init__(self, sim: Sim) -> None:
        self.sim = sim
        self.faults: dict[str, list[Exception | Callable[[], None]]] = {
            verb: [] for verb in ("bind", "get", "patch", "delete")
        }
        self.calls: list[str] = []
        self.at_once = self.most = 0
        self.hold: asyncio.Event | None = None

    async def _call(self, verb: str, name: str) -> None:
        self.calls.append(f"{verb} {name}")
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        if self.hold is not None:
            await self.hold.wait()
        self.at_once -= 1
        if self.faults[verb]:
            fault = self.faults[verb].pop(0)
            if isinstance(fault, Exception):
                raise fault
            fault()

    async def bind(self, name: str, node: str, namespace: str, *, uid: str) -> None:
        await self._call("bind", name)
        pod = self.sim.objects["pod"].get(name)
        if pod is None:
            raise refusal(404, "NotFound")
        if pod["spec"].get("nodeName") or pod["metadata"]["uid"] != uid:
            raise refusal(409, "Conflict")
        self.sim.bind(uid, node)

    async def get(self, name: str, namespace: str) -> dict[str, Any]:
        fault = self.faults["get"].pop(0) if self.faults["get"] else None
        if isinstance(fault, Exception):
            raise fault
        if name not in self.sim.objects["pod"]:
            raise refusal(404, "NotFound")
        return self.sim.objects["pod"][name]

    async def patch_unread(self, name: str, body: Any, namespace: str, **_: Any) -> None:
        await self._call("patch", name)

    async def delete_unread(self, name: str, namespace: str, *, uid: str) -> None:
        await self._call("delete", name)
        self.sim.delete("pod", name)


class Bench:
    """A binder between a core and a simulated API."""

    def __init__(self) -> None:
        self.sim = Sim()
        self.clock = VirtualClock()
        self.jitter = random.Random(1)
        self.pods = Pods(self.sim)
        self.written: list[Writes] = []
        self.leads = True
        create(self.sim, {"node": "n1", "cpu": "4"})
        create(self.sim, {"node": "n2", "cpu": "4"})
        self.binder = Binder(
            self.sim.core,
            self,  # type: ignore[arg-type]
            self.sim.settings,
            self.clock,
            report=self.written.append,
            wake=lambda: None,
            is_leader=lambda: self.leads,
        )

    def resource(self, _: str) -> Pods:
        return self.pods

    def gang(self, size: int, **more: Any) -> None:
        create(self.sim, {"group": "g", "gang": size, **more})
        for number in range(size):
            create(self.sim, {"pod": f"g-{number}", "in": "g", "cpu": "1", **more})

    def decide(self) -> Step:
        step = self.sim.core.step(self.clock.monotonic())
        assert step is not None
        return step

    async def carry_out(self, step: Step) -> None:
        if step.decision is not None:
            self.binder.bind(step.decision)
        self.binder.evict(step.evictions)
        await self.clock.advance(30.0)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.leads = False  # a test that failed may have left bindings for which nobody would wait any more
    await made.binder.close()


async def test_a_gang_is_bound(bench: Bench) -> None:
    bench.gang(3)
    await bench.carry_out(bench.decide())
    assert len(bench.sim.bound) == 3
    assert bench.binder.busy == 0
    assert [note.reason for writes in bench.written for note in writes.events] == ["Scheduled"] * 3


async def test_not_too_many_at_once(bench: Bench) -> None:
    bench.binder._slots = asyncio.Semaphore(2)
    bench.gang(8)
    await bench.carry_out(bench.decide())
    assert len(bench.sim.bound) == 8
    assert bench.pods.most == 2


@pytest.mark.parametrize("fault", [TransportError("cut"), refusal(503), refusal(429), refusal(500)])
async def test_no_answer_is_asked_again(bench: Bench, fault: Exception) -> None:
    bench.gang(1)
    bench.pods.faults["bind"] = [fault, fault]
    await bench.carry_out(bench.decide())
    assert bench.pods.calls == ["bind g-0"] * 3
    assert list(bench.sim.bound) == ["g-0"]


async def test_a_binding_that_was_heard_though_its_answer_was_lost(bench: Bench) -> None:
    bench.gang(1)
    step = bench.decide()
    assert step.decision is not None
    [(uid, node)] = step.decision.assignments.items()

    def heard_but_cut() -> None:
        bench.sim.bind(uid, node)
        raise TransportError("cut")

    bench.pods.faults["bind"] = [heard_but_cut]
    await bench.carry_out(step)
    assert bench.pods.calls == ["bind g-0"] * 2
    assert bench.sim.bound == {"g-0": node}
    while bench.sim.core.step(100.0) is not None:
        pass
    assert not list(bench.sim.core.pending())


async def test_b1_a_refused_member_is_placed_again_its_siblings_stay(bench: Bench) -> None:
    bench.gang(2)
    bench.pods.faults["bind"] = [refusal(403, "Forbidden")]
    await bench.carry_out(bench.decide())
    assert len(bench.sim.bound) == 1
    assert [one.reason for one in bench.sim.core.pending()] == ["BindingRefused"]
    await bench.carry_out(bench.decide())
    assert len(bench.sim.bound) == 2


@pytest.mark.parametrize(("fault", "told"), [(refusal(403, "Forbidden"), True), (TransportError("cut"), False)])
async def test_b3_the_group_is_told_what_the_server_said_and_nothing_if_it_said_nothing(
    bench: Bench, fault: Exception, told: bool
) -> None:
    bench.gang(1)
    bench.pods.faults["bind"] = [fault] * 20
    for _ in range(2):
        await bench.carry_out(bench.decide())
    patches = [one for writes in bench.written for one in writes.patches if one.target.kind == "PodGroup"]
    assert bool(patches) is told


async def test_somebody_else_bound_it(bench: Bench) -> None:
    bench.gang(1)
    step = bench.decide()
    pod = bench.sim.objects["pod"]["g-0"]
    pod["spec"]["nodeName"] = "n9"
    await bench.carry_out(step)
    bench.sim.tell("pod", "g-0")
    assert bench.sim.core.step(100.0) is not None  # its group is told that it has its minimum
    assert bench.sim.core.step(100.0) is None
    assert not list(bench.sim.core.pending())


async def test_x3_a_gang_that_lost_a_member_before_it_was_bound_is_not_started(bench: Bench) -> None:
    bench.gang(3)
    step = bench.decide()
    bench.sim.delete("pod", "g-1")
    await bench.carry_out(step)
    assert bench.pods.calls == []
    assert bench.sim.bound == {}
    while bench.sim.core.step(100.0) is not None:
        pass
    assert [one.reason for one in bench.sim.core.pending()] == ["WaitingForMembers"]


async def test_a_pod_that_went_while_it_was_bound_frees_its_room(bench: Bench) -> None:
    bench.gang(1)
    step = bench.decide()
    bench.pods.faults["bind"] = [lambda: bench.sim.delete("pod", "g-0")]
    await bench.carry_out(step)
    assert (bench.sim.core.cache.state.used == 0).all()


async def test_who_leads_no_more_binds_no_more(bench: Bench) -> None:
    bench.gang(2)
    step = bench.decide()
    bench.leads = False
    await bench.carry_out(step)
    assert bench.pods.calls == []


async def test_victims_are_told_and_deleted(bench: Bench) -> None:
    for number in range(8):
        create(bench.sim, {"pod": f"w{number}", "cpu": "1", "node": f"n{number % 2 + 1}", "priority": "p10"})
    bench.gang(2, priority="p100")
    await bench.carry_out(bench.decide())
    assert sorted(call.split()[0] for call in bench.pods.calls) == ["delete", "delete", "patch", "patch"]
    await bench.carry_out(bench.decide())
    assert {"g-0", "g-1"} <= bench.sim.bound.keys()


async def test_a_victim_that_cannot_be_deleted_voids_the_plan(bench: Bench) -> None:
    for number in range(8):
        create(bench.sim, {"pod": f"w{number}", "cpu": "1", "node": f"n{number % 2 + 1}", "priority": "p10"})
    bench.gang(1, priority="p100")
    bench.pods.faults["delete"] = [refusal(403, "Forbidden")]
    await bench.carry_out(bench.decide())
    assert not list(bench.sim.core.cache.reservations)
    entry = bench.sim.core.queue.get("default/g")
    assert entry is not None
    assert entry.queue == "backoff"  # not at once: the same would be refused again
    [first] = {call.split()[1] for call in bench.pods.calls}
    assert not bench.sim.core.cache.members[bench.sim.objects["pod"][first]["metadata"]["uid"]].evicting
    second = bench.sim.core.step(bench.clock.monotonic() + 60)
    assert second is not None
    assert [one.pod.name for one in second.evictions] != [first]


@pytest.mark.parametrize("heard", [True, False])
async def test_an_eviction_that_is_not_answered_is_asked_for_until_it_is(bench: Bench, heard: bool) -> None:
    """The victim counts as leaving all the while, and nobody else is taken for it."""
    for number in range(8):
        create(bench.sim, {"pod": f"w{number}", "cpu": "1", "node": f"n{number % 2 + 1}", "priority": "p10"})
    bench.gang(1, priority="p100")
    step = bench.decide()
    [eviction] = step.evictions
    bench.pods.faults["delete"] = [TransportError("cut")] * 8  # more than the attempts of one round
    bench.pods.faults["get"] = [TransportError("cut")]
    bench.binder.evict(step.evictions)
    await bench.clock.advance(3.0)
    assert bench.binder.busy == 1
    assert bench.sim.core.cache.members[eviction.pod.uid].evicting
    bench.sim.core.cache.move_requests += 1
    while (again := bench.sim.core.step(bench.clock.monotonic())) is not None:
        assert not again.evictions
    if heard:
        await bench.clock.advance(60.0)
    else:  # the server had heard, only the answers were lost
        bench.sim.delete("pod", eviction.pod.name)
        await bench.clock.advance(60.0)
    assert bench.binder.busy == 0
    assert {call.split()[1] for call in bench.pods.calls} == {eviction.pod.name}
    assert eviction.pod.name not in bench.sim.objects["pod"]
    await bench.carry_out(bench.decide())
    assert "g-0" in bench.sim.bound


async def test_a_victim_whose_binding_is_under_way_is_bound_first(bench: Bench) -> None:
    create(bench.sim, {"pod": "low", "cpu": "4", "priority": "p10"})
    create(bench.sim, {"pod": "used", "cpu": "4", "node": "n2", "priority": "p100"})
    first = bench.decide()
    bench.pods.hold = asyncio.Event()
    assert first.decision is not None
    bench.binder.bind(first.decision)
    create(bench.sim, {"pod": "high", "cpu": "4", "priority": "p100"})
    second = bench.decide()
    assert [one.pod.name for one in second.evictions] == ["low"]
    bench.binder.evict(second.evictions)
    await bench.clock.advance(1.0)
    assert bench.pods.calls == ["bind low"]
    bench.pods.hold.set()
    await bench.clock.advance(1.0)
    assert bench.pods.calls == ["bind low", "patch low", "delete low"]


async def test_a_stop_in_the_middle_of_binding_leaves_no_gang_half_bound(bench: Bench) -> None:
    bench.gang(3)
    step = bench.decide()
    assert step.decision is not None
    bench.pods.hold = asyncio.Event()
    bench.pods.faults["bind"] = [TransportError("cut")]
    bench.binder.bind(step.decision)
    await bench.clock.advance(0.1)
    closing = asyncio.create_task(bench.binder.close())
    await bench.clock.advance(0.1)
    bench.pods.hold.set()
    await bench.clock.advance(2.0)
    await closing
    assert len(bench.sim.bound) == 3


@pytest.mark.parametrize(("leads", "seconds"), [(True, 5.1), (False, 0.1)])
async def test_a_stop_does_not_wait_long_nor_for_what_it_may_not_do(bench: Bench, leads: bool, seconds: float) -> None:
    bench.gang(3)
    step = bench.decide()
    assert step.decision is not None
    bench.pods.hold = asyncio.Event()
    bench.binder.bind(step.decision)
    await bench.clock.advance(0.1)
    bench.leads = leads
    closing = asyncio.create_task(bench.binder.close())
    await bench.clock.advance(seconds)
    assert closing.done()
    assert bench.sim.bound == {}


async def test_a_large_gang_is_bound_by_few_tasks(bench: Bench) -> None:
    """One for each pod would hold the event loop while they are made."""
    bench.gang(8)
    bench.binder._settings = replace(bench.binder._settings, bind_concurrency=3)
    step = bench.decide()
    assert step.decision is not None
    assert len(step.decision.assignments) == 8
    before = len(asyncio.all_tasks())
    bench.pods.hold = asyncio.Event()
    bench.binder.bind(step.decision)
    assert len(asyncio.all_tasks()) == before + 3
    assert bench.binder.busy == 8
    await bench.clock.advance(0.1)
    bench.pods.hold.set()
    await bench.clock.advance(0.1)
    assert len(bench.sim.bound) == 8
    assert (bench.binder.busy, bench.binder._quiet.is_set()) == (0, True)


async def test_what_is_decided_while_the_last_workers_end_is_bound(bench: Bench) -> None:
    """The loop is woken by the last answers, before anybody has seen that the tasks behind them are done."""
    bench.gang(2)
    bench.binder._settings = replace(bench.binder._settings, bind_concurrency=2)
    first, woken = bench.decide(), asyncio.Event()
    assert first.decision is not None
    bench.binder._wake = woken.set
    bench.pods.hold = asyncio.Event()
    bench.binder.bind(first.decision)
    await bench.clock.advance(0.1)
    create(bench.sim, {"group": "h", "gang": 2})
    for number in range(2):
        create(bench.sim, {"pod": f"h-{number}", "in": "h", "cpu": "1"})
    second = bench.decide()
    assert second.decision is not None

    async def loop() -> None:
        await woken.wait()
        assert second.decision is not None
        bench.binder.bind(second.decision)

    looping = asyncio.create_task(loop())
    bench.pods.hold.set()
    await bench.clock.advance(30.0)
    await looping
    assert bench.sim.bound.keys() == {"g-0", "g-1", "h-0", "h-1"}
    assert bench.binder.busy == 0
