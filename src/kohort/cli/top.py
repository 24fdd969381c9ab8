"""`kohort top`: racks, gangs and the queue on the whole screen."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from typing import Any, Final

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kohort.cli.common import friendly, out
from kohort.cli.explainprint import age
from kohort.cli.get import columns
from kohort.cli.targets import connected
from kohort.kube.client import Client
from kohort.web.follower import ClusterFollower
from kohort.web.view import TICK, View

_BAR: Final = 20
_WIDTH: Final = 80  # in a pipe
_FEW: Final = 10  # lines of each part, on a screen of 40


@friendly
def top(namespace: str, kubeconfig: str, context: str, *, once: bool) -> int:
    async def work(client: Client) -> int:
        async with ClusterFollower(client) as follower:
            view = View(follower)
            await view.refresh()
            if once or not out.is_terminal:
                out.print(screen(view, namespace, _FEW), width=out.width if out.is_terminal else _WIDTH)
                return 0
            await _live(view, namespace)
            return 0

    return connected(kubeconfig, context, "kohort-top", work)


async def _live(view: View, namespace: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with Live(console=out, screen=True, auto_refresh=False) as live:
        while not stop.is_set():
            await view.refresh()
            live.update(screen(view, namespace, max(3, (out.height - 8) // 3)), refresh=True)
            await view.clock.sleep(2 * TICK)


def screen(view: View, namespace: str, few: int) -> RenderableType:
    """All of it, as many lines of each part as fit."""
    rows = [one.data for one in view.rows.values() if not one.gone and namespace in {"", one.namespace}]
    running = sorted((one for one in rows if one["placed"]), key=lambda one: (-one["placed"], one["id"]))
    waiting = sorted(
        (one for one in rows if one["pending"]), key=lambda one: (-one["priority"], one["since"], one["id"])
    )
    parts: list[RenderableType] = [_head(view, len(running), len(waiting)), *_racks(view, few)]
    parts += [Text("\nRUNNING", "bold"), *_lines([_running(one) for one in running[:few]]), *_more(len(running) - few)]
    queue = list(_waiting(waiting[: few // 2], view)) or _lines([])
    parts += [Text("\nQUEUE", "bold"), *queue, *_more(len(waiting) - few // 2)]
    return Lines(*parts)


def _head(view: View, running: int, waiting: int) -> Text:
    have = [row for row in view.nodes.values() if row[2] or not view.layout.device]
    used, there = sum(row[4] for row in have), sum(row[3] for row in have)
    away = sum(bool(row[7] & 3) for row in view.nodes.values())
    share = f"{used:,} of {there:,} {view.layout.device}" if view.layout.device else f"cpu {_percent(used, there)} %"
    gone = f", {away} away" if away else ""
    return Text(f"{len(view.nodes):,} nodes{gone}   {share}   {running:,} running   {waiting:,} waiting", "bold")


def _racks(view: View, few: int) -> Iterator[RenderableType]:
    """The fullest last: what is free is what people look for."""
    if not view.layout.levels:
        return
    place = next((number for number, key in enumerate(view.layout.levels) if key.lower().endswith("rack")), -1)
    found: dict[str, list[int]] = {}
    for row in view.nodes.values():
        if row[1][place] and (row[2] or not view.layout.device):
            sums = found.setdefault(row[1][place], [0, 0])
            sums[0] += row[4]
            sums[1] += row[3]
    table = Table.grid(padding=(0, 2))
    domains = sorted(found.items(), key=lambda one: (one[1][0] / max(1, one[1][1]), one[0]))
    for name, (used, there) in domains[:few]:
        filled = round(_BAR * used / there) if there else 0
        table.add_row(name, Text("█" * filled + "░" * (_BAR - filled), "cyan"), f"{_percent(used, there)} %")
    yield Text(f"\n{view.layout.levels[place].rpartition('/')[2].upper()}", "bold")
    yield table
    yield from _more(len(domains) - few)


def _percent(used: int, there: int) -> int:
    return round(100 * used / there) if there else 0


def _running(one: dict[str, Any]) -> list[str]:
    part = f"{one['placed']} of {one['placed'] + one['pending']}" if one["pending"] else str(one["placed"])
    return [f"{one['top'][0]} {one['top'][1]}", one["ns"], f"{part} pods", f"{one['nodes']} nodes"]


def _waiting(rows: list[dict[str, Any]], view: View) -> Iterator[Text]:
    """Two lines each: who, since when and why; and the reason in words, as much of it as fits."""
    now = view.clock.now()
    cells = [[f"{one['top'][0]} {one['top'][1]}", one["ns"], age(one["since"], now), one["reason"]] for one in rows]
    for one, line in zip(rows, _lines(cells), strict=True):
        yield line
        yield Text(f"  {one['message']}", "dim", no_wrap=True, overflow="ellipsis")


def _lines(cells: list[list[str]]) -> list[Text]:
    if not cells:
        return [Text("nothing", "dim")]
    return [Text(line, no_wrap=True, overflow="ellipsis") for line in columns(cells)]


def _more(number: int) -> list[RenderableType]:
    return [Text(f"and {number} more", "dim")] if number > 0 else []
