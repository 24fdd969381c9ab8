"""Why a group does not fit, with numbers: asked once, after a search has failed and its trials are undone."""

from __future__ import annotations

import numpy as np

from kohort.place.columns import shown
from kohort.place.demand import Branch, Demand, Leaf, Outcome, Reason
from kohort.place.domains import Bounds, TopologyConflict, pinned
from kohort.place.engine import Engine
from kohort.place.leaf import apart, assume_leaf, bound, separate
from kohort.place.nodecauses import offered
from kohort.place.nodesets import NodeSet
from kohort.place.signatures import PodSignature


def diagnose(engine: Engine, root: Demand, node_set: NodeSet) -> dict[str, Outcome]:
    """One outcome per group of a tree that failed: each leaf as if it were alone, then what its branch makes of it."""
    found: dict[str, Outcome] = {}
    _of(engine, root, node_set, found, root)
    return found


def _of(engine: Engine, group: Demand, node_set: NodeSet, found: dict[str, Outcome], root: Demand) -> Outcome:
    if isinstance(group, Leaf):
        outcome = why_not(engine, group, node_set, alone=group is root)
    else:
        children = [_of(engine, child, node_set, found, root) for child in group.children]
        outcome = _branch(group, children)
    found[group.name] = outcome
    return outcome


def _branch(branch: Branch, children: list[Outcome]) -> Outcome:
    """Too few children fit even alone: the cause most of them share. Otherwise they do not fit together."""
    alone = [child for child in children if not child.ok and child.reason is not Reason.BLOCKED_BY_SIBLING]
    total, need = len(children), branch.need
    if total < need:
        text = f"{total} of {need} groups exist"
        return Outcome(False, reason=Reason.WAITING_FOR_GROUP, detail=text)
    if total - len(alone) < need:
        reasons = [child.reason for child in alone]
        main = max(alone, key=lambda child: (reasons.count(child.reason), -reasons.index(child.reason)))
        first = main.first_cause or main.detail
        text = f"{need} of its {total} groups must fit, {total - len(alone)} can; first cause: {first}"
        return Outcome(False, reason=main.reason, detail=text, first_cause=first)
    where = f"in one domain of {branch.topology}" if branch.topology else "together"
    text = f"each of {total - len(alone)} groups fits alone, fewer than {need} fit {where}"
    reason = Reason.DOMAIN_TOO_SMALL if branch.topology else Reason.BLOCKED_BY_SIBLING
    return Outcome(False, reason=reason, detail=text)


def why_not(engine: Engine, leaf: Leaf, node_set: NodeSet, *, alone: bool) -> Outcome:
    """A leaf that was not placed: the cause that most of it failed for, with numbers. `alone`: it has no siblings."""
    if not leaf.pods and not leaf.missing:
        return Outcome(True)  # all of it runs: whatever its tree waits for, it is not this
    exist = leaf.members + len(leaf.pods)
    if exist < leaf.need:
        return Outcome(False, reason=Reason.WAITING_FOR_MEMBERS, detail=f"{exist} of {leaf.need} members exist")
    try:
        code = pinned(engine, leaf)
    except TopologyConflict as wrong:
        return Outcome(False, reason=Reason.MISCONFIGURED, detail=str(wrong))
    if leaf.topology is None:
        return _in_node_set(engine, leaf, node_set, alone)
    return _by_domain(engine, leaf, node_set, code, alone)


def _by_domain(engine: Engine, leaf: Leaf, node_set: NodeSet, code: int | None, alone: bool) -> Outcome:
    parts = node_set.split(leaf.topology or "")
    where = parts.find(code) if code is not None else None
    if where is not None:
        return _keyed(
            _in_node_set(engine, leaf, where, alone), f"{leaf.topology}={where.value}, where its members run,"
        )
    if not len(parts):
        return Outcome(False, reason=Reason.NO_MATCHING_NODE, detail=f"no node has the label {leaf.topology}")
    whole = _in_node_set(engine, leaf, node_set, alone)
    if whole.reason in {Reason.NO_MATCHING_NODE, Reason.INSUFFICIENT}:
        return whole
    best = parts.node_set(int(Bounds(engine, leaf, parts).placed.argmax()))
    return _keyed(
        _in_node_set(engine, leaf, best, alone), f"{leaf.topology}={best.value}, the largest of {len(parts)},"
    )


def _keyed(outcome: Outcome, where: str) -> Outcome:
    if outcome.reason not in {Reason.INSUFFICIENT, Reason.FRAGMENTED}:
        return outcome
    return Outcome(False, reason=Reason.DOMAIN_TOO_SMALL, detail=f"{where} is too small: {outcome.detail}")


def _in_node_set(engine: Engine, leaf: Leaf, node_set: NodeSet, alone: bool) -> Outcome:
    matching, free = 0, 0
    for eq_class in leaf.eq_classes:
        fit = engine.fit(eq_class.signature)
        usable = fit.suits & offered(engine, eq_class.signature)
        matching = max(matching, int((usable if node_set.rows is None else usable[node_set.rows]).sum()))
        free = max(free, int(np.minimum(node_set.of(fit.room), leaf.missing or 1).sum()))
    if not matching:
        nodes = int((engine.state.alive if node_set.rows is None else engine.state.alive[node_set.rows]).sum())
        return Outcome(False, reason=Reason.NO_MATCHING_NODE, detail=f"none of {count(nodes, 'node')} suits its pods")
    wanted = leaf.missing or 1
    kept_apart = _kept_apart(engine, leaf, node_set, wanted)
    if kept_apart is not None:
        return kept_apart
    if bound(engine, leaf, node_set) < wanted:
        return _short(engine, leaf, node_set, matching)
    if not alone and _fits(engine, leaf, node_set, wanted):
        return Outcome(False, reason=Reason.BLOCKED_BY_SIBLING, detail="it fits alone, not beside its siblings")
    said = f"{count(matching, 'node')} {'has' if matching == 1 else 'have'}"
    text = f"{said} room for {count(free, 'pod')} one by one, not for {wanted} of its pods together"
    return Outcome(False, reason=Reason.FRAGMENTED, detail=text)


def _kept_apart(engine: Engine, leaf: Leaf, node_set: NodeSet, wanted: int) -> Outcome | None:
    """Room enough, but too few domains for an anti-affinity between its own pods."""
    if len(leaf.eq_classes) != 1:
        return None
    room = int(np.minimum(node_set.of(engine.room(next(iter(leaf.eq_classes)))), wanted).sum())
    for counter in apart(leaf) if room >= wanted else ():
        domains, elsewhere = separate(engine, leaf, node_set, counter)
        if domains + elsewhere < wanted:
            has = "has" if domains == 1 else "have"
            text = (
                f"its anti-affinity keeps its pods in different {counter.term.key}: "
                f"{count(wanted, 'pod')} need {wanted} of them, {domains} {has} room"
            )
            return Outcome(False, reason=Reason.FRAGMENTED, detail=text)
    return None


def _fits(engine: Engine, leaf: Leaf, node_set: NodeSet, wanted: int) -> bool:
    mark = engine.mark()
    placed = assume_leaf(engine, leaf, node_set, wanted, wanted)
    engine.undo(mark)
    return placed is not None


def hardest(leaf: Leaf) -> PodSignature:
    """The largest signature of a leaf."""
    return max(
        (eq_class.signature for eq_class in leaf.eq_classes), key=lambda signature: tuple(signature.weight.tolist())
    )


def _short(engine: Engine, leaf: Leaf, node_set: NodeSet, matching: int) -> Outcome:
    """Too little room: is the total too small, or is it there in pieces too small for a pod?"""
    signature, state, needed = hardest(leaf), engine.state, leaf.missing or 1
    fit = engine.fit(signature)
    suited = np.flatnonzero(fit.suits) if node_set.rows is None else node_set.rows[fit.suits[node_set.rows]]
    where = np.ix_(suited, signature.columns)
    left = (state.alloc[where] - state.used[where]).clip(min=0).sum(axis=0)
    ratio = left // signature.amounts
    scarce = int(ratio.argmin())
    name = state.resources.names[int(signature.columns[scarce])]
    have, each, room = (
        shown(name, int(left[scarce])),
        shown(name, int(signature.amounts[scarce])),
        bound(engine, leaf, node_set),
    )
    nodes, has = count(matching, "node"), "has" if matching == 1 else "have"
    if not bool((state.alloc[where] >= signature.amounts).all(axis=1).any()):
        text = f"of {nodes} none is large enough, even when empty (a pod asks {each} {name})"
        return Outcome(False, reason=Reason.INSUFFICIENT, detail=text)
    if int(ratio.min()) < needed and len(leaf.eq_classes) == 1:
        total = shown(name, needed * int(signature.amounts[scarce]))
        text = f"{count(needed, 'pod')} {'needs' if needed == 1 else 'need'} {total} {name}, {nodes} {has} {have} free"
        return Outcome(False, reason=Reason.INSUFFICIENT, detail=text)
    if len(leaf.eq_classes) > 1:
        text = f"{nodes} {has} {have} {name} free and take {room} of {needed} pods (the largest asks {each})"
        return Outcome(False, reason=Reason.FRAGMENTED if room else Reason.INSUFFICIENT, detail=text)
    text = f"{nodes} {has} {have} {name} free, in pieces that take {room} of {count(needed, 'pod')} of {each}"
    return Outcome(False, reason=Reason.FRAGMENTED, detail=text)


def count(number: int, word: str) -> str:
    """So many of something, for people."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
