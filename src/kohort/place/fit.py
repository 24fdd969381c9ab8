"""Filter: where pods of a signature can go, and how many on each node. One vector per signature, refreshed by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kohort.apimachinery.labels import holds, meets, node_meets_term, tolerates
from kohort.place.columns import Amounts, Mask, Rows
from kohort.place.signatures import PodSignature, Taint
from kohort.place.state import ClusterState, NodeInfo

Json = Mapping[str, Any]
FEW_ROWS = 12  # up to so many rows, plain numbers are faster than arrays
MANY = np.iinfo(np.int32).max  # room without end: a signature that asks for nothing


class SignatureFit:
    """What one signature finds in the cluster.

    `chosen`: nodes it selects by name, labels and affinity. `suits`: those of them whose taints it tolerates and that
    its claims allow; this does not depend on load. `room`: how many more pods each takes by its resources, 0 where it
    does not suit; `total`: on all of them.
    """

    __slots__ = (
        "_asks",
        "_claims",
        "_node_cursor",
        "_state",
        "_usage_cursor",
        "_whole",
        "chosen",
        "room",
        "signature",
        "suits",
        "tolerated",
        "total",
    )

    def __init__(self, state: ClusterState, signature: PodSignature) -> None:
        self._state = state
        self.signature = signature
        self._asks: list[tuple[int, int]] = list(
            zip(signature.columns.tolist(), signature.amounts.tolist(), strict=True)
        )
        self.chosen: Mask = np.zeros(0, np.bool_)
        self.tolerated: Mask = np.zeros(0, np.bool_)
        self.suits: Mask = np.zeros(0, np.bool_)
        self.room: Amounts = np.zeros(0, np.int64)
        self.total = 0
        self._whole: tuple[tuple[int, int, int], Amounts] | None = None  # the versions that it rests on
        self._node_cursor = self._usage_cursor = self._claims = -1

    def refresh(self) -> None:
        """Catch up with the cluster."""
        state = self._state
        same = len(self.suits) == len(state.alive) and (
            not self.signature.claims or self._claims == state.claims.version
        )
        if same and self._usage_cursor == state.usage.end and self._node_cursor == state.nodes.end:
            return
        state.widen()
        nodes = state.nodes.since(self._node_cursor) if same else None
        usage = state.usage.since(self._usage_cursor) if nodes is not None else None
        self._node_cursor, self._usage_cursor = state.nodes.end, state.usage.end
        if nodes is None or usage is None or 4 * len(nodes) > state.rows:
            self._all()
            return
        for row in nodes:
            self._look_at(row)
        rows = usage if not nodes else list(dict.fromkeys((*nodes, *usage)))
        if len(rows) <= FEW_ROWS:
            self._few(rows)
        else:
            self._some(np.array(rows))

    def whole(self) -> Amounts:
        """How many pods each row would take if it were empty."""
        state, signature = self._state, self.signature
        versions = (state.offers, state.nodes.end, self._claims)
        if self._whole is None or self._whole[0] != versions or len(self._whole[1]) != state.rows:
            room = (state.alloc[:, signature.columns] // np.maximum(signature.amounts, 1)).min(axis=1)
            self._whole = (versions, np.where(self.suits, np.maximum(room, 0), 0))
        return self._whole[1]

    def _all(self) -> None:
        state, signature = self._state, self.signature
        self._claims = state.claims.version
        self.chosen = chosen_rows(state, signature)
        self.tolerated = tolerated_rows(state, signature)
        self.suits = self.chosen & self.tolerated
        if signature.claims:
            for row in np.flatnonzero(self.suits):
                self.suits[row] = claimed(state, signature, state.node(int(row)))
        self.room, self.total = np.zeros(state.rows, np.int64), 0
        self._some(np.arange(state.rows))

    def _look_at(self, row: int) -> None:
        node_info, signature = self._state.node_infos[row], self.signature
        self.chosen[row] = node_info is not None and selected(signature, node_info)
        self.tolerated[row] = node_info is not None and not untolerated(signature, node_info)
        self.suits[row] = (
            node_info is not None
            and self.chosen[row]
            and self.tolerated[row]
            and claimed(self._state, signature, node_info)
        )

    def _some(self, rows: Rows) -> None:
        state = self._state
        room = np.full(len(rows), MANY, np.int64)
        for column, amount in self._asks:
            np.minimum(room, (state.alloc[rows, column] - state.used[rows, column]) // amount, out=room)
        found = np.where(self.suits[rows], np.maximum(room, 0), 0)
        self.total += int(found.sum() - self.room[rows].sum())
        self.room[rows] = found

    def _few(self, rows: list[int]) -> None:
        """The same, without arrays."""
        alloc, used, room, asks = self._state.alloc, self._state.used, self.room, self._asks
        for row in rows:
            found = 0
            if self.suits[row]:
                free, found = (alloc[row] - used[row]).tolist(), MANY
                for column, ask in asks:
                    takes = free[column] // ask
                    if takes < found:
                        found = takes if takes > 0 else 0
            self.total += found - room.item(row)
            room[row] = found


# ---- one node


def suits(state: ClusterState, signature: PodSignature, node_info: NodeInfo) -> bool:
    """Name, selector, affinity, taints and claims."""
    return (
        selected(signature, node_info)
        and not untolerated(signature, node_info)
        and claimed(state, signature, node_info)
    )


def selected(signature: PodSignature, node_info: NodeInfo) -> bool:
    labels = node_info.labels
    if signature.node is not None and signature.node != node_info.name:
        return False
    if any(labels.get(key) != value for key, value in signature.selector.items()):
        return False
    if signature.affinity is None:
        return True
    return any(node_meets_term(term, labels, node_info.name) for term in signature.affinity)


def untolerated(signature: PodSignature, node_info: NodeInfo) -> bool:
    """Whether a taint keeps the signature away."""
    return any(keeps_away(signature, taint) for taint in node_info.taints)


def keeps_away(signature: PodSignature, taint: Taint) -> bool:
    return taint.effect in {"NoSchedule", "NoExecute"} and not tolerates(signature.tolerations, taint.as_json())


def claimed(state: ClusterState, signature: PodSignature, node_info: NodeInfo) -> bool:
    """Whether all its claims can be used on the node."""
    return all(state.claims.get(key).suits(node_info.labels, node_info.name) for key in signature.claims)


# ---- all nodes


def chosen_rows(state: ClusterState, signature: PodSignature) -> Mask:
    """`selected` for all rows: each label value is looked at once, not each node."""
    mask: Mask = state.alive.copy()
    if signature.node is not None:
        mask &= _named(state, lambda name: name == signature.node)
    for key, value in signature.selector.items():
        column = state.column(key)
        code = column.find(value)
        mask &= False if code is None else column.codes == code
        if code is None:
            return mask
    if signature.affinity is not None:
        any_term = np.zeros(state.rows, np.bool_)
        for term in signature.affinity:
            any_term |= term_rows(state, term)
        mask &= any_term
    return mask


def term_rows(state: ClusterState, term: Json) -> Mask:
    """Rows that meet a node selector term; an empty one matches nothing."""
    rules, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    mask: Mask = state.alive.copy() if rules or fields else np.zeros(state.rows, np.bool_)
    for rule in rules:
        mask &= _rule_rows(state, rule)
        if not mask.any():
            return mask
    for rule in fields:
        wanted = {**rule, "values": frozenset(rule.get("values") or ())}
        mask &= _named(state, lambda name, rule=wanted: meets(rule, {"metadata.name": name}))  # type: ignore[misc]
    return mask


def _rule_rows(state: ClusterState, rule: Json) -> Mask:
    """Whatever the rule names is looked up once, whatever the nodes have is looked at once."""
    column, values = state.column(rule["key"]), rule.get("values") or ()
    operator = rule.get("operator") or ""
    if operator in {"Gt", "Lt"}:
        bound = values[0] if values else ""
        truth = np.fromiter((holds(operator, value, (bound,)) for value in column.texts()), np.bool_, column.size)
    else:
        truth = np.zeros(column.size, np.bool_)
        truth[[code for code in map(column.find, values) if code is not None]] = True
        if operator in {"Exists", "DoesNotExist"}:
            truth[1:] = True
        elif operator not in {"In", "NotIn"}:
            truth[:] = False
        if operator in {"NotIn", "DoesNotExist"}:
            truth = ~truth
    found: Mask = truth[column.codes]
    return found


def _named(state: ClusterState, wanted: Callable[[str], bool]) -> Mask:
    return np.fromiter(
        (one is not None and wanted(one.name) for one in state.node_infos), np.bool_, len(state.node_infos)
    )


def tolerated_rows(state: ClusterState, signature: PodSignature) -> Mask:
    """Rows without a taint that keeps the signature away: each set of taints is looked at once."""
    truth = [not any(keeps_away(signature, taint) for taint in taints) for taints in state.taints]
    mask: Mask = np.array(truth, np.bool_)[state.tainted] & state.alive
    return mask
