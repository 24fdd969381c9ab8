"""Lines that fit: broken between words, indented below where they began; words stay whole."""

from __future__ import annotations

import pytest
from rich.console import Console

from kohort.cli.lines import Hanging, columns


def shown(text: str, width: int, hang: int) -> list[str]:
    console = Console(width=width, soft_wrap=True)
    with console.capture() as captured:
        console.print(Hanging(text, hang))
    return captured.get().splitlines()


@pytest.mark.parametrize(
    ("text", "width", "hang", "lines"),
    [
        ("short", 10, 2, ["short"]),
        ("one two three", 9, 2, ["one two", "  three"]),
        ("  label  a sentence that is long", 20, 9, ["  label  a sentence", "         that is", "         long"]),
        ("and topology.kubernetes.io/rack b", 10, 2, ["and", "  topology.kubernetes.io/rack", "  b"]),
        ("averylongword", 4, 2, ["averylongword"]),
        ("on node-1\u00a0(2)", 10, 2, ["on", "  node-1 (2)"]),
        ("first\nsecond line", 9, 2, ["first", "  second", "  line"]),
        ("  label  averylongword after", 12, 9, ["  label  averylongword", "         after"]),
    ],
)
def test_a_line(text: str, width: int, hang: int, lines: list[str]) -> None:
    assert shown(text, width, hang) == lines


def test_a_table_moves_closer_then_breaks_its_last_column() -> None:
    table = [["NAME", "MESSAGE"], ["a", "x" * 10], ["b", "-"]]
    assert columns(table) == ["NAME   MESSAGE", "a      xxxxxxxxxx", "b      -"]
    assert columns(table, 16) == ["NAME  MESSAGE", "a     xxxxxxxxxx", "b     -"]


def test_a_sentence_stands_beside_or_below() -> None:
    table = [["NAME", "MESSAGE"], ["a", "one two three four five six seven"]]
    assert columns(table, 32) == ["NAME  MESSAGE", "a     one two three four five", "      six seven"]
    assert columns(table, 24) == ["NAME  MESSAGE", "a", "    one two three four", "    five six seven"]
