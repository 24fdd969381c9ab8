"""`kohort completion`, as people use it: in bash, zsh and fish, by the Tab key."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.support.terminal import Terminal

_TAB = "\t"
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(kohort completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "source <(kohort completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "kohort completion fish | source"),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_tab_key(shell: str, tmp_path: Path) -> None:
    """A command, an option and a file are completed, and the line that came of it is run."""
    command, load = SHELLS[shell]
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed (apt install {shell})")
    (tmp_path / "manifest-of-mine.yaml").write_text("kind: Nothing\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(tmp_path), "TERM": "xterm", "LANG": "C.UTF-8"}
    with Terminal(command, env=env, cwd=tmp_path) as terminal:
        terminal.type("echo be''gun\n")
        terminal.wait(lambda seen: "begun" in seen)
        terminal.type(f"{load} && echo loa''ded\n")
        said = terminal.wait(lambda seen: "loaded" in seen or "not found" in seen)
        assert "loaded" in said
        terminal.type(f"kohort expl{_TAB}--all-n{_TAB}--he{_TAB}> help.txt && echo do''ne\n")
        terminal.wait(lambda seen: "done" in seen)
        assert "Usage: kohort explain" in (tmp_path / "help.txt").read_text()
        terminal.type(f"kohort validate -f man{_TAB}> file.txt 2>&1; echo do''ne\n")
        terminal.wait(lambda seen: "done" in seen)
        assert "manifest-of-mine.yaml" in (tmp_path / "file.txt").read_text()
