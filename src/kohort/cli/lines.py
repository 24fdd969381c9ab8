"""Lines of text and tables that fit the width they are printed in, a terminal's or, in a pipe, 80 columns.

Sentences break between words and go on below where they began; words are never cut, so that names can be copied. Who
wants each thing on one line, however long, asks for `-o wide`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, ConsoleOptions
from rich.text import Text

UNBROKEN: Final = 100_000  # columns
JOINED: Final = "\u00a0"  # a space at which no line breaks; printed as any other
_LEAST: Final = 24  # columns in which a sentence can still be read
_BELOW: Final = 4  # a cell that has no room beside the others stands below them, so far in


class Page(Console):
    """Standard output or error: as wide as COLUMNS says now, else as the terminal is now, else 80."""

    def __init__(self, *, stderr: bool, width: int | None = None) -> None:
        rest = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        super().__init__(highlight=False, soft_wrap=True, stderr=stderr, width=width, _environ=rest)

    def to(self, *, wide: bool) -> Page:
        """The same, or for `wide` one that breaks no line."""
        return Page(stderr=self.stderr, width=UNBROKEN) if wide else self

    @property
    def size(self) -> ConsoleDimensions:
        found, columns = super().size, os.environ.get("COLUMNS", "")
        given = self._width or (int(columns) if columns.isdigit() else 0)
        return ConsoleDimensions(given or found.width, found.height)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._width, self._height = new_size


class Hanging:
    """A line whose continuation stands `hang` columns in."""

    def __init__(self, text: Text | str, hang: int = 2) -> None:
        self.text = Text(text) if isinstance(text, str) else text
        self.hang = hang

    def __str__(self) -> str:
        return self.text.plain.replace(JOINED, " ")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for number, (begin, end) in enumerate(_pieces(self.text.plain, options.max_width, self.hang)):
            piece = self.text[begin:end]
            piece.plain = piece.plain.replace(JOINED, " ")
            yield Text.assemble(" " * self.hang, piece) if number else piece


def _pieces(plain: str, width: int, hang: int) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends; lines that were there stay."""
    begin = 0
    for line in plain.split("\n"):
        yield from _broken(plain, begin, begin + len(line), width, hang)
        begin += len(line) + 1


def _broken(plain: str, begin: int, end: int, width: int, hang: int) -> Iterator[tuple[int, int]]:
    room, first = width, begin
    while cell_len(plain[begin:end]) > room:
        indented = begin + (len(plain[begin:end]) - len(plain[begin:end].lstrip(" ")) if begin == first else 0)
        fits = max(indented + 1, begin + room)
        cut = plain.rfind(" ", indented, fits + 1)
        if cut <= indented or (begin == first and cut < hang):  # only its label would stay
            cut = plain.find(" ", fits, end)
        if cut < 0:
            break
        yield begin, cut
        while cut < end and plain[cut] == " ":
            cut += 1
        begin, room = cut, max(1, width - hang)
    yield begin, end


def columns(table: Sequence[Sequence[str]], width: int = UNBROKEN) -> list[str]:
    """Cells below one another, as kubectl has them; the first row is the head.

    Where the width does not do, they move closer; then what has no room in the last column breaks between words, beside
    the others if there is room for a sentence, else below them.
    """
    sizes = [max(cell_len(row[place]) for row in table) for place in range(len(table[0]))]
    gap = 3 if sum(sizes) + 3 * (len(sizes) - 1) <= width else 2
    before = sum(sizes[:-1]) + gap * (len(sizes) - 1)
    room = width - before
    lines: list[str] = []
    for row in table:
        cells = [cell + " " * (size - cell_len(cell)) for cell, size in zip(row[:-1], sizes[:-1], strict=True)]
        if room >= _LEAST or cell_len(row[-1]) <= room:
            lines += _wrapped((" " * gap).join([*cells, row[-1]]), width, before)
        else:
            lines.append((" " * gap).join(cells).rstrip())
            lines += _wrapped(" " * _BELOW + row[-1], width, _BELOW)
    return lines


def _wrapped(line: str, width: int, hang: int) -> Iterator[str]:
    for number, (begin, end) in enumerate(_pieces(line, width, hang)):
        yield (" " * hang * bool(number) + line[begin:end]).rstrip()
