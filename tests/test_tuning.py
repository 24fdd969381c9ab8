"""A process that runs for months: cycles go by the clock, and looking for them costs little."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from kohort import tuning


class Thing:
    def __init__(self) -> None:
        self.itself = self


async def test_cycles_that_have_lived_for_a_while_go_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_PAUSE", 0.01)
    gc.disable()
    keeping = asyncio.create_task(tuning.keep_small())
    try:
        gone = weakref.ref(Thing())
        async with asyncio.timeout(30):
            while gone() is not None:
                await asyncio.sleep(0.01)
    finally:
        keeping.cancel()
        gc.enable()
