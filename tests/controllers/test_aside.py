"""Long steps of reconciles leave the event loop to others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kohort.controllers.aside import Aside, is_large
from kohort.controllers.reconcile import Answer, Reconcile, ReconcileError, Result, Step

LARGE = {"spec": {"cliques": [{"name": f"c{number}", "spec": {"replicas": 1}} for number in range(1000)]}}
SMALL = {"spec": {"replicas": 2**31 - 1}}


def _here(found: list[int]) -> Reconcile:
    found.append(threading.get_ident())
    yield Step()
    found.append(threading.get_ident())
    return Result(3.0)


async def _run(aside: Aside, key: str, obj: Any, steps: Reconcile) -> Result:
    answers: list[Answer] | None = None
    while True:
        step = await aside.step(key, lambda: obj, steps, answers)
        if isinstance(step, Result):
            return step
        answers = []


def test_what_is_large_is_told_by_its_values() -> None:
    assert is_large(LARGE)
    assert not is_large(SMALL)
    assert not is_large(None)


def test_small_objects_are_reconciled_on_the_loop_and_large_ones_in_one_thread() -> None:
    async def both() -> tuple[list[int], list[int]]:
        aside, small, large = Aside(), list[int](), list[int]()
        assert await _run(aside, "small", SMALL, _here(small)) == Result(3.0)
        assert aside.steps == 0
        assert await _run(aside, "large", LARGE, _here(large)) == Result(3.0)
        assert aside.steps == 2
        aside.close()
        return small, large

    small, large = asyncio.run(both())
    assert set(small) == {threading.get_ident()}
    assert len(set(large)) == 1
    assert set(small).isdisjoint(large)


def test_the_loop_goes_on_during_a_long_step() -> None:
    """The step waits for something that only the loop does."""

    async def together() -> Result:
        aside, done = Aside(), threading.Event()

        def waiting() -> Reconcile:
            assert done.wait(30)
            return Result()
            yield

        asyncio.get_running_loop().call_later(0.01, done.set)
        try:
            return await _run(aside, "x", LARGE, waiting())
        finally:
            aside.close()

    assert asyncio.run(together()) == Result()


def test_errors_of_a_step_in_the_thread_are_those_of_the_reconcile() -> None:
    def failing() -> Reconcile:
        raise ReconcileError("refused")
        yield

    async def fail() -> None:
        aside = Aside()
        try:
            await _run(aside, "x", LARGE, failing())
        finally:
            aside.close()

    with pytest.raises(ReconcileError, match="refused"):
        asyncio.run(fail())


def test_a_step_that_was_long_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("kohort.controllers.aside.time.thread_time", lambda: float(next(clock)))

    async def twice() -> int:
        aside = Aside()
        await _run(aside, "x", SMALL, _here([]))
        before = aside.steps
        await _run(aside, "x", SMALL, _here([]))
        aside.close()
        return aside.steps - before

    assert asyncio.run(twice()) == 2


def test_the_size_of_an_object_is_looked_at_once_for_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []

    def is_large(obj: Any) -> bool:
        looked.append(obj["metadata"])
        return False

    monkeypatch.setattr("kohort.controllers.aside.is_large", is_large)

    async def run() -> None:
        aside = Aside()
        for version in ("1", "1", "2", "2"):
            await _run(aside, "x", {"metadata": {"resourceVersion": version}}, _here([]))
        aside.close()

    asyncio.run(run())
    assert looked == [{"resourceVersion": "1"}, {"resourceVersion": "2"}]


def test_objects_that_are_gone_are_forgotten() -> None:
    async def come_and_go(aside: Aside) -> None:
        for number in range(100):
            obj = {"metadata": {"resourceVersion": str(number)}}
            await _run(aside, f"g{number}", obj, _here([]))
            await _run(aside, f"g{number}", None, _here([]))
        aside.close()

    aside = Aside()
    asyncio.run(come_and_go(aside))
    assert aside._sizes == {}


def test_a_list_that_is_too_long_is_not_gone_through() -> None:
    class Long(list[int]):
        def __iter__(self) -> Iterator[int]:
            raise AssertionError("its items are looked at")

    assert is_large({"spec": {"items": Long(range(100_000))}})
