"""What came closest, and the smallest changes that would make a leaf fit. Each is worked out, not guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kohort.place.columns import Amounts, Mask, Rows, shown
from kohort.place.demand import Leaf, PendingPod
from kohort.place.engine import Engine
from kohort.place.leaf import apart, separate, size
from kohort.place.nodecauses import offered, scarcest
from kohort.place.nodesets import NodeSet
from kohort.place.signatures import PodSignature

_HOSTNAME = "kubernetes.io/hostname"
_UNLIKE = 200  # unlike pods packed in thought
_NAMED = 3  # nodes named before "and so many others"


@dataclass(frozen=True, slots=True)
class NearestMiss:
    """The domain or node that came closest."""

    text: str
    where: str | None
    takes: int
    needs: int
    lacks: Mapping[str, int] | None = None  # resource -> amount, for one more pod

    def __str__(self) -> str:
        return self.text


class RemedyKind(StrEnum):
    """What would have to change."""

    NODES = "nodes"
    FREE = "free"
    MINIMUM = "minimum"
    MEMBERS = "members"
    TOPOLOGY = "topology"
    LABEL = "label"
    RESOURCE = "resource"  # nodes that have it, or more of it, than any there is
    UNCORDON = "uncordon"
    TOLERATE = "tolerate"
    TAINT = "taint"  # one that the node has for its own state: it goes when that is well again
    CLAIM = "claim"
    GATES = "gates"
    GROUP = "group"
    QUOTA = "quota"
    VOLUME = "volume"


_STEPS = frozenset({RemedyKind.MEMBERS, RemedyKind.GATES, RemedyKind.GROUP, RemedyKind.QUOTA, RemedyKind.VOLUME})


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change after which it would fit; or (`is_step`) without which nobody looks whether it does."""

    kind: RemedyKind
    text: str
    amount: int
    nodes: tuple[str, ...] = ()
    parts: tuple[int, ...] = ()  # of the amount, per node

    def __str__(self) -> str:
        return self.text

    @property
    def is_step(self) -> bool:
        return self.kind in _STEPS


def nearest_miss(engine: Engine, leaf: Leaf, node_set: NodeSet, takes: int) -> NearestMiss | None:
    """With as many placed as fit: where one more would need the least."""
    needs = leaf.missing or 1
    signature = scarcest(leaf).signature
    fit, _ = engine.evaluate(signature)
    rows = _large_enough(engine, signature, _inside(node_set, fit.suits & offered(engine, signature)))
    where = "" if node_set.value is None else f"{leaf.topology}={node_set.value} takes {takes} of {needs}; "
    if not len(rows):
        return NearestMiss(f"{where}no node suits", node_set.value, takes, needs) if where else None
    lack = _lack(engine, signature, rows)
    worst = (lack * 1000 // signature.amounts).max(axis=1)
    best = int(worst.argmin())
    name = engine.state.node(int(rows[best])).name
    if not worst[best]:
        return NearestMiss(f"{where}{name} has room, but rules between pods", name, takes, needs) if where else None
    names = engine.state.resources.names
    short = {
        names[column]: int(value)
        for column, value in zip(signature.columns.tolist(), lack[best].tolist(), strict=True)
        if value
    }
    text = " and ".join(f"{shown(resource, value)} {resource}" for resource, value in short.items())
    return NearestMiss(f"{where}{name} lacks {text} for one more pod", name, takes, needs, short)


def _large_enough(engine: Engine, signature: PodSignature, rows: Rows) -> Rows:
    """Those of the rows that would take a pod when empty; if there are none, all."""
    large = rows[(engine.state.alloc[np.ix_(rows, signature.columns)] >= signature.amounts).all(axis=1)]
    return large if len(large) else rows


def _inside(node_set: NodeSet, suits: Mask) -> Rows:
    rows: Rows = np.flatnonzero(suits) if node_set.rows is None else node_set.rows[suits[node_set.rows]]
    return rows


def _lack(engine: Engine, signature: PodSignature, rows: Rows) -> Amounts:
    """Per row and resource: what is missing for one more pod."""
    where = np.ix_(rows, signature.columns)
    free = engine.state.alloc[where] - engine.state.used[where]
    missing: Amounts = np.maximum(signature.amounts - free, 0)
    return missing


def leaf_remedies(engine: Engine, leaf: Leaf, node_set: NodeSet, placed: Mapping[str, int]) -> list[Remedy]:
    """Changes that let the rest in beside what is placed now (and stays in the trial)."""
    left = [pod for pod in leaf.pods if pod.key not in placed][: (leaf.missing or 1) - len(placed)]
    freed = _freed(engine, leaf, node_set, len(left), list(placed.values()))
    found = [_more_nodes(engine, leaf, node_set, left), _more_domains(engine, leaf, node_set, len(left)), freed]
    found += [_labels(engine, leaf), _larger(engine, leaf)]
    total = len(placed) + leaf.members
    if placed and leaf.minimum is not None and total < leaf.minimum:
        found.append(Remedy(RemedyKind.MINIMUM, f"with minCount {total}, now", total))
    return [remedy for remedy in found if remedy is not None]


# ---- more nodes


def _more_nodes(engine: Engine, leaf: Leaf, node_set: NodeSet, left: Sequence[PendingPod]) -> Remedy | None:
    """Copies of the largest node that suits, empty but for what every node holds."""
    rows = _inside(node_set, engine.evaluate(scarcest(leaf).signature)[0].suits)
    if not len(rows) or not all(eq_class.signature.is_plain for eq_class in {pod.eq_class for pod in left}):
        return None
    signature = scarcest(leaf).signature
    alloc = engine.state.alloc[rows]
    takes = (alloc[:, signature.columns] // signature.amounts).min(axis=1)
    best = int(takes.argmax())
    copies = _packed(alloc[best], left)
    if not copies:
        return None
    name = engine.state.node(int(rows[best])).name
    where = "" if node_set.value is None else f" in {leaf.topology}={node_set.value}"
    return Remedy(RemedyKind.NODES, f"with {copies} more {_nodes(copies)} like {name}{where}", copies, (name,))


def _more_domains(engine: Engine, leaf: Leaf, node_set: NodeSet, left: int) -> Remedy | None:
    """Pods of one class that keep off each other, and nothing else is in their way: each needs a domain of its own."""
    if len(leaf.eq_classes) != 1 or node_set.value is not None:
        return None
    signature, rules = scarcest(leaf).signature, apart(leaf)
    others = signature.pod_affinity or signature.spread_constraints or signature.ports or signature.claims
    if len(rules) != 1 or len(signature.pod_anti_affinity) != 1 or others:
        return None
    rows = _inside(node_set, engine.evaluate(signature)[0].suits)
    rows = rows[(engine.state.alloc[np.ix_(rows, signature.columns)] >= signature.amounts).all(axis=1)]
    if not len(rows):
        return None
    missing, key = left - sum(separate(engine, leaf, node_set, rules[0])), rules[0].term.key
    name = engine.state.node(int(rows[0])).name
    if missing <= 0:
        return None
    if key == _HOSTNAME:
        return Remedy(RemedyKind.NODES, f"with {missing} more {_nodes(missing)} like {name}", missing, (name,))
    text = f"with {missing} more {_nodes(missing)} like {name}, each in a {key} of its own"
    return Remedy(RemedyKind.NODES, text, missing, (name,))


def _packed(room: Amounts, pods: Sequence[PendingPod]) -> int:
    """How many empty nodes the pods fill, the largest first into the first that takes it; 0 if one takes none."""
    eq_classes = {pod.eq_class for pod in pods}
    if len(eq_classes) == 1:
        signature = pods[0].eq_class.signature
        takes = int((room[signature.columns] // signature.amounts).min())
        return -(-len(pods) // takes) if takes else 0
    if len(pods) > _UNLIKE:
        return 0
    open_nodes: list[Amounts] = []
    for pod in sorted(pods, key=lambda pod: size(pod.eq_class), reverse=True):
        signature = pod.eq_class.signature
        for free in open_nodes:
            if (free[signature.columns] >= signature.amounts).all():
                free[signature.columns] -= signature.amounts
                break
        else:
            fresh = room.copy()
            if (fresh[signature.columns] < signature.amounts).any():
                return 0
            fresh[signature.columns] -= signature.amounts
            open_nodes.append(fresh)
    return len(open_nodes)


# ---- room that others hold


def _freed(engine: Engine, leaf: Leaf, node_set: NodeSet, pods: int, placed: Sequence[int]) -> Remedy | None:
    """Pods of one class: the least of one resource that others could free, on nodes where nothing else is short."""
    if len(leaf.eq_classes) != 1 or not scarcest(leaf).is_plain:
        return None
    signature, state = scarcest(leaf).signature, engine.state
    rows = _inside(node_set, engine.evaluate(signature)[0].suits)
    own = np.bincount(np.asarray(placed, np.intp), minlength=state.rows)[rows]  # the leaf's own pods stay
    lack = _lack(engine, signature, rows)
    best: tuple[int, Rows, Amounts] | None = None
    for place, column in enumerate(signature.columns.tolist()):
        short, ask = lack[:, place], int(signature.amounts[place])
        others = state.used[rows, column] - own * ask
        chosen = np.flatnonzero((short > 0) & (short <= others) & (np.delete(lack, place, axis=1) == 0).all(axis=1))
        if len(chosen) >= pods and (best is None or len(chosen) > len(best[1])):
            chosen = chosen[np.argsort(short[chosen], kind="stable")[:pods]]
            best = (column, rows[chosen], short[chosen])
    if best is None:
        return None
    column, where, parts = best
    name, nodes = state.resources.names[column], [state.node(int(row)).name for row in where]
    amount = int(parts.sum())
    text = f"with {shown(name, amount)} {name} freed on {named(nodes)}{_held_by(engine, where, column)}"
    return Remedy(RemedyKind.FREE, text, amount, tuple(nodes), tuple(parts.tolist()))


def _held_by(engine: Engine, rows: Rows, column: int) -> str:
    """Who holds most of the resource there; empty if there are many nodes."""
    if len(rows) > _NAMED:
        return ""
    held: list[tuple[int, str]] = []
    for row in rows.tolist():
        for pod in engine.state.node(row).pods.values():
            place = np.flatnonzero(pod.signature.columns == column)
            if len(place):
                held.append((-int(pod.signature.amounts[place[0]]), f"{pod.namespace}/{pod.name}"))
    names = [name for _, name in sorted(held)]
    return f" (held by {named(names)})" if names else ""


# ---- labels


def _labels(engine: Engine, leaf: Leaf) -> Remedy | None:
    """A label that it selects and no node has."""
    selector = scarcest(leaf).signature.selector
    for key, value in selector.items():
        column = engine.state.column(key)
        code = column.find(value)
        if code is None or not (column.codes == code).any():
            return Remedy(RemedyKind.LABEL, f"on nodes labelled {key}={value} (there is none)", 0)
    return None


def unlabelled(topology: str) -> Remedy:
    """Of a group that is kept to one domain of a label that no node has."""
    return Remedy(RemedyKind.LABEL, f"on nodes labelled {topology} (there is none)", 0)


# ---- nodes larger than any


def _larger(engine: Engine, leaf: Leaf) -> Remedy | None:
    """What a node would have to have, where none of the cluster has enough for a pod even when it is empty."""
    signature, state = scarcest(leaf).signature, engine.state
    if engine.room(scarcest(leaf)).any():  # some node takes one as it is
        return None
    alloc = state.alloc[np.ix_(np.flatnonzero(state.alive), signature.columns)]
    if not len(alloc) or (alloc >= signature.amounts).all(axis=1).any():
        return None
    most = alloc.max(axis=0)
    short = np.flatnonzero(most < signature.amounts)
    names = [state.resources.names[column] for column in signature.columns.tolist()]
    asked = [f"at least {shown(names[n], int(signature.amounts[n]))} {names[n]}" for n in range(len(names))]
    if not len(short):
        return Remedy(RemedyKind.RESOURCE, f"on nodes with {' and '.join(asked)} (none has all of it)", 0)
    has = [f"the largest has {shown(names[n], int(most[n]))}" if most[n] else "there is none" for n in short]
    parts = [f"{asked[n]} ({said})" for n, said in zip(short.tolist(), has, strict=True)]
    return Remedy(RemedyKind.RESOURCE, f"on nodes with {' and '.join(parts)}", 0)


def _nodes(count: int) -> str:
    return "node" if count == 1 else "nodes"


def named(names: Sequence[str]) -> str:
    if len(names) <= _NAMED:
        return ", ".join(names)
    others = len(names) - _NAMED
    return f"{', '.join(names[:_NAMED])} and {others} {'other' if others == 1 else 'others'}"
