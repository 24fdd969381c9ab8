"""Which pods of a leaf to take where it has more than it needs: so many of each class as nodes can best hold together.

At fixed prices of pods each leaf takes the cheapest, and then these are what is scarce. So prices follow what is asked
for and what nodes hold at these prices, and what leaves take on the way is averaged: the averages come near to the
mixture that leaves most room. They are rounded leaf by leaf: what one has too much of a class, the next has too little.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from kohort.place.levelfit import Floats
from kohort.place.packing import PackGroup, Prices
from kohort.place.patterns import Patterns

_ROUNDS: Final = 120


def mixed(root: PackGroup, patterns: Patterns, begin: Prices, dice: np.random.Generator, turn: int) -> PackGroup:
    """The same tree, leaves without the pods that they do not need. `turn`: later ones are rounded otherwise."""
    leaves = list(root.leaves())
    have = np.zeros((len(leaves), len(begin)))
    for place, leaf in enumerate(leaves):
        have[place, list(leaf.pods)] = list(leaf.pods.values())
    need = np.array([leaf.need for leaf in leaves], float)
    order = dice.permutation(len(leaves)) if turn else np.arange(len(leaves))
    taken = np.zeros_like(have)
    taken[order] = _rounded(_averaged(have, need, patterns, begin)[order], have[order], need[order])
    pods = {
        leaf.leaf: {number: int(some[number]) for number in leaf.pods if some[number]}
        for leaf, some in zip(leaves, taken, strict=True)
    }
    return _with(root, pods)


def _averaged(have: Floats, need: Floats, patterns: Patterns, begin: Prices) -> Floats:
    prices, total, weights = begin.astype(np.float64), np.zeros_like(have), 0
    for turn in range(_ROUNDS):
        taken, left = np.zeros_like(have), need.copy()
        for number in np.argsort(prices, kind="stable"):
            taken[:, number] = np.minimum(have[:, number], left)
            left -= taken[:, number]
        held = patterns.counts[patterns.best(prices.astype(np.float32))[0]].sum(axis=0)
        asked = taken.sum(axis=0)
        total += (turn + 1) * taken
        weights += turn + 1
        more = (held - asked) * len(asked) / max(float(asked.sum()), 1.0)
        prices *= np.exp(-2 / (turn + 3) * (more - more.mean()))
        prices /= prices.max()
    found: Floats = total / weights
    return found


def _rounded(taken: Floats, have: Floats, need: Floats) -> Floats:
    """To whole pods: each leaf has what it needs, and all together about as many of each class as before."""
    found, over = np.zeros_like(taken), np.zeros(taken.shape[1])
    for place, some in enumerate(taken):
        wanted = some + over
        whole = np.clip(np.floor(wanted), 0, have[place])
        while whole.sum() < min(need[place], have[place].sum()):
            whole[int(np.where(whole < have[place], wanted - whole, -np.inf).argmax())] += 1
        while whole.sum() > need[place]:
            whole[int(np.where(whole > 0, wanted - whole, np.inf).argmin())] -= 1
        found[place], over = whole, wanted - whole
    return found


def _with(group: PackGroup, pods: dict[int, dict[int, int]]) -> PackGroup:
    if group.children:
        return replace(group, children=[_with(child, pods) for child in group.children])
    return replace(group, pods=pods[group.leaf]) if group.leaf in pods and group.pods else group
