"""Commands that can be read for how long they run and how they end."""

from __future__ import annotations

import pytest

from kohort.sim.command import Ending, ending


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["sleep", "30"], Ending(30)),
        (["/bin/sleep", "1.5m"], Ending(90)),
        (["sleep", "infinity"], Ending(None)),
        (["sleep", "1000000"], Ending(1_000_000)),
        (["true"], Ending(0)),
        (["false"], Ending(0, 1)),
        (["sh", "-c", "exit 0"], Ending(0)),
        (["/bin/sh", "-c", "exit 42"], Ending(0, 42)),
        (["bash", "-ec", "echo hello; sleep 5 && exit 3"], Ending(5, 3)),
        (["sh", "-c", "sleep 2\nsleep 3\necho done"], Ending(5)),
        (["sh", "-c", "echo 'exit 7'; sleep 1"], Ending(1)),
        (["sh", "-c", "trap exit TERM; while true; do sleep 1; done"], Ending(None)),
        (["sh", "-c", 'trap "exit 3" TERM; while :; do sleep 1; done'], Ending(None)),
        (["sh", "-c", "sleep 1; exit"], Ending(1)),
        (["sh", "-c", "false; exit"], Ending(0, 1)),
    ],
)
def test_a_plain_command_is_understood(argv: list[str], wanted: Ending) -> None:
    assert ending(tuple(argv)) == wanted


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["python", "train.py"],
        ["sh", "train.sh"],
        ["sh", "-c"],
        ["sh", "-c", "python train.py"],
        ["sh", "-c", "if [ -r /data/foo ]; then exit 0; else exit 1; fi"],
        ["sh", "-c", "exit $(( $RANDOM / 16384 ))"],
        ["sh", "-c", "exit 300"],
        ["sh", "-c", "test -f x || exit 1"],
        ["sh", "-c", "for i in 1 2 3; do sleep 1; done"],
        ["sh", "-c", "sleep 5 & wait"],
        ["sh", "-c", "(exit 3)"],
        ["sh", "-c", "sleep $TIME"],
        ["sh", "-c", "echo 'open"],
        ["sleep"],
        ["sleep", "-1"],
    ],
)
def test_anything_else_says_nothing(argv: list[str]) -> None:
    assert ending(tuple(argv)) is None
