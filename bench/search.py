"""The search on hard questions: how many with an answer are answered, how fast, and how many without are proven so.

`python -m bench.search` prints the table of all families (bench/search_families.py) in two sizes with their twins;
`--count 10 --family trees --size small` for less. Each row can be had again by its seeds: they count from `--seed`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from time import process_time

from bench.search_families import FAMILIES, SIZES, Instance, instance
from kohort.place.demand import Reason, Result
from kohort.place.effort import Effort
from kohort.place.preempt import Preemptor
from kohort.place.search import Search
from kohort.place.victims import find_victim_sets

_LIMIT = 2.0  # processor seconds of search per decision, so that a busy machine has the same answers
_BUSY = 20  # wall seconds for a processor second, on the busiest machine


def effort(seconds: float = _LIMIT) -> Effort:
    end = process_time() + seconds
    # The solver reads the wall's clock: its own fence is far away, ours is looked at as it works.
    return Effort(solver_seconds=90, expired=lambda: process_time() > end, left=lambda: (end - process_time()) * _BUSY)


@dataclass
class Tally:
    """One row of the table."""

    times: list[float] = field(default_factory=list)
    placed: int = 0
    late: int = 0
    proven: int = 0
    wrong: list[int] = field(default_factory=list)  # seeds

    def line(self, family: str, size: str, twin: bool) -> str:
        times = sorted(self.times)
        p99 = times[min(int(len(times) * 0.99), len(times) - 1)]
        what = f"proven {self.proven:3} of {len(times):3}" if twin else f"placed {self.placed:3} of {len(times):3}"
        seeds = f"  not: {' '.join(map(str, self.wrong))}" if self.wrong else ""
        name = f"{family}{' twins' if twin else ''}"
        return f"{name:<17} {size:<5}  {what}  late {self.late:2}  p99 {p99:6.2f} s  longest {times[-1]:6.2f} s{seeds}"


def ask(question: Instance, seconds: float = _LIMIT) -> tuple[bool, bool]:
    """Whether all of it found a place, and whether it is proven that it cannot."""
    if question.victims is not None:
        sets = find_victim_sets(question.engine.state, question.victims)
        plan = Preemptor(question.engine, sets, question.budgets, effort(seconds)).plan(question.roots[0], 100)
        return plan is not None, plan is None
    results = [Search(question.engine, effort(seconds)).place(root) for root in question.roots]
    return all(one.ok for one in results), any(not one.ok and _proven(one) for one in results)


def _proven(result: Result) -> bool:
    return all(one.reason is not Reason.NOT_FOUND for one in result.outcomes.values())


def run_family(family: str, size: str, seeds: range, *, twin: bool, seconds: float = _LIMIT) -> Tally:
    tally = Tally()
    for seed in seeds:
        question = instance(family, size, seed, twin=twin)
        begin = process_time()
        placed, proven = ask(question, seconds)
        took = process_time() - begin
        tally.times.append(took)
        tally.late += took > seconds * 1.1 * len(question.roots)
        tally.placed += placed
        tally.proven += proven
        if placed == twin or (twin and not proven):
            tally.wrong.append(seed)
        if placed and question.victims is None:
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
    parser.add_argument("--no-twins", action="store_true")
    wanted = parser.parse_args()
    seeds = range(wanted.seed, wanted.seed + wanted.count)
    print(f"seeds {seeds[0]} to {seeds[-1]}, {wanted.seconds:g} processor seconds each; 'not' names seeds that failed")
    for family in wanted.family or FAMILIES:
        for size in wanted.size or SIZES:
            # Several roots are decided one after the other: that the last does not fit proves nothing of the set.
            for twin in (False,) if wanted.no_twins or family == "queue" else (False, True):
                tally = run_family(family, size, seeds, twin=twin, seconds=wanted.seconds)
                print(tally.line(family, size, twin), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
