"""The search for a packing on questions too large to try every way, each made from an answer: one exists.

Nodes and domains have a few parts in a hundred more than the answer takes. To the brim such a search finds some answers
and not others (docs/search.md has the shares).
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from kohort.place.ejection import Ejection
from kohort.place.levelfit import LevelFit
from kohort.place.packing import PackGroup, Packing
from kohort.place.packsearch import find

ASKS = [[5, 2], [3, 4], [2, 7], [1, 1]]


def _until(seconds: float) -> Callable[[], bool]:
    end = time.process_time() + seconds
    return lambda: time.process_time() > end


def _filled(dice: random.Random) -> Counter[int]:
    return Counter(dice.choices(range(len(ASKS)), k=dice.randint(4, 6)))


def _free(fillings: list[Counter[int]]) -> list[list[int]]:
    return [[1 + sum(ASKS[sort][part] * count for sort, count in one.items()) for part in range(2)] for one in fillings]


def _packing(fillings: list[Counter[int]], racks: list[int], root: PackGroup) -> Packing:
    free = _free(fillings)
    caps = [[min(have // ask for have, ask in zip(node, asks, strict=True)) for asks in ASKS] for node in free]
    return Packing(free, ASKS, caps, [racks], root)


@pytest.mark.parametrize("seed", range(4))
def test_one_gang_that_fills_every_node_but_for_a_little(seed: int) -> None:
    dice = random.Random(seed)
    fillings = [_filled(dice) for _ in range(24)]
    pods = dict(sum(fillings, Counter[int]()))
    packing = _packing(fillings, [1] * 24, PackGroup(sum(pods.values()), pods=pods, leaf=0))
    values = find(packing, _until(20))
    assert values is not None
    assert packing.holds(values)


@pytest.mark.parametrize("seed", range(4))
def test_groups_that_fill_every_rack_beside_pods_that_may_go_anywhere(seed: int) -> None:
    """12 racks of 3 nodes; in each two or three groups, and on every node a small pod of a group held to no rack."""
    dice = random.Random(seed)
    racks, count = [rack for rack in range(1, 13) for _ in range(3)], 36
    fillings, loose = [_filled(dice) for _ in range(count)], Counter({3: count})
    children: list[PackGroup] = []
    for rack in range(1, 13):
        inside = sum((fillings[node] for node in range(count) if racks[node] == rack), Counter[int]())
        sorts = list(inside.elements())
        dice.shuffle(sorts)
        parts = dice.randint(2, 3)
        for part in range(parts):
            pods = dict(Counter(sorts[part::parts]))
            children.append(PackGroup(sum(pods.values()), level=0, pods=pods, leaf=len(children)))
    dice.shuffle(children)
    children.append(PackGroup(count, pods=dict(loose), leaf=len(children)))
    root = PackGroup(len(children), children=children)
    packing = _packing([one + Counter({3: 1}) for one in fillings], racks, root)
    numbered = iter(range(len(children)))
    for leaf in packing.root.leaves():
        leaf.leaf = next(numbered)
    values = find(packing, _until(20))
    assert values is not None
    assert packing.holds(values)


def _level(seed: int) -> tuple[LevelFit, list[int]]:
    """Eight domains of 103, of which groups of random sizes fill 100; the first group may go to its own only."""
    dice = random.Random(seed)
    sizes: list[tuple[int, int]] = []
    for domain in range(8):
        cuts = sorted(dice.sample(range(10, 91), 3))
        sizes += [(end - start, domain) for start, end in zip([0, *cuts], [*cuts, 100], strict=True)]
    dice.shuffle(sizes)
    asks = np.array([[float(size)] for size, _ in sizes])
    allowed = np.ones((len(sizes), 8), np.bool_)
    allowed[0] = np.arange(8) == sizes[0][1]
    return LevelFit(asks, np.full((8, 1), 103.0), allowed, 1.0), [domain for _, domain in sizes]


@pytest.mark.parametrize("seed", range(6))
def test_domains_that_are_asked_push_groups_out_until_all_have_a_place(seed: int) -> None:
    fit, planted = _level(seed)
    dice = np.random.default_rng(seed)

    def takes(_domain: int, groups: tuple[int, ...]) -> bool:
        return float(fit.asks[list(groups)].sum()) <= 103

    begun = fit.begin(dice)
    assert begun is not None
    settled = fit.settle(begun)
    assert fit.fill(settled).max() <= fit.fill(begun).max()
    found = Ejection(fit, takes, dice).settled(settled, lambda: False, 4000)
    assert found is not None
    assert fit.fill(found).max() <= 1.0001
    assert found[0] == planted[0]


def test_a_group_that_no_domain_takes_stays_without_a_place() -> None:
    fit = LevelFit(np.array([[60.0], [60.0], [60.0]]), np.full((2, 1), 100.0), np.ones((3, 2), np.bool_), 1.0)
    dice = np.random.default_rng(0)
    begun = fit.begin(dice)
    assert begun is not None

    def takes(_domain: int, groups: tuple[int, ...]) -> bool:
        return len(groups) <= 1

    assert Ejection(fit, takes, dice).settled(begun, lambda: False, 50) is None
    assert LevelFit(fit.asks, fit.room, np.zeros((3, 2), np.bool_), 1.0).begin(dice) is None
