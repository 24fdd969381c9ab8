"""A fault of our own in mid-run: told, survived, and raised to whoever ran the scheduler."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kohort.kube.errors import ApiError
from kohort.kube.resource import Resource
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


def test_a_role_that_may_not_read_what_default_spreading_needs_still_starts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """403 for Services, ReplicaSets, StatefulSets and ReplicationControllers: pods are scheduled without spreading."""
    unread = {"Service", "ReplicationController", "ReplicaSet", "StatefulSet"}
    both = Resource._both

    async def guarded(self: Resource[Any]) -> Any:
        kind, codec = await both(self)
        if kind.kind in unread:
            raise ApiError(403, {"kind": "Status", "reason": "Forbidden", "message": f"{kind.kind} is forbidden"})
        return kind, codec

    async def life() -> None:
        async with cluster("1.37", controllers=()) as found:
            monkeypatch.setattr(Resource, "_both", guarded)
            scheduler = Scheduler(found.client, clock=found.client.clock)
            async with asyncio.timeout(120), running(scheduler):
                assert scheduler.started.is_set()

    with caplog.at_level(logging.WARNING), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(life())
    for name in ("services", "replicationcontrollers", "replicasets", "statefulsets"):
        assert f"{name} are not looked at" in caplog.text
