"""Pages that are followed from the first block to the last, in a clean home, with kubectl and one `kohort up`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.pages import ROOT, SESSIONS, Step, steps

from kohort.testing.environment.assets import find
from kohort.testing.pytest_plugin import require_binaries

pytestmark = pytest.mark.timeout(900)

_PATIENCE = 180.0  # seconds in which a reader would look again
_LOOKS = ("kubectl get", "kohort explain", "kohort tree")


class Shell:
    """A bash that is given one command after another."""

    def __init__(self, home: Path, programs: Path) -> None:
        environment = {"HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
        self._bash = subprocess.Popen(
            ["bash", "--norc"], cwd=ROOT, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, command: str) -> tuple[int, str]:
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f'{command}\necho "<<done $?>>"\n')
        self._bash.stdin.flush()
        said = ""
        for line in self._bash.stdout:
            if line.startswith("<<done "):
                return int(line.split()[1].rstrip(">")), said
            said += line
        raise AssertionError(f"the shell ended: {said}")

    def close(self) -> None:
        self.run("kohort down 2>/dev/null")
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.close()
        self._bash.stdout.close()
        self._bash.wait(30)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    require_binaries("1.37")
    assets = find("1.37")
    assert assets is not None
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    (programs / "kubectl").symlink_to(assets.path("kubectl"))
    # Another port than the usual one, which may be taken on this machine.
    kohort = f"{sys.executable} -m kohort.cli.main"
    program = f'#!/bin/sh\nif [ "$1" = up ]; then exec {kohort} "$@" --port 0; fi\nexec {kohort} "$@"\n'
    (programs / "kohort").write_text(program.replace("#!/bin/sh\n", f"#!/bin/sh\nexport PYTHONPATH={ROOT / 'src'}\n"))
    (programs / "kohort").chmod(0o755)
    found = Shell(home, programs)
    yield found
    found.close()


@pytest.mark.parametrize("page", SESSIONS)
def test_a_page_is_true_from_its_first_block_to_its_last(page: str, shell: Shell) -> None:
    for step in (one for one in steps() if one.page == page and not one.reason):
        _follow(shell, step)


def _follow(shell: Shell, step: Step) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        code, said = shell.run(step.command)
        if step.shown_in(said) and (code == 0 or "error:" in step.output):
            return
        assert step.command.startswith(_LOOKS), f"$ {step.command} ({code})\n{said}"
        assert time.monotonic() < end, f"$ {step.command} ({code})\n{said}"
        time.sleep(0.5)
