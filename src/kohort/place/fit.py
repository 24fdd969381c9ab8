"""Where can pods of a shape go, and how many on each node? One vector per shape, brought up to date row by row."""

from __future__ import annotations

import numpy as np

from kohort.place.columns import Amounts, Mask
from kohort.place.selectors import node_meets_term, tolerates
from kohort.place.shapes import Shape
from kohort.place.state import ClusterState, NodeFacts

MANY = np.iinfo(np.int32).max  # room without end: a shape that asks for nothing


class ShapeFit:
    """What one shape finds in the cluster.

    `suits` is what does not depend on load: labels, taints, presence. `room` is how many more pods each node takes by
    its resources, 0 where it does not suit.
    """

    __slots__ = ("_node_cursor", "_state", "_usage_cursor", "room", "shape", "suits")

    def __init__(self, state: ClusterState, shape: Shape) -> None:
        self._state = state
        self.shape = shape
        self.suits: Mask = np.zeros(0, np.bool_)
        self.room: Amounts = np.zeros(0, np.int64)
        self._node_cursor = self._usage_cursor = -1

    def refresh(self) -> list[int] | None:
        """Catch up with the cluster; the rows that were looked at again, None for all."""
        state = self._state
        nodes = state.nodes.since(self._node_cursor) if len(self.suits) == state.rows else None
        usage = state.usage.since(self._usage_cursor) if nodes is not None else None
        self._node_cursor, self._usage_cursor = state.nodes.end, state.usage.end
        if nodes is None or usage is None:
            self._all()
            return None
        for row in nodes:
            self.suits[row] = self._suits(row)
        rows = usage if not nodes else list(dict.fromkeys((*nodes, *usage)))
        if len(rows) == 1:
            self._one(rows[0])
        elif rows:
            self._some(np.array(rows))
        return rows

    def _all(self) -> None:
        rows = self._state.rows
        self.suits = np.fromiter((self._suits(row) for row in range(rows)), np.bool_, rows)
        self.room = np.zeros(rows, np.int64)
        self._some(np.arange(rows))

    def _suits(self, row: int) -> bool:
        facts = self._state.facts[row]
        return facts is not None and suits(self.shape, facts)

    def _some(self, rows: Amounts) -> None:
        shape = self.shape
        free = self._state.alloc[np.ix_(rows, shape.columns)] - self._state.used[np.ix_(rows, shape.columns)]
        room = (free // shape.amounts).min(axis=1) if len(shape.columns) else np.full(len(rows), MANY)
        self.room[rows] = np.where(self.suits[rows], np.maximum(room, 0), 0)

    def _one(self, row: int) -> None:
        if not self.suits[row]:
            self.room[row] = 0
            return
        shape = self.shape
        free = self._state.alloc[row, shape.columns] - self._state.used[row, shape.columns]
        self.room[row] = max(int((free // shape.amounts).min()), 0) if len(shape.columns) else MANY


def suits(shape: Shape, facts: NodeFacts) -> bool:
    """Selector, affinity and taints."""
    return selected(shape, facts) and not untolerated(shape, facts)


def selected(shape: Shape, facts: NodeFacts) -> bool:
    labels = facts.labels
    if any(labels.get(key) != value for key, value in shape.selector.items()):
        return False
    if shape.affinity is None:
        return True
    return any(node_meets_term(term, labels, facts.name) for term in shape.affinity)


def untolerated(shape: Shape, facts: NodeFacts) -> bool:
    """Whether a taint keeps the shape away."""
    return any(
        taint.effect in {"NoSchedule", "NoExecute"} and not tolerates(shape.tolerations, taint.as_json())
        for taint in facts.taints
    )
