"""python -m tests.abuse --objects 10000 --requests 100000 --kills 200; ends with 1 if a limit was not kept."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from tests.abuse.cluster import TARGETS
from tests.abuse.gangs import quantile
from tests.abuse.report import Report
from tests.abuse.run import Options, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.abuse", description=__doc__)
    defaults = Options()
    parser.add_argument("--target", choices=TARGETS, default=defaults.target, help="who has to bear it")
    parser.add_argument("--only", default="", metavar="SORT,...", help="these sorts of hostile requests")
    for name in Options.__dataclass_fields__:
        if name not in {"target", "only"}:
            parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name), metavar="N")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended, too
    report = asyncio.run(run(Options(**vars(parser.parse_args()))))
    show(report)
    return 0 if all(reached for *_, reached in report.rows()) else 1


def show(report: Report) -> None:
    columns(report.table())
    print()
    quiet, loud = (f"{quantile(some, 0.5):.2f} s" if some else "none" for some in (report.quiet, report.attacked))
    print(f"the other tenant's gangs, median: {loud}, quiet {quiet}")
    rows = [(what, found, limit, "yes" if reached else "NO") for what, found, limit, reached in report.rows()]
    columns([(f"kohort {report.target}", "found", "must be", "reached"), *rows])
    stalls = sorted(report.stalls, key=lambda stall: (-stall.processor, -stall.seconds))
    lines = [f"{one.seconds * 1000:.0f} ms ({one.processor * 1000:.0f} of the processor): {one.what}" for one in stalls]
    for title, found in (("5xx", report.faults), ("hangs", report.hangs), ("longest standstills", lines)):
        if found:
            print(f"\n{title} (ten of {len(found)})")
            for line in found[:10]:
                print(f"  {line[:400]}")


def columns(rows: Sequence[Sequence[str]]) -> None:
    """Nothing, if there are none."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
