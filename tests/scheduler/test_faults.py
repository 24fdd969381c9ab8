"""A fault of our own in mid-run: told, survived, and raised to whoever ran the scheduler."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kohort.scheduler.loop import Scheduler, running
from kohort.testing.cluster import cluster
from kohort.testing.virtual import VirtualLoop


def test_a_scheduler_that_fails_begins_anew_and_tells(caplog: pytest.LogCaptureFixture) -> None:
    async def life() -> None:
        async with cluster("1.37", controllers=()) as found:
            scheduler = Scheduler(found.client, clock=found.client.clock)
            async with running(scheduler):
                terms = scheduler.core

                def fail(_: float) -> None:
                    raise ZeroDivisionError("planted")

                scheduler.core.step = fail  # type: ignore[method-assign,assignment]
                scheduler._changed.set()

                async def anew() -> bool:
                    return scheduler.core is not terms and scheduler.started.is_set()

                await found.until(anew, what="another term")

    with (
        caplog.at_level(logging.ERROR),
        pytest.raises(ZeroDivisionError, match="planted"),
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
    ):
        runner.run(life())
    assert "the scheduler failed; it begins anew" in caplog.text
