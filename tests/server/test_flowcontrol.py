"""Seats and queues: who waits, who is next, who is told to come later."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.kube.transport import ADMIN
from kohort.kube.wire import User
from kohort.server import status
from kohort.server.flowcontrol import FlowControl, Seats
from kohort.server.limits import DEFAULT, Limits


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_defaults_are_those_of_kube_apiserver() -> None:
    assert (DEFAULT.max_requests_inflight, DEFAULT.max_mutating_requests_inflight) == (400, 200)


async def test_a_seat_that_becomes_free_goes_to_who_holds_the_fewest() -> None:
    seats = Seats(4, DEFAULT)
    order: list[str] = []

    async def request(user: str) -> None:
        await seats.take(user)
        order.append(user)

    for user in ("mallory", "mallory", "other", "other"):
        await seats.take(user)
    waiting = [asyncio.create_task(request("mallory")) for _ in range(10)]
    waiting.append(asyncio.create_task(request("alice")))
    await settle()
    assert (seats.taken, seats.waiting, order) == (4, 11, [])
    seats.leave("mallory")
    await settle()
    assert order == ["alice"]  # though ten were there before her
    seats.leave("other")
    await settle()
    assert order == ["alice", "mallory"]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert seats.waiting == 0


async def test_nobody_holds_more_than_half() -> None:
    seats = Seats(4, DEFAULT)
    await seats.take("mallory")
    await seats.take("mallory")
    third = asyncio.create_task(seats.take("mallory"))
    await settle()
    assert not third.done()
    await asyncio.wait_for(seats.take("alice"), 30)
    seats.leave("mallory")
    await asyncio.wait_for(third, 30)


async def test_a_full_queue_and_a_long_wait_are_429() -> None:
    seats = Seats(2, Limits(queue_length=1, queue_seconds=0.5))
    await seats.take("mallory")
    waiting = asyncio.create_task(seats.take("mallory"))
    await settle()
    with pytest.raises(status.ApiError) as refused:
        await seats.take("mallory")
    assert (refused.value.code, refused.value.headers) == (429, {"retry-after": "1"})
    assert refused.value.status["reason"] == "TooManyRequests"
    with pytest.raises(status.ApiError) as late:
        await waiting
    assert late.value.code == 429
    assert (seats.taken, seats.waiting, seats.rejected) == (1, 0, 2)


def test_who_is_exempt() -> None:
    flow = FlowControl(DEFAULT)
    assert flow.seats("POST", "/api/v1/pods", ADMIN) is None
    assert flow.seats("GET", "/readyz", User("system:anonymous")) is None
    assert flow.seats("GET", "/api/v1/pods", User("alice")) is flow.reading
    assert flow.seats("PATCH", "/api/v1/pods", User("alice")) is flow.mutating
    assert flow.seats("POST", "/api/v1/pods", None) is flow.mutating


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from(["take", "leave", "cancel"]), st.sampled_from("abc"), st.integers(0, 9))),
)
def test_seats_are_neither_lost_nor_given_twice(count: int, steps: list[tuple[str, str, int]]) -> None:
    async def play() -> None:
        seats = Seats(count, Limits(queue_length=3, queued_requests=6, queue_seconds=60))
        tasks: list[tuple[str, asyncio.Task[None]]] = []
        for action, user, index in steps:
            if action == "take":
                tasks.append((user, asyncio.create_task(seats.take(user))))
            elif tasks and action == "cancel":
                tasks[index % len(tasks)][1].cancel()
            elif held := [one for one in tasks if one[1].done() and not one[1].cancelled() and not one[1].exception()]:
                tasks.remove(held[0])
                seats.leave(held[0][0])
            if index % 2:
                await settle()
        await settle()
        held = [one for one in tasks if one[1].done() and not one[1].cancelled() and not one[1].exception()]
        assert len(held) == seats.taken <= count
        assert sum(not task.done() for _, task in tasks) == seats.waiting
        for user, _ in held:
            seats.leave(user)
        while waiting := [(user, task) for user, task in tasks if not task.done()]:
            await settle()
            for user, task in waiting:
                if task.done():
                    seats.leave(user)
        assert (seats.taken, seats.waiting) == (0, 0)

    asyncio.run(play())


async def test_a_seat_does_not_go_to_who_hung_up_in_the_same_moment() -> None:
    """The waiting request is cancelled, and its seat comes before its task has run again."""
    seats = Seats(2, DEFAULT)
    await seats.take("alice")
    first, second = (asyncio.create_task(seats.take("alice")) for _ in range(2))
    await settle()
    assert seats.waiting == 2
    first.cancel()
    seats.leave("alice")
    await asyncio.gather(first, second, return_exceptions=True)
    assert (first.cancelled(), second.cancelled()) == (True, False)
    assert (seats.taken, seats.waiting) == (1, 0)
    seats.leave("alice")
    assert seats.taken == 0
