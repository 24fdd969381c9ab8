"""Large trees are taken apart a few items at a time; whatever somebody else holds stays as it is."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

import msgspec

from kohort.kube import dismantle
from kohort.kube.dismantle import Remains, pieces


class Leaf(dict[str, Any]):
    """A map that can be watched as it goes."""


class Spec(msgspec.Struct):
    containers: list[Any]


class Pod(msgspec.Struct):
    spec: Spec


def tree(count: int) -> tuple[dict[str, Any], list[weakref.ref[Leaf]]]:
    leaves = [Leaf(number=number) for number in range(count)]
    return {"spec": {"containers": list(leaves)}}, [weakref.ref(leaf) for leaf in leaves]


def left(leaves: list[weakref.ref[Leaf]]) -> int:
    return sum(leaf() is not None for leaf in leaves)


def test_a_wide_list_goes_a_few_items_at_a_time(monkeypatch: Any) -> None:
    monkeypatch.setattr(dismantle, "_PART", -1.0)  # a break after every few
    obj, leaves = tree(1000)
    held = [obj]
    del obj
    found = [left(leaves) for _ in pieces(held)]
    assert found[-1] == 0
    assert max(before - after for before, after in zip([1000, *found], found, strict=False)) <= 16


def test_structs_are_taken_apart_as_well(monkeypatch: Any) -> None:
    monkeypatch.setattr(dismantle, "_PART", -1.0)
    obj, leaves = tree(100)
    held: list[Any] = [Pod(Spec(obj["spec"].pop("containers")))]
    del obj
    found = [left(leaves) for _ in pieces(held)]
    assert len(found) > 5
    assert found[-1] == 0


def test_what_somebody_holds_stays_whole() -> None:
    obj, leaves = tree(100)
    containers, one = obj["spec"]["containers"], obj["spec"]
    for _ in pieces([obj]):
        pass
    assert "spec" in obj  # this function holds it
    held = [{"a": obj.pop("spec"), "b": {"c": [1]}}]
    for _ in pieces(held):
        pass
    assert one["containers"] is containers
    assert len(containers) == left(leaves) == 100


async def test_it_waits_for_whoever_looks_at_it() -> None:
    remains = Remains()
    obj, leaves = tree(100)
    remains.add(obj)
    await asyncio.sleep(0.01)
    assert len(obj["spec"]["containers"]) == 100
    del obj
    async with asyncio.timeout(5):
        while left(leaves):
            await asyncio.sleep(0.01)


async def test_somebody_who_holds_one_for_long_does_not_stop_the_others(monkeypatch: Any) -> None:
    monkeypatch.setattr(dismantle, "_AGAIN", 0.001)
    remains = Remains()
    mine, of_mine = tree(100)
    remains.add(mine)
    other, of_other = tree(100)
    remains.add(other)
    del other
    async with asyncio.timeout(5):
        while len(remains) or left(of_other):
            await asyncio.sleep(0.001)
    assert left(of_mine) == len(mine["spec"]["containers"]) == 100


async def test_no_more_wait_than_a_few() -> None:
    remains = Remains()
    kept: list[Any] = []
    for _ in range(200):
        kept.append({"data": {}})
        remains.add(kept[-1])
    assert len(remains) == 64
    kept.clear()
    async with asyncio.timeout(5):
        while len(remains):
            await asyncio.sleep(0.01)
