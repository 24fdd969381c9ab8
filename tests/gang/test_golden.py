"""Worked examples: an input and, written out whole, what it becomes on each Kubernetes minor.

A case is a folder in tests/golden: `input.yaml`; `<minor>.yaml` with the objects in creation order; `<minor>.txt` with
the expected `error: …` and `warning: …` lines (a line matches if the finding starts with it); `case.yaml` may switch
gates and settings, or say what a controller knows of a LeaderWorkerSet that is there already.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kinds.leaderworkerset.compile.observing import observed

import kohort
from kohort.kinds.leaderworkerset.compile import leaderworkerset

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = sorted({(path.parent.name, path.stem) for path in GOLDEN.glob("*/1.*")})


def _case(folder: Path) -> dict[str, Any]:
    file = folder / "case.yaml"
    return (yaml.safe_load(file.read_text()) or {}) if file.exists() else {}


@pytest.mark.parametrize(("name", "minor"), CASES, ids=lambda part: part)
def test_golden(name: str, minor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = GOLDEN / name
    case = _case(folder)
    if "observed" in case:
        known = case["observed"]
        living = lambda obj, ctx: leaderworkerset.compile_object(obj, ctx, observed(obj, **known))  # noqa: E731
        monkeypatch.setattr("kohort.library.compiler", lambda *_: living)
    gates = {**case.get("gates", {}), **dict.fromkeys(case.get("options", ()), True)}
    results = kohort.compile(folder / "input.yaml", to=minor, gates=gates, settings=case.get("settings"))
    assert results, "the input holds no workload"
    said = [
        f"{p.severity}: {p.field}: {p.message}" if p.field else f"{p.severity}: {p.message}"
        for r in results
        for p in r.problems
    ]
    _compare_lines(folder / f"{minor}.txt", said)
    objects = [obj for result in results for obj in result.objects]
    expected = folder / f"{minor}.yaml"
    if expected.exists():
        wanted = [doc for doc in yaml.safe_load_all(expected.read_text()) if doc is not None]
        assert [_name(obj) for obj in objects] == [_name(obj) for obj in wanted]
        assert objects == wanted
    else:
        assert objects == [], f"objects were made, but there is no {expected.name}"


def _name(obj: dict[str, Any]) -> str:
    return f"{obj['apiVersion']} {obj['kind']} {obj['metadata']['name']}"


def _compare_lines(file: Path, said: list[str]) -> None:
    wanted = [line for line in file.read_text().splitlines() if line.strip()] if file.exists() else []
    assert len(said) == len(wanted), f"said {said}, expected {wanted}"
    for line, start in zip(sorted(said), sorted(wanted), strict=True):
        assert line.startswith(start)


def test_every_golden_folder_has_expectations() -> None:
    without = [folder.name for folder in GOLDEN.iterdir() if folder.is_dir() and not list(folder.glob("1.*"))]
    assert without == []
    assert CASES
