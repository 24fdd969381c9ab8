"""A tree of demands as a packing question, and the way back from its answer to pods and rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kohort.place.columns import Amounts, shown
from kohort.place.demand import Demand, Leaf, groups
from kohort.place.domains import pinned
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass
from kohort.place.linear import NotExpressible
from kohort.place.nodesets import NodeSet
from kohort.place.packing import Limit, PackGroup, Packing
from kohort.place.packingrules import RuleLimits, alone, ruled_room
from kohort.place.shortage import shortage


class PackingQuestion:
    """`packing`: the question; `answer`: what its answer means."""

    def __init__(self, engine: Engine, root: Demand, node_set: NodeSet) -> None:
        self._engine = engine
        state = engine.state
        state.widen()
        rows = np.arange(state.rows) if node_set.rows is None else node_set.rows
        rows = rows[[state.node_infos[row] is not None for row in rows.tolist()]]
        self._rows = rows
        self._slots: list[list[list[str]]] = []  # per slot of the answer: pods that go to that node
        self._classes: dict[object, int] = {}
        self._asks: list[Amounts] = []
        self._caps: list[Amounts] = []
        self._keys: dict[str, int] = {}
        self._levels: list[list[int]] = []
        self._single: dict[str, bool] = {}
        self._free = np.maximum(state.alloc - state.used, 0)[rows]
        tree = self._group(root)
        if not self._asks or not len(rows):
            raise NotExpressible("nothing to place")
        columns = np.flatnonzero(np.array(self._asks).any(axis=0))
        caps = np.array(self._caps).T
        self.packing = Packing(
            self._free[:, columns].tolist(),
            [ask[columns].tolist() for ask in self._asks],
            [],
            self._levels,
            tree,
            self._rules(root, caps),
        )
        self.packing.caps = caps.tolist()
        self._columns = columns.tolist()

    def answer(self, values: Sequence[int]) -> dict[str, int]:
        """Pod -> row."""
        slots = (keys for leaf in self._slots for keys in leaf)
        rows = self._rows.tolist()
        return {key: rows[node] for node, keys in zip(values, slots, strict=True) if node >= 0 for key in keys}

    def shortage(self) -> str | None:
        """Of what all nodes together have too little, for people; None proves nothing."""
        found = shortage(self.packing)
        if found is None:
            return None
        name = self._engine.state.resources.names[self._columns[found.resource]]
        needed, free, usable, step = (shown(name, one) for one in (found.needed, found.free, found.usable, found.step))
        pieces = f", {usable} of it in pieces of {step} that its pods can use" if found.usable < found.free else ""
        return f"its minimum needs {needed} {name}, and nodes that it may use have {free} free{pieces}"

    def _rules(self, root: Demand, caps: Amounts) -> list[Limit]:
        """What rules between pods say, beside how many a node takes by itself."""
        classes = {one: number for one, number in self._classes.items() if isinstance(one, EquivalenceClass)}
        if all(eq_class.is_plain for eq_class in classes):
            return []
        if self._levels:
            raise NotExpressible("rules between pods of groups that are held to domains")
        counts = {number: root.eq_classes[eq_class] for eq_class, number in classes.items()}
        found = RuleLimits(self._engine, self._rows, classes, None if _has_choice(root) else counts).every()
        return alone(found, caps)

    # ---- groups

    def _group(self, group: Demand) -> PackGroup:
        level, code = -1, 0
        if group.topology is not None:
            level = self._level(group.topology)
            code = pinned(self._engine, group) or 0
            if self._single[group.topology] and not code:
                return self._together(group)
        if isinstance(group, Leaf):
            return PackGroup(group.missing, level, code, self._leaf(group), leaf=len(self._slots) - 1)
        return PackGroup(group.need, level, code, {}, [self._group(child) for child in group.children])

    def _leaf(self, leaf: Leaf) -> dict[int, int]:
        keys: dict[EquivalenceClass, list[str]] = {}
        for pod in leaf.pods if leaf.missing else ():
            keys.setdefault(pod.eq_class, []).append(pod.key)
        self._slots.append([[key] for some in keys.values() for key in some])
        return {self._class(eq_class): len(some) for eq_class, some in keys.items()}

    def _level(self, key: str) -> int:
        known = self._keys.get(key)
        if known is None:
            codes = self._engine.state.column(key).codes[self._rows]
            known = self._keys[key] = len(self._levels)
            self._levels.append(codes.tolist())
            own = codes[codes != 0]
            self._single[key] = len(np.unique(own)) == len(own)
        return known

    # ---- classes

    def _class(self, eq_class: EquivalenceClass) -> int:
        known = self._classes.get(eq_class)
        if known is None:
            known = self._add(eq_class, self._ask(eq_class), self._room(eq_class))
        return known

    def _add(self, name: object, ask: Amounts, cap: Amounts) -> int:
        self._classes[name] = len(self._asks)
        self._asks.append(ask)
        self._caps.append(cap)
        return len(self._asks) - 1

    def _ask(self, eq_class: EquivalenceClass) -> Amounts:
        asked = np.zeros(self._free.shape[1], np.int64)
        asked[eq_class.signature.columns] = eq_class.signature.amounts
        return asked

    def _room(self, eq_class: EquivalenceClass) -> Amounts:
        return ruled_room(self._engine, eq_class)[self._rows]

    def _together(self, group: Demand) -> PackGroup:
        """All pods of a group on one node are one large pod."""
        keys, counts = list[str](), dict[EquivalenceClass, int]()
        for leaf in group.leaves():
            if leaf.missing != len(leaf.pods) or (leaf is not group and leaf.topology is not None):
                raise NotExpressible("pods to choose from on one node")
            keys += [pod.key for pod in leaf.pods]
            for pod in leaf.pods:
                counts[pod.eq_class] = counts.get(pod.eq_class, 0) + 1
        if not keys:
            self._slots.append([])
            return PackGroup(leaf=len(self._slots) - 1)
        name = tuple(sorted((id(eq_class), count) for eq_class, count in counts.items()))
        known = self._classes.get(name)
        if known is None:
            codes = self._engine.state.column(group.topology or "").codes[self._rows]
            parts = [self._room(eq_class) // count for eq_class, count in counts.items()]
            ask = sum(
                (self._ask(eq_class) * count for eq_class, count in counts.items()),
                np.zeros(self._free.shape[1], np.int64),
            )
            known = self._add(name, ask, np.where(codes != 0, np.minimum.reduce(parts), 0))
        self._slots.append([keys])
        return PackGroup(1, pods={known: 1}, leaf=len(self._slots) - 1)


def _has_choice(root: Demand) -> bool:
    """Whether some pods, or groups, may be left out."""
    return any(
        one.missing < len(one.pods) if isinstance(one, Leaf) else one.need < len(one.children) for one in groups(root)
    )
