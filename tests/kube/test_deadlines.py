"""One timer for all deadlines does what a timer for each does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from kohort.kube import deadlines


@asynccontextmanager
async def _ours(seconds: float) -> AsyncIterator[None]:
    with deadlines.of_loop().within(seconds):
        yield


Limit = Callable[[float], AbstractAsyncContextManager[object]]
both = pytest.mark.parametrize("limit", [asyncio.timeout, _ours])


@both
def test_what_takes_too_long_ends_with_a_timeout_and_the_task_goes_on(limit: Limit) -> None:
    async def slow() -> tuple[str, int]:
        try:
            async with limit(0.02):
                await asyncio.sleep(10)
        except TimeoutError:
            task = asyncio.current_task()
            assert task is not None
            await asyncio.sleep(0)  # is not cancelled any more
            return "over", task.cancelling()
        return "not over", 0

    assert asyncio.run(slow()) == ("over", 0)


@both
def test_a_shorter_one_that_comes_later_is_over_first(limit: Limit) -> None:
    async def order() -> list[float]:
        ended: list[float] = []

        async def one(seconds: float) -> None:
            with pytest.raises(TimeoutError):
                async with limit(seconds):
                    await asyncio.sleep(10)
            ended.append(seconds)

        await asyncio.gather(*(one(seconds) for seconds in (0.15, 0.02, 0.08, 0.02)))
        return ended

    assert asyncio.run(order()) == [0.02, 0.02, 0.08, 0.15]


@both
def test_whoever_is_cancelled_by_somebody_else_is_cancelled(limit: Limit) -> None:
    async def cancelled() -> bool:
        async def slow() -> None:
            async with limit(10):
                await asyncio.sleep(10)

        task = asyncio.create_task(slow())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancelled())


@both
def test_an_error_is_that_error_and_what_ends_in_time_ends(limit: Limit) -> None:
    async def some() -> int:
        with pytest.raises(ValueError, match="mine"):
            async with limit(10):
                raise ValueError("mine")
        async with limit(10):
            await asyncio.sleep(0)
            return 7

    assert asyncio.run(some()) == 7


def test_nothing_is_left_behind_but_one_timer() -> None:
    async def many() -> int:
        async def one() -> None:
            with deadlines.of_loop().within(60):
                await asyncio.sleep(0)

        await asyncio.gather(*(one() for _ in range(100)))
        return len(deadlines.of_loop().open)

    assert asyncio.run(many()) == 0
