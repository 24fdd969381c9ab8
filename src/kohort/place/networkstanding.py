"""Where a group stands in the network: its domains at each level, how often neighbours by rank are apart, and why a
level that was preferred was not kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from kohort.place.columns import ABSENT
from kohort.place.demand import Rank
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass
from kohort.place.levels import HOSTNAME, Hierarchy, carried, ordered

REQUIRED, PREFERRED = "required", "preferred"


@dataclass(frozen=True, slots=True)
class Member:
    """A pod of the group that has a node."""

    row: int
    rank: Rank | None
    eq_class: EquivalenceClass


@dataclass(frozen=True, slots=True)
class LevelStanding:
    """One level. `domains`: pods by the label's value, in the order of ranks; nodes without it are counted as one."""

    key: str
    mode: str  # required, preferred; empty: nobody asked
    domains: dict[str, int]
    crossings: int | None  # neighbours by rank in different domains; None: there are no ranks
    neighbours: int
    note: str = ""  # why a preferred level was given up


@dataclass(frozen=True, slots=True)
class Standing:
    """Levels from the widest on; `ranks`: of the narrowest that counts, by domain."""

    levels: list[LevelStanding] = field(default_factory=list)
    ranks: dict[str, str] = field(default_factory=dict)


def standing(engine: Engine, modes: Mapping[str, str], members: Sequence[Member]) -> Standing:
    """How the members stand; `modes`: what is asked of which label."""
    state, levels = engine.state, engine.profile.topology_levels
    keys = ordered(state, levels, [*modes, *carried(state, levels), HOSTNAME])
    line = sorted(members, key=lambda one: (one.rank is None, one.rank or (), one.row))
    tree = Hierarchy(state, keys, np.asarray([one.row for one in line], np.intp))
    ranked = [place for place, one in enumerate(line) if one.rank is not None]
    crossings = tree.crossings(ranked) if len(ranked) > 1 else [None] * len(keys)
    found = [
        LevelStanding(
            key,
            modes.get(key, ""),
            _counted([_value(engine, key, one.row) for one in line]),
            crossings[level],
            max(len(ranked) - 1, 0),
            _given_up(engine, key, line) if modes.get(key) == PREFERRED else "",
        )
        for level, key in enumerate(keys)
        if key in modes or key != HOSTNAME
    ]
    shown = found[-1].key if found else HOSTNAME
    return Standing(found, _map([(_value(engine, shown, one.row), one.rank) for one in line if one.rank is not None]))


def _value(engine: Engine, key: str, row: int) -> str:
    column = engine.state.column(key)
    code = int(column.codes[row])
    return "?" if code == ABSENT else column.value(code)


def _counted(values: Sequence[str]) -> dict[str, int]:
    return {value: values.count(value) for value in dict.fromkeys(values)}


def _given_up(engine: Engine, key: str, members: Sequence[Member]) -> str:
    """Why they are not in one domain: what the largest would take if they came now. Empty: they are in one."""
    codes = engine.state.column(key).codes
    if not codes.any():
        return f"no node has the label {key}"
    used = {int(codes[one.row]) for one in members}
    if len(used) == 1 and ABSENT not in used:
        return ""
    where = "a node without the label" if used == {ABSENT} else f"{len(used)} domains"
    mark = engine.mark()
    for one in members:
        engine.remove(one.eq_class, one.row)
    takes = _takes(engine, key, members)
    engine.undo(mark)
    best = max(takes, key=lambda value: takes[value])
    told, them = ("1 pod is", "it") if len(members) == 1 else (f"{len(members)} pods are", "all of them")
    if takes[best] >= len(members):
        return f"{told} on {where}; {key}={best} would take {them} now"
    return f"{told} on {where}; {key}={best}, the largest of {len(takes)}, takes {takes[best]}"


def _takes(engine: Engine, key: str, members: Sequence[Member]) -> dict[str, int]:
    """How many of the members each domain would take, class by class."""
    parts = engine.all_nodes.split(key)
    total = np.zeros(len(parts), np.int64)
    for eq_class in dict.fromkeys(one.eq_class for one in members):
        count = sum(one.eq_class is eq_class for one in members)
        total += np.minimum(parts.sum(np.minimum(engine.room(eq_class), count)), count)
    column = engine.state.column(key)
    return {column.value(int(code)): int(number) for code, number in zip(parts.codes, total, strict=True)}


def _map(places: Sequence[tuple[str, Rank]]) -> dict[str, str]:
    """Domains in the order of their first rank, with their ranks as people write them: 0-3, 8."""
    alone = len({rank[:-1] for _, rank in places}) < 2
    by_domain: dict[str, list[Rank]] = {}
    for value, rank in places:
        by_domain.setdefault(value, []).append(rank)
    return {value: ", ".join(_runs(ranks, alone=alone)) for value, ranks in by_domain.items()}


def _runs(ranks: Sequence[Rank], *, alone: bool) -> list[str]:
    """`alone`: all ranks agree but for their last number, which is enough to tell them apart."""
    breaks = [0, *(place + 1 for place, (one, other) in enumerate(pairwise(ranks)) if other != _next(one)), len(ranks)]
    return [_run(ranks[start], ranks[end - 1], alone=alone) for start, end in pairwise(breaks)]


def _next(rank: Rank) -> Rank:
    return (*rank[:-1], rank[-1] + 1)


def _run(first: Rank, last: Rank, *, alone: bool) -> str:
    name = str(first[-1]) if alone else "/".join(map(str, first))
    return name if first == last else f"{name}-{last[-1]}"
