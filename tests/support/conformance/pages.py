"""The result of a run for people: a table in the terminal, and a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.support.conformance.lines import SETS, Line
from tests.support.conformance.suite import Result

PAGE: Final = Path("docs/conformance.md")
_BEGIN: Final = "<!-- written by make conformance -->"


def table(results: Mapping[Line, Result]) -> Iterator[str]:
    """What failed comes last, where it is seen."""
    for line, result in sorted(results.items(), key=lambda one: (not one[1].passed, one[0].set, one[0].name)):
        yield f"{result.state:>9} {result.seconds:6.1f} s  {line.name}"
        if not result.passed and result.message:
            yield f"{'':21}{first_line(result.message)}"


def first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next(iter(lines), "")[:400]


def summary(results: Mapping[Line, Result], seconds: float) -> str:
    counts = []
    for name in SETS:
        of = [result for line, result in results.items() if line.set == name]
        if of:
            counts.append(f"{name}: {sum(result.passed for result in of)} of {len(of)} pass")
    return f"{', '.join(counts)}; {seconds:.0f} s"


def write(results: Mapping[Line, Result], seconds: float, page: Path = PAGE) -> None:
    """Put the table into the page, below what people wrote."""
    above = page.read_text().partition(_BEGIN)[0]
    rows = [f"{_BEGIN}\n\nLast run: {summary(results, seconds)}.\n"]
    for name in SETS:
        of = {line: result for line, result in results.items() if line.set == name}
        if of:
            rows += [f"## {name.capitalize()}\n", "| test | | seconds |", "|---|---|---|"]
            rows += [f"| {_cell(line.name)} | {_state(result)} | {result.seconds:.0f} |" for line, result in of.items()]
            rows.append("")
    page.write_text(above + "\n".join(rows).rstrip() + "\n")


def _state(result: Result) -> str:
    return "passes" if result.passed else result.state


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
