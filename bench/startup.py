"""How long people wait for the command to answer."""

from __future__ import annotations

import subprocess
import sys

from bench.result import Result, best


def _command(*arguments: str) -> float:
    line = [sys.executable, "-m", "kohort.cli.main", *arguments]
    return best(lambda: subprocess.run(line, check=True, capture_output=True))


def run() -> list[Result]:
    example = ("-f", "examples/jobset-gang.yaml")
    return [
        Result("kohort translate --help", _command("translate", "--help"), promise=0.3),
        Result("kohort translate (JobSet, tree)", _command("translate", *example, "-o", "tree")),
        Result("kohort validate (JobSet)", _command("validate", *example)),
    ]
