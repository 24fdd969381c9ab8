"""After a search: the pods of each group take the seats that were found for them in the order of their ranks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

import numpy as np

from kohort.place.demand import Branch, Demand, Leaf, Outcome, PendingPod, Rank, groups
from kohort.place.engine import Engine
from kohort.place.levels import HOSTNAME, Hierarchy, carried, ordered
from kohort.place.rankorder import Seat, in_order


def network(engine: Engine, root: Demand) -> list[str]:
    """The levels that count for a tree: those of the network that nodes have, and those its groups name."""
    levels = engine.profile.topology_levels
    named = [key for group in groups(root) for key in (group.topology, *group.preferred) if key is not None]
    return ordered(engine.state, levels, [*carried(engine.state, levels), HOSTNAME, *named])


def by_rank(engine: Engine, root: Demand, outcomes: Mapping[str, Outcome]) -> None:
    """Deal out the seats of every group with ranks. Only pods that the engine cannot tell apart trade them."""
    if not root.ranked:
        return
    keys = network(engine, root)
    for group in groups(root):
        if isinstance(group, Leaf) and group.ranked and group.name in outcomes:
            _deal(engine, keys, [(group, outcomes[group.name])])
    for group in groups(root):
        if isinstance(group, Branch) and group.slices and not group.running:
            _deal_slices(engine, keys, group, outcomes)


def _deal(engine: Engine, keys: list[str], parts: list[tuple[Leaf, Outcome]]) -> None:
    line = [one for leaf, outcome in parts for one in _line(leaf, outcome)]
    rows = engine.state.by_name(np.unique(np.asarray([row for _, _, row, _ in line], np.intp)))
    tree = Hierarchy(engine.state, keys, rows)
    place = {int(row): position for position, row in enumerate(rows)}
    dealt = in_order(tree, [Seat(key, rank, place[row], kind) for key, rank, row, kind in line])
    for _, outcome in parts:
        outcome.placed.update({key: int(rows[dealt[key]]) for key in outcome.placed if key in dealt})


def _line(leaf: Leaf, outcome: Outcome) -> Iterator[tuple[str, Rank, int, Hashable | None]]:
    """Key, rank, row and kind of all that have a rank; no kind: it stays where it is."""
    pods: dict[str, PendingPod] = {pod.key: pod for pod in leaf.pods}
    for key, row in outcome.placed.items():
        pod = pods[key]
        if pod.rank is not None:
            yield key, pod.rank, row, None if pod.nominated == row else pod.eq_class
    for number, (row, rank) in enumerate(zip(leaf.running, leaf.running_ranks, strict=False)):
        if rank is not None:
            yield f"\0running-{number}", rank, row, None


def _deal_slices(engine: Engine, keys: list[str], group: Branch, outcomes: Mapping[str, Outcome]) -> None:
    """Ranks go on from slice to slice: slices as a whole trade places too, if each then still has its own domain."""
    parts = [(leaf, outcomes[leaf.name]) for leaf in group.leaves() if leaf.name in outcomes]
    if len({eq_class for leaf, _ in parts for eq_class in leaf.eq_classes}) != 1:
        return
    before = [dict(outcome.placed) for _, outcome in parts]
    spread = _spread(engine, group, outcomes)
    _deal(engine, keys, parts)
    if any(now > was for now, was in zip(_spread(engine, group, outcomes), spread, strict=True)):
        for (_, one), placed in zip(parts, before, strict=True):
            one.placed.update(placed)


def _spread(engine: Engine, group: Branch, outcomes: Mapping[str, Outcome]) -> list[int]:
    """For each slice, however small, and each level that it asks for: its domains."""
    found: list[int] = []
    for one in groups(group):
        rows = [row for leaf in one.leaves() if leaf.name in outcomes for row in outcomes[leaf.name].placed.values()]
        keys = [key for key in (one.topology, *one.preferred) if key is not None] if one is not group else []
        found += [len(np.unique(engine.state.column(key).codes[rows])) for key in keys]
    return found
