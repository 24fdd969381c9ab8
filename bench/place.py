"""Decisions of the placement engine, without an API server: how many, how fast, how large.

`python -m bench.place` prints the table and ends with 1 if a bar is missed; `--json` for machines, `--case NAME` for
one row, `--list` for their names. Times are processor time, the least of some runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from math import log2
from statistics import median

from bench.place_cases import HOST, RACK, ZONE, cluster, decide, fill, fill_node, gang, least, ranked, spent, tree
from bench.place_core import backlog, grouped, ready
from bench.result import Result
from kohort import tuning
from kohort.place.demand import Leaf
from kohort.place.engine import Engine
from kohort.place.explain import explain
from kohort.place.preempt import Preemptor
from kohort.place.search import Search
from kohort.place.victims import GroupInfo, find_victim_sets

_GROWTH_BAR = 1.25  # exponent: 1 is linear; the rest is noise of a shared machine


@dataclass(frozen=True, slots=True)
class Row:
    case: str
    value: float
    unit: str
    bar: float
    more_is_better: bool = False
    note: str = ""
    points: tuple[tuple[int, float], ...] = ()  # size and milliseconds, of rows about growth

    @property
    def ok(self) -> bool:
        return self.value >= self.bar if self.more_is_better else self.value <= self.bar

    def line(self, width: int) -> str:
        sign = "at least" if self.more_is_better else "at most"
        verdict = "ok" if self.ok else "MISSED"
        note = f"  {self.note}" if self.note else ""
        return f"{self.case:<{width}}  {self.value:12,.2f} {self.unit:<7} {sign:>8} {self.bar:>8,.6g}  {verdict}{note}"


def small_gangs() -> list[Row]:
    def ready() -> Callable[[], object]:
        engine = cluster(5000)
        return lambda: [_placed(engine, gang(engine, f"g{n}", 3)) for n in range(3000)]

    return [Row("small", 9000 / least(ready, 3), "pods/s", 5000, True, "5,000 nodes, 3,000 gangs of 3")]


def large_gangs() -> list[Row]:
    def worst() -> float:
        engine = cluster(5000)
        return max(spent(partial(_placed, engine, gang(engine, f"g{n}", 1000))) for n in range(9))

    value = min(worst() for _ in range(3)) * 1e3
    return [Row("large", value, "ms", 50, note="5,000 nodes, slowest of 9 gangs of 1,000")]


def topology() -> list[Row]:
    rows = []
    for racks in (50, 312):

        def ready(racks: int = racks) -> Callable[[], object]:
            engine = cluster(5000, racks)
            return lambda: [_placed(engine, gang(engine, f"g{n}", 4, "rack")) for n in range(2250)]

        rate = 9000 / least(ready, 3)
        note = f"5,000 nodes in {racks} racks, 2,250 gangs of 4, rack required"
        rows.append(Row(f"topology-{racks}", rate, "pods/s", 5000, True, note))
    return rows


def ranks() -> list[Row]:
    """Each node and rack has other work already: no two racks are alike."""

    def ready() -> Callable[[], object]:
        engine = cluster(5000, 312)
        for number in range(0, 5000, 3):
            fill_node(engine, f"n{number}", 1 + number % 7, {"cpu": 300, "memory": 1 << 30})
        demand = ranked(engine, "g", 1000, (ZONE, RACK), {"cpu": 1000, "memory": 1 << 30})

        def work() -> None:
            assert len(Search(engine).place(demand).placed) == 1000

        return work

    note = "1,000 ranks over 312 racks in 5 zones, zone and rack preferred"
    return [Row("ranks", least(ready, 5) * 1e3, "ms", 100, note=note)]


def trees() -> list[Row]:
    def ready() -> Callable[[], object]:
        engine = cluster(5000, 312)
        demand = tree(engine)

        def work() -> None:
            assert len(Search(engine).place(demand).placed) == 1024

        return work

    return [Row("tree", least(ready, 5) * 1e3, "ms", 100, note="zone, rack, node: 64 leaves of 16 pods")]


def no_fit() -> list[Row]:
    rows = []
    for name, key in (("nofit", None), ("nofit-rack", "rack")):
        engine = cluster(5000, 312)
        fill(engine, 1, {"cpu": 2500, "memory": 1 << 30}, skip=900)
        leaf = gang(engine, "g", 1000, key, {"cpu": 3000, "memory": 1 << 30})

        def work(engine: Engine = engine, leaf: Leaf = leaf) -> None:
            result = Search(engine).place(leaf)
            assert not result.ok
            assert str(explain(engine, leaf, result))

        work()
        value = min(spent(work) for _ in range(5)) * 1e3
        rows.append(Row(name, value, "ms", 20, note=f"1,000-pod gang, reason and remedy, key {key}"))
    return rows


def preemption() -> list[Row]:
    rows = []
    for case, nodes, groups, bar in (("preempt-100", 100, 0, 100), ("preempt-1000", 1000, 1000, 500)):
        for disrupt_all in (False, True) if groups else (False,):
            engine = cluster(nodes)
            fill(engine, 10, {"cpu": 400, "memory": 100 << 20}, groups)
            group_infos = {f"default/v{n}": GroupInfo(None, disrupt_all, 0, False, 10) for n in range(groups)}
            leaf = gang(engine, "g", 100, None, {"cpu": 3970})

            def work(engine: Engine = engine, groups: dict[str, GroupInfo] = group_infos, leaf: Leaf = leaf) -> None:
                plan = Preemptor(engine, find_victim_sets(engine.state, groups)).plan(leaf, 100)
                assert plan is not None
                assert len(plan.result.placed) == 100

            value = min(spent(work) for _ in range(5)) * 1e3
            mode = f", {groups} gangs of 10, disruption {'all' if disrupt_all else 'single'}" if groups else ""
            name = f"{case}-all" if disrupt_all else case
            rows.append(Row(name, value, "ms", bar, note=f"{nodes} nodes, {nodes * 10} victims{mode}"))
    return rows


def whole_core() -> list[Row]:
    """The same decisions through queue, trees and bookkeeping, as the live scheduler makes them."""
    rate = 9000 / least(ready(5000, 3000, 3), 3)
    large = least(ready(5000, 9, 1000), 2) / 9 * 1e3
    kept, waits = (least(backlog(1000, gangs), 2) for gangs in (1000, 2000))
    return [
        Row("core-small", rate, "pods/s", 2000, True, "5,000 nodes, 3,000 gangs of 3, objects in, bindings out"),
        Row("core-large", large, "ms", 200, note="5,000 nodes, each of 9 gangs of 1,000"),
        Row("core-backlog", log2(waits / kept), "power", _GROWTH_BAR, note=f"restart with 2,000 gangs: {waits:.2f} s"),
    ]


def by_rules() -> list[Row]:
    """What companion mode costs: pods of JobSets, grouped by the rule, beside the same pods that name PodGroups. In
    turns, so that a busy machine is busy for both, and with the collector of cycles set as `kohort run` sets it."""
    gc.collect()
    tuning.settle()
    rows = [_by_rules("core-rules", 3000, 3), _by_rules("core-rules-large", 90, 100)]
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    return rows


def _by_rules(name: str, gangs: int, size: int) -> Row:
    """The median over rounds of how the two times of a round compare."""
    made = {rule: grouped(5000, gangs, size, by_rule=rule) for rule in (False, True)}
    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(7):
        for rule in (False, True) if number % 2 else (True, False):
            work = made[rule]()
            gc.collect()
            times[rule].append(spent(work))
    more = median(ruled / named - 1 for named, ruled in zip(times[False], times[True], strict=True))
    pods, named, ruled = gangs * size, min(times[False]), min(times[True])
    note = f"5,000 nodes, {gangs:,} JobSets of {size}: {pods / ruled:,.0f} pods/s, with PodGroups {pods / named:,.0f}"
    return Row(name, more * 100, "%", 5, note=note)


def huge() -> list[Row]:
    """In a process of its own, so that its memory is its own."""
    line = [sys.executable, "-m", "bench.place_huge"]
    said = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    note = "50,000 nodes, 500,000 running pods"
    return [
        Row("huge-memory", said["gib"], "GiB", 3, note=note),
        Row("huge-gang", said["gang_ms"], "ms", 500, note=f"{note}: a 1,000-pod gang"),
    ]


def growth() -> list[Row]:
    """Twice as much of one thing: how many times the cost? The exponent over the whole range, 1 being linear."""
    return [
        _growth("growth-group", [250, 500, 1000, 2000], _one_gang),
        _growth("growth-cluster", [2500, 5000, 10_000, 20_000], _nodes),
        _growth("growth-queue", [250, 500, 1000, 2000], _queue),
        _growth("growth-running", [5, 10, 20, 40], _running),
    ]


def _growth(name: str, sizes: list[int], cost: Callable[[int], float]) -> Row:
    costs = [min(cost(size) for _ in range(3)) for size in sizes]
    exponent = log2(costs[-1] / costs[0]) / log2(sizes[-1] / sizes[0])
    points = tuple((size, value * 1e3) for size, value in zip(sizes, costs, strict=True))
    note = ", ".join(f"{size}: {value:.1f} ms" for size, value in points)
    return Row(name, exponent, "power", _GROWTH_BAR, note=note, points=points)


def plot(row: Row) -> str:
    """Cost over size, as bars; the mark is where it would be if it grew like the size."""
    first, top = row.points[0], max(value for _, value in row.points)
    top = max(top, row.points[-1][0] / first[0] * first[1])
    lines = [f"{row.case}: cost against size; | is linear growth"]
    for size, value in row.points:
        bar, linear = (round(50 * part / top) for part in (value, size / first[0] * first[1]))
        cells = ["#" if place < bar else " " for place in range(51)]
        cells[linear] = "|"
        lines.append(f"{size:>8}  {''.join(cells)}  {value:.1f} ms")
    return "\n".join(lines)


def _one_gang(size: int) -> float:
    engine = cluster(5000)
    return spent(lambda: _placed(engine, gang(engine, "g", size)))


def _nodes(size: int) -> float:
    engine = cluster(size, size // 16)
    _placed(engine, gang(engine, "warm", 4, "rack"))
    return spent(lambda: [_placed(engine, gang(engine, f"g{n}", 4, "rack")) for n in range(100)])


def _queue(size: int) -> float:
    engine = cluster(5000)
    return spent(lambda: [_placed(engine, gang(engine, f"g{n}", 3)) for n in range(size)])


def _running(per_node: int) -> float:
    engine = cluster(1000)
    fill(engine, per_node, {"cpu": 10})
    _placed(engine, gang(engine, "warm", 3, HOST))
    return spent(lambda: [_placed(engine, gang(engine, f"g{n}", 3)) for n in range(200)])


def _placed(engine: Engine, leaf: Leaf) -> bool:
    ok = decide(engine, leaf).ok
    assert ok
    return ok


CASES: dict[str, Callable[[], list[Row]]] = {
    "small": small_gangs,
    "large": large_gangs,
    "topology": topology,
    "ranks": ranks,
    "tree": trees,
    "nofit": no_fit,
    "preempt": preemption,
    "core": whole_core,
    "rules": by_rules,
    "huge": huge,
    "growth": growth,
}


def run() -> list[Result]:
    """For `python -m bench`: rows that are times, rates turned into the time of a thousand pods."""
    results = []
    for row in (row for case in CASES.values() for row in case()):
        if row.unit == "ms":
            results.append(Result(f"place {row.case}", row.value / 1e3, promise=row.bar / 1e3))
        elif row.more_is_better:
            results.append(Result(f"place {row.case}, 1,000 pods", 1000 / row.value, promise=1000 / row.bar))
    return results


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.place", description=__doc__)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this row (may be repeated)")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--plot", action="store_true", help="how costs grow, as bars below the table")
    parser.add_argument("--list", action="store_true", help="names of the rows")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        print("\n".join(CASES))
        return 0
    rows = [row for name in chosen.case or CASES for row in CASES[name]()]
    if chosen.json:
        print(json.dumps([{**asdict(row), "ok": row.ok} for row in rows], indent=2))
    else:
        width = max(len(row.case) for row in rows)
        print("\n".join(row.line(width) for row in rows))
        if chosen.plot:
            print("\n".join(f"\n{plot(row)}" for row in rows if row.points))
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
