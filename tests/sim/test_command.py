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
        (["sh", "-c", "for i in 1 2 3; do sleep 1; done"], Ending(3)),
        (["sh", "-c", "for i in $(seq 10 -1 1)\ndo\n  echo $i\n  sleep 1\ndone\nexit 1"], Ending(10, 1)),
        (["sh", "-c", "for i in $(seq 3); do for k in a b; do sleep 2; done; done"], Ending(12)),
        (["sh", "-c", "X=4; sleep $X # and so on"], Ending(4)),
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
        ["sh", "-c", "for i in *; do sleep 1; done"],
        ["sh", "-c", "for i in $(ls); do sleep 1; done"],
        ["sh", "-c", "if [ $UNSET = 0 ]; then exit 1; fi; sleep 1"],
        ["sh", "-c", "if [ 1 = 1 ]; then exit 1"],
        ["sh", "-c", "if " * 2000],
        ["sh", "-c", "sleep 1;" * 3000],
        ["sh", "-c", "x() { exit 1; }; x"],
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


ROLE = (("JOB_COMPLETION_INDEX", "0"), ("ROLE", "lead er"), ("N", "12"))


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ('[ "$JOB_COMPLETION_INDEX" = "0" ]', True),
        ("[ $JOB_COMPLETION_INDEX == 0 ]", True),
        ('[[ "$JOB_COMPLETION_INDEX" == "0" ]]', True),
        ("[[ ${JOB_COMPLETION_INDEX} != 0 ]]", False),
        ("test $JOB_COMPLETION_INDEX -eq 0", True),
        ("test $JOB_COMPLETION_INDEX -ne 0", False),
        ("[ $N -lt 12 ]", False),
        ("[ $N -le 12 ]", True),
        ("[ $N -gt 2 ]", True),
        ("[ $N -ge 13 ]", False),
        ("! [ $N -ge 13 ]", True),
        ("[ ! $N -ge 13 ]", True),
        ('[ -n "$ROLE" ]', True),
        ('[ -z "$ROLE" ]', False),
        ('[ "$ROLE" = "lead er" ] && [ "$N" = 12 ]', True),
        ('[ "$ROLE" = "lead er" ] && [ "$N" = 13 ]', False),
        ("[ '$N' = 12 ]", False),
        ("[ $(N) = 12 ]", True),  # put in by the kubelet
        ("true", True),
        ("false", False),
    ],
)
def test_a_condition_on_variables_decides(condition: str, holds: bool) -> None:
    script = f"if {condition}; then sleep 1; exit 3; fi\nsleep 2"
    assert ending(("bash", "-xc", script), ROLE) == (Ending(1, 3) if holds else Ending(2))


def test_the_branches_of_a_condition() -> None:
    script = """
    # which one am I?
    if [ "$N" = 1 ]; then
      exit 1
    elif [ "$N" = 2 ]; then
      if [ "$ROLE" = x ]; then sleep 5; else sleep 6; fi
      exit 2
    else
      sleep 7
    fi
    """
    found = [ending(("sh", "-c", script), (("N", number), ("ROLE", "x"))) for number in ("1", "2", "3")]
    assert found == [Ending(0, 1), Ending(5, 2), Ending(7)]
