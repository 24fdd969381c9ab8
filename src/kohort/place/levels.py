"""Levels of a network: node labels from the widest domain to the narrowest, and the names that people use for them.

Which labels a cluster has is found out by looking at its nodes; a profile says in which order they count. A node that
lacks a label shares no domain of that level with another, but for those it shares a narrower one with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from kohort.place.columns import Amounts, Rows

if TYPE_CHECKING:
    from kohort.place.state import ClusterState

HOSTNAME: Final = "kubernetes.io/hostname"
Level = tuple[str, str]  # name, label key
# Widest first. Keys that clouds, Topograph, Kueue's and KAI's examples and the GPU operator put on nodes.
WELL_KNOWN: Final[tuple[Level, ...]] = (
    ("region", "topology.kubernetes.io/region"),
    ("zone", "topology.kubernetes.io/zone"),
    ("datacenter", "topology.kubernetes.io/datacenter"),
    ("core", "network.topology.nvidia.com/core"),
    ("block", "topology.kubernetes.io/block"),
    ("block", "cloud.provider.com/topology-block"),
    ("block", "cloud.google.com/gce-topology-block"),
    ("spine", "network.topology.nvidia.com/spine"),
    ("rack", "topology.kubernetes.io/rack"),
    ("rack", "cloud.provider.com/topology-rack"),
    ("rack", "cloud.google.com/gce-topology-subblock"),
    ("leaf", "network.topology.nvidia.com/leaf"),
    ("nvlink", "network.topology.nvidia.com/accelerator"),
    ("nvlink", "nvidia.com/gpu.clique"),
    ("node", HOSTNAME),
    ("host", HOSTNAME),
)


def resolve(state: ClusterState, levels: Sequence[Level], name: str) -> str:
    """The label key that a level's name stands for: the first of that name that a node has; a label of just that name;
    a name that is no level is a label key itself."""
    keys = [key for level, key in levels if level == name]
    for key in (*keys, name):
        if state.column(key).codes.any():
            return key
    return keys[0] if keys else name


def carried(state: ClusterState, levels: Sequence[Level]) -> list[str]:
    """Keys of levels that some node has, widest first."""
    keys = dict.fromkeys(key for _, key in levels)
    return [key for key in keys if state.column(key).codes.any()]


def ordered(state: ClusterState, levels: Sequence[Level], keys: Iterable[str]) -> list[str]:
    """Widest first: keys of known levels as they are listed, others by how large their domains are."""
    listed, names = [key for _, key in levels], [name for name, _ in levels]
    wanted = list(dict.fromkeys(keys))
    known = sorted((key for key in wanted if key in listed), key=listed.index)
    others = [key for key in wanted if key not in listed]
    if not others:
        return known
    sizes = {key: _size(state, key) for key in wanted}
    others.sort(key=lambda key: (-sizes[key], names.index(key) if key in names else len(names)))
    for key in others:
        before = next((place for place, other in enumerate(known) if sizes[other] < sizes[key]), len(known))
        known.insert(before, key)
    return known


def _size(state: ClusterState, key: str) -> Fraction:
    """Nodes per domain, over nodes that have the label."""
    codes = state.column(key).codes
    found = codes[codes != 0]
    return Fraction(len(found), max(len(np.unique(found)), 1))


class Hierarchy:
    """Some rows as a tree of domains. `ids[level, place]` numbers the domain of a row among all of its level, so that
    rows of one domain at a level share all wider ones."""

    __slots__ = ("ids", "keys", "rows")

    def __init__(self, state: ClusterState, keys: Sequence[str], rows: Rows) -> None:
        self.keys, self.rows = tuple(keys), rows
        self.ids: Amounts = np.zeros((len(keys), len(rows)), np.int64)
        narrower: Amounts = -1 - np.arange(len(rows))  # of a row that lacks the label: nobody else's
        for level in reversed(range(len(keys))):
            codes = state.column(keys[level]).codes[rows].astype(np.int64)
            missing = -1 - np.unique(narrower, return_inverse=True)[1]
            narrower = self.ids[level] = np.where(codes != 0, codes, missing)
        wider = np.zeros(len(rows), np.int64)
        for level in range(len(keys)):
            own = np.unique(self.ids[level], return_inverse=True)[1]
            wider = self.ids[level] = np.unique(wider * (len(rows) + 1) + own, return_inverse=True)[1]

    def crossings(self, places: Sequence[int] | Rows) -> list[int]:
        """Per level: how many neighbours in this order are in different domains. Places are those of `rows`."""
        along = self.ids[:, np.asarray(places, np.intp)]
        crossed: list[int] = (along[:, 1:] != along[:, :-1]).sum(axis=1).tolist()
        return crossed

    def domains(self, places: Sequence[int] | Rows) -> list[int]:
        """Per level: how many domains these places are in."""
        return [len(np.unique(ids[np.asarray(places, np.intp)])) for ids in self.ids]
