"""Status writes: the last word of each object, again after a failure, never to another of the same name."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kohort.kube.clock import VirtualClock
from kohort.kube.errors import ApiError, TransportError
from kohort.kube.series import Reference
from kohort.scheduler.model import Condition
from kohort.scheduler.status import Patch, SchedulerEvent, Target, Writes
from kohort.scheduler.writer import StatusWriter

POD = Target("Pod", "x", "p", "u1")
GROUP = Target("PodGroup", "x", "g", "u2")


class Api:
    """Stands for client, resource and recorder."""

    def __init__(self) -> None:
        self.jitter = random.Random(1)
        self.faults: list[Exception] = []
        self.uid = ""  # of what has the name now
        self.patches: list[tuple[str, dict[str, Any]]] = []
        self.events: list[tuple[Reference, str]] = []

    def kind(self, version: str, kind: str) -> Api:
        return self

    async def patch_unread(self, name: str, body: Any, namespace: str, **_: Any) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.patches.append((name, body))

    async def get(self, name: str, namespace: str) -> dict[str, Any]:
        return {"metadata": {"uid": self.uid}}

    def event(self, regarding: Reference, kind: str, reason: str, note: str, **_: Any) -> None:
        self.events.append((regarding, reason))


def condition(text: str, kind: str = "PodScheduled") -> Condition:
    return Condition(kind, "False", "Unschedulable", text)


@pytest.fixture
async def bench() -> AsyncIterator[tuple[StatusWriter, Api, VirtualClock]]:
    api, clock = Api(), VirtualClock()
    made = StatusWriter(api, api, clock, {"PodGroup": "scheduling.k8s.io/v1beta1"})  # type: ignore[arg-type]
    async with made as writer:
        yield writer, api, clock


Bench = tuple[StatusWriter, Api, VirtualClock]


async def test_what_comes_before_the_first_write_is_one_write(bench: Bench) -> None:
    writer, api, clock = bench
    for number in range(5):
        writer.take(Writes([Patch(POD, condition(f"{number}"))]))
    writer.take(Writes([Patch(POD, nominated="n1"), Patch(POD, condition("x", "DisruptionTarget"))]))
    await clock.advance()
    [(name, body)] = api.patches
    assert name == "p"
    assert [one["message"] for one in body["status"]["conditions"]] == ["4", "x"]
    assert body["status"]["nominatedNodeName"] == "n1"
    assert body["metadata"] == {"uid": "u1"}


async def test_an_empty_message_is_sent_so_that_a_patch_clears_the_old_one(bench: Bench) -> None:
    """A strategic merge patch keeps what it does not name: "minCount (2) cannot be satisfied" beside True."""
    writer, api, clock = bench
    writer.take(Writes([Patch(GROUP, Condition("PodGroupInitiallyScheduled", "True", "Scheduled"))]))
    await clock.advance()
    [said] = api.patches[0][1]["status"]["conditions"]
    assert (said["status"], said["reason"], said["message"]) == ("True", "Scheduled", "")


async def test_a_nomination_is_cleared(bench: Bench) -> None:
    writer, api, clock = bench
    writer.take(Writes([Patch(POD, nominated="")]))
    await clock.advance()
    assert api.patches[0][1]["status"] == {"nominatedNodeName": None}


async def test_no_answer_is_tried_again(bench: Bench) -> None:
    writer, api, clock = bench
    api.faults = [TransportError("cut"), ApiError(503, {})]
    writer.take(Writes([Patch(POD, condition("a"))]))
    await clock.advance(30.0)
    assert len(api.patches) == 1


@pytest.mark.parametrize(("refusals", "written"), [(3, 1), (4, 0)])
async def test_a_server_that_has_not_read_the_roles_is_asked_a_few_times(
    bench: Bench, refusals: int, written: int
) -> None:
    writer, api, clock = bench
    api.faults = [ApiError(403, {"reason": "Forbidden"}) for _ in range(refusals)]
    writer.take(Writes([Patch(POD, condition("a"))]))
    await clock.advance(60.0)
    assert len(api.patches) == written
    assert writer.waiting == 0


async def test_a_newer_word_takes_the_place_of_one_that_could_not_be_written(bench: Bench) -> None:
    writer, api, clock = bench
    api.faults = [TransportError("cut")]
    writer.take(Writes([Patch(GROUP, condition("old", "A")), Patch(GROUP, condition("kept", "B"))]))
    await clock.advance()
    api.faults = [TransportError("cut")] * 3  # the newer write meets a server that is away, too
    writer.take(Writes([Patch(GROUP, condition("new", "A"))]))
    await clock.advance(120.0)
    said = {one["type"]: one["message"] for _, body in api.patches for one in body["status"]["conditions"]}
    assert said == {"A": "new", "B": "kept"}


@pytest.mark.parametrize("code", [404, 409, 422])
async def test_what_cannot_be_written_is_dropped(bench: Bench, code: int) -> None:
    writer, api, clock = bench
    api.faults = [ApiError(code, {"reason": "NotFound" if code == 404 else "Conflict"})]
    writer.take(Writes([Patch(POD, condition("a"))]))
    await clock.advance(60.0)
    assert api.patches == []
    assert writer.waiting == 0


async def test_a_conflict_about_the_same_object_is_tried_again(bench: Bench) -> None:
    writer, api, clock = bench
    api.uid = POD.uid
    api.faults = [ApiError(409, {"reason": "Conflict"})]
    writer.take(Writes([Patch(POD, condition("a"))]))
    await clock.advance(60.0)
    assert len(api.patches) == 1


async def test_a_server_that_is_away_for_minutes_loses_nothing(bench: Bench) -> None:
    writer, api, clock = bench
    api.faults = [TransportError("cut")] * 30
    writer.take(Writes([Patch(POD, condition("a"))]))
    await clock.advance(30.0)
    writer.take(Writes([Patch(POD, nominated="n1")]))
    await clock.advance(400.0)
    [(_, body)] = api.patches
    assert [one["message"] for one in body["status"]["conditions"]] == ["a"]
    assert body["status"]["nominatedNodeName"] == "n1"


async def test_events_name_the_version_of_their_object(bench: Bench) -> None:
    writer, api, _ = bench
    writer.take(Writes(events=[SchedulerEvent(GROUP, "Normal", "Scheduled", "Binding", "2 pods have nodes")]))
    assert api.events == [(Reference("scheduling.k8s.io/v1beta1", "PodGroup", "x", "g", "u2"), "Scheduled")]


class CustomApi(Api):
    """A server that holds groups as custom resources; somebody else writes a condition of its own meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.body: dict[str, Any] = {
            "metadata": {"uid": "u2", "resourceVersion": "1"},
            "status": {"conditions": [{"type": "Theirs", "status": "True"}, {"type": "A", "message": "old"}]},
        }

    async def get(self, name: str, namespace: str) -> dict[str, Any]:
        return self.body

    async def patch_unread(self, name: str, body: Any, namespace: str, **options: Any) -> None:
        if options["kind"] == "strategic":
            raise ApiError(415, {"reason": "UnsupportedMediaType"})
        await super().patch_unread(name, body, namespace)


async def test_custom_resources_are_written_by_merge_patch_and_others_conditions_stay() -> None:
    api, clock = CustomApi(), VirtualClock()
    api.faults = [ApiError(409, {"reason": "Conflict"})]  # somebody wrote between reading and writing
    async with StatusWriter(api, api, clock, {"PodGroup": "scheduling.k8s.io/v1beta1"}) as writer:  # type: ignore[arg-type]
        writer.take(Writes([Patch(GROUP, condition("new", "A"))]))
        await clock.advance(30.0)
        ((_, body),) = api.patches
        assert [(one["type"], one.get("message")) for one in body["status"]["conditions"]] == [
            ("Theirs", None),
            ("A", "new"),
        ]
        assert body["metadata"] == {"uid": "u2", "resourceVersion": "1"}
        api.body["metadata"]["uid"] = "another"
        writer.take(Writes([Patch(GROUP, condition("newer", "A"))]))
        await clock.advance(30.0)
        assert len(api.patches) == 1


class SlowApi(Api):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way, self.answer = 0, asyncio.Event()

    async def patch_unread(self, name: str, body: Any, namespace: str, **options: Any) -> None:
        self.under_way += 1
        await self.answer.wait()
        self.under_way -= 1
        await super().patch_unread(name, body, namespace)


async def test_beside_bindings_few_statuses_are_written_at_a_time_and_the_others_after_them() -> None:
    api, clock, quiet = SlowApi(), VirtualClock(), asyncio.Event()
    pods = [Target("Pod", "a", f"p{number}", f"u{number}") for number in range(20)]
    async with StatusWriter(api, api, clock, {}, quiet=quiet) as writer:  # type: ignore[arg-type]
        writer.take(Writes([Patch(pod, condition("x")) for pod in pods]))
        await clock.advance()
        assert api.under_way == 0
        await clock.advance(1.0)
        assert api.under_way == 2, "they do not wait for ever"
        quiet.set()
        await clock.advance()
        assert api.under_way == 16
        quiet.clear()
        api.answer.set()
        await clock.advance()
        assert len(api.patches) == 20
        writer.take(Writes([Patch(pods[0], condition("y"))]))
        await clock.advance(0.5)
        assert len(api.patches) == 20
        quiet.set()
        await clock.advance()
        assert len(api.patches) == 21, "bindings have ended"


async def test_much_is_noted_in_turns_with_others_and_in_its_order() -> None:
    api, clock = Api(), VirtualClock()
    pods = [Target("Pod", "a", f"p{number}", f"u{number}") for number in range(2000)]
    async with StatusWriter(api, api, clock, {}) as writer:  # type: ignore[arg-type]
        writer.take(Writes([Patch(pod, condition("first")) for pod in pods]))
        writer.take(Writes([Patch(pods[-1], condition("second"))]))
        assert (writer.waiting, len(writer._wanted)) == (2001, 0), "nothing at once"
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(writer._wanted) < 1000, "and not all in one turn"
        await clock.advance()
        assert writer.waiting == 0
    assert {name for name, _ in api.patches} == {pod.name for pod in pods}
    assert "second" in str([body for name, body in api.patches if name == pods[-1].name][-1])
