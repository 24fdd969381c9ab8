"""`kohort completion`: what a shell is given completes commands and options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kohort.cli.main import app


def completed(program: str, *words: str) -> list[str]:
    """In a real bash, with the program as it is installed."""
    line = " ".join((program, *words))
    function = f"_{program.replace('-', '_')}_completion"
    script = f"""
        eval "$({program} completion bash)" || exit 1
        COMP_WORDS=({line}) COMP_CWORD={len(words)}
        {function} {program}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.split()


def test_bash_completes_commands_and_options() -> None:
    assert completed("kohort", "exp") == ["explain"]
    assert completed("kohort", "explain", "--all-n") == ["--all-namespaces"]
    assert completed("kubectl-kohort", "tr") == ["translate", "tree"]


@pytest.mark.parametrize(
    ("shell", "said"), [("zsh", "#compdef kohort"), ("fish", "complete --no-files --command kohort")]
)
def test_other_shells(shell: str, said: str) -> None:
    result = CliRunner().invoke(app, ["completion", shell])
    assert result.exit_code == 0
    assert said in result.output


def test_a_shell_that_is_not_known() -> None:
    result = CliRunner().invoke(app, ["completion", "tcsh"])
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.output
