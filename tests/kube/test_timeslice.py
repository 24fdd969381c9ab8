"""Long work in slices: one at a time, with turns for others in between."""

from __future__ import annotations

import asyncio

import pytest

from kohort.kube import timeslice
from kohort.kube.timeslice import TimeSlices, give_turns


class Clock:
    """Time passes only where somebody works."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timeslice, "time", made)
    return made


async def _long(slices: TimeSlices, log: list[str], name: str, count: int, clock: Clock) -> None:
    for _ in range(count):
        await slices.turn()
        log.append(name)
        clock.now += 0.004


async def test_whoever_needs_many_turns_gets_several_between_two_slices(clock: Clock) -> None:
    log: list[str] = []

    async def others() -> None:
        for _ in range(24):
            clock.now += 0.0005
            log.append("o")
            await asyncio.sleep(0)

    await asyncio.gather(_long(TimeSlices(), log, "L", 20, clock), others())
    assert log.count("L") == 20
    before, *between = "".join(log).rstrip("L").split("L")
    assert len(before) < 4  # a slice is not kept waiting
    assert between
    assert all(len(one) > 3 for one in between[:-1])  # the last of them had less to do


async def test_one_at_a_time_in_the_order_in_which_they_came(clock: Clock) -> None:
    log: list[str] = []
    slices = TimeSlices()
    await asyncio.gather(*(_long(slices, log, name, 3, clock) for name in "abc"))
    assert "".join(log) == "abcabcabc"


async def test_after_a_slice_that_was_long_there_is_a_rest_though_nobody_has_anything_to_do(clock: Clock) -> None:
    slices, loop = TimeSlices(), asyncio.get_running_loop()
    await slices.turn()
    clock.now += 0.05
    began = loop.time()
    await slices.turn()
    assert loop.time() - began >= 0.05


async def test_who_has_gone_is_passed_over_and_the_last_leaves_nothing(clock: Clock) -> None:
    log: list[str] = []
    slices = TimeSlices()
    gone = asyncio.create_task(_long(slices, log, "a", 3, clock))
    await asyncio.sleep(0)
    waits = asyncio.create_task(_long(slices, log, "b", 2, clock))
    await asyncio.sleep(0)
    gone.cancel()
    await waits
    assert log.count("b") == 2
    await _long(slices, log, "c", 1, clock)
    assert log[-1] == "c"


# ---- whoever has no slices gives turns


def _chain(clock: Clock, steps: int) -> list[int]:
    """Work of somebody else: so many turns of the loop, one after the other."""
    done: list[int] = []

    def step() -> None:
        done.append(len(done))
        clock.now += 0.0005
        if len(done) < steps:
            asyncio.get_running_loop().call_soon(step)

    asyncio.get_running_loop().call_soon(step)
    return done


async def test_who_needs_several_turns_has_them(clock: Clock) -> None:
    done = _chain(clock, 6)
    await give_turns(clock, 10.0)  # type: ignore[arg-type]
    assert len(done) == 6


async def test_others_have_no_more_than_their_half(clock: Clock) -> None:
    done = _chain(clock, 1000)
    await give_turns(clock, 0.005)  # type: ignore[arg-type]
    assert 10 <= len(done) <= 12
