"""Kohort beside kube-scheduler, from waiting pods to bound pods, on the same kube-apiserver and machine.

    python -m bench.e2e                           # every case, both schedulers in turn; more than an hour
    python -m bench.e2e --only GangScheduling --only '10000'
    python -m bench.e2e --schedulers kohort --markdown

Each row has an API server and etcd of its own, filled in the same way. What that API server can bind is measured
first, by posting bindings alone. Needs the binaries of Kubernetes (make kubernetes).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench.e2e.apiserver import limit
from bench.e2e.cases import CASES, Case
from bench.e2e.measure import Row, measure
from bench.e2e.schedulers import KOHORT, KUBE, NAMES
from bench.ready import compiled
from kohort.testing.environment import AssetsMissingError

HEAD: Final = (
    "case",
    "scheduler",
    "bound",
    "all after",
    "first after",
    "bindings/s",
    "of the limit",
    "all writes",
    "processor",
    "memory",
    "its API server",
    "p50, p99",
)


def cells(row: Row, most: float) -> list[str]:
    """A line of the table."""
    after = f"{row.last:.1f} s" if row.done else f"not in {row.case.seconds:.0f} s"
    if row.creating and not row.case.per_second:
        after += f", creating {row.creating:.1f} s"
    if row.restarted:
        after += f", started again at {row.restarted:.1f} s"
    steady = bool(row.created)
    return [
        row.case.name,
        row.scheduler,
        f"{len(row.times):,} of {row.wanted:,}",
        "–" if steady else after,
        "–" if steady or not row.times else f"{row.first:.1f} s",
        f"{row.rate:,.0f}",
        f"{row.rate / most:.0%}",
        f"{row.all_rate / most:.0%}" if row.done and not steady else "–",
        f"{row.seconds:.1f} s",
        f"{row.memory:,.0f} MiB",
        f"{row.server_seconds:.1f} s, {row.server_memory:,.0f} MiB",
        f"{row.percentile(0.5) * 1e3:.0f}, {row.percentile(0.99) * 1e3:.0f} ms" if steady else "–",
    ]


def written(row: Row, most: float) -> dict[str, Any]:
    """The same as numbers."""
    return {
        "case": row.case.name,
        "nodes": row.case.nodes,
        "groups": row.case.groups,
        "size": row.case.size,
        "scheduler": row.scheduler,
        "bound": len(row.times),
        "wanted": row.wanted,
        "first": round(row.first, 3),
        "last": round(row.last, 3),
        "restarted": round(row.restarted, 3),
        "bindings per second": round(row.rate, 1),
        "writes per second": round(row.all_rate, 1),
        "limit": round(most, 1),
        "processor": round(row.seconds, 2),
        "memory": round(row.memory, 1),
        "p50": round(row.percentile(0.5), 4),
        "p99": round(row.percentile(0.99), 4),
        "broken": row.broken,
    }


def shown(lines: Sequence[Sequence[str]], *, markdown: bool) -> str:
    if markdown:
        head, *rest = lines
        return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rest))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def ratios(rows: Iterable[Row]) -> list[str]:
    """How many times as long kube-scheduler takes."""
    by_case: dict[Case, dict[str, Row]] = {}
    for row in rows:
        by_case.setdefault(row.case, {})[row.scheduler] = row
    found = []
    for case, both in by_case.items():
        if len(both) < len(NAMES) or case.per_second or not both[KOHORT].done:
            continue
        other, ours = both[KUBE], both[KOHORT]
        least = "" if other.done else "more than "
        time = other.last if other.done else case.seconds
        rates = "" if other.done else f", by bindings a second {ours.rate / max(other.rate, 1e-3):,.0f} x"
        found.append(f"{case.name}: {least}{time / max(ours.last, 1e-3):.1f} x{rates if other.rate else ''}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.e2e", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="cases whose name has it; repeat")
    parser.add_argument("--schedulers", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--kubernetes", default="1.37", metavar="MINOR")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", default="", metavar="FILE", help="the rows, for plots and later comparison")
    parser.add_argument("--seconds", type=float, metavar="N", help="for each backlog; 100 unless a case says otherwise")
    parser.add_argument("--list", action="store_true", help="names of the cases")
    args = parser.parse_args()
    cases = [case for case in CASES if not args.only or any(text in case.name for text in args.only)]
    if args.list or not cases:
        print("\n".join(case.name for case in (cases or CASES)))
        return 0 if cases else 2
    if args.seconds:
        cases = [case if case.per_second else replace(case, seconds=args.seconds) for case in cases]
    compiled()
    try:
        creates, binds, watched = limit(args.kubernetes, 5000, 3000)
    except AssetsMissingError as missing:
        print(missing, file=sys.stderr)
        return 2
    told = f"{creates:,.0f} creates/s, {binds:,.0f} bindings/s (64 connections)"
    print(f"the API server alone: {told}, {watched:,.0f} while they are watched as below\n", flush=True)
    rows: list[Row] = []
    both = 1 / (1 / creates + 1 / binds)  # pods a second that are created and bound, if that were all
    for case in cases:
        for scheduler in args.schedulers:
            rows.append(measure(case, scheduler, args.kubernetes, both))
            print("  ".join(cells(rows[-1], binds)), flush=True)
            told = ", ".join(f"{count:,} {what}" for what, count in rows[-1].writes.most_common())
            print(f"    writes meanwhile: {told}", flush=True)
            for line in rows[-1].broken[:5]:
                print(f"    broken: {line}", flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps([written(row, binds) for row in rows], indent=1) + "\n")
    print("\n" + shown([HEAD, *(cells(row, binds) for row in rows)], markdown=args.markdown))
    print("\nkube-scheduler takes, beside Kohort:", *ratios(rows), sep="\n  ")
    return 1 if any(row.broken for row in rows if row.scheduler == KOHORT) else 0


if __name__ == "__main__":
    sys.exit(main())
