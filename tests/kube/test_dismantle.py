"""Large trees are taken apart a few items at a time; whatever somebody else holds stays as it is."""

from __future__ import annotations

import asyncio
import itertools
import weakref
from typing import Any

import msgspec
import pytest

from kohort.kube import dismantle, shares
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
    async with asyncio.timeout(60):
        while left(leaves):
            await asyncio.sleep(0.01)


async def test_somebody_who_holds_one_for_long_does_not_stop_the_others(monkeypatch: Any) -> None:
    monkeypatch.setattr(dismantle, "_AGAIN", 0.001)
    monkeypatch.setattr(dismantle, "_LONGEST", 0.01)
    remains = Remains()
    mine, of_mine = tree(100)
    remains.add(mine)
    other, of_other = tree(100)
    remains.add(other)
    del other
    async with asyncio.timeout(60):
        while len(remains) or left(of_other):
            await asyncio.sleep(0.001)
    assert left(of_mine) == len(mine["spec"]["containers"]) == 100


async def test_who_held_many_of_them_does_not_free_them_all_at_once(monkeypatch: Any) -> None:
    """A reconcile that has listed a namespace, of which everything was deleted meanwhile."""
    monkeypatch.setattr(dismantle, "_AGAIN", 0.001)
    monkeypatch.setattr(dismantle, "_SELDOM", 0.001)
    monkeypatch.setattr(dismantle, "_PART", -1.0)
    remains = Remains()
    trees = [tree(20) for _ in range(200)]
    held, leaves = [obj for obj, _ in trees], [leaf for _, of_one in trees for leaf in of_one]
    del trees
    for obj in held:
        remains.add(obj)
    del obj
    looks = 0
    real = remains._look

    async def look() -> bool:
        nonlocal looks
        looks += 1
        return await real()

    monkeypatch.setattr(remains, "_look", look)
    async with asyncio.timeout(60):
        while looks < 50:
            await asyncio.sleep(0.001)
        held.clear()
        assert left(leaves) == 4000
        counts = [4000]
        while counts[-1]:
            await asyncio.sleep(0)
            counts.append(left(leaves))
    assert max(before - after for before, after in itertools.pairwise(counts)) <= 40


async def test_looks_at_what_is_held_for_long_become_few(monkeypatch: Any) -> None:
    pauses: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await real(0)

    monkeypatch.setattr("kohort.kube.dismantle.asyncio.sleep", sleep)
    remains = Remains()
    mine, _ = tree(1)
    remains.add(mine)
    while len(pauses) < 10:
        await real(0)
    assert pauses[:6] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0]
    del mine
    while len(remains):
        await real(0)


async def test_no_more_wait_than_some_thousands() -> None:
    remains = Remains()
    kept: list[Any] = []
    for _ in range(5000):
        kept.append({"data": {}})
        remains.add(kept[-1])
    assert len(remains) == 4096
    kept.clear()
    async with asyncio.timeout(60):
        while len(remains):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("who", "others", "times"),
    [("noisy", 0, 3.0), ("quiet", 0, 15.0), ("quiet", 64, 3.0), ("kube-system", 0, 3.0)],
)
async def test_it_rests_longer_while_another_tenant_is_at_it(
    monkeypatch: Any, who: str, others: int, times: float
) -> None:
    """Unless so many wait that memory matters more."""
    monkeypatch.setattr(shares, "_ACTIVE", 60.0)
    remains, rests = Remains(), list[float]()
    mine = [tree(1)[0] for _ in range(others)]
    for obj in mine:
        remains.add(obj)
    shares.of_loop().spent(shares.tenant(who), 0.001)
    real = remains._rest

    def rest(owner: str) -> float:
        rests.append(real(owner))
        return 0.0

    monkeypatch.setattr(remains, "_rest", rest)
    monkeypatch.setattr(dismantle, "_PART", -1.0)
    big, leaves = tree(2000)
    big["metadata"] = {"namespace": "noisy"}
    held = [big]
    del big
    await remains._take_apart(held)
    assert left(leaves) == 0
    assert len(rests) > 100
    assert set(rests) == {times}
