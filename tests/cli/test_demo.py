"""`make demo`: it ends by itself, keeps its promises, and says so when it did not."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from kohort.cli.demo.__main__ import tell
from kohort.cli.demo.scenes import Stage, play
from kohort.cli.demo.screen import Act, Screen
from kohort.cli.demo.stories import TOGETHER, WAITS, Story, example
from kohort.cli.demo.watching import Pod, Tale
from kohort.cli.main import app
from kohort.kube.client import Client
from kohort.server.server import Server
from kohort.server.settings import Settings

WIDEST = 80
COMMAND = [sys.executable, "-m", "kohort.cli.demo"]
BY_NAME = {story.name: story for story in (*TOGETHER, *WAITS)}


def test_it_keeps_its_promises_in_a_pipe() -> None:
    environment = {**os.environ, "COLUMNS": str(WIDEST)}
    done = subprocess.run(COMMAND, check=False, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("starting Kubernetes"), "it says what it does before it does it"
    for said in (
        "every promise kept",
        "all 8 run",
        "Completed",
        "waits: 0 of 40 pods bound",
        "InsufficientResource",
        "low made room as a whole",
        "runs anew, all 4 together",
    ):
        assert said in done.stdout
    assert "\x1b" not in done.stdout, "no terminal, no colours"
    assert [line for line in done.stdout.splitlines() if len(line.rstrip()) > WIDEST] == []
    assert done.stderr == ""


def test_in_a_terminal_it_draws() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "50"}
    process = subprocess.Popen([*COMMAND, "--only", "together"], stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is gone
            break
        if not part:
            break
        seen += part
    os.close(ours)
    text = seen.decode()
    assert process.wait(60) == 0, text[-4000:]
    assert "●●●●●●●●" in text
    assert "every promise kept" in text


async def test_a_broken_promise_is_told() -> None:
    """More pods are promised than the Job has: it runs to its end, and the demo does not say that all is well."""
    output = io.StringIO()
    screen = Screen(Console(file=output, width=200))
    assert not await tell(screen, [replace(BY_NAME["ring"], pods=9)], limit=20)
    assert "8 pods were made instead of 9" in output.getvalue()
    assert "BROKEN" in output.getvalue()


def tale(story: Story, *pods: Pod, over: float | None = 9.0, groups: int = 1) -> Tale:
    found = Tale(replace(story, pods=len(pods), groups=groups), over=over)
    found.pods = {f"pod-{number}": pod for number, pod in enumerate(pods)}
    found.groups = {f"group-{number}": {} for number in range(groups)}
    return found


@pytest.mark.parametrize(
    ("pods", "over", "fault"),
    [
        ([Pod("group-0", 1.0, 2.0), Pod("group-0", 1.1, 2.0)], 9.0, None),
        ([Pod("group-0", 1.0, 2.0), Pod("group-0", 17.5, 18.0)], 19.0, "16.5 s between the first and the last binding"),
        ([Pod("group-0", 1.0, 1.1), Pod("group-0", 1.5, 2.0)], 9.0, "a pod ran before the minimum was bound"),
        ([Pod("group-0", 1.0, 2.0), Pod("group-0")], 9.0, "1 of 2 pods were bound, 1 ran"),
        ([Pod("group-0", 1.0, 2.0), Pod("group-0", 1.0, 2.0)], None, "it did not come to its end"),
        ([Pod("", 1.0, 2.0)], 9.0, "pods were made without a group"),
    ],
)
def test_promises_of_what_fits(pods: list[Pod], over: float | None, fault: str | None) -> None:
    found = list(tale(BY_NAME["ring"], *pods, over=over).broken())
    assert (not found) if fault is None else any(fault in one for one in found)


def test_nobody_promised_that_pods_of_a_basic_group_start_together() -> None:
    found = tale(BY_NAME["ring"], Pod("group-0", 1.0, 1.1), Pod("group-0", 2.5, 3.0))
    found.groups["group-0"] = {"spec": {"schedulingPolicy": {"basic": {}}}}
    assert list(found.broken()) == []
    found.pods["pod-1"].running = None
    assert list(found.broken()) == ["group-0: 2 of 2 pods were bound, 1 ran"]


def test_surplus_may_come_after_the_minimum() -> None:
    found = tale(BY_NAME["ring"], *(Pod("group-0", at, at + 0.5) for at in (1.0, 1.1, 17.0)))
    found.groups["group-0"] = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    assert list(found.broken()) == []
    found.groups["group-0"] = {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    assert len(list(found.broken())) == 2


def test_promises_of_what_waits() -> None:
    silent = tale(BY_NAME["giant"], Pod("group-0"), over=None)
    assert list(silent.broken()) == ["nobody said why it waits"]
    silent.why = "Unschedulable: too large"
    assert list(silent.broken()) == []
    silent.pods["pod-0"].bound = 1.0
    assert list(silent.broken()) == ["1 pods were bound though not all fit"]


def test_stories_can_come_from_examples() -> None:
    assert [obj["kind"] for obj in example("jobset-hello.yaml")] == ["JobSet"]


def test_a_part_that_is_not_there_is_refused() -> None:
    done = CliRunner().invoke(app, ["demo", "--only", "everything"])
    assert done.exit_code == 1
    assert "accepted are together, waits, preempts, heals, kinds" in done.output


async def test_a_scene_that_does_not_come_to_its_end_is_a_broken_promise(tmp_path: Path) -> None:
    async def never(stage: Stage) -> Act:
        await stage.running("nobody", 1)
        raise AssertionError

    output = io.StringIO()
    screen = Screen(Console(file=output, width=80))
    settings = Settings(tmp_path, in_memory=True, listen=False)
    async with Server(settings) as server, Client.within(server.api) as client:
        await play(screen, client, never, limit=0.1)
    assert not screen.summary(1.0)
    assert "broken: never: 1 pods of nobody run: not within 0 s" in output.getvalue()
