"""The examples in the documentation are true: Python ones run, shell ones print what the page says."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.pages import PAGES, SESSIONS, Step, steps

import kohort

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text()], ids=lambda page: page.name)
def test_python_examples(page: Path) -> None:
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert tried > 0
    assert failed == 0


def test_python_example_of_the_package() -> None:
    failed, tried = doctest.testmod(kohort)
    assert tried > 0
    assert failed == 0


def test_python_block_of_readme(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "spec.scheduleAtOnce" in printed
    assert "PodGroup pg-aurora" in printed


@pytest.mark.parametrize("step", [one for one in steps() if one.alone], ids=lambda one: one.command[:60])
def test_shell_examples(step: Step, tmp_path: Path) -> None:
    """Commands that need no server, in a clean home."""
    shim = tmp_path / "kohort"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m kohort.cli.main "$@"\n')
    shim.chmod(0o755)
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(step.command, shell=True, env=environment, capture_output=True, text=True, check=False)
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed
    assert step.shown_in(printed), printed
    if "error:" not in step.output:
        assert done.returncode == 0, printed


def test_every_command_of_a_page_runs_in_a_test_or_says_why_not() -> None:
    left = [one for one in steps() if not one.alone and not one.reason and one.page not in SESSIONS]
    assert left == []


def test_what_is_another_each_time_is_not_compared() -> None:
    step = Step(
        "x.md", "kubectl get pods", "NAME         STATUS    AGE\na-0-dqbqz    Running   2s\n…\nb    Running   1s"
    )
    assert step.shown_in("NAME   STATUS   AGE\na-0-12345   Running   4m3s\nc   Running   1s\nb   Running   1s\n")
    assert not step.shown_in("NAME   STATUS   AGE\na-0-12345   Pending   4m3s\nb   Running   1s\n")
    waits = Step("x.md", "kohort explain", "waits for 3 s (since 2026-11-16T19:26:25Z): none")
    assert waits.shown_in("waits for 12 min (since 2027-01-01T00:00:00Z): none")


def test_links_point_somewhere() -> None:
    broken = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = re.sub(r"`[^`\n]*`", "``", page.read_text())  # a regular expression is no link
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []
