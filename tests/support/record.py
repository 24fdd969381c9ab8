"""`python -m tests.support.record FILE...`: ask real Kubernetes again, and write down what it answers now.

    python -m tests.support.record tests/recorded/validation-1.37.json           # refresh the file
    python -m tests.support.record --check tests/recorded/validation-1.37.json   # only say what differs
    python -m tests.support.record --only s7-04 new-cases.json                   # cases whose id begins so

A new case needs `id`, `title`, `gates`, `request` and perhaps `prior`; its answer is filled in.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.recorder import ReplayError, refresh

from kohort.testing.environment import AssetsMissingError, ControlPlaneError, Environment
from kohort.testing.environment.versions import gates_exactly

if TYPE_CHECKING:
    from collections.abc import Sequence


def record(path: Path, *, only: str = "", check: bool = False) -> list[str]:
    """Refresh (or check) one file; the ids of the cases whose answer is another one now."""
    document: dict[str, Any] = json.loads(path.read_text())
    cases = document["cases"]
    chosen = [case for case in cases if case["id"].startswith(only)]
    minor = ".".join(document["about"]["kubernetes"].split(".")[:2])
    with Environment(minor, gates=gates_exactly(minor, chosen[0]["gates"] if chosen else ())) as env:
        again = refresh(env, chosen, report=lambda text: print(f"{path.name}: {text}"))
        document["about"]["kubernetes"] = env.version
    answered = {case["id"]: case for case in again}
    changed = [case["id"] for case in chosen if answered[case["id"]]["answer"] != case.get("answer")]
    if not check:
        document["cases"] = [answered.get(case["id"], case) for case in cases]
        document["about"]["cases"] = len(cases)
        document["about"]["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
        path.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
    return changed


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.record", description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--only", default="", metavar="PREFIX", help="only cases whose id begins with this")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if an answer differs")
    args = parser.parse_args(argv)
    differs = False
    for path in args.files:
        try:
            changed = record(path, only=args.only, check=args.check)
        except (AssetsMissingError, ControlPlaneError, ReplayError) as error:
            sys.exit(f"record: {path}: {error}")
        print(f"{path}: {len(changed)} answers differ from the file: {', '.join(changed) or 'none'}")
        differs = differs or bool(changed)
    if args.check and differs:
        sys.exit(1)


if __name__ == "__main__":
    main()
