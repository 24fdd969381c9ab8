"""Run every benchmark of this folder: modules with `run() -> list[Result]`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from bench.result import Result


def main() -> int:
    wanted = sys.argv[1:]
    modules = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))
    results: list[Result] = []
    for name in modules:
        module = import_module(f"bench.{name}")
        if hasattr(module, "run") and (not wanted or name in wanted):
            results += module.run()
    width = max(len(result.name) for result in results)
    for result in results:
        print(result.line(width))
    return 1 if any(result.broken for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
