"""Large objects are told to the controllers later, in the order of their namespace; others pass by."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.server.controllers.world import World

from kohort.kube.clock import REAL
from kohort.server.controllers import ControllerManager, late_changes
from kohort.server.controllers.late_changes import LARGE, LateChanges
from kohort.server.store import Change, Event, Item
from kohort.server.store.records import Entry


def entry(namespace: str, name: str, size: int = 10) -> Entry:
    return Entry("configmaps", Event(Change.CREATE, Item(namespace, name, 1, b"x" * size), None))


async def drained(late: LateChanges) -> None:
    async with asyncio.timeout(60):
        while len(late):
            await asyncio.sleep(0.001)


async def test_others_pass_by_and_the_order_of_a_namespace_stays() -> None:
    told: list[str] = []
    late = LateChanges(lambda one: told.append(one.event.item.name))
    for one in (
        entry("a", "a1"),
        entry("a", "a2", LARGE + 1),
        entry("b", "b1"),
        entry("a", "a3"),
        entry("", "cluster-wide", LARGE + 1),
        entry("b", "b2"),
    ):
        if not late.keeps(one):
            told.append(one.event.item.name)
    await drained(late)
    assert told == ["a1", "b1", "cluster-wide", "b2", "a2", "a3"]
    assert not late.keeps(entry("a", "a4")), "nothing of it waits any more"


async def test_a_commit_of_many_large_ones_is_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_changes, "_PART", 0.0)
    monkeypatch.setattr(late_changes, "_REST", 0.0)
    told: list[str] = []
    late = LateChanges(lambda one: told.append(one.event.item.name))
    for number in range(20):
        assert late.keeps(entry("a", str(number), LARGE + 1))
    turns = 0
    while len(late):
        turns += 1
        before = len(told)
        await asyncio.sleep(0)
        assert len(told) <= before + 1
    assert turns >= 20


async def test_stopped_means_that_nothing_more_is_told() -> None:
    told: list[str] = []
    late = LateChanges(lambda one: told.append(one.event.item.name))
    late.keeps(entry("a", "a1", LARGE + 1))
    await late.stop()
    await asyncio.sleep(0)
    assert told == []


async def test_the_child_of_a_large_owner_stays_and_goes_with_it() -> None:
    """It is small and comes right after: the garbage collector must not think that its owner is not there."""
    async with World(()) as world:
        controllers = ControllerManager(world.api, REAL)
        controllers.start()
        path = "/api/v1/namespaces/ns/configmaps"
        owner = await world.post(path, {"metadata": {"name": "owner"}, "data": {"x": "y" * LARGE}})
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        await world.post(path, {"metadata": {"name": "child", "ownerReferences": [reference]}})
        assert controllers._late is not None
        await drained(controllers._late)
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            assert await world.get(f"{path}/child") is not None
            await asyncio.sleep(0.01)
        await world.delete(f"{path}/owner")
        async with asyncio.timeout(60):
            while await world.get(f"{path}/child") is not None:
                await asyncio.sleep(0.01)
        await controllers.stop()
