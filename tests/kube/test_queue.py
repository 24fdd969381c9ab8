"""Work queues, in virtual time."""

import asyncio
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.kube.clock import LoopClock, VirtualClock
from kohort.kube.errors import ApiError
from kohort.kube.limits import Backoff, Bucket
from kohort.kube.queue import ClosedError, WorkQueue
from kohort.testing.virtual import VirtualLoop


def queue(**options: object) -> tuple[WorkQueue[str], VirtualClock]:
    clock = VirtualClock()
    return WorkQueue(clock=clock, **options), clock  # type: ignore[arg-type]


async def test_a_key_stands_in_line_once() -> None:
    q, _ = queue()
    for key in ("a", "b", "a", "a"):
        q.add(key)
    assert len(q) == 2
    assert [await q.get(), await q.get()] == ["a", "b"]


def test_a_rest_of_time_passes() -> None:
    """A time minus another may leave less than a clock can tell: whoever comes back after it must find it over."""
    calls = 0

    async def work() -> None:
        loop = asyncio.get_running_loop()
        q: WorkQueue[str] = WorkQueue(clock=LoopClock(datetime(2026, 1, 1, tzinfo=UTC)))
        assert isinstance(loop, VirtualLoop)
        loop.jump(1e6)
        began = loop.time()

        async def reconcile(_: str) -> float | None:
            nonlocal calls
            calls += 1
            if loop.time() == began and calls < 1000:
                return 1e-13
            q.close()
            return None

        q.add("a")
        await q.work(reconcile)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work())
    assert calls == 2


async def test_a_key_added_while_worked_on_comes_back_after_it_and_not_before() -> None:
    q, clock = queue()
    q.add("a")
    assert await q.get() == "a"
    q.add("a")
    q.add("a")
    assert len(q) == 0
    waiting = asyncio.create_task(q.get())
    await clock.settle()
    assert not waiting.done()
    q.done("a")
    assert await waiting == "a"
    q.done("a")
    assert len(q) == 0


async def test_of_several_delays_the_earliest_counts() -> None:
    q, clock = queue()
    q.add_after("a", 5)
    q.add_after("a", 2)
    q.add_after("a", 9)
    await clock.advance(1.9)
    assert len(q) == 0
    await clock.advance(0.1)
    assert len(q) == 1
    assert await q.get() == "a"
    q.done("a")
    await clock.advance(100)
    assert len(q) == 0


async def test_waits_grow_per_key_and_start_again_after_success() -> None:
    q, clock = queue(first=1.0, most=5.0)
    assert [q.retry("a") for _ in range(4)] == [1, 2, 4, 5]
    assert q.retry("b") == 1
    q.forget("a")
    assert q.failures("a") == 0
    assert q.retry("a") == 1
    assert [q.retry("c") for _ in range(2000)][-1] == 5.0
    await clock.advance(5)
    assert len(q) == 3


async def test_a_common_limit_spreads_retries_of_many_keys() -> None:
    q, _ = queue(first=0.001, limit=Bucket(rate=10, burst=2))
    waits = [q.retry(f"k{number}") for number in range(5)]
    assert waits == pytest.approx([0.001, 0.001, 0.1, 0.2, 0.3])


async def test_a_closed_queue_gives_out_what_is_in_line_and_takes_no_more() -> None:
    q, clock = queue()
    q.add("a")
    q.add_after("later", 1)
    q.close()
    q.add("b")
    assert await q.get() == "a"
    with pytest.raises(ClosedError):
        await q.get()
    await clock.advance(5)
    assert len(q) == 0


async def test_closing_wakes_all_who_wait() -> None:
    q, clock = queue()
    waiting = [asyncio.create_task(q.get()) for _ in range(3)]
    await clock.settle()
    q.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(one, ClosedError) for one in results)


async def test_a_waiter_that_is_cancelled_as_it_is_woken_passes_the_key_on() -> None:
    q, clock = queue()
    first, second = asyncio.create_task(q.get()), asyncio.create_task(q.get())
    await clock.settle()
    q.add("a")
    first.cancel()
    assert await second == "a"
    assert first.cancelled()


async def test_workers_retry_failures_obey_the_server_and_come_back_when_asked() -> None:
    q, clock = queue(first=1.0)
    calls: list[tuple[str, float]] = []
    answers: dict[str, list[object]] = {
        "fails": [ValueError("no"), ApiError(429, {}, retry_after=7.0), ApiError(409, {"reason": "Conflict"}), None],
        "returns": [2.5, None],
    }

    async def reconcile(key: str) -> float | None:
        calls.append((key, clock.monotonic()))
        answer = answers[key].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    q.add("fails")
    q.add("returns")
    working = asyncio.create_task(q.work(reconcile, workers=2))
    await clock.advance(60)
    assert calls == [("fails", 0), ("returns", 0), ("fails", 1), ("returns", 2.5), ("fails", 8), ("fails", 12)]
    assert q.failures("fails") == 0
    q.close()
    await working


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 0.5, 2.0])), max_size=30), st.integers(1, 4))
def test_property_no_two_at_a_time_and_nothing_is_forgotten(plan: list[tuple[str, float]], workers: int) -> None:
    async def play() -> None:
        q, clock = queue()
        working: set[str] = set()
        last_add: dict[str, float] = {}
        last_start: dict[str, float] = {}

        async def reconcile(key: str) -> None:
            assert key not in working
            working.add(key)
            last_start[key] = clock.monotonic()
            await clock.sleep(0.7)
            working.discard(key)

        task = asyncio.create_task(q.work(reconcile, workers=workers))
        for key, delay in plan:
            q.add_after(key, delay)
            last_add[key] = clock.monotonic()
            await clock.advance(0.3)
        await clock.advance(60)
        assert all(last_start[key] >= moment for key, moment in last_add.items())
        q.close()
        await task

    asyncio.run(play())


def test_backoff_grows_is_bounded_and_spreads() -> None:
    backoff = Backoff(first=1, most=8, jitter=random.Random(1))
    waits = [backoff.next() for _ in range(500)]
    for wait, top in zip(waits, [1, 2, 4, 8, 8, 8], strict=False):
        assert top / 2 <= wait <= top
    assert max(waits) <= 8
    assert len(set(waits[5:])) > 400
    backoff.reset()
    assert backoff.next() <= 1


def test_a_bucket_gives_a_burst_and_then_its_rate() -> None:
    bucket = Bucket(rate=2, burst=3)
    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(100.5), bucket.take(100.5)] == [True, False]
    assert [bucket.take(200.0) for _ in range(4)] == [True, True, True, False]


async def test_groups_take_turns_and_have_shares() -> None:
    queue: WorkQueue[tuple[str, int]] = WorkQueue(group_of=lambda key: key[0], share=2)
    for number in range(5):
        queue.add(("many", number))
    queue.add(("one", 0))
    first = [await queue.get(), await queue.get(), await queue.get()]
    assert first == [("many", 0), ("one", 0), ("many", 1)]  # in turns
    assert len(queue) == 3
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    assert not waiting.done()  # two of many are worked on, nobody else has anything
    queue.add(("one", 1))
    assert await waiting == ("one", 1)
    queue.done(("many", 0))
    assert await queue.get() == ("many", 2)
    queue.close()
    for key in (("many", 1), ("many", 2)):
        queue.done(key)
    assert [await queue.get(), await queue.get()] == [("many", 3), ("many", 4)]
    with pytest.raises(ClosedError):
        await queue.get()


async def test_a_group_that_rests_lets_others_pass_and_comes_back() -> None:
    rests = {"h": 0.1, "l": 0.0}
    q, clock = queue(group_of=lambda key: key[0], rests=lambda group: rests[group])
    for key in ("h1", "l1"):
        q.add(key)
    assert await q.get() == "l1"
    waiting = asyncio.ensure_future(q.get())
    await asyncio.sleep(0)
    assert not waiting.done()
    rests["h"] = 0.0
    await clock.advance(0.2)
    assert await waiting == "h1"
    rests["h"] = 60.0
    q.add("h2")
    q.close()
    assert await q.get() == "h2"  # what is in line when it is closed need not rest
