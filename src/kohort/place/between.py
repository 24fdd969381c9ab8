"""Rules between pods as masks over nodes: affinity, anti-affinity, spread, host ports, claims for one pod."""

from __future__ import annotations

import numpy as np

from kohort.place.columns import Amounts, Mask
from kohort.place.fit import ShapeFit
from kohort.place.pairs import Counter, Counts, PairClass
from kohort.place.shapes import Port, Shape, Spread
from kohort.place.state import ClusterState, NodeFacts

_EVERYWHERE = "0.0.0.0"


def allowed(state: ClusterState, kind: PairClass, fit: ShapeFit) -> Mask:
    """Rows where one more pod of the class may go. `fit` must be fresh."""
    mask: Mask = fit.room > 0
    if kind.shape.claims and not state.claims.free(kind.shape.claims):
        return np.zeros(state.rows, np.bool_)
    for counter in kind.apart:
        if counter.total:
            mask &= _none(state, counter.term.key, counter.matching)
    for counter in kind.matched:
        if counter.held:
            mask &= _none(state, counter.term.key, counter.holding)
    if kind.together:
        mask &= near(state, kind)
    for spread, counter in zip(kind.shape.spreads, kind.spreads, strict=True):
        if spread.hard:
            mask &= _even(state, kind, fit, counter, spread)
    for protocol, _, number in kind.shape.ports:
        for row in state.ports.get((protocol, number), ()):
            mask[row] &= not ports_clash(kind.shape, state.node(row))
    return mask


def _none(state: ClusterState, key: str, counts: Counts) -> Mask:
    """Rows whose domain has none of these pods; a node without the label is in no domain."""
    codes = state.column(key).codes
    empty: Mask = (sized(counts, state, key)[codes] == 0) | (codes == 0)
    return empty


def near(state: ClusterState, kind: PairClass) -> Mask:
    """Every required term has a pod in the node's domain.

    The first pod of a set that wants to be near its own kind may start anywhere.
    """
    mask: Mask = np.ones(state.rows, np.bool_)
    first = all(counter.total == 0 and counter in kind.matched for counter in kind.together)
    for counter in kind.together:
        codes = state.column(counter.term.key).codes
        mask &= codes != 0
        if not first:
            mask &= sized(counter.matching, state, counter.term.key)[codes] > 0
    return mask


def _even(state: ClusterState, kind: PairClass, fit: ShapeFit, counter: Counter, spread: Spread) -> Mask:
    """Rows where one more pod keeps the domains even enough."""
    codes = state.column(spread.term.key).codes
    eligible = spread_over(state, kind.shape, fit, spread)
    counted = spread_counts(state, counter, eligible)
    domains = np.unique(codes[eligible])
    if not len(domains):
        return np.zeros(state.rows, np.bool_)
    least = int(counted[domains].min()) if len(domains) >= spread.min_domains else 0
    own = int(counter in kind.matched)
    within: Mask = (codes != 0) & (counted[codes] + own - least <= spread.max_skew)
    return within


def spread_over(state: ClusterState, shape: Shape, fit: ShapeFit, spread: Spread) -> Mask:
    """Nodes that count for a spread constraint: those with every key of the pod's constraints of its kind (required
    or preferred), and, where the constraint honours them, the pod's node affinity and the taints."""
    mask: Mask = state.alive.copy()
    for other in shape.spreads:
        if other.hard == spread.hard and not spread.lenient:
            mask &= state.column(other.term.key).codes != 0
    if spread.honor_affinity:
        mask &= fit.chosen
    if spread.honor_taints:
        mask &= fit.tolerated
    return mask


def spread_counts(state: ClusterState, counter: Counter, eligible: Mask) -> Amounts:
    """Pods per domain on the nodes that count; terminating ones left out."""
    column = state.column(counter.term.key)
    counter.fits(column.size, state.rows)
    rows = np.flatnonzero(eligible & (counter.staying[: state.rows] != 0))
    counted = np.zeros(column.size, np.int64)
    np.add.at(counted, column.codes[rows], counter.staying[rows])
    return counted


def sized(counts: Counts, state: ClusterState, key: str) -> Counts:
    """Counts with a place for each code of the label (a label value may be newer than the counter)."""
    missing = state.column(key).size - len(counts)
    return np.concatenate([counts, np.zeros(missing, counts.dtype)]) if missing > 0 else counts


def ports_clash(shape: Shape, facts: NodeFacts) -> bool:
    return any(_clash(wanted, held) for wanted in shape.ports for held in facts.ports)


def _clash(one: Port, other: Port) -> bool:
    if (one[0], one[2]) != (other[0], other[2]):
        return False
    return one[1] == other[1] or _EVERYWHERE in (one[1], other[1])
