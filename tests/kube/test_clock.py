"""Virtual time: nothing happens by itself, everything happens in order."""

import asyncio

import pytest

from kohort.kube.clock import RealClock, VirtualClock


async def test_timers_fire_in_order_each_at_its_moment() -> None:
    clock = VirtualClock()
    seen: list[tuple[str, float]] = []
    clock.call_later(3, lambda: seen.append(("c", clock.monotonic())))
    clock.call_later(1, lambda: seen.append(("a", clock.monotonic())))
    clock.call_later(1, lambda: seen.append(("b", clock.monotonic())))
    await clock.advance(2)
    assert seen == [("a", 1.0), ("b", 1.0)]
    assert clock.next_timer == 1.0
    await clock.advance(10)
    assert seen[-1] == ("c", 3.0)
    assert clock.monotonic() == 12.0
    assert (clock.now() - VirtualClock().now()).total_seconds() == 12


async def test_a_timer_set_by_a_timer_fires_in_the_same_advance() -> None:
    clock = VirtualClock()
    seen: list[float] = []

    async def sleeper() -> None:
        for _ in range(4):
            await clock.sleep(0.5)
            seen.append(clock.monotonic())

    task = asyncio.create_task(sleeper())
    await clock.advance(2)
    assert seen == [0.5, 1.0, 1.5, 2.0]
    await task


async def test_cancelled_timers_do_not_fire() -> None:
    clock = VirtualClock()
    timer = clock.call_later(1, lambda: pytest.fail("fired"))
    timer.cancel()
    assert clock.next_timer is None
    await clock.advance(5)


async def test_timeouts_are_virtual_too() -> None:
    clock = VirtualClock()

    async def waits() -> str:
        try:
            async with clock.timeout(3):
                await asyncio.Event().wait()
        except TimeoutError:
            return f"gave up at {clock.monotonic()}"
        return "never"

    task = asyncio.create_task(waits())
    await clock.advance(2.9)
    assert not task.done()
    await clock.advance(0.1)
    assert await task == "gave up at 3.0"


async def test_a_timeout_that_is_not_needed_leaves_nothing_behind() -> None:
    clock = VirtualClock()
    async with clock.timeout(3):
        pass
    assert clock.next_timer is None


async def test_the_real_clock_is_real() -> None:
    clock = RealClock()
    before = clock.monotonic()
    fired = asyncio.Event()
    clock.call_later(0.01, fired.set)
    await fired.wait()
    await clock.sleep(0.01)
    assert clock.monotonic() - before >= 0.02
    with pytest.raises(TimeoutError):
        async with clock.timeout(0.01):
            await asyncio.Event().wait()
