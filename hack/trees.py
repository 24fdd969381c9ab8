"""`make trees`: the tree of every example."""

from __future__ import annotations

import sys
from pathlib import Path

from kohort import library, manifest
from kohort.cli.common import count, out, report
from kohort.cli.translate import show


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "examples")
    files = sorted(file for file in folder.glob("*.yaml") if file.name != "cluster.yaml")  # that one has nodes
    broken = shown = 0
    for file in files:
        out.print(f"[bold underline]{file}[/]")
        results = library.compile(manifest.read([str(file)]))
        for result in results:
            report(result.problems, out)
            broken += not result.ok
            shown += result.ok
        show(results, out)
        out.print()
    out.print(f"{count(shown, 'workload')} of {count(len(files), 'example')}, {broken} broken")
    return 1 if broken or not shown else 0


if __name__ == "__main__":
    sys.exit(main())
