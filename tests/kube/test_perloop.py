"""One for each event loop, whichever runs, in whichever order and thread."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

from kohort.kube.perloop import PerLoop


class Thing:
    pass


def test_each_loop_has_its_own() -> None:
    of_loop = PerLoop(Thing)

    async def ask() -> Thing:
        return of_loop()

    one, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        first, second = one.run_until_complete(ask()), other.run_until_complete(ask())
        assert first is not second
        assert one.run_until_complete(ask()) is first
        assert other.run_until_complete(ask()) is second
        found: list[Thing] = []
        thread = threading.Thread(target=lambda: found.append(asyncio.run(ask())))
        thread.start()
        thread.join()
        assert found[0] not in (first, second)
        assert one.run_until_complete(ask()) is first
        with pytest.raises(RuntimeError):
            of_loop()  # none runs now
    finally:
        one.close()
        other.close()


def test_a_loop_that_is_gone_is_not_kept() -> None:
    of_loop = PerLoop(Thing)

    async def ask() -> Thing:
        return of_loop()

    loop = asyncio.new_event_loop()
    gone = weakref.ref(loop)
    loop.run_until_complete(ask())
    loop.close()
    del loop
    gc.collect()
    assert gone() is None


def test_without_a_loop_there_is_none() -> None:
    with pytest.raises(RuntimeError):
        PerLoop(Thing)()
