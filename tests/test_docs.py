"""The examples in the documentation are true: Python ones run, shell ones print what the page says."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kohort

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Pages whose commands need a cluster; tests/kubernetes/test_run.py follows them on a real one.
ELSEWHERE = {"run-on-kubernetes.md"}
SHELL = re.compile(r"```console\n(.*?)```", re.DOTALL)


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


def _commands() -> list[tuple[str, str, str]]:
    """Commands whose output the page shows: (page, command, output)."""
    found = []
    for page in (page for page in PAGES if page.name not in ELSEWHERE):
        for block in SHELL.findall(page.read_text()):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                if command.startswith("kohort ") and output.strip() and not command.startswith("kohort --version"):
                    found.append((page.name, command, output))
    return found


@pytest.mark.parametrize(("page", "command", "output"), _commands(), ids=lambda text: text[:60])
def test_shell_examples(page: str, command: str, output: str) -> None:
    line = [sys.executable, "-m", "kohort.cli.main", *command.split()[1:]]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    printed = done.stdout + done.stderr
    pattern = ".*".join(re.escape(part) for part in output.strip().split("…\n"))
    assert re.search(pattern, printed, re.DOTALL), printed


def test_links_point_somewhere() -> None:
    broken = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = re.sub(r"`[^`\n]*`", "``", page.read_text())  # a regular expression is no link
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []
