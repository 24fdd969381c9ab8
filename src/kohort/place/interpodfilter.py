"""Rules between pods as masks over nodes: affinity, anti-affinity, spread, host ports, claims for one pod."""

from __future__ import annotations

import numpy as np

from kohort.place.columns import Amounts, Mask
from kohort.place.fit import SignatureFit
from kohort.place.interpod import Counts, EquivalenceClass, TermCounter
from kohort.place.signatures import PodSignature, Port, SpreadConstraint
from kohort.place.state import ClusterState, NodeInfo

_EVERYWHERE = "0.0.0.0"


def allowed(state: ClusterState, eq_class: EquivalenceClass, fit: SignatureFit, *, spread: bool = True) -> Mask:
    """Rows where one more pod of the class may go. `fit` must be fresh. Without `spread`: also where it may go once
    other domains have caught up."""
    mask: Mask = fit.room > 0
    if eq_class.signature.claims and not state.claims.free(eq_class.signature.claims):
        return np.zeros(state.rows, np.bool_)
    for counter in eq_class.pod_anti_affinity:
        if counter.total:
            mask &= _none(state, counter.term.key, counter.matching)
    for counter in eq_class.matched:
        if counter.anti_affinity_total:
            mask &= _none(state, counter.term.key, counter.anti_affinity)
    if eq_class.pod_affinity:
        mask &= near(state, eq_class)
    if spread:
        _evenly(state, eq_class, fit, mask)
    ports = eq_class.signature.ports
    for row in {row for protocol, _, number in ports for row in state.ports.get((protocol, number), ())}:
        mask[row] &= not ports_clash(ports, state.node(row))
    return mask


def _evenly(state: ClusterState, eq_class: EquivalenceClass, fit: SignatureFit, mask: Mask) -> None:
    """Takes away the rows where one more pod would leave some domains behind."""
    signature = eq_class.signature
    having: Mask | None = None
    for rule, counter in zip(signature.spread_constraints, eq_class.spread_constraints, strict=True):
        if not rule.hard:
            continue
        if not mask.any():
            return
        if having is None:
            having = labelled(state, signature, hard=True)
        mask &= _even(state, eq_class, spread_over(state, having, fit, rule), counter, rule)


def _none(state: ClusterState, key: str, counts: Counts) -> Mask:
    """Rows whose domain has none of these pods; a node without the label is in no domain."""
    codes = state.column(key).codes
    empty: Mask = (sized(counts, state, key)[codes] == 0) | (codes == 0)
    return empty


def near(state: ClusterState, eq_class: EquivalenceClass) -> Mask:
    """Every required term has a pod in the node's domain.

    The first pod of a set that wants to be near its own kind may start anywhere.
    """
    mask: Mask = np.ones(state.rows, np.bool_)
    first = all(counter.total == 0 and counter in eq_class.matched for counter in eq_class.pod_affinity)
    for counter in eq_class.pod_affinity:
        codes = state.column(counter.term.key).codes
        mask &= codes != 0
        if not first:
            mask &= sized(counter.matching, state, counter.term.key)[codes] > 0
    return mask


def _even(
    state: ClusterState, eq_class: EquivalenceClass, eligible: Mask, counter: TermCounter, spread: SpreadConstraint
) -> Mask:
    """Rows where one more pod keeps the domains even enough."""
    codes = state.column(spread.term.key).codes
    counted = spread_counts(state, counter, eligible)
    domains = np.unique(codes[eligible])
    if not len(domains):
        return np.zeros(state.rows, np.bool_)
    least = int(counted[domains].min()) if len(domains) >= spread.min_domains else 0
    own = int(counter in eq_class.matched)
    within: Mask = (codes != 0) & (counted[codes] + own - least <= spread.max_skew)
    return within


def labelled(state: ClusterState, signature: PodSignature, *, hard: bool) -> Mask:
    """Nodes with every key of the pod's constraints of one kind, required or preferred."""
    mask: Mask = state.alive.copy()
    for key in dict.fromkeys(one.term.key for one in signature.spread_constraints if one.hard == hard):
        mask &= state.column(key).codes != 0
    return mask


def spread_over(state: ClusterState, having: Mask, fit: SignatureFit, spread: SpreadConstraint) -> Mask:
    """Nodes that count for a spread constraint: those `having` every key (`labelled`), and, where the constraint
    honours them, the pod's node affinity and the taints."""
    mask: Mask = (state.alive if spread.lenient else having).copy()
    if spread.honor_affinity:
        mask &= fit.chosen
    if spread.honor_taints:
        mask &= fit.tolerated
    return mask


def spread_counts(state: ClusterState, counter: TermCounter, eligible: Mask) -> Amounts:
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


def ports_clash(ports: tuple[Port, ...], node_info: NodeInfo) -> bool:
    """Whether one of the ports is held on the node, at the same address or where one of the two has all addresses."""
    for protocol, address, number in ports:
        held = node_info.ports
        if (protocol, number) in node_info.numbers and (
            address == _EVERYWHERE or (protocol, address, number) in held or (protocol, _EVERYWHERE, number) in held
        ):
            return True
    return False
