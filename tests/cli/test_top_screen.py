"""`kohort top` on a whole terminal: keys, the size of the window, and how it leaves the terminal."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.terminal import Size, Terminal
from tests.web import stage

from kohort.cli.keys import Reader
from kohort.cli.top import Picture, Room, fitting
from kohort.plan.clustercopy import ClusterCopy
from kohort.plan.loading import load
from kohort.server.server import Server
from kohort.server.settings import Settings

_DOWN, _PAGE_DOWN, _CTRL_C = "\x1b[B", "\x1b[6~", "\x03"
_OTHER_SCREEN, _BACK = "\x1b[?1049h", "\x1b[?1049l"


def _cluster() -> ClusterCopy:
    """Nodes, and thirty pods that are too large for each of them."""
    found = stage.full(4, 1)
    asks = {"requests": {"cpu": "4000"}}
    spec = {"schedulerName": "kohort", "containers": [{"name": "c", "image": "i", "resources": asks}]}
    for number in range(30):
        meta = {"name": f"waits-{number:02}", "namespace": "lab", "uid": f"w-{number}"}
        found.objects["pods"].append({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
    return found


def _terminal(config: str, size: Size = (24, 80)) -> Terminal:
    inherited = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    env = {**inherited, "KUBECONFIG": config, "TERM": "xterm-256color"}
    return Terminal([str(Path(sys.executable).with_name("kohort")), "top"], env=env, size=size)


def _used(config: str) -> None:
    """As somebody uses it who sits before it."""
    with _terminal(config) as terminal:
        first = terminal.wait(lambda seen: "q: quit" in seen)
        assert _OTHER_SCREEN in first
        hidden = int(re.findall(r"and (\d+) more", first)[-1])
        terminal.type("y")
        terminal.type(_DOWN)
        seen = terminal.wait(lambda seen: f"and {hidden - 1} more, 1 above" in seen)
        assert not re.search(r"y\s*\x1b", seen), "what is typed is not echoed"
        terminal.type(_PAGE_DOWN)
        terminal.wait(lambda seen: f"and {hidden - 6} more, 6 above" in seen)
        terminal.type("g")
        terminal.wait(lambda seen: re.search(rf"and {hidden} more\b(?!,)", seen) is not None)
        terminal.resize(90, 120)
        terminal.wait(
            lambda seen: "q: quit" in seen.rpartition("QUEUE")[2] and "further" not in seen.rpartition("QUEUE")[2]
        )
        terminal.type("q")
        assert terminal.ended() == 0
        assert _BACK in terminal.written
        assert terminal.echoes(), "the terminal is left as it was"


def _interrupted(config: str) -> None:
    with _terminal(config, (40, 120)) as terminal:
        terminal.wait(lambda seen: "q: quit" in seen)
        terminal.type(_CTRL_C)
        assert terminal.ended() == 0
        assert _BACK in terminal.written
        assert terminal.echoes()
        assert "Traceback" not in terminal.written


async def test_it_is_used_and_left(tmp_path: Path) -> None:
    async with Server(Settings(tmp_path, "1.37", port=0, in_memory=True)) as server:
        await load(server, _cluster())
        for use in (_used, _interrupted):
            await asyncio.to_thread(use, str(tmp_path / "kubeconfig"))


def test_the_settings_of_a_terminal_can_be_asked(tmp_path: Path) -> None:
    with Terminal([sys.executable, "-c", _QUIET], env=os.environ, cwd=tmp_path) as terminal:
        terminal.wait(lambda seen: "ready" in seen)
        assert not terminal.echoes()


_QUIET = "import tty, time; tty.setcbreak(0); print('ready', flush=True); time.sleep(60)"


@pytest.mark.parametrize(
    ("typed", "down"),
    [
        ("jjj", 3),
        (_DOWN + "\x1bOB" + _PAGE_DOWN, 7),
        ("jk\x1b[Akk", 0),
        ("jjg", 0),
        ("\x1b[99~\x1bz~j", 1),
        ("é\0j", 1),
    ],
)
async def test_keys(typed: str, down: int) -> None:
    reader = Reader()
    reader.type(typed)
    assert (reader.down, reader.stopped) == (down, False)
    reader.type("jq")
    assert reader.stopped


def _picture(racks: int, running: int, waiting: int) -> Picture:
    row: dict[str, Any] = {}
    return Picture("", 1, 0, 0, 1, "rack", [("r", 0, 1)] * racks, [row] * running, [row] * waiting)


@pytest.mark.parametrize(
    ("sizes", "height", "room"),
    [
        ((3, 6, 8), 24, Room(3, 4, 2)),
        ((3, 6, 8), 40, Room(3, 6, 8)),
        ((100, 100, 100), 42, Room(10, 10, 5)),
        ((0, 0, 100), 42, Room(0, 0, 15)),
        ((9, 9, 9), 5, Room(2, 2, 1)),
        ((0, 0, 0), 24, Room(0, 0, 0)),
    ],
)
def test_lines_go_where_they_are_needed(sizes: tuple[int, int, int], height: int, room: Room) -> None:
    assert fitting(_picture(*sizes), height) == room
