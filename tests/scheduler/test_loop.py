"""The scheduler's loop beside others on the same event loop."""

from __future__ import annotations

import asyncio
import time

from kohort.kube.clock import REAL
from kohort.scheduler.loop import give_turns


def _chain(steps: int) -> list[int]:
    """Work of somebody else: so many turns of the loop, one after the other."""
    done: list[int] = []

    def step() -> None:
        done.append(len(done))
        end = time.perf_counter() + 0.0005
        while time.perf_counter() < end:
            pass
        if len(done) < steps:
            asyncio.get_running_loop().call_soon(step)

    asyncio.get_running_loop().call_soon(step)
    return done


async def test_who_needs_several_turns_has_them_between_two_slices() -> None:
    done = _chain(6)
    await give_turns(REAL, 10.0)
    assert len(done) == 6


async def test_others_have_no_more_than_their_half() -> None:
    done = _chain(1000)
    await give_turns(REAL, 0.005)
    assert 2 <= len(done) <= 12
