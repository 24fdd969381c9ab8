"""What networks and servers do to a controller: refusals, conflicts, answers that never come, watches that stutter.

Failpoints at each write of whole lives are in test_failpoints; here each write meets something else than a clean end of
the process, and the watches of the real shell repeat themselves and fall behind each other.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from tests.controllers.cluster import Cluster, cluster, job_of
from tests.controllers.test_failpoints import LIVES, Life, ended
from tests.controllers.test_runtime import GROUPS, end_all, gang, is_active, is_complete
from tests.controllers.world import World
from tests.support.sampling import points

from kohort.controllers.reconcile import Answer, Refusal, Write
from kohort.kube.wire import Request, Response

Fault = Callable[[World, Write], Answer]


def conflict(world: World, write: Write) -> Answer:
    return Answer(refusal=Refusal(409, "Conflict", "the object has been modified"))


def timed_out(world: World, write: Write) -> Answer:
    """It was never done."""
    return Answer(refusal=Refusal(0, "TransportError", "no answer"))


def answer_lost(world: World, write: Write) -> Answer:
    """It was done, and nobody heard of it."""
    world.api.do(write)
    return Answer(refusal=Refusal(0, "TransportError", "cut"))


FAULTS: list[Fault] = [conflict, timed_out, answer_lost]  # a 500 at each write: test_failpoints


def lived(life: Life, fault: Fault | None = None, number: int = 0) -> tuple[str, int]:
    """How it ends if that write meets the fault, and how many writes there were."""
    world = World()
    count = 0

    def write(asked: Write) -> Answer:
        nonlocal count
        count += 1
        return fault(world, asked) if fault is not None and count == number else world.api.do(asked)

    world.driver._write = write  # type: ignore[method-assign, assignment]
    life(world)
    return ended(world), count


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_any_write_meets_a_fault(life: Life, fault: Fault) -> None:
    expected, writes = lived(life)
    for number in points(writes, life.__name__):
        found, _ = lived(life, fault, number)
        assert found == expected, f"{fault.__name__} at write {number} of {writes}"


# ---- watches


class Stutter:
    """Watches that say everything twice, say old things again, and are late by turns."""

    def __init__(self, found: Cluster, seed: int) -> None:
        self.found, self.chance = found, random.Random(seed)
        self.said = 0
        self._handle = found.api.api.handle
        found.api.api.handle = self.handle  # type: ignore[method-assign]

    async def handle(self, request: Request, read_body: Any = None) -> Response:
        answer = await self._handle(request, read_body)
        if request.query.get("watch") and answer.lines is not None:
            answer.lines = self._stream(answer.lines)
        return answer

    async def _stream(self, batches: AsyncGenerator[list[bytes]]) -> AsyncGenerator[list[bytes]]:
        before: list[bytes] = []
        initial = True
        async for batch in batches:
            lines = batch
            if not initial:
                await self.found.clock.sleep(self.chance.choice([0, 0, 0.3, 1.7]))  # others overtake this watch
                lines = [said for line in batch for said in self._said(line, before)]
            initial = initial and not any(b"initial-events-end" in line for line in batch)
            before = (before + lines)[-20:]
            yield lines

    def _said(self, line: bytes, before: list[bytes]) -> list[bytes]:
        again = [one for one in before if b'"type":"MODIFIED"' in one and self.chance.random() < 0.2]
        self.said += 1
        return [line, line, *again, line] if b'"type":"MODIFIED"' in line else [line, line]


@pytest.mark.parametrize("seed", range(4))
async def test_watches_that_repeat_and_overtake_each_other(seed: int) -> None:
    """A gang runs, is suspended, resumed, loses a pod and completes: nothing twice, nothing too few."""
    async with cluster() as found:
        stutter = Stutter(found, seed)
        async with found.runtime() as runtime:
            await runtime.ready()
            body = gang("solver", 3)
            body["spec"]["backoffLimit"] = 3
            await found.client.of(body).create(body)
            await found.until(lambda: is_active(found, "solver", 3), seconds=120)
            jobs = found.client.kind("batch/v1", "Job")
            await jobs.patch("solver", {"spec": {"suspend": True}}, "lab")
            await found.until(lambda: _none_active(found), seconds=120)
            await jobs.patch("solver", {"spec": {"suspend": False}}, "lab")
            await found.until(lambda: is_active(found, "solver", 3), seconds=120)
            first, *_ = [pod for pod in await found.pods() if not pod["metadata"].get("deletionTimestamp")]
            failed = {"status": {"phase": "Failed"}}
            await found.client.kind("v1", "Pod").patch(first["metadata"]["name"], failed, "lab", subresource="status")
            await found.until(lambda: _replaced(found, first["metadata"]["uid"]), seconds=120)
            await end_all_live(found)
            await found.until(lambda: is_complete(found, "solver"), seconds=120)
        status = (await found.job("solver"))["status"]
        assert (status["succeeded"], status["failed"]) == (3, 1)
        assert len(await found.every("Workload", GROUPS)) == len(await found.every("PodGroup", GROUPS)) == 1
        assert stutter.said > 20


async def _none_active(found: Cluster) -> bool:
    status = (await found.job("solver")).get("status") or {}
    return not status.get("active") and any(one["type"] == "Suspended" for one in status.get("conditions") or ())


async def _replaced(found: Cluster, uid: str) -> bool:
    live = [pod for pod in await found.pods() if pod["status"].get("phase") == "Pending"]
    return len(live) == 3 and uid not in {pod["metadata"]["uid"] for pod in live}


async def end_all_live(found: Cluster) -> None:
    for pod in await found.pods():
        if pod["status"].get("phase") == "Pending":
            status = {"status": {"phase": "Succeeded"}}
            await found.client.kind("v1", "Pod").patch(pod["metadata"]["name"], status, "lab", subresource="status")


@pytest.mark.parametrize("seed", range(3))
async def test_errors_of_all_sorts_at_once(seed: int) -> None:
    """One in five requests of the controller fails, in one way or another, for the whole life of two Jobs."""
    chance = random.Random(seed)

    def fault(request: Request) -> Response | None:
        if request.method == "GET" or chance.random() > 0.2:
            return None
        code = chance.choice([409, 429, 500, 503])
        return Response(code, {"content-type": "application/json"}, b'{"kind":"Status","message":"not now"}')

    async with cluster() as found, found.runtime() as runtime:
        await runtime.ready()
        for body in (gang("solver", 3), job_of("plain", parallelism=2, completions=2)):
            await found.client.of(body).create(body)
        found.api.fault = fault
        await found.until(lambda: is_active(found, "solver", 3), seconds=400)
        await found.until(lambda: is_active(found, "plain", 2), seconds=400)
        found.api.fault = lambda request: None
        await end_all(found)
        found.api.fault = fault
        for name in ("solver", "plain"):
            await found.until(lambda name=name: is_complete(found, name), seconds=400)  # type: ignore[misc]
        found.api.fault = lambda request: None
        assert (await found.job("solver"))["status"]["succeeded"] == 3
        assert (await found.job("plain"))["status"]["succeeded"] == 2
        assert len(await found.every("PodGroup", GROUPS)) == 2
        await found.clock.advance(60)  # events that were refused are written before the end
