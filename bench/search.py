"""The search on hard questions: how many with an answer are answered, how fast, and how many without are proven so.

`python -m bench.search` prints the table of all families (bench/search_families.py) in two sizes with their twins;
`--count 10 --family trees --size small` for less. Each row can be had again by its seeds: they count from `--seed`.
Plans of preemption are compared with the optimum (bench/search_victims.py), which the time does not count.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from time import process_time

from bench.search_families import FAMILIES, SIZES, Instance, instance
from bench.search_victims import cost, optimum
from kohort.place.demand import Reason, Result
from kohort.place.effort import Effort
from kohort.place.preempt import Preemption, Preemptor
from kohort.place.profile import Profile
from kohort.place.search import Search
from kohort.place.together import JointSearch
from kohort.place.victims import VictimSet, find_victim_sets

_PRIORITY = 100  # of who preempts
_LIMIT = 2.0  # processor seconds of search per decision, so that a busy machine has the same answers
_BUSY = 20  # wall seconds for a processor second, on the busiest machine


def effort(seconds: float = _LIMIT) -> Effort:
    end = process_time() + seconds
    # The solver reads the wall's clock: its own fence is far away, ours is looked at as it works.
    return Effort(solver_seconds=90, expired=lambda: process_time() > end, left=lambda: (end - process_time()) * _BUSY)


@dataclass
class Said:
    """What came of one question. `short`: roots that were left waiting."""

    placed: bool
    proven: bool
    short: int = 0
    plan: Preemption | None = None
    sets: list[VictimSet] = field(default_factory=list)


@dataclass
class Tally:
    """One row of the table."""

    times: list[float] = field(default_factory=list)
    placed: int = 0
    late: int = 0
    proven: int = 0
    short: int = 0
    beyond: list[int] = field(default_factory=list)  # victim sets more than the least there is
    wrong: list[int] = field(default_factory=list)  # seeds

    def line(self, family: str, size: str, twin: bool) -> str:
        times = sorted(self.times)
        p99 = times[min(int(len(times) * 0.99), len(times) - 1)]
        what = f"proven {self.proven:3} of {len(times):3}" if twin else f"placed {self.placed:3} of {len(times):3}"
        more = f"  {self.short} roots wait" if self.short else ""
        if self.beyond:
            more += f"  optimum {self.beyond.count(0)} of {len(self.beyond)}, at most {max(self.beyond)} more"
        more += f"  not: {' '.join(map(str, self.wrong))}" if self.wrong else ""
        name = f"{family}{' twins' if twin else ''}"
        return f"{name:<17} {size:<5}  {what}  late {self.late:2}  p99 {p99:6.2f} s  longest {times[-1]:6.2f} s{more}"


def ask(question: Instance, seconds: float = _LIMIT, lookahead: int = Profile().lookahead) -> tuple[bool, bool]:
    """Whether all of it found a place, and whether it is proven that it cannot."""
    said = answer(question, seconds, lookahead)
    return said.placed, said.proven


def answer(question: Instance, seconds: float, lookahead: int) -> Said:
    if question.victims is not None:
        sets = find_victim_sets(question.engine.state, question.victims)
        plan = Preemptor(question.engine, sets, question.budgets, effort(seconds)).plan(question.roots[0], _PRIORITY)
        return Said(plan is not None, plan is None, plan=plan, sets=sets)
    if len(question.roots) > 1:
        return together(question, seconds, lookahead)
    result = Search(question.engine, effort(seconds)).place(question.roots[0])
    return Said(result.ok, not result.ok and _proven(result))


def together(question: Instance, seconds: float, lookahead: int) -> Said:
    """As the scheduler does it: so many at a time, the set that leaves the fewest waiting, then the next."""
    engine, short, proven = question.engine, 0, False
    for first in range(0, len(question.roots), lookahead):
        roots = question.roots[first : first + lookahead]
        search = JointSearch(engine, roots, effort(seconds))
        found = search.find()
        short += len(roots) - len(found.seats)
        proven = proven or search.most()[0] < len(roots)
        for number, seats in found.seats.items():
            assert Search(engine).fits(roots[number], found=seats) is not None, "seats that do not hold"
    return Said(not short, proven, short)


def _proven(result: Result) -> bool:
    return all(one.reason is not Reason.NOT_FOUND for one in result.outcomes.values())


def beyond(question: Instance, said: Said) -> int:
    """Victim sets beyond the least there is; without end if the plan is worse in what counts more."""
    best = optimum(question, said.sets, _PRIORITY)
    assert best is not None
    assert said.plan is not None
    mine = cost(said.plan, question)
    return mine[-1] - best[-1] if mine[:-1] == best[:-1] else 1000


def run_family(
    family: str, size: str, seeds: range, *, twin: bool, seconds: float = _LIMIT, lookahead: int = Profile().lookahead
) -> Tally:
    tally = Tally()
    for seed in seeds:
        question = instance(family, size, seed, twin=twin)
        begin = process_time()
        said = answer(question, seconds, lookahead)
        took = process_time() - begin
        tally.times.append(took)
        tally.late += took > seconds * 1.1
        tally.placed += said.placed
        tally.proven += said.proven
        tally.short += said.short
        if said.placed == twin or (twin and not said.proven):
            tally.wrong.append(seed)
        if said.plan is not None and not twin:
            tally.beyond.append(beyond(question, said))
        elif said.placed:
            check(question)
    return tally


def check(question: Instance) -> None:
    """No node holds more than it has."""
    state = question.engine.state
    assert (state.used[: state.rows] <= state.alloc[: state.rows]).all(), "a node holds more than it has"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--size", choices=SIZES, action="append")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=_LIMIT, help="of the processor, for each decision")
    parser.add_argument("--lookahead", type=int, default=Profile().lookahead, help="gangs that are asked for together")
    parser.add_argument("--no-twins", action="store_true")
    wanted = parser.parse_args()
    seeds = range(wanted.seed, wanted.seed + wanted.count)
    print(f"seeds {seeds[0]} to {seeds[-1]}, {wanted.seconds:g} processor seconds each; 'not' names seeds that failed")
    for family in wanted.family or FAMILIES:
        for size in wanted.size or SIZES:
            for twin in (False,) if wanted.no_twins else (False, True):
                tally = run_family(family, size, seeds, twin=twin, seconds=wanted.seconds, lookahead=wanted.lookahead)
                print(tally.line(family, size, twin), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
