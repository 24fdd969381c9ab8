"""Node sets: sets of nodes that a group may be placed in, and how they divide by a label. Divided once, then reused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kohort.place.columns import Amounts, Codes, Rows
from kohort.place.levels import Hierarchy

if TYPE_CHECKING:
    from kohort.place.state import ClusterState


class NodeSet:
    """Some rows (None: all) of the cluster. Told apart by identity: a node set stands for its place in the division."""

    __slots__ = ("_parts", "_state", "_trees", "filled", "members", "rows", "value", "within")

    def __init__(
        self,
        state: ClusterState,
        rows: Rows | None,
        value: str | None = None,
        within: NodeSet | None = None,
        filled: Sequence[Rows] = (),
    ) -> None:
        self._state = state
        self.rows = rows
        self.value = value  # of the label that it was cut out by
        self.within = within  # of a set that is only preferred: where pods may go that find no room in it
        self.filled: Sequence[Rows | None] = filled or (rows,)  # in turn, each as far as it goes
        self._parts: dict[str, Partition] = {}
        self._trees: dict[tuple[str, ...], Hierarchy] = {}
        self.members: frozenset[int] | None = None if rows is None else frozenset(rows.tolist())

    def of(self, values: Amounts) -> Amounts:
        return values if self.rows is None else values[self.rows]

    def holds(self, row: int) -> bool:
        return self.members is None or row in self.members

    def tree(self, keys: Sequence[str]) -> Hierarchy:
        """Its rows as domains of several labels, the widest first."""
        wanted = tuple(keys)
        tree = self._trees.get(wanted)
        if tree is None:
            rows = np.arange(self._state.rows) if self.rows is None else self.rows
            tree = self._trees[wanted] = Hierarchy(self._state, wanted, rows)
        return tree

    def narrowed(self, parts: Sequence[Rows]) -> NodeSet:
        """Some of its rows, which are preferred to the others, and are filled part by part."""
        return NodeSet(self._state, np.sort(np.concatenate(parts)), within=self, filled=parts)

    def split(self, key: str) -> Partition:
        """The domains of a label key within the node set."""
        parts = self._parts.get(key)
        if parts is None:
            parts = self._parts[key] = Partition(self._state, self, key)
        return parts


class Partition:
    """An node set by the values of one label. Sums over domains are made of whole numbers."""

    __slots__ = ("_areas", "_offered", "_order", "_ranks", "_rows", "_starts", "_state", "codes", "key")

    def __init__(self, state: ClusterState, node_set: NodeSet, key: str) -> None:
        column = state.column(key).codes
        codes: Codes = column if node_set.rows is None else column[node_set.rows]
        order = np.argsort(codes, kind="stable")
        order = order[np.searchsorted(codes[order], 1) :]  # code 0: the node lacks the label
        self._state, self.key = state, key
        self.codes, self._starts = np.unique(codes[order], return_index=True)
        self._order: Rows = order if node_set.rows is None else node_set.rows[order]
        self._areas: dict[int, NodeSet] = {}
        self._ranks: Rows | None = None
        self._offered: dict[int, tuple[int, Amounts]] = {}
        self._rows = np.append(self._starts, len(order))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def ranks(self) -> Rows:
        """Position -> place by the value of the label: codes are given in the order in which values were seen."""
        if self._ranks is None:
            value = self._state.column(self.key).value
            values = [value(code) for code in self.codes.tolist()]
            self._ranks = np.argsort(sorted(range(len(values)), key=values.__getitem__))
        return self._ranks

    def sum(self, values: Amounts) -> Amounts:
        """Per domain; `values` has one entry per row of the cluster."""
        if not len(self.codes):
            return np.zeros(0, np.int64)
        return np.add.reduceat(values[self._order], self._starts, dtype=np.int64)

    def offered(self, column: int) -> Amounts:
        """Per domain: what its nodes have of a resource."""
        known = self._offered.get(column)
        if known is None or known[0] != self._state.offers:
            known = self._offered[column] = (self._state.offers, self.sum(self._state.alloc[:, column]))
        return known[1]

    def node_set(self, position: int) -> NodeSet:
        found = self._areas.get(position)
        if found is None:
            rows = self._order[self._rows[position] : self._rows[position + 1]]
            value = self._state.column(self.key).value(int(self.codes[position]))
            found = self._areas[position] = NodeSet(self._state, rows, value)
        return found

    def find(self, code: int) -> NodeSet | None:
        """The domain of a label code, None if no row of the node set is in it."""
        position = int(np.searchsorted(self.codes, code))
        if position == len(self.codes) or self.codes[position] != code:
            return None
        return self.node_set(position)
