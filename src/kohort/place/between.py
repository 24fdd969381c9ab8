"""Rules between pods as masks over nodes: affinity, anti-affinity, spread, host ports."""

from __future__ import annotations

import numpy as np

from kohort.place.columns import Mask
from kohort.place.fit import ShapeFit, selected, untolerated
from kohort.place.pairs import Counts, PairClass
from kohort.place.shapes import Port, Shape, Spread
from kohort.place.state import ClusterState, NodeFacts

_EVERYWHERE = "0.0.0.0"


def allowed(state: ClusterState, kind: PairClass, fit: ShapeFit) -> Mask:
    """Rows where one more pod of the class may go. `fit` must be fresh."""
    mask: Mask = fit.room > 0
    for counter in kind.apart:
        mask &= _none(state, counter.term.key, counter.matching)
    for counter in kind.matched:
        if counter.held:
            mask &= _none(state, counter.term.key, counter.holding)
    if kind.together:
        mask &= _near(state, kind)
    for spread, counter in zip(kind.shape.spreads, kind.spreads, strict=True):
        if spread.hard:
            mask &= _spread(state, kind, counter.matching, spread)
    if kind.shape.ports:
        for row in np.flatnonzero(mask):
            mask[row] = not ports_clash(kind.shape, state.node(int(row)))
    return mask


def _none(state: ClusterState, key: str, counts: Counts) -> Mask:
    """Rows whose domain has none of these pods; a node without the label is in no domain."""
    codes = state.column(key).codes
    empty: Mask = (_sized(counts, state, key)[codes] == 0) | (codes == 0)
    return empty


def _near(state: ClusterState, kind: PairClass) -> Mask:
    """Every required term has a pod in the node's domain.

    The first pod of a set that wants to be near its own kind may start anywhere.
    """
    mask: Mask = np.ones(state.rows, np.bool_)
    first = all(counter.total == 0 and counter in kind.matched for counter in kind.together)
    for counter in kind.together:
        codes = state.column(counter.term.key).codes
        mask &= codes != 0
        if not first:
            mask &= _sized(counter.matching, state, counter.term.key)[codes] > 0
    return mask


def _spread(state: ClusterState, kind: PairClass, counts: Counts, spread: Spread) -> Mask:
    codes = state.column(spread.term.key).codes
    counted = _sized(counts, state, spread.term.key)
    domains = np.unique(codes[_eligible(state, kind.shape, spread) & (codes != 0)])
    if not len(domains):
        return np.zeros(state.rows, np.bool_)
    least = int(counted[domains].min()) if len(domains) >= spread.min_domains else 0
    own = int(any(counter.term == spread.term for counter in kind.matched))
    within: Mask = (codes != 0) & (counted[codes] + own - least <= spread.max_skew)
    return within


def _eligible(state: ClusterState, shape: Shape, spread: Spread) -> Mask:
    """Nodes whose domains count for a spread constraint."""
    mask: Mask = state.alive.copy()
    plain = not shape.selector and shape.affinity is None
    if (plain or not spread.honor_affinity) and not spread.honor_taints:
        return mask
    for row in np.flatnonzero(mask):
        facts = state.node(int(row))
        outside = spread.honor_affinity and not selected(shape, facts)
        mask[row] = not (outside or (spread.honor_taints and untolerated(shape, facts)))
    return mask


def _sized(counts: Counts, state: ClusterState, key: str) -> Counts:
    """Counts with a place for each code of the label (a label value may be newer than the counter)."""
    missing = state.column(key).size - len(counts)
    return np.concatenate([counts, np.zeros(missing, counts.dtype)]) if missing > 0 else counts


def ports_clash(shape: Shape, facts: NodeFacts) -> bool:
    return any(_clash(wanted, held) for wanted in shape.ports for held in facts.ports)


def _clash(one: Port, other: Port) -> bool:
    if (one[0], one[2]) != (other[0], other[2]):
        return False
    return one[1] == other[1] or _EVERYWHERE in (one[1], other[1])
