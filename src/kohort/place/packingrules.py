"""Rules between pods as limits of a packing: on these nodes no more than so many pods of these classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from kohort.place.columns import Amounts, Codes
from kohort.place.engine import Engine
from kohort.place.exact_rules import spread_rows
from kohort.place.interpod import EquivalenceClass, TermCounter
from kohort.place.interpodfilter import allowed, ports_clash, spread_counts
from kohort.place.linear import NotExpressible
from kohort.place.packing import Limit
from kohort.place.signatures import SpreadConstraint
from kohort.place.state import NodeInfo

Classes = Mapping[EquivalenceClass, int]  # its number


def ruled_room(engine: Engine, eq_class: EquivalenceClass) -> Amounts:
    """How many pods of a class every row takes by itself, whatever rules say of pods that have no place yet."""
    if eq_class.pod_affinity:
        raise NotExpressible("required affinity between its pods")
    fit, _ = engine.evaluate(eq_class.signature)
    room: Amounts = np.where(allowed(engine.state, eq_class, fit, spread=False), fit.room, 0)
    return np.minimum(room, 1) if eq_class.signature.ports else room


class RuleLimits:
    """Of some classes, on some rows: `demand` says how many pods each has, if all of them must find a place."""

    def __init__(self, engine: Engine, rows: Amounts, classes: Classes, demand: Mapping[int, int] | None) -> None:
        self._engine, self._rows, self._classes, self._demand = engine, rows, classes, demand

    def every(self) -> list[Limit]:
        return [*self._apart(), *self._even(), *self._ports(), *self._claims()]

    def _apart(self) -> list[Limit]:
        """Pods that keep apart from their own kind: one in a domain."""
        found = []
        for counter in {id(c): c for eq_class in self._classes for c in eq_class.pod_anti_affinity}.values():
            carriers = [one for one in self._classes if counter in one.pod_anti_affinity]
            matched = [one for one in self._classes if counter in one.matched]
            if set(carriers) != set(matched):
                raise NotExpressible("pods that keep apart from others")
            numbers = [self._classes[one] for one in carriers]
            found += [Limit(nodes, numbers) for nodes in self._domains(counter.term.key).values()]
        return found

    def _domains(self, key: str) -> dict[int, list[int]]:
        codes: Codes = self._engine.state.column(key).codes[self._rows]
        return {int(code): np.flatnonzero(codes == code).tolist() for code in np.unique(codes) if code}

    def _even(self) -> list[Limit]:
        """Required spread: the emptiest domain is filled first, until all have a place. Fewer ways than there are, but
        some of those that are even."""
        rules: dict[int, tuple[TermCounter, SpreadConstraint, EquivalenceClass]] = {}
        for eq_class in self._classes:
            signature = eq_class.signature
            for spread, counter in zip(signature.spread_constraints, eq_class.spread_constraints, strict=True):
                if spread.hard and rules.setdefault(id(counter), (counter, spread, eq_class))[1] != spread:
                    raise NotExpressible("one spread rule written in several ways")
        return [limit for rule in rules.values() for limit in self._evened(*rule)]

    def _evened(self, counter: TermCounter, spread: SpreadConstraint, eq_class: EquivalenceClass) -> list[Limit]:
        engine, rows, demand = self._engine, self._rows, self._demand
        if demand is None:
            raise NotExpressible("spread over pods to choose from")
        carriers = [one for one in self._classes if counter in one.spread_constraints]
        if set(carriers) != {one for one in self._classes if counter in one.matched}:
            raise NotExpressible("spread over pods that do not carry the rule")
        eligible = spread_rows(engine, eq_class, spread)
        for one in carriers:
            if not eligible[rows[ruled_room(engine, one)[rows] > 0]].all():
                raise NotExpressible("spread over nodes that do not count")
            if not np.array_equal(spread_rows(engine, one, spread), eligible):
                raise NotExpressible("spread over nodes that differ from pod to pod")
        before = spread_counts(engine.state, counter, eligible)
        numbers = [self._classes[one] for one in carriers]
        total = sum(demand[number] for number in numbers)
        domains = self._domains(spread.term.key)
        if len(np.unique(engine.state.column(spread.term.key).codes[eligible])) != len(domains):
            raise NotExpressible("spread over nodes beside those that are asked for")
        most = _evenly({code: int(before[code]) for code in domains}, total, spread)
        return [Limit(nodes, numbers, most[code]) for code, nodes in domains.items()]

    def _ports(self) -> list[Limit]:
        found = []
        for one, other in combinations([one for one in self._classes if one.signature.ports], 2):
            held = NodeInfo("", {})
            for port in other.signature.ports:
                held.hold(port, 1)
            if ports_clash(one.signature.ports, held):
                numbers = [self._classes[one], self._classes[other]]
                found += [Limit([node], numbers) for node in range(len(self._rows))]
        return found

    def _claims(self) -> list[Limit]:
        claims = self._engine.state.claims
        users: dict[str, list[int]] = {}
        for eq_class, number in self._classes.items():
            for key in eq_class.signature.claims:
                if claims.get(key).once:
                    users.setdefault(key, []).append(number)
        return [Limit(list(range(len(self._rows))), numbers) for numbers in users.values()]


def _evenly(before: Mapping[int, int], total: int, spread: SpreadConstraint) -> dict[int, int]:
    """How many more each domain gets at the most."""
    after = dict(before)
    for _ in range(total):
        after[min(after, key=lambda code: after[code])] += 1
    fullest = max((after[code] for code in after if after[code] > before[code]), default=0)
    if len(before) < spread.min_domains and fullest > spread.max_skew:
        raise NotExpressible("too few domains to spread over")
    # Of two domains either may have the odd pod; of more, who has it is settled here.
    two = len(before) == 2 and max(before.values()) <= fullest
    return {code: (fullest if two else after[code]) - before[code] for code in before}


def alone(limits: Sequence[Limit], caps: Amounts) -> list[Limit]:
    """Limits on one node and one class are what the node takes of it by itself (`caps` is changed); the others."""
    rest = []
    for limit in limits:
        if len(limit.nodes) == 1 and len(limit.classes) == 1:
            node, number = limit.nodes[0], limit.classes[0]
            caps[node, number] = min(caps[node, number], limit.most)
        else:
            rest.append(limit)
    return rest
