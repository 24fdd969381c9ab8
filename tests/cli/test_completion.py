"""`kohort completion`: what a shell is given completes commands and options."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from tests.web import stage

from kohort.cli.main import app
from kohort.plan.loading import load
from kohort.server.server import Server
from kohort.server.settings import Settings


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


def test_bash_completes_what_options_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text(yaml.safe_dump({"contexts": [{"name": one, "context": {}} for one in ("prod", "lab")]}))
    monkeypatch.setenv("KUBECONFIG", str(config))
    assert completed("kohort", "get", "-o", "y") == ["yaml"]
    assert completed("kohort", "top", "--context", "p") == ["prod"]
    assert completed("kohort", "explain", "leader") == ["leaderworkerset"]
    assert completed("kohort", "explain", "job/t") == [], "nobody answers, nothing is offered"


async def test_names_and_namespaces_come_from_the_cluster(tmp_path: Path) -> None:
    async with Server(Settings(tmp_path, "1.37", port=0, in_memory=True)) as server:
        await load(server, stage.full(4, 1))
        offered = partial(_offered, str(tmp_path / "kubeconfig"))
        assert await offered("get", ["podgroup"], "gang") == ["gang-0"]
        assert await offered("get", [], "podgroup/") == ["podgroup/gang-0"]
        assert await offered("tree", ["-n"], "l") == ["lab"]


async def _offered(config: str, command: str, before: list[str], begun: str) -> list[str]:
    """As a shell asks; in a thread: the server answers on this loop."""
    found = ShellComplete(app, {}, "kohort", "_KOHORT_COMPLETE")
    words = [command, "--kubeconfig", config, *(before if "-n" in before else ["-n", "lab", *before])]
    return [one.value for one in await asyncio.to_thread(found.get_completions, words, begun)]


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
