"""Every scenario of spec job 8 has a test that carries its number."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
SCENARIOS = {*range(1, 66), *range(70, 80), *range(80, 95)}
FOLDERS = ("e2e", "controllers", "gang", "kinds/batch/api", "kinds/batch/compile", "kinds/batch/control")


def named(path: Path) -> set[int]:
    tests = re.findall(r"def test_(\w+)", path.read_text())
    return {int(number) for test in tests for number in re.findall(r"(?:^|_)t_(\d\d)(?=_|b|$)", test)}


def test_every_scenario_of_jobs_has_a_test() -> None:
    files = [file for folder in FOLDERS for file in (TESTS / folder).glob("test_*.py")]
    found = set().union(*(named(file) for file in files if "trainjob" not in file.name))
    assert sorted(SCENARIOS - found) == []
