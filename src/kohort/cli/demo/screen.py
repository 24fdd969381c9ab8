"""How the demo looks: a live picture in a terminal, lines in a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kohort.cli.common import count
from kohort.cli.demo.watching import Pod, Tale, spread

_STYLES: Final = {"·": "dim", "◐": "yellow", "●": "bold green", "✔": "green"}
LEGEND: Final = "· waits   ◐ bound   ● runs   ✔ done"


class Screen:
    """`live`: a picture that is drawn anew; without a word, where there is a terminal."""

    def __init__(self, console: Console, *, live: bool | None = None) -> None:
        self.console = console
        self._drawn = console.is_terminal if live is None else live
        self.tales: list[Tale] = []
        self._live: Live | None = None
        self._said: set[str] = set()

    @contextmanager
    def showing(self) -> Iterator[None]:
        """In a terminal, a picture that is drawn anew; elsewhere nothing, and the lines tell it all."""
        if not self._drawn:
            yield
            return
        with Live(get_renderable=self._picture, console=self.console, refresh_per_second=12) as live:
            self._live = live
            yield
            self._live = None

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style))

    def once(self, tale: Tale, key: str, text: str, style: str = "") -> None:
        """A line about a story, the first time that it is true."""
        if f"{tale.story.name} {key}" not in self._said:
            self._said.add(f"{tale.story.name} {key}")
            line = Text.assemble(f"{tale.since():5.1f} s  ", (f"{tale.story.name:<10}", "bold"), (text, style))
            self.console.print(line)

    def look(self) -> None:
        """Tell what is new."""
        for tale in self.tales:
            for name, pods in tale.gangs().items():
                self._gang(tale, name, pods)
            if tale.over is not None:
                end = tale.story.end[2] if tale.story.end else "all run"
                self.once(tale, "over", f"{end}", "green")
            if not tale.story.fits and tale.told:
                self.once(tale, "why", f"0 of {tale.story.pods} pods bound; it waits: {tale.why}", "yellow")

    def _gang(self, tale: Tale, name: str, pods: list[Pod]) -> None:
        wanted = tale.minimum(name)
        if not name or wanted is None or len(pods) < wanted:
            return
        self.once(tale, f"made {name}", f"group {name}: {count(len(pods), 'pod')} made")
        if all(pod.bound is not None for pod in pods):
            nodes = count(len({pod.node for pod in pods}), "node")
            which = "all" if wanted == len(pods) else f"minimum of {wanted}"
            within = _short(spread(pods, wanted))
            self.once(
                tale,
                f"bound {name}",
                f"group {name}: {which} bound within {within}, {count(len(pods), 'pod')} to {nodes}",
            )
        if all(pod.running is not None for pod in pods):
            self.once(tale, f"runs {name}", f"group {name}: all {len(pods)} run")

    # ---- the picture

    def _picture(self) -> Group:
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for tale in self.tales:
            for number, (name, pods) in enumerate(tale.gangs().items() or [("", [])]):
                title = Text(tale.story.name, "bold") if not number else ""
                table.add_row(title, Text(name, "cyan"), _marks(pods), _state(tale, pods))
        return Group(table, Text(LEGEND, "dim"))

    # ---- the end

    def summary(self, seconds: float) -> bool:
        """True if every promise was kept."""
        table = Table(title="", title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="dim")
        for head, side in (("story", "left"), ("pods", "right"), ("groups", "right"), ("bound within", "right")):
            table.add_column(head, justify=side)  # type: ignore[arg-type]
        for head in ("over after", "promise"):
            table.add_column(head, justify="right" if head == "over after" else "left")
        faults: list[str] = []
        for tale in self.tales:
            broken = list(tale.broken())
            faults += [f"{tale.story.name}: {fault}" for fault in broken]
            spreads = [
                spread(pods, tale.minimum(name)) for name, pods in tale.gangs().items() if not tale.is_basic(name)
            ]
            kept = "started together" if tale.story.fits else "nothing bound, said why"
            table.add_row(
                Text(tale.story.name, "bold"),
                str(len(tale.pods)),
                str(len(tale.groups)),
                _short(max(spreads, default=0.0)) if tale.story.fits else "–",
                f"{tale.over:.1f} s" if tale.over is not None else "–",
                Text("BROKEN", "bold red") if broken else Text(f"kept: {kept}", "green"),
            )
        self.console.print(table)
        for fault in faults:
            self.console.print(Text(f"broken: {fault}", "bold red"))
        words = f"{len(faults)} promises broken" if faults else "every promise kept"
        self.console.print(Text(f"{words}, after {seconds:.1f} s", "bold red" if faults else "bold green"))
        return not faults


def _short(seconds: float) -> str:
    """A watch tells of several bindings at once: less than a millisecond cannot be seen."""
    return f"{max(1, round(seconds * 1e3))} ms"


def _marks(pods: list[Pod]) -> Text:
    text = Text()
    for mark, same in groupby(pod.mark for pod in pods):
        text.append("".join(same), _STYLES[mark])
    return text


def _state(tale: Tale, pods: list[Pod]) -> Text:
    if not tale.story.fits:
        return Text(tale.why, "yellow", overflow="ellipsis", no_wrap=True)
    if tale.over is not None:
        return Text(f"over after {tale.over:.1f} s", "green")
    running = sum(pod.running is not None and pod.ended is None for pod in pods)
    return Text(f"{running} of {len(pods)} run" if pods else "", "dim")


class Stopwatch:
    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began
