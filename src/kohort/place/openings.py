"""Nodes that are closed to a leaf's pods and would be enough for them: what would open them.

A node is closed by taints that the pods do not tolerate, or all of them by a claim that cannot be used. Nothing is
proposed unless, once it is done, the leaf fits; so only pods of one class without rules between pods are spoken of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kohort.place.columns import Amounts, Mask
from kohort.place.demand import Leaf
from kohort.place.engine import Engine
from kohort.place.fit import MANY, SignatureFit
from kohort.place.nodecauses import claim_text, inside, scarcest, taint_text, untolerated_sets
from kohort.place.nodesets import NodeSet
from kohort.place.remedies import Remedy, RemedyKind, named
from kohort.place.signatures import PodSignature, Taint

_OWN_STATE = "node.kubernetes.io/"  # taints that the node controller sets for what is wrong with a node
_TYPED = 6  # nodes in a command to copy


def openings(engine: Engine, leaf: Leaf, node_set: NodeSet, wanted: int) -> list[Remedy]:
    """With nothing of the leaf placed: the smallest opening of each kind after which `wanted` pods fit."""
    eq_class = scarcest(leaf)
    signature = eq_class.signature
    between = any(counter.anti_affinity_total or counter.preferring for counter in eq_class.matched)
    if signature.ports or any(signature.terms()) or between or not _alike(leaf, signature):
        return []
    fit, _ = engine.evaluate(signature)
    here = inside(engine, node_set)
    if signature.claims:
        return list(_claims(engine, leaf, node_set, here & fit.chosen & fit.tolerated, wanted))
    return list(_taints(engine, leaf, node_set, fit, here, wanted))


def _alike(leaf: Leaf, signature: PodSignature) -> bool:
    """Whether its pods differ in nothing but the claims that they name."""
    return all(
        bool(other.claims) == bool(signature.claims)
        and np.array_equal(other.columns, signature.columns)
        and np.array_equal(other.amounts, signature.amounts)
        and (other.selector, other.node, other.affinity) == (signature.selector, signature.node, signature.affinity)
        and other.tolerations == signature.tolerations
        for other in (eq_class.signature for eq_class in leaf.eq_classes)
    ) and (len(leaf.eq_classes) == 1 or bool(signature.claims))


# ---- taints


def _taints(
    engine: Engine, leaf: Leaf, node_set: NodeSet, fit: SignatureFit, here: Mask, wanted: int
) -> Iterator[Remedy]:
    closed = here & fit.chosen & ~fit.tolerated
    if not closed.any():
        return
    signature = fit.signature
    now = np.where(here, fit.room, 0)
    for away, rows in untolerated_sets(engine, signature, closed):
        room = np.where(rows, _room(engine, signature), 0)
        best = _best(leaf, node_set, np.minimum(now + room, wanted), wanted)
        if best is not None:
            yield _opened(engine, away, _fewest(np.where(best, room, 0), wanted - int(now[best].sum())))


def _room(engine: Engine, signature: PodSignature) -> Amounts:
    """Per row, by resources alone."""
    state = engine.state
    if not len(signature.columns):
        return np.full(state.rows, MANY, np.int64)
    free = state.alloc[: state.rows, signature.columns] - state.used[: state.rows, signature.columns]
    room: Amounts = np.maximum((free // signature.amounts).min(axis=1), 0)
    return room


def _best(leaf: Leaf, node_set: NodeSet, room: Amounts, wanted: int) -> Mask | None:
    """The rows that take enough: all of them, or those of the domain that takes most."""
    everywhere: Mask = np.ones(len(room), np.bool_)
    if leaf.topology is None or node_set.value is not None:
        return everywhere if int(room.sum()) >= wanted else None
    parts = node_set.split(leaf.topology)
    sums = parts.sum(room)
    if not len(sums) or int(sums.max()) < wanted:
        return None
    rows = parts.node_set(int(sums.argmax())).rows
    domain: Mask = np.zeros(len(room), np.bool_)
    domain[rows] = True
    return domain


def _fewest(room: Amounts, wanted: int) -> list[int]:
    """Rows that take so many pods, the roomiest first."""
    chosen: list[int] = []
    for row in np.argsort(-room, kind="stable").tolist():
        if wanted <= 0:
            break
        chosen.append(row)
        wanted -= int(room[row])
    return chosen


def _opened(engine: Engine, away: Sequence[Taint], rows: Sequence[int]) -> Remedy:
    names = tuple(engine.state.node(row).name for row in rows)
    nodes, has = f"{len(names)} {'node' if len(names) == 1 else 'nodes'}", "has" if len(names) == 1 else "have"
    taints = " and ".join(f"taint {taint_text(one)}" for one in away if not one.is_unschedulable)
    if any(one.is_unschedulable for one in away):
        typed = f" (kubectl uncordon {' '.join(names)})" if len(names) <= _TYPED else f", for example {named(names)}"
        also = f", if it also tolerated {taints}" if taints else ""
        return Remedy(RemedyKind.UNCORDON, f"with {nodes} uncordoned{typed}{also}", len(names), names)
    if any(one.key.startswith(_OWN_STATE) for one in away):
        which = f"{'node' if len(names) == 1 else 'nodes'} {named(names)}"
        return Remedy(RemedyKind.TAINT, f"when {which} {has} lost {taints}", len(names), names)
    return Remedy(RemedyKind.TOLERATE, f"if it tolerated {taints}", len(names), names)


# ---- claims


def _claims(engine: Engine, leaf: Leaf, node_set: NodeSet, open_: Mask, wanted: int) -> Iterator[Remedy]:
    """All claims that cannot be used, as one change: none of them is enough alone."""
    signature, known = scarcest(leaf).signature, engine.state.claims
    keys = dict.fromkeys(key for eq_class in leaf.eq_classes for key in eq_class.signature.claims)
    unusable = [key for key in keys if not known.get(key).usable]
    room = np.where(open_, np.minimum(_room(engine, signature), wanted), 0)
    if unusable and _best(leaf, node_set, room, wanted) is not None:
        first = known.get(unusable[0]).remedy or "can be used"
        also = f", and {len(unusable) - 1} more" if len(unusable) > 1 else ""
        yield Remedy(RemedyKind.CLAIM, f"when {claim_text(unusable[0])} {first}{also}", len(unusable))
