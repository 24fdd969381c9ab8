"""An answer that came later: whether what was found then can still be had now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from kohort.place.demand import Demand, groups
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass


def seat(engine: Engine, root: Demand, found: Mapping[str, int]) -> bool:
    """Assume every pod of the tree that was found a row there, if the state still allows it; else the caller undoes
    what was assumed."""
    if not all(_in_one_domain(engine, group, found) for group in groups(root)):
        return False
    rows: dict[EquivalenceClass, list[int]] = {}
    for leaf in root.leaves():
        for pod in leaf.pods:
            if pod.key in found:
                rows.setdefault(pod.eq_class, []).append(found[pod.key])
    plain = [eq_class for eq_class in rows if eq_class.is_plain]
    ruled = [eq_class for eq_class in rows if not eq_class.is_plain]
    return all(_at_once(engine, one, rows[one]) for one in plain) and _in_turn(
        engine, {one: rows[one] for one in ruled}
    )


def _in_one_domain(engine: Engine, group: Demand, found: Mapping[str, int]) -> bool:
    if group.topology is None:
        return True
    rows = [found[pod.key] for leaf in group.leaves() for pod in leaf.pods if pod.key in found]
    codes = engine.state.column(group.topology).codes[[*rows, *group.running]] if rows else np.zeros(0, np.int64)
    return not len(codes) or (codes[0] != 0 and bool((codes == codes[0]).all()))


def _at_once(engine: Engine, eq_class: EquivalenceClass, rows: list[int]) -> bool:
    where, counts = np.unique(np.array(rows, np.intp), return_counts=True)
    if (engine.room(eq_class)[where] < counts).any():
        return False
    engine.assume_many(eq_class, where, counts)
    return True


def _in_turn(engine: Engine, waiting: dict[EquivalenceClass, list[int]]) -> bool:
    """Pods with rules between them: in any order in which each is allowed when its turn comes."""
    left = {eq_class: Counter(rows) for eq_class, rows in waiting.items()}
    moved = True
    while moved and any(left.values()):
        moved = False
        for eq_class, counts in left.items():
            for row in list(counts):
                while counts[row] and engine.feasible(eq_class, engine.evaluate(eq_class.signature)[0])[row]:
                    engine.assume_on(eq_class, row)
                    counts[row] -= 1
                    moved = True
                if not counts[row]:
                    del counts[row]
    return not any(left.values())
