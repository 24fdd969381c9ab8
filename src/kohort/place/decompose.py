"""A large question in two steps: how much goes to each few nodes (the outline), then each few nodes by themselves.

Once the outline says what goes to a bundle of nodes, that is a packing question of its own, settled in a few
milliseconds. Where one cannot be packed, either some bundles get another outline, or they are asked node by node with
some others; everything else stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np

from kohort.place.effort import Effort
from kohort.place.exact import program
from kohort.place.highs import Flags, Floats, Numbers, Program, SolverStatus, run
from kohort.place.linear import LinearModel
from kohort.place.outline import Bundle, NotSeparable, Outline, bundles

_WORTH: Final = 14  # bundles: fewer are settled as they are
_TREE: Final = 300  # nodes of the solver's tree in a small question
_ROUNDS: Final = 80
_OUTLINES: Final = 4


def taken_apart(model: LinearModel) -> Decomposed | None:
    """None if there is too little to take apart, or something joins its parts."""
    parts = bundles(model)
    if len(parts) < _WORTH:
        return None
    try:
        return Decomposed(model, parts)
    except NotSeparable:
        return None


@dataclass(slots=True)
class _Way:
    """One way to mend an outline, and how often it helped."""

    step: Callable[[int, Effort], bool]
    tried: int = 0
    helped: int = 0

    @property
    def worth(self) -> float:
        return (self.helped + 1) / (self.tried + 1)

    def go(self, round_: int, effort: Effort) -> None:
        self.tried += 1
        self.helped += self.step(round_, effort)


class Decomposed:
    """One model taken apart. A bundle that is not packed yet has its sums on its first nodes."""

    def __init__(self, model: LinearModel, parts: list[Bundle]) -> None:
        self._model, self._parts = model, parts
        self._all = program(model)
        self._row_of = np.repeat(np.arange(len(model.rows)), np.diff(self._all.start))
        self._outline = Outline(model, self._parts)
        self._values, self._plan = np.zeros(len(model.upper)), np.zeros(0)
        self._failed: set[int] = set()
        self._dice = Random(0)

    def search(self, effort: Effort) -> list[int] | None:
        """Values for everything, or None if they were not found in this effort. Proves nothing."""
        for seed in range(_OUTLINES):
            outline = self._outline.solved(effort.smaller(0.6), seed)
            if outline is None:
                return None
            found = self._filled(outline, effort)
            if found is not None or effort.spent:
                return found
        return None

    def _filled(self, outline: Floats, effort: Effort) -> list[int] | None:
        self._plan, self._values = outline, np.zeros(len(self._model.upper))
        self._failed = self._packed(range(len(self._parts)), effort)
        ways = [_Way(self._shift), _Way(self._anew)]
        for round_ in range(_ROUNDS):
            if not self._failed or effort.spent:
                break
            max(ways, key=lambda way: way.worth).go(round_, effort)
        whole: list[int] = self._values.round().astype(int).tolist()
        return whole if not self._failed and self._model.holds(whole) else None

    def _packed(self, numbers: Iterable[int], effort: Effort) -> set[int]:
        """Bundles are packed as the plan says; those that cannot be."""
        for unknown, mine in self._outline.number.items():
            self._values[unknown] = round(self._plan[mine])
        failed = set()
        for number in numbers:
            bundle = self._parts[number]
            for kind, some in bundle.kinds.items():
                self._values[some] = 0
                self._values[some[0]] = self._outline.total(self._plan, number, kind)
            if not self._pack(bundle, effort):
                failed.add(number)
                self._outline.forbid(self._plan, number)
        return failed

    def _shift(self, round_: int, effort: Effort) -> bool:
        """Another outline for those that cannot be packed and many others; kept if it is no worse."""
        chosen = self._company(list(self._failed)[:4], 8 + min(round_ // 2, 8))
        plan = self._outline.shifted(self._plan, chosen, effort.smaller(0.3), round_ + 1)
        if plan is None:
            return False
        before, values = self._plan, self._values.copy()
        changed = {number for number in chosen if self._differs(before, plan, number)}
        self._plan = plan
        failed = self._packed(sorted(changed), effort) | (self._failed - changed)
        better = len(failed) < len(self._failed)
        if len(failed) <= len(self._failed):
            self._failed = failed
        else:
            self._plan, self._values = before, values
        return better

    def _differs(self, one: Floats, other: Floats, number: int) -> bool:
        kinds = self._parts[number].kinds
        return any(self._outline.total(one, number, kind) != self._outline.total(other, number, kind) for kind in kinds)

    def _pack(self, bundle: Bundle, effort: Effort) -> bool:
        """Its own rows, with as many of each kind as the outline says."""
        model, mine = self._model, bundle.unknowns
        if not any(self._values[some[0]] for some in bundle.kinds.values()) and not bundle.own:
            return True
        small = LinearModel([model.upper[one] for one in mine])
        number = {unknown: place for place, unknown in enumerate(mine)}
        for some in bundle.kinds.values():
            total = int(self._values[some[0]])
            small.rule([(number[one], 1) for one in some], least=total, most=total)
        for row in bundle.rows:
            least, most, unknowns, factors = model.rows[row]
            terms = list(zip(unknowns, factors, strict=True))
            there = int(sum(self._values[one] * factor for one, factor in terms if one not in number))
            inside = [(number[one], factor) for one, factor in terms if one in number]
            small.rule(inside, None if least is None else least - there, None if most is None else most - there)
        status, found = run(program(small), effort, nodes=_TREE)
        if status is SolverStatus.FOUND:
            self._values[mine] = found.round()
        return status is SolverStatus.FOUND

    def _company(self, failed: Sequence[int], others: int) -> set[int]:
        """Bundles that cannot be packed, and some others; whole sites, if groups hang on those."""
        chosen = set(failed)
        rest = [number for number in range(len(self._parts)) if number not in chosen]
        chosen |= set(self._dice.sample(rest, min(others, len(rest))))
        sites = {part.site for part in self._parts}
        if len(sites) > 1 and len(self._parts) <= 3 * len(sites):
            wanted = {self._parts[number].site for number in chosen}
            chosen = {number for number, part in enumerate(self._parts) if part.site in wanted}
        return chosen

    def _anew(self, round_: int, effort: Effort) -> bool:
        """All that is about some bundles, node by node, everything else staying as it is."""
        failed = sorted(self._failed)
        some = self._dice.sample(failed, min(len(failed), 2 if self._dice.random() < 0.3 else 1))
        chosen = self._company(some, 2 + min(round_ // (len(failed) + 4), 3))
        free = np.zeros(len(self._model.upper), bool)
        for number in chosen:
            free[self._parts[number].unknowns] = True
        for unknown, where in self._outline.home.items():
            free[unknown] = where <= chosen
        status, found = run(self._part(free), effort.smaller(0.3), nodes=_TREE)
        if status is not SolverStatus.FOUND:
            return False
        self._values[free] = found.round()
        self._failed -= chosen
        self._outline.take(self._plan, self._values, chosen)
        return True

    def _part(self, free: Flags) -> Program:
        """The rows with a free unknown, what is not free taken off their bounds."""
        every = self._all
        fixed = np.where(free, 0.0, self._values)
        there = np.bincount(self._row_of, every.factor * fixed[every.index], minlength=len(every.low))
        kept = free[every.index]
        rows: Numbers = np.unique(self._row_of[kept])
        position = np.cumsum(free) - 1
        counts = np.bincount(self._row_of[kept], minlength=len(every.low))[rows]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        index = position[every.index[kept]].astype(np.int64)
        low, high = (every.low - there)[rows], (every.high - there)[rows]
        return Program(every.upper[free], starts, index, every.factor[kept], low, high)
