"""Events: written once, counted after, never a flood, never a wait."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.fake import TYPES, FakeApi, answer_of, status

from kohort.kube.client import Client
from kohort.kube.clock import VirtualClock
from kohort.kube.errors import TransportError
from kohort.kube.events import Recorder
from kohort.kube.series import BURST, INTERVAL, NORMAL, OBJECTS, RATE, WARNINGS, WINDOW, Correlator, EventKey, Reference

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team", "uid": "u1"}}
NODE = Reference("v1", "Node", "", "n1")


class Stage:
    """A recorder and what became of its events."""

    def __init__(self, types: Any = TYPES, **options: Any) -> None:
        self.api = FakeApi(types)
        self.clock = VirtualClock()
        self.recorder = Recorder(
            Client.within(self.api), "kohort.dev/scheduler", instance="me", clock=self.clock, **options
        )

    def say(self, note: str = "no room", regarding: Any = POD, **options: Any) -> None:
        self.recorder.event(regarding, "Warning", "Unschedulable", note, **options)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [body for (plural, _, _), body in self.api.objects.items() if plural == "events"]

    def writes(self) -> int:
        return sum(one.method in {"POST", "PATCH"} for one in self.api.requests)


async def test_an_event_says_who_what_why() -> None:
    it = Stage()
    async with it.recorder:
        it.say(action="Scheduling", related=NODE)
        assert it.events == [], "nothing is written before somebody else may run"
        await it.clock.advance()
    (event,) = it.events
    assert event["metadata"]["namespace"] == "team"
    assert event["metadata"]["name"].startswith("p.")
    del event["metadata"]
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "type": "Warning",
        "reason": "Unschedulable",
        "action": "Scheduling",
        "note": "no room",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "kohort.dev/scheduler",
        "reportingInstance": "me",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "team", "name": "p", "uid": "u1"},
        "related": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }


async def test_cluster_scoped_objects_have_their_events_in_default() -> None:
    it = Stage()
    async with it.recorder:
        it.say(regarding=NODE)
    assert it.events[0]["metadata"]["namespace"] == "default"


async def test_the_same_again_is_counted_and_written_seldom() -> None:
    it = Stage()
    async with it.recorder:
        for _ in range(100):
            it.say()
            await it.clock.advance(0.5)
        await it.clock.advance(INTERVAL)
        (event,) = it.events
        assert event["series"]["count"] == 100
        assert event["series"]["lastObservedTime"] == "2026-01-01T00:00:49.500000Z"
        assert it.writes() <= 1 + 50 / INTERVAL + 1
        written = it.writes()
        await it.clock.advance(3600)
        assert it.writes() == written


async def test_what_is_counted_is_written_at_the_end() -> None:
    it = Stage()
    async with it.recorder:
        it.say()
        await it.clock.advance()
        it.say()
        it.say()
        it.say("another")
    assert sorted(event.get("series", {}).get("count", 1) for event in it.events) == [1, 3]


async def test_many_at_once_are_one_write() -> None:
    it = Stage()
    async with it.recorder:
        for _ in range(50):
            it.say()
        await it.clock.advance(60)
    assert [event["series"]["count"] for event in it.events] == [50]
    assert it.writes() == 1


async def test_after_a_long_silence_it_is_a_new_event() -> None:
    it = Stage()
    async with it.recorder:
        it.say()
        await it.clock.advance(WINDOW + 1)
        it.say()
        await it.clock.advance(1)
    assert len(it.events) == 2


def test_what_is_remembered_does_not_grow_with_what_comes_and_goes() -> None:
    """And what goes well, of which there is much, does not push out what goes wrong again and again."""
    known, moment = Correlator(), datetime(2026, 1, 1, tzinfo=UTC)
    stuck = EventKey(NODE, "Warning", "Stuck", "Stuck", "still")
    for number in range(10_000):
        pod = Reference("v1", "Pod", "team", f"p{number}", f"u{number}")
        for kind in ("Normal", "Warning") if number < 3000 else ("Normal",):
            assert known.hear(EventKey(pod, kind, "R", "R", "note"), moment, number / 100) is not None
        if number % 1000 == 0:
            known.hear(stuck, moment, number / 100)
    assert (len(known.normal), len(known.warnings), len(known.objects)) == (NORMAL, WARNINGS, OBJECTS)
    repeated = known.hear(stuck, moment, 100.0)
    assert repeated is not None
    assert repeated.count == 11


def test_what_matters_no_more_is_forgotten_before_the_bounds_are_reached() -> None:
    known, moment = Correlator(), datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(2000):
        pod = Reference("v1", "Pod", "default", f"p{number}", f"u{number}")
        known.hear(EventKey(pod, "Normal", "Scheduled", "Binding", "placed"), moment, 10.0 * number)
    assert len(known.normal) <= WINDOW / 10 + 2
    assert len(known.objects) <= 1 / RATE / 10 + 2


def test_an_object_that_was_spoken_about_much_is_remembered_until_it_may_say_as_much_again() -> None:
    known, moment = Correlator(), datetime(2026, 1, 1, tzinfo=UTC)
    loud = Reference("v1", "Pod", "default", "loud", "u")
    for number in range(2 * BURST):
        known.hear(EventKey(loud, "Warning", "Failed", "Binding", f"{number}"), moment, 0.0)
    for number in range(100):
        other = Reference("v1", "Pod", "default", f"p{number}", f"u{number}")
        known.hear(EventKey(other, "Normal", "Scheduled", "Binding", "placed"), moment, 1.0)
    assert known.hear(EventKey(loud, "Warning", "Failed", "Binding", "more"), moment, 2.0) is None


async def test_one_object_cannot_flood() -> None:
    it = Stage()
    async with it.recorder:
        for number in range(200):
            it.say(f"note {number}")
        it.say(regarding=NODE)
        await it.clock.advance(1)
        assert len(it.events) == BURST + 1
        assert it.recorder.counts.dropped == 200 - BURST
        await it.clock.advance(301)
        it.say("later")
        it.say("later still")
        await it.clock.advance(1)
    assert len(it.events) == BURST + 2


async def test_more_than_there_is_room_for_is_dropped_and_counted() -> None:
    it = Stage(room=3)
    for number in range(10):
        it.say(regarding=Reference("v1", "Pod", "team", f"p{number}"))
    assert it.recorder.counts.dropped == 7
    async with it.recorder:
        await it.clock.advance(1)
    assert len(it.events) == 3


async def test_troubles_of_the_server_are_waited_out() -> None:
    it = Stage()
    await it.recorder._events()
    it.api.faults += [TransportError("cut"), answer_of(500, status(500, "InternalError"))]
    async with it.recorder:
        it.say()
        await it.clock.advance(10)
        assert len(it.events) == 1
        assert it.recorder.counts.dropped == 0


@pytest.mark.parametrize("code", [403, 404, 422])
async def test_a_refusal_drops_that_event_only(code: int) -> None:
    it = Stage()
    await it.recorder._events()
    it.api.faults.append(answer_of(code, status(code, "Forbidden", "namespace is being terminated")))
    async with it.recorder:
        it.say("first")
        it.say("second")
        await it.clock.advance(1)
        assert [event["note"] for event in it.events] == ["second"]
        assert it.recorder.counts.dropped == 1


async def test_a_server_that_never_answers_holds_nobody_up() -> None:
    it = Stage()
    await it.recorder._events()
    it.api.faults.extend(TransportError("cut") for _ in range(1000))
    await it.recorder.__aenter__()
    for number in range(5):
        it.say(f"{number}")
    await it.clock.advance(1)
    leaving = asyncio.create_task(it.recorder.__aexit__(None, None, None))
    await it.clock.advance(3)
    assert leaving.done()


async def test_an_event_that_expired_on_the_server_is_made_again() -> None:
    it = Stage()
    async with it.recorder:
        it.say()
        await it.clock.advance(1)
        it.api.remove(it.events[0]["metadata"]["name"], "team", "events")
        it.say()
        await it.clock.advance(INTERVAL + 1)
    assert [event["series"]["count"] for event in it.events] == [2]


async def test_servers_without_the_newer_kind_get_the_older() -> None:
    it = Stage(tuple(one for one in TYPES if one.group != "events.k8s.io"))
    async with it.recorder:
        it.say()
        await it.clock.advance(1)
        it.say()
        await it.clock.advance(INTERVAL + 1)
    (event,) = it.events
    assert (event["apiVersion"], event["count"], event["message"]) == ("v1", 2, "no room")
    assert event["involvedObject"]["name"] == "p"
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:00:01Z"


async def test_long_words_are_cut_to_what_the_api_takes() -> None:
    it = Stage()
    async with it.recorder:
        it.say("é" * 2000)
    note = it.events[0]["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("é...")
    assert json.loads(it.api.requests[-1].body)["note"] == note


def test_a_series_at_rest_goes_on_where_it_ended() -> None:
    known, moment = Correlator(), datetime(2026, 1, 1, tzinfo=UTC)
    what = EventKey(NODE, "Warning", "Stuck", "Stuck", "still")
    first = known.hear(what, moment, 1.0)
    assert first is not None
    first.created, first.told, first.written = True, 1, 2.0
    known.rest(first)
    later = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    again = known.hear(EventKey(*what), later, 61.0)
    assert again is not None
    assert again is not first
    assert (again.name, again.first, again.last, again.heard) == (first.name, moment, later, 61.0)
    assert (again.count, again.created, again.told, again.written) == (2, True, 1, 2.0)
    known.rest(first)  # an older state of it
    assert known.hear(what, later, 62.0) is again


async def test_what_was_written_is_kept_as_bytes_and_counted_on() -> None:
    it = Stage()
    async with it.recorder:
        it.say()
        await it.clock.advance(1)
        assert [type(one) for one in it.recorder._known.warnings.values()] == [bytes]
        it.say()
        await it.clock.advance(INTERVAL + 1)
        assert [type(one) for one in it.recorder._known.warnings.values()] == [bytes]
        it.say()
        it.say()
        await it.clock.advance(INTERVAL + 1)
    assert [event["series"]["count"] for event in it.events] == [4]
    assert it.writes() == 3


async def test_what_was_heard_while_it_was_written_is_not_at_rest() -> None:
    it = Stage()
    async with it.recorder:
        it.say()
        series = it.recorder._pending[0]
        it.recorder._repeated[series] = None  # as whoever hears it in the middle of the write
        it.recorder._rest(series)
        assert [type(one) for one in it.recorder._known.warnings.values()] == [type(series)]


def test_all_that_has_ended_goes_at_once_in_calm_moments() -> None:
    known, moment = Correlator(), datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(100):
        pod = Reference("v1", "Pod", "default", f"p{number}", f"u{number}")
        for kind in ("Normal", "Warning"):
            series = known.hear(EventKey(pod, kind, "R", "R", "note"), moment, float(number))
            assert series is not None
            known.rest(series)
    known.tidy(WINDOW + 49.5)
    assert (len(known.normal), len(known.warnings)) == (50, 50)
    assert len(known.objects) == 50, "two events about one take twice as long"
    known.tidy(2 * WINDOW)
    assert (known.normal, known.warnings, known.objects) == ({}, {}, {})


def test_in_calm_moments_what_is_at_rest_is_one_piece_and_goes_on_afterwards() -> None:
    known, moment = Correlator(), datetime(2026, 1, 1, tzinfo=UTC)
    what, busy = EventKey(NODE, "Warning", "Stuck", "Stuck", "still"), EventKey(NODE, "Normal", "Busy", "Busy", "now")
    resting, awake = known.hear(what, moment, 1.0), known.hear(busy, moment, 1.0)
    assert resting is not None
    assert awake is not None
    known.rest(resting)
    known.pack()
    assert (known.warnings, known.objects) == ({}, {})
    assert list(known.normal.values()) == [awake], "whoever writes it still has it"
    known.rest(awake)
    known.pack()
    assert (known.normal, known.warnings) == ({}, {})
    again = known.hear(what, moment, 2.0)
    assert again is not None
    assert (again.name, again.count) == (resting.name, 2)
    assert len(known.normal) == 1
    known.pack()
    known.tidy(2 * WINDOW + 2 / RATE)
    assert (known.normal, known.warnings, known.objects) == ({}, {}, {})


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 400), st.booleans(), st.booleans())))
def test_nothing_is_different_for_having_been_packed(said: list[tuple[int, bool, int, bool, bool]]) -> None:
    """The same is said to two, of which one is packed now and then."""
    plain, packed, moment, now = Correlator(), Correlator(), datetime(2026, 1, 1, tzinfo=UTC), 0.0
    for about, warning, passed, rests, packs in said:
        now += passed
        regarding = Reference("v1", "Pod", "default", f"p{about}")
        what = EventKey(regarding, "Warning" if warning else "Normal", "R", "R", f"note {passed % 3}")
        one, other = (known.hear(what, moment, now) for known in (plain, packed))
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.name, one.count, one.heard) == (other.name, other.count, other.heard)
            if rests:
                plain.rest(one)
                packed.rest(other)
        if packs:
            packed.pack()


async def test_a_recorder_packs_what_it_has_written() -> None:
    it = Stage()
    async with it.recorder:
        it.say()
        await it.clock.advance(1)
        it.recorder.forget()
        assert it.recorder._known.warnings == {}
        it.say()
        await it.clock.advance(INTERVAL + 1)
    assert [event["series"]["count"] for event in it.events] == [2]
