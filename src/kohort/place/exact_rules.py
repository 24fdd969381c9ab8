"""Rules between pods as linear constraints: anti-affinity, spread, host ports, claims for one pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kohort.place.columns import Codes, Mask
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass, TermCounter
from kohort.place.interpodfilter import labelled, ports_clash, spread_counts, spread_over
from kohort.place.linear import LinearModel, NotExpressible
from kohort.place.signatures import SpreadConstraint
from kohort.place.state import NodeInfo


@dataclass(slots=True)
class Item:
    """Pods of one class in the leaves of one sort: one unknown per node that may take some."""

    eq_class: EquivalenceClass
    at: dict[int, int]  # row -> unknown


def add_rules(engine: Engine, model: LinearModel, items: Sequence[Item]) -> None:
    _apart(engine, model, items)
    _even(engine, model, items)
    _ports(model, items)
    _claims(engine, model, items)


def _apart(engine: Engine, model: LinearModel, items: Sequence[Item]) -> None:
    """In a domain of an anti-affinity term there may be carriers of the rule, or pods it speaks of, or one pod that is
    both."""
    for counter in {id(c): c for item in items for c in item.eq_class.pod_anti_affinity}.values():
        codes = engine.state.column(counter.term.key).codes
        for domain in _by_domain(items, counter, codes).values():
            _choose(model, domain)


def _by_domain(
    items: Sequence[Item], counter: TermCounter, codes: Codes
) -> dict[int, tuple[list[int], list[int], list[int]]]:
    found: dict[int, tuple[list[int], list[int], list[int]]] = {}
    for item in items:
        carries, matches = counter in item.eq_class.pod_anti_affinity, counter in item.eq_class.matched
        if not carries and not matches:
            continue
        sort = 2 if carries and matches else 0 if carries else 1
        for row, unknown in item.at.items():
            if codes[row]:
                found.setdefault(int(codes[row]), ([], [], []))[sort].append(unknown)
    return found


def _choose(model: LinearModel, domain: tuple[list[int], list[int], list[int]]) -> None:
    if not domain[0] and not domain[1]:
        model.rule([(one, 1) for one in domain[2]], most=1)
        return
    switches = []
    for sort, unknowns in enumerate(domain):
        if unknowns:
            switch = model.unknown(1)
            most = 1 if sort == 2 else sum(model.upper[one] for one in unknowns)
            model.rule([*((one, 1) for one in unknowns), (switch, -most)], most=0)
            switches.append(switch)
    if len(switches) > 1:
        model.rule([(one, 1) for one in switches], most=1)


def _even(engine: Engine, model: LinearModel, items: Sequence[Item]) -> None:
    """Required spread. Pods are placed one after the other, but if all that the rule counts also carry it, what
    matters is the end: counts that are even enough are reached by filling the emptiest domain first."""
    rules: dict[tuple[int, int], tuple[TermCounter, SpreadConstraint, EquivalenceClass]] = {}
    for item in items:
        signature = item.eq_class.signature
        for spread, counter in zip(signature.spread_constraints, item.eq_class.spread_constraints, strict=True):
            if spread.hard:
                known = rules.setdefault((id(counter), spread.max_skew), (counter, spread, item.eq_class))
                if known[1] != spread:
                    raise NotExpressible("one spread rule written in several ways")
    for counter, spread, eq_class in rules.values():
        carriers = [item for item in items if counter in item.eq_class.spread_constraints]
        counted = [item for item in items if counter in item.eq_class.matched]
        if {id(one) for one in carriers} != {id(one) for one in counted}:
            raise NotExpressible("spread over pods that do not carry the rule")
        _evened(engine, model, carriers, (counter, spread, eq_class))


def _evened(
    engine: Engine,
    model: LinearModel,
    items: Sequence[Item],
    rule: tuple[TermCounter, SpreadConstraint, EquivalenceClass],
) -> None:
    counter, spread, eq_class = rule
    state = engine.state
    eligible = spread_rows(engine, eq_class, spread)
    if any(not np.array_equal(spread_rows(engine, item.eq_class, spread), eligible) for item in items):
        raise NotExpressible("spread over nodes that differ from pod to pod")
    codes = state.column(spread.term.key).codes
    before = spread_counts(state, counter, eligible)
    domains = [int(code) for code in np.unique(codes[eligible]) if code]
    inside: dict[int, list[int]] = {code: [] for code in domains}
    for item in items:
        for row, unknown in item.at.items():
            inside.setdefault(int(codes[row]), []).append(unknown)
    total = sum(model.upper[one] for unknowns in inside.values() for one in unknowns)
    least = model.unknown(int(before.max(initial=0)) + total)
    if len(domains) < spread.min_domains:
        model.rule([(least, 1)], most=0)
    low = min((int(before[code]) for code in domains), default=0)
    for code, unknowns in inside.items():
        have = int(before[code])
        own = [(one, 1) for one in unknowns]
        if not code:
            model.rule(own, most=0)
            continue
        if code in domains:
            model.rule([(least, -1), *own], least=-have)
        if have <= low + spread.max_skew and len(domains) >= spread.min_domains:
            model.rule([*own, (least, -1)], most=spread.max_skew - have)
        else:  # fuller already than may be: nothing more, unless the others catch up
            used = model.unknown(1)
            model.rule([*own, (used, -total)], most=0)
            model.rule([*own, (least, -1), (used, total + have)], most=spread.max_skew + total)


def spread_rows(engine: Engine, eq_class: EquivalenceClass, spread: SpreadConstraint) -> Mask:
    having = labelled(engine.state, eq_class.signature, hard=spread.hard)
    return spread_over(engine.state, having, engine.evaluate(eq_class.signature)[0], spread)


def _ports(model: LinearModel, items: Sequence[Item]) -> None:
    with_ports = [item for item in items if item.eq_class.signature.ports]
    for one, other in combinations(with_ports, 2):
        held = NodeInfo("", {})
        for port in other.eq_class.signature.ports:
            held.hold(port, 1)
        if ports_clash(one.eq_class.signature.ports, held):
            for row in one.at.keys() & other.at.keys():
                model.rule([(one.at[row], 1), (other.at[row], 1)], most=1)


def _claims(engine: Engine, model: LinearModel, items: Sequence[Item]) -> None:
    claims = engine.state.claims
    users: dict[str, list[int]] = {}
    for item in items:
        for key in item.eq_class.signature.claims:
            if claims.get(key).once:
                users.setdefault(key, []).extend(item.at.values())
    for unknowns in users.values():
        model.rule([(one, 1) for one in unknowns], most=1)
