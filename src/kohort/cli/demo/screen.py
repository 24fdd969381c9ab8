"""How the demo looks: a live picture in a terminal, lines in a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Act:
    """What a scene of several steps came to: a row of the table at the end."""

    name: str
    kept: str  # what was promised
    pods: int
    groups: int
    over: float = 0.0
    faults: list[str] = field(default_factory=list)


class Screen:
    """`live`: a picture that is drawn anew; without a word, where there is a terminal."""

    def __init__(self, console: Console, *, live: bool | None = None) -> None:
        self.console = console
        self._drawn = console.is_terminal if live is None else live
        self.tales: list[Tale] = []
        self.acts: list[Act] = []
        self._live: Live | None = None
        self._said: set[str] = set()

    @contextmanager
    def showing(self, tales: Sequence[Tale]) -> Iterator[None]:
        """In a terminal, a picture that is drawn anew; elsewhere nothing, and the lines tell it all."""
        if not self._drawn:
            yield
            return
        with Live(get_renderable=lambda: self._picture(tales), console=self.console, refresh_per_second=12) as live:
            self._live = live
            yield
            self._live = None

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style))

    def heading(self, text: str) -> None:
        self.console.print(Text(f"\n{text}", "bold underline"))

    def line(self, seconds: float, name: str, text: str, style: str = "") -> None:
        self.console.print(Text.assemble(f"{seconds:5.1f} s  ", (f"{name:<9} ", "bold"), (text, style)))

    def once(self, tale: Tale, key: str, text: str, style: str = "") -> None:
        """A line about a story, the first time that it is true."""
        if f"{tale.story.name} {key}" not in self._said:
            self._said.add(f"{tale.story.name} {key}")
            self.line(tale.since(), tale.story.name, text, style)

    def look(self) -> None:
        """Tell what is new."""
        for tale in self.tales:
            self._told(tale)
            if tale.over is not None:
                self.once(tale, "over", tale.story.end[2] if tale.story.end else "all of it serves", "green")
            if not tale.story.fits and tale.told:
                self.once(tale, "why", f"waits: 0 of {tale.story.pods} pods bound, as not all of them fit", "yellow")

    def _told(self, tale: Tale) -> None:
        pods, gangs = list(tale.pods.values()), [name for name in tale.gangs() if tale.minimum(name)]
        if len(pods) < tale.story.pods or not gangs:
            return
        self.once(tale, "made", f"{count(len(pods), 'pod')} made, in {count(len(gangs), 'gang')}")
        if all(pod.bound is not None for pod in pods):
            nodes = count(len({pod.node for pod in pods}), "node")
            within = _short(max(spread(tale.gangs()[name], tale.minimum(name)) for name in gangs))
            whole = "all of it" if len(gangs) == 1 else "each gang"
            self.once(tale, "bound", f"{whole} bound within {within}, {count(len(pods), 'pod')} to {nodes}")
        if all(pod.running is not None for pod in pods):
            self.once(tale, "runs", f"all {len(pods)} run")

    # ---- the picture

    def _picture(self, tales: Sequence[Tale]) -> Group:
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for tale in tales:
            for number, pods in enumerate(tale.gangs().values() or [[]]):
                title = Text(tale.story.name, "bold") if not number else ""
                table.add_row(title, _marks(pods), _state(tale, pods))
        return Group(table, Text(LEGEND, "dim"))

    # ---- the end

    def summary(self, seconds: float) -> bool:
        """True if every promise was kept."""
        table = Table(title="", title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="dim")
        for head, side in (("story", "left"), ("pods", "right"), ("groups", "right"), ("bound in", "right")):
            table.add_column(head, justify=side)  # type: ignore[arg-type]
        for head in ("over", "promise"):
            table.add_column(head, justify="right" if head == "over" else "left")
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
        for act in self.acts:
            faults += [f"{act.name}: {fault}" for fault in act.faults]
            promise = Text("BROKEN", "bold red") if act.faults else Text(f"kept: {act.kept}", "green")
            over = f"{act.over:.1f} s"
            table.add_row(Text(act.name, "bold"), str(act.pods), str(act.groups), "–", over, promise)
        self.console.print(table)
        for fault in faults:
            self.console.print(Text(f"broken: {fault}", "bold red"))
        words = f"{count(len(faults), 'promise')} broken" if faults else "every promise kept"
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
