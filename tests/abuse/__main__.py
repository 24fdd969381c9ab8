"""python -m tests.abuse --objects 10000 --requests 100000 --kills 200; ends with 1 if a limit was not kept."""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.abuse.run import Options, Report, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.abuse", description=__doc__)
    defaults = Options()
    for name in Options.__dataclass_fields__:
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name), metavar="N")
    report = asyncio.run(run(Options(**vars(parser.parse_args()))))
    show(report)
    return 0 if all(reached for *_, reached in report.rows()) else 1


def show(report: Report) -> None:
    rows = [(what, found, limit, "yes" if reached else "NO") for what, found, limit, reached in report.rows()]
    head = ("", "found", "must be", "reached")
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(4)]
    for row in (head, *rows):
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    for title, lines in (("5xx", report.faults), ("hangs", report.hangs), ("standstills", report.stalls)):
        if lines:
            print(f"\n{title} (the first ten of {len(lines)})")
            for line in lines[:10]:
                print(f"  {line[:600]}")


if __name__ == "__main__":
    sys.exit(main())
