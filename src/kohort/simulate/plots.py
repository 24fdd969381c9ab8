"""Plots as SVG, drawn by us: lines over time, and bars. Colours come from the page around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH, HEIGHT = 900, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 12, 30
_POINTS: Final = 900  # of a line: more than that nobody sees
_TICKS: Final = 6
_STEPS: Final = (60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 604800, 2592000)
_LINES: Final = 4  # across, above the lowest


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]
    stepped: bool = True  # a value holds until the next one


def lines(title: str, series: Sequence[Line], unit: str, *, top: float | None = None, times: bool = True) -> str:
    """`times`: across is time in seconds; else waits in seconds, and up is a share."""
    longest = max((one.points[-1][0] for one in series if one.points), default=1.0) or 1.0
    highest = top or _top(max((value for one in series for _, value in one.points), default=1.0), unit)
    parts = [_frame(title, highest, unit)]
    for at in _moments(longest):
        x = _x(at, longest)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 10}" text-anchor="middle">{length(at)}</text>')
    for number, one in enumerate(series):
        parts.append(f'<path class="line s{number}" d="{_path(one, longest, highest)}"/>')
    return _figure(title, parts, [one.name for one in series] if times or len(series) > 1 else [])


def bars(title: str, labels: Sequence[str], series: Sequence[tuple[str, Sequence[float]]], unit: str) -> str:
    """Groups of bars, one for each label."""
    highest = _top(max((value for _, values in series for value in values), default=1.0), unit)
    parts = [_frame(title, highest, unit)]
    room = (WIDTH - _LEFT - _RIGHT) / max(1, len(labels))
    wide = room * 0.8 / max(1, len(series))
    for place, label in enumerate(labels):
        middle = _LEFT + room * (place + 0.5)
        parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(label)}</text>')
        for number, (name, values) in enumerate(series):
            x, y = _LEFT + room * (place + 0.1) + wide * number, _y(values[place], highest)
            says = f"{name} {label}: {values[place]:.0f} {unit}"
            parts.append(
                f'<rect class="bar s{number}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" '
                f'height="{HEIGHT - _BOTTOM - y:.1f}"><title>{escape(says)}</title></rect>'
            )
    return _figure(title, parts, [name for name, _ in series] if len(series) > 1 else [])


def length(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size or seconds == size:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 10 or number == int(number) else f"{number:.1f} {unit}"
    return f"{seconds:.0f} s"


def _figure(title: str, parts: Sequence[str], names: Sequence[str]) -> str:
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    key = "".join(f'<span><i class="s{number}"></i>{escape(name)}</span>' for number, name in enumerate(names))
    return f'<figure><figcaption>{escape(title)}<span class="key">{key}</span></figcaption>{svg}</figure>'


def _frame(title: str, highest: float, unit: str) -> str:
    parts = [f"<title>{escape(title)}</title>"]
    for number in range(_LINES + 1):
        value = highest * number / _LINES
        y = _y(value, highest)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        shown = (
            length(value) if unit == "s" else f"{value:.0f} {unit}".strip() if highest >= 4 else f"{value:.2g} {unit}"
        )
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(shown.strip())}</text>')
    return "".join(parts)


def _top(highest: float, unit: str) -> float:
    """At least so much, and its quarters are numbers that people like: 5, 20, 15 min."""
    least = highest / _LINES
    if unit == "s" and least > 10:
        steps = (15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
        found = next((one for one in steps if one >= least), None)
        return _LINES * float(found if found is not None else 86400 * _round(least / 86400))
    return _LINES * _round(max(least, 1.0))


def _round(least: float) -> float:
    """1, 2 or 5, times a power of ten."""
    size = 10.0 ** math.floor(math.log10(least))
    return next(one * size for one in (1, 2, 5, 10) if one * size >= least)


def _path(one: Line, longest: float, highest: float) -> str:
    found: list[str] = []
    before: float | None = None
    for at, value in _thinned(one.points):
        x, y = _x(at, longest), _y(value, highest)
        if before is not None and one.stepped:
            found.append(f"H{x:.1f}")
        found.append(f"{'L' if found else 'M'}{x:.1f},{y:.1f}")
        before = y
    return "".join(found)


def _thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """The highest and the lowest of each stretch, so that a peak is not lost."""
    if len(points) <= 2 * _POINTS:
        return points
    size = -(-len(points) // _POINTS)
    found: list[tuple[float, float]] = []
    for start in range(0, len(points), size):
        part = points[start : start + size]
        found += sorted({min(part, key=lambda one: one[1]), max(part, key=lambda one: one[1])})
    return [*found, points[-1]]


def _moments(longest: float) -> list[float]:
    step = next((one for one in _STEPS if longest / one <= _TICKS), _STEPS[-1]) if longest > 60 else 10
    return [float(step * number) for number in range(int(longest // step) + 1)][: 4 * _TICKS]


def _x(at: float, longest: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * at / longest


def _y(value: float, highest: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * min(1.0, value / highest)
