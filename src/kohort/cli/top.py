"""`kohort top`: racks, gangs and the queue on the whole screen."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kohort.cli.common import UsageError, choice, friendly, out, say, write
from kohort.cli.explainprint import age
from kohort.cli.get import chosen, plain
from kohort.cli.keys import Reader
from kohort.cli.lines import columns
from kohort.cli.targets import Question, connected, print_data
from kohort.kube.client import Client
from kohort.web.follower import ClusterFollower
from kohort.web.view import TICK, View

_BAR: Final = 20
_FEW: Final = 10  # lines of each part, on a screen of 40
_ALL: Final = 1_000_000
_FORMS: Final = ("text", "wide", "json", "yaml")
_FRAME: Final = 12  # lines that are always there: the first, titles and the lines above them, what is not shown, keys
Row = dict[str, Any]
Shown = TypeVar("Shown")


@friendly
def top(question: Question, kubeconfig: str, context: str, output: str, *, once: bool, watch: bool = False) -> int:
    if output == "name":
        raise UsageError(f"-o name: top shows a cluster; kohort get -o name lists names; accepted are {_accepted()}")
    choice("-o", output, _FORMS)
    question.check()
    if once and watch:
        raise UsageError("--once and -w: once, or whenever it has changed; leave out one of the two")

    async def work(client: Client) -> int:
        async with ClusterFollower(client) as follower:
            view = View(follower)
            await view.refresh()
            if not once and output == "text" and out.is_terminal:
                reader = Reader()
                with reader.at_keyboard():
                    await _until_stopped(view, reader, _screen(view, question, reader))
            elif watch:
                await _until_stopped(view, Reader(), _again(view, question, output))
            else:
                show(await picture(view, question), view, output)
            for problem in follower.unread:
                say("warning", f"not looked at: {problem}")
            return 0

    return connected(kubeconfig, context, "kohort-top", work)


def _accepted() -> str:
    return ", ".join(_FORMS)


async def _until_stopped(view: View, reader: Reader, draw: AsyncGenerator[None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, reader.stop)
    async with contextlib.aclosing(draw):
        await anext(draw)
        async for by_time in reader.turns(view.clock, 2 * TICK):
            if by_time:
                await view.refresh()
            await anext(draw)


async def _screen(view: View, question: Question, reader: Reader) -> AsyncGenerator[None]:
    """In place, on the whole terminal."""
    with Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            found = await picture(view, question)
            room = fitting(found, out.height)
            reader.down = min(reader.down, _furthest(found, room))
            live.update(Lines(screen(found, view, room, down=reader.down), _keys(found, room)), refresh=True)
            yield


async def _again(view: View, question: Question, output: str) -> AsyncGenerator[None]:
    """One below the other, whenever it has become another one."""
    before: Picture | None = None
    while True:
        found = await picture(view, question)
        if found != before:
            if before is not None and output != "json":
                write("---\n")
            show(found, view, output)
            sys.stdout.flush()
        before = found
        yield


# ---- what is shown


@dataclass(frozen=True, slots=True)
class Picture:
    """`racks`: (name, used, there), the fullest last: what is free is what people look for."""

    device: str  # what is counted; empty: cpu
    nodes: int
    away: int
    used: int
    there: int
    level: str  # label key of the racks
    racks: list[tuple[str, int, int]]
    running: list[Row]
    waiting: list[Row]


async def picture(view: View, question: Question) -> Picture:
    """Racks of the whole cluster; of gangs those that were asked for, of all namespaces if none was named."""
    rows = [dict(one) for one in await chosen(view, question, namespace=question.namespace)]
    have = [row for row in view.nodes.values() if row[2] or not view.layout.device]
    level, racks = _racks(view)
    return Picture(
        device=view.layout.device,
        nodes=len(view.nodes),
        away=sum(bool(row[7] & 3) for row in view.nodes.values()),
        used=sum(row[4] for row in have),
        there=sum(row[3] for row in have),
        level=level,
        racks=racks,
        running=sorted((one for one in rows if one["placed"]), key=lambda one: (-one["placed"], one["id"])),
        waiting=sorted(
            (one for one in rows if one["pending"]), key=lambda one: (-one["priority"], one["since"], one["id"])
        ),
    )


def _racks(view: View) -> tuple[str, list[tuple[str, int, int]]]:
    if not view.layout.levels:
        return "", []
    place = next((number for number, key in enumerate(view.layout.levels) if key.lower().endswith("rack")), -1)
    found: dict[str, list[int]] = {}
    for row in view.nodes.values():
        if row[1][place] and (row[2] or not view.layout.device):
            sums = found.setdefault(row[1][place], [0, 0])
            sums[0] += row[4]
            sums[1] += row[3]
    racks = [(name, used, there) for name, (used, there) in found.items()]
    return view.layout.levels[place], sorted(racks, key=lambda one: (one[1] / max(1, one[2]), one[0]))


@dataclass(frozen=True, slots=True)
class Room:
    """How many racks, gangs that run and gangs that wait are shown."""

    racks: int
    running: int
    waiting: int


def fitting(found: Picture, height: int) -> Room:
    """As many as a terminal has lines for: what one part does not need, others have. One that waits takes two."""
    wanted = {"racks": len(found.racks), "running": len(found.running), "waiting": 2 * len(found.waiting)}
    left, shares = max(height - _FRAME, 6), dict[str, int]()
    for others, part in zip((2, 1, 0), sorted(wanted, key=wanted.__getitem__), strict=True):
        shares[part] = min(wanted[part], left // (others + 1))
        left -= shares[part]
    return Room(shares["racks"], shares["running"], shares["waiting"] // 2)


def _furthest(found: Picture, room: Room) -> int:
    """How far down there is more to see."""
    return max(len(found.racks) - room.racks, len(found.running) - room.running, len(found.waiting) - room.waiting, 0)


# ---- printing


def show(found: Picture, view: View, output: str) -> None:
    if output in {"json", "yaml"}:
        print_data(output, _data(found))
    else:
        wide = output == "wide"
        room = Room(_ALL, _ALL, _ALL) if wide else Room(_FEW, _FEW, _FEW // 2)
        out.to(wide=wide).print(screen(found, view, room, wide=wide), soft_wrap=False)


def _data(found: Picture) -> dict[str, Any]:
    counted = {"resource": found.device or "cpu", "used": found.used, "capacity": found.there}
    racks = [{"name": name, "used": used, "capacity": there} for name, used, there in found.racks]
    return {
        "nodes": found.nodes,
        "nodesAway": found.away,
        **counted,
        "level": found.level,
        "domains": racks,
        "running": [plain(one) for one in found.running],
        "queue": [plain(one) for one in found.waiting],
    }


def screen(found: Picture, view: View, room: Room, *, down: int = 0, wide: bool = False) -> RenderableType:
    """All of it, as many lines of each part as there is room for. `down`: so many lines further down, if there are."""
    parts: list[RenderableType] = [_head(found), *_bars(found, room.racks, down)]
    running, more = _part(found.running, room.running, down)
    parts += [Text("\nRUNNING", "bold"), *_lines([_running(one) for one in running]), *more]
    waiting, more = _part(found.waiting, room.waiting, down)
    parts += [Text("\nQUEUE", "bold"), *(list(_waiting(waiting, view, wide=wide)) or _lines([])), *more]
    return Lines(*parts)


def _part(rows: Sequence[Shown], few: int, down: int) -> tuple[Sequence[Shown], list[RenderableType]]:
    """What is shown of a part, and how much is not."""
    first = min(down, max(len(rows) - few, 0))
    above, below = first, len(rows) - first - few
    said = f"and {below} more" + (f", {above} above" if above else "")
    if below <= 0:
        said = f"{above} above"
    return rows[first : first + few], [Text(said, "dim")] if above or below > 0 else []


def _keys(found: Picture, room: Room) -> Text:
    scroll = "↑ ↓ PgUp PgDn: further   " if _furthest(found, room) else ""
    return Text(f"\n{scroll}q: quit", "dim")


def _head(found: Picture) -> Text:
    counted = f"{found.used:,} of {found.there:,} {found.device}"
    share = counted if found.device else f"cpu {_percent(found.used, found.there)} %"
    gone = f", {found.away} away" if found.away else ""
    numbers = f"{len(found.running):,} running   {len(found.waiting):,} waiting"
    return Text(f"{found.nodes:,} nodes{gone}   {share}   {numbers}", "bold")


def _bars(found: Picture, few: int, down: int) -> Iterator[RenderableType]:
    if not found.level:
        return
    table = Table.grid(padding=(0, 2))
    racks, more = _part(found.racks, few, down)
    for name, used, there in racks:
        filled = round(_BAR * used / there) if there else 0
        bar = Text("█" * filled + "░" * (_BAR - filled), "cyan")
        table.add_row(name, bar, f"{_percent(used, there)} %")
    yield Text(f"\n{found.level.rpartition('/')[2].upper()}", "bold")
    yield table
    yield from more


def _percent(used: int, there: int) -> int:
    return round(100 * used / there) if there else 0


def _running(one: Row) -> list[str]:
    part = f"{one['placed']} of {one['placed'] + one['pending']}" if one["pending"] else str(one["placed"])
    return [f"{one['top'][0]} {one['top'][1]}", one["ns"], f"{part} pods", f"{one['nodes']} nodes"]


def _waiting(rows: Sequence[Row], view: View, *, wide: bool) -> Iterator[Text]:
    """Two lines each: who, since when and why; and the reason in words, as much of it as fits."""
    now = view.clock.now()
    cells = [[f"{one['top'][0]} {one['top'][1]}", one["ns"], age(one["since"], now), one["reason"]] for one in rows]
    for one, line in zip(rows, _lines(cells) if rows else (), strict=True):
        yield line
        yield Text(f"  {one['message']}", "dim", no_wrap=True, overflow="ignore" if wide else "ellipsis")


def _lines(cells: list[list[str]]) -> list[Text]:
    if not cells:
        return [Text("nothing", "dim")]
    return [Text(line, no_wrap=True, overflow="ellipsis") for line in columns(cells)]
