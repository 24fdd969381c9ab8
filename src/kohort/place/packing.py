"""A hard question as plain numbers: nodes, shapes of pods, and a tree of groups that all must find a place.

It may be answered in another process. An answer has one node for every pod, group by group in the order of the tree,
within a group class by class; -1 for a pod that its group does not need.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.float32]  # whole numbers, small enough to be exact: products of these are fast
Prices = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class PackGroup:
    """A group. `level`: which label it keeps to one domain of, -1 if none; `code`: of the domain it must take, 0 if
    any. A leaf has pods by class, a branch has children; `need`: of how many it must have. `leaf`: its number."""

    need: int = 0
    level: int = -1
    code: int = 0
    pods: dict[int, int] = field(default_factory=dict)
    children: list[PackGroup] = field(default_factory=list)
    leaf: int = -1

    def leaves(self) -> Iterator[PackGroup]:
        if self.pods:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(slots=True)
class Limit:
    """On these nodes together no more than `most` pods of these classes."""

    nodes: list[int]
    classes: list[int]
    most: int = 1


@dataclass(slots=True)
class Packing:
    """`free` by node and resource, `asks` by class and resource, `caps`: how many pods of a class a node takes by
    itself, `levels`: per label the domain of every node (0: in none)."""

    free: list[list[int]]
    asks: list[list[int]]
    caps: list[list[int]]
    levels: list[list[int]]
    root: PackGroup
    limits: list[Limit] = field(default_factory=list)

    def demand(self, groups: list[PackGroup] | None = None) -> Numbers:
        """How many pods of each class some groups have; None: all of them."""
        total = np.zeros(len(self.asks), np.int64)
        for group in [self.root] if groups is None else groups:
            for leaf in group.leaves():
                for number, count in leaf.pods.items():
                    total[number] += count
        return total

    def holds(self, values: list[int]) -> bool:
        """Whether an answer keeps to everything that was asked."""
        free, asks, caps = (np.array(one, np.int64) for one in (self.free, self.asks, self.caps))
        seats = np.zeros(caps.shape, np.int64)
        if len(values) != int(self.demand().sum()) or not self._met(self.root, iter(values), seats)[0]:
            return False
        if (seats > caps).any() or (seats @ asks > free).any():
            return False
        return all(int(seats[np.ix_(one.nodes, one.classes)].sum()) <= one.most for one in self.limits)

    def _met(self, group: PackGroup, rest: Iterator[int], seats: Numbers) -> tuple[bool, list[int]]:
        """Whether a group has what it needs, in one domain; and its nodes."""
        nodes: list[int] = []
        for number, count in group.pods.items():
            own = [node for _, node in zip(range(count), rest, strict=False) if node >= 0]
            np.add.at(seats, (own, number), 1)
            nodes += own
        met = len(nodes)
        if group.children:
            found = [self._met(child, rest, seats) for child in group.children]
            met = sum(ok for ok, _ in found)
            nodes = [node for _, some in found for node in some]
        domains = {self.levels[group.level][node] for node in nodes} if group.level >= 0 else set()
        held = len(domains) <= 1 and 0 not in domains and (not domains or group.code in (0, *domains))
        return held and met >= group.need, nodes


def trimmed(group: PackGroup, prices: Prices, dice: np.random.Generator, noise: float) -> PackGroup:
    """The same without what it does not need, the dearest left out; with some noise, which may be others each time."""
    if not group.children:
        left, pods = group.need, dict[int, int]()
        for number in sorted(group.pods, key=lambda one: float(prices[one]) * _about(dice, noise)):
            if some := min(group.pods[number], left):
                pods[number] = some
                left -= some
        return replace(group, pods=pods)
    children = [trimmed(child, prices, dice, noise) for child in group.children]
    children.sort(key=lambda child: price(child, prices) * _about(dice, noise))
    return replace(group, children=children[: group.need])


def _about(dice: np.random.Generator, noise: float) -> float:
    return float(np.exp(dice.normal(0, noise))) if noise else 1.0


def price(group: PackGroup, prices: Prices) -> float:
    """What all pods of a group cost; without end, if it has too few for what it needs."""
    if group.children:
        short = len(group.children) < group.need
        return np.inf if short else sum(price(child, prices) for child in group.children)
    if sum(group.pods.values()) < group.need:
        return np.inf
    return sum(float(prices[number]) * count for number, count in group.pods.items())
