"""Leadership, in virtual time: never two leaders, and soon one."""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kube.fake import FakeApi, answer_of, status

from kohort.kube.client import Client
from kohort.kube.clock import VirtualClock
from kohort.kube.errors import TransportError
from kohort.kube.lease import Leadership
from kohort.kube.wire import Request, Response


class Network:
    """Between one candidate and the server: may be cut, may lose answers, may be slow."""

    def __init__(self, api: FakeApi, clock: VirtualClock) -> None:
        self.api = api
        self.clock = clock
        self.cut = False
        self.lose_answers = False
        self.delay = 0.0

    async def handle(self, request: Request) -> Response:
        if self.cut:
            raise TransportError("cut")
        response = await self.api.handle(request)
        if self.delay:
            await self.clock.sleep(self.delay)
        if self.lose_answers:
            raise TransportError("the answer is lost")
        return response


class Wrong:
    """A clock whose seconds pass as everybody's, and that shows another time."""

    def __init__(self, clock: VirtualClock, skew: timedelta) -> None:
        self._clock, self._skew = clock, skew

    def now(self) -> datetime:
        return self._clock.now() + self._skew

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)


class Candidate:
    """A process that wants to lead, and says when it does."""

    def __init__(self, api: FakeApi, clock: VirtualClock, name: str, skew: float = 0.0) -> None:
        self.name = name
        self.network = Network(api, clock)
        shown: Any = Wrong(clock, timedelta(seconds=skew)) if skew else clock
        client = Client.within(self.network, namespace="kube-system", clock=shown)
        self.leadership = Leadership(client, "kohort", identity=name, clock=shown, jitter=random.Random(name))
        self.leading = 0
        self.times = 0
        self.task = asyncio.create_task(self.leadership.run(self.lead))

    async def lead(self) -> None:
        self.leading += 1
        self.times += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.leading -= 1

    async def stop(self) -> None:
        self.task.cancel()
        for _ in range(10):  # seconds
            await asyncio.wait({self.task}, timeout=0.001)
            if self.task.done():
                break
            await self.network.clock.advance(1)
        await asyncio.gather(self.task, return_exceptions=True)


def lease(api: FakeApi) -> dict[str, Any]:
    return api.objects["leases", "kube-system", "kohort"]["spec"]


async def play(*names: str) -> tuple[FakeApi, VirtualClock, list[Candidate]]:
    api, clock = FakeApi(), VirtualClock()
    candidates = []
    for name in names:
        candidates.append(Candidate(api, clock, name))
        await clock.advance(0.1)
    return api, clock, candidates


async def end(candidates: list[Candidate]) -> None:
    for one in candidates:
        await one.stop()


async def test_the_first_leads_and_keeps_leading() -> None:
    api, clock, (a, b) = await play("a", "b")
    assert (a.leadership.is_leader, a.leading, b.leading) == (True, 1, 0)
    assert lease(api)["holderIdentity"] == "a"
    assert lease(api)["leaseDurationSeconds"] == 15
    assert lease(api)["leaseTransitions"] == 0
    acquired = lease(api)["acquireTime"]
    await clock.advance(300)
    assert (a.times, a.leading, b.times) == (1, 1, 0)
    assert lease(api)["acquireTime"] == acquired
    assert lease(api)["renewTime"] > acquired
    assert b.leadership.holder == "a"
    await end([b, a])


async def test_who_stops_releases_and_the_next_need_not_wait_for_the_end() -> None:
    api, clock, (a, b) = await play("a", "b")
    await a.stop()
    assert "holderIdentity" not in lease(api)
    assert a.leading == 0
    await clock.advance(2.1)
    assert b.leadership.is_leader
    assert (lease(api)["holderIdentity"], lease(api)["leaseTransitions"], b.leadership.epoch) == ("b", 1, 1)
    await end([b])


async def test_who_is_stopped_while_it_takes_the_lease_lets_go_of_it() -> None:
    """The server heard the write, and whoever sent it is stopped before the answer comes."""
    api, clock = FakeApi(), VirtualClock()
    a = Candidate(api, clock, "a")
    a.network.delay = 1.0
    await clock.advance(1.5)
    assert lease(api)["holderIdentity"] == "a"
    assert not a.leadership.is_leader
    await a.stop()
    assert "holderIdentity" not in lease(api)
    assert a.times == 0


async def test_who_is_stopped_while_it_looks_what_came_of_a_late_write_lets_go_of_it() -> None:
    """A renewal was given up, and arrives late; the next one is a conflict with it; then comes the end."""
    api, clock, (a,) = await play("a")
    late = api.objects["leases", "kube-system", "kohort"]
    await clock.advance(1.5)
    late["metadata"]["resourceVersion"] = "77"  # by a write of a's own, whose answer nobody waited for
    a.network.delay = 0.4  # longer than what is left of the moment: it is stopped while it looks
    await clock.advance(1.0)
    await a.stop()
    assert "holderIdentity" not in lease(api)


async def test_who_stops_lets_go_although_the_server_is_busy_for_a_moment() -> None:
    api, _, (a,) = await play("a")
    api.faults += [answer_of(500, status(500, "InternalError")), answer_of(503, status(503, "ServiceUnavailable"))]
    await a.stop()
    assert "holderIdentity" not in lease(api)


async def test_who_stops_lets_go_although_the_server_is_just_being_started_anew() -> None:
    """Which takes some seconds, in which every connection is refused."""
    api, clock, (a,) = await play("a")
    a.network.cut = True
    a.task.cancel()
    await clock.advance(4.0)
    assert lease(api)["holderIdentity"] == "a"
    a.network.cut = False
    await clock.advance(0.6)
    await asyncio.wait({a.task}, timeout=1)
    assert a.task.done()
    assert "holderIdentity" not in lease(api)


async def test_who_stops_does_not_wait_for_a_server_that_stays_away() -> None:
    api, clock, (a,) = await play("a")
    a.network.cut = True
    a.task.cancel()
    await clock.advance(5.5)
    await asyncio.wait({a.task}, timeout=1)
    assert a.task.done()
    assert lease(api)["holderIdentity"] == "a"


async def test_who_stops_does_not_insist_where_the_lease_is_gone() -> None:
    api, clock, (a,) = await play("a")
    del api.objects["leases", "kube-system", "kohort"]
    a.task.cancel()
    await clock.advance(0.5)
    await asyncio.wait({a.task}, timeout=1)
    assert a.task.done()


async def test_who_stops_lets_go_although_the_answer_is_lost() -> None:
    api, clock, (a,) = await play("a")
    a.network.lose_answers = True
    a.task.cancel()
    await clock.advance(0.05)
    a.network.lose_answers = False
    await a.stop()
    assert "holderIdentity" not in lease(api)


async def test_who_dies_is_followed_after_the_duration_and_not_before() -> None:
    api, clock, (a, b) = await play("a", "b")
    await clock.advance(20)
    a.network.cut = True
    renewed = clock.monotonic()
    await a.stop()
    while not b.leadership.is_leader:
        await clock.advance(0.1)
    assert 13 <= clock.monotonic() - renewed <= 15 + 2 + 0.2 + 0.1  # seen at the next look, taken when it ends
    assert lease(api)["leaseTransitions"] == 1
    await end([b])


@pytest.mark.parametrize(("leads", "waits"), [(60.0, 0.0), (-60.0, 0.0), (0.0, 60.0), (0.0, -60.0), (-60.0, 60.0)])
async def test_clocks_a_minute_apart_change_nothing(leads: float, waits: float) -> None:
    api, clock = FakeApi(), VirtualClock()
    a = Candidate(api, clock, "a", leads)
    await clock.advance(0.1)
    b = Candidate(api, clock, "b", waits)
    await clock.advance(300)
    assert (a.times, a.leading, b.times) == (1, 1, 0)
    a.network.cut = True  # as if it had died
    await clock.advance(9)
    assert b.leading == 0
    await clock.advance(2 * 15)
    assert (a.leading, b.leading) == (0, 1)
    await end([a, b])


async def test_who_is_cut_off_stops_leading_before_another_can_begin() -> None:
    _, clock, (a, b) = await play("a", "b")
    a.network.cut = True
    while a.leadership.is_leader:
        assert not b.leadership.is_leader
        await clock.advance(0.1)
    stopped = clock.monotonic()
    assert a.leading == 0, "what only a leader does has ended"
    assert stopped <= 10.2
    while not b.leadership.is_leader:
        await clock.advance(0.1)
    assert clock.monotonic() - stopped >= 3
    a.network.cut = False
    await clock.advance(60)
    assert (a.leading, b.leading) == (0, 1)
    await end([b])
    await clock.advance(20)
    assert a.leadership.is_leader, "who lost it stands again"
    await end([a])


async def test_a_process_that_was_asleep_does_not_believe_it_leads() -> None:
    """Time passes, nothing of the process runs: what a suspended machine or a stuck event loop looks like."""
    _, clock, (a,) = await play("a")
    assert a.leadership.is_leader
    clock._seconds += 11
    assert not a.leadership.is_leader
    await end([a])


async def test_a_server_that_hangs_does_not_keep_a_leader_leading() -> None:
    _, clock, (a,) = await play("a")
    a.network.delay = 3600
    await clock.advance(10.2)
    assert not a.leadership.is_leader
    assert a.leading == 0
    a.network.delay = 0
    await end([a])


async def test_short_troubles_are_ridden_out() -> None:
    api, clock, (a, b) = await play("a", "b")
    await clock.advance(10)
    a.network.cut = True
    await clock.advance(6)
    a.network.cut = False
    api.faults.append(answer_of(500, status(500, "InternalError")))
    await clock.advance(60)
    assert (a.times, a.leading, b.times) == (1, 1, 0)
    await end([a, b])


async def test_an_answer_that_is_lost_is_not_a_lost_lease() -> None:
    _, clock, (a,) = await play("a")
    a.network.lose_answers = True
    await clock.advance(5)
    a.network.lose_answers = False
    await clock.advance(30)
    assert (a.times, a.leading) == (1, 1)
    await end([a])


async def test_a_renewal_cut_off_under_way_is_released_all_the_same() -> None:
    api, _, (a,) = await play("a")
    api.put("kohort", "kube-system", "leases", spec=dict(lease(api)))  # done by the server, its answer never seen
    await a.stop()
    assert "holderIdentity" not in lease(api)


async def test_a_lease_taken_by_force_ends_leading_at_once() -> None:
    api, clock, (a,) = await play("a")
    api.put("kohort", "kube-system", "leases", spec={**lease(api), "holderIdentity": "admin"})
    await clock.advance(2.1)
    assert (a.leadership.is_leader, a.leading, a.leadership.holder) == (False, 0, "admin")
    await end([a])
    assert lease(api)["holderIdentity"] == "admin", "what is not ours is not released"


async def test_a_deleted_lease_is_made_again() -> None:
    api, clock, (a,) = await play("a")
    api.remove("kohort", "kube-system", "leases")
    await clock.advance(5)
    assert a.leading == 1
    assert lease(api)["holderIdentity"] == "a"
    await end([a])


async def test_it_ends_when_the_work_does_and_with_its_error() -> None:
    api, clock = FakeApi(), VirtualClock()

    async def succeed() -> None:
        await clock.sleep(5)

    async def fail() -> None:
        await clock.sleep(5)
        raise ZeroDivisionError

    for work, error in ((succeed, None), (fail, ZeroDivisionError)):
        leadership = Leadership(Client.within(api, namespace="kube-system"), "kohort", clock=clock)
        task = asyncio.create_task(leadership.run(work))
        await clock.advance(8)
        assert task.done()
        assert (type(task.exception()) if task.exception() else None) is error
        assert not leadership.is_leader
        assert "holderIdentity" not in lease(api)


async def test_work_is_prepared_while_another_leads_and_begins_with_the_lease() -> None:
    _, clock, (a,) = await play("a")
    diary: list[str] = []

    async def work(begin: asyncio.Event) -> None:
        diary.append("prepares")
        try:
            await begin.wait()
            diary.append("leads")
            await asyncio.Event().wait()
        finally:
            diary.append("ends")

    network = Network(a.network.api, clock)
    client = Client.within(network, namespace="kube-system", clock=clock)
    second = Leadership(client, "kohort", identity="b", clock=clock)
    task = asyncio.create_task(second.run_prepared(work))
    await clock.advance(60)
    assert diary == ["prepares"]
    await a.stop()
    await clock.advance(2.1)
    assert diary == ["prepares", "leads"]
    network.cut = True
    await clock.advance(11)  # lost: what is prepared for the next time knows nothing of this one
    assert diary == ["prepares", "leads", "ends", "prepares"]
    task.cancel()
    await clock.advance(6)
    assert diary[-1] == "ends"


async def test_preparations_that_fail_are_not_waited_with() -> None:
    _, clock, (a,) = await play("a")

    async def work(begin: asyncio.Event) -> None:
        raise TransportError("no lists")

    client = Client.within(a.network.api, namespace="kube-system", clock=clock)
    task = asyncio.create_task(Leadership(client, "kohort", identity="b", clock=clock).run_prepared(work))
    await clock.advance(0.1)
    assert isinstance(task.exception(), TransportError)
    assert a.leadership.is_leader
    await end([a])


def test_times_that_cannot_be_safe_are_refused() -> None:
    client = Client.within(FakeApi())
    with pytest.raises(ValueError, match=r"accepted is 1\.2 x retry < deadline < duration"):
        Leadership(client, "x", duration=10, deadline=10)


ACTS: dict[str, Callable[[Network], None]] = {
    "cut": lambda network: setattr(network, "cut", True),
    "heal": lambda network: setattr(network, "cut", False),
    "slow": lambda network: setattr(network, "delay", 4.0),
    "quick": lambda network: setattr(network, "delay", 0.0),
    "lose": lambda network: setattr(network, "lose_answers", True),
    "keep": lambda network: setattr(network, "lose_answers", False),
}
ACTIONS = st.tuples(st.sampled_from(sorted(ACTS)), st.integers(0, 2), st.sampled_from([0.5, 3.0, 9.0]))


@settings(max_examples=25, deadline=None)
@given(st.lists(ACTIONS, max_size=10))
def test_property_never_two_leaders_and_in_the_end_one(actions: list[tuple[str, int, float]]) -> None:
    async def check() -> None:
        _, clock, candidates = await play("a", "b", "c")

        async def watched(seconds: float) -> None:
            for _ in range(int(seconds / 0.5)):
                await clock.advance(0.5)
                assert sum(one.leadership.is_leader for one in candidates) <= 1
                assert all(one.leadership.is_leader or not one.leading for one in candidates)

        for act, who, seconds in actions:
            ACTS[act](candidates[who].network)
            await watched(seconds)
        for one in candidates:
            for cure in ("heal", "quick", "keep"):
                ACTS[cure](one.network)
        await watched(40)
        assert sum(one.leadership.is_leader for one in candidates) == 1
        await end(candidates)

    asyncio.run(check())
