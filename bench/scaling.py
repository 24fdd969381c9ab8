"""What a placement decision costs, against nodes, running pods, the size of a gang and the depth of a tree.

    python -m bench.scaling                                   # a table
    python -m bench.scaling --svg docs/images/scaling.svg     # and the picture of docs/performance.md

Processor time of one decision, the least of five that follow one another, each bound before the next is asked: what is
known of nodes is kept, and what has changed on them is looked at anew, as in a running scheduler.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from html import escape
from pathlib import Path

from bench.place_cases import HOST, NODE, RACK, SMALL, ZONE, cluster, fill, gang, seat, spent
from kohort.place.demand import Branch, Demand, Leaf
from kohort.place.engine import Engine
from kohort.place.search import Search
from kohort.place.state import ClusterState

NODES = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
RUNNING = (0, 5_000, 20_000, 50_000, 100_000, 200_000)
SIZES = (1, 3, 10, 30, 100, 300, 1_000, 3_000)
DEPTHS = (1, 2, 3, 4)
BLOCK = "block"
_TIMES = 5
_GANG = 100
_TREE = 1_024  # pods
_NODES_IN_RACK = 16
_LITTLE = {"cpu": 10, "memory": 1 << 20}  # asked by each of many running pods


@dataclass(frozen=True, slots=True)
class Curve:
    """`points`: size and milliseconds."""

    name: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    curves: tuple[Curve, ...]
    linear: bool = False  # across; else each step is ten times the one before


def decision(engine: Engine, make: Callable[[str], Demand]) -> float:
    """Milliseconds of one of some that come one after the other, each bound before the next."""
    return round(min(_placed(engine, make(f"g{number}")) for number in range(-1, _TIMES)) * 1e3, 3)


def _placed(engine: Engine, demand: Demand) -> float:
    found = {}

    def work() -> None:
        mark = engine.mark()
        found.update(Search(engine).place(demand).placed)
        engine.undo(mark)

    seconds = spent(work)
    for leaf in _leaves(demand):
        for pod in leaf.pods:
            seat(engine.state, pod, leaf.name, engine.state.node(found[pod.key]).name)
    return seconds


def _leaves(demand: Demand) -> Iterator[Leaf]:
    if isinstance(demand, Branch):
        for child in demand.children:
            yield from _leaves(child)
    elif isinstance(demand, Leaf):
        yield demand


def _curves(engine: Callable[[int], Engine], sizes: Sequence[int], size: Callable[[int], int]) -> tuple[Curve, ...]:
    """Of gangs: `size` of one at each point."""
    found = []
    for name, key in (("anywhere", None), ("in one rack", RACK)):
        points = []
        for at in sizes:
            here = engine(at)
            points.append((at, decision(here, lambda one: gang(here, one, size(at), key))))  # noqa: B023 - called at once
        found.append(Curve(name, tuple(points)))
    return tuple(found)


def by_nodes(sizes: Sequence[int] = NODES) -> Panel:
    curves = _curves(lambda nodes: cluster(nodes, max(1, nodes // _NODES_IN_RACK)), sizes, lambda _: _GANG)
    return Panel(f"nodes (gang of {_GANG}, racks of {_NODES_IN_RACK} nodes)", curves)


def by_running(sizes: Sequence[int] = RUNNING, nodes: int = 5_000) -> Panel:
    def filled(running: int) -> Engine:
        engine = cluster(nodes, max(1, nodes // _NODES_IN_RACK))
        if running:
            fill(engine, running // nodes, _LITTLE)
        return engine

    curves = _curves(filled, sizes, lambda _: _GANG)
    return Panel(f"running pods ({nodes:,} nodes, gang of {_GANG})", curves, linear=True)


def by_size(sizes: Sequence[int] = SIZES, nodes: int = 5_000) -> Panel:
    """The largest fits in one rack."""
    curves = _curves(lambda _: cluster(nodes, max(1, nodes // 100)), sizes, lambda size: size)
    return Panel(f"pods of the gang ({nodes:,} nodes in racks of 100)", curves)


def by_depth(depths: Sequence[int] = DEPTHS) -> Panel:
    curves = []
    for name, constrained in (("groups anywhere", False), ("each level in a domain", True)):
        points = []
        for depth in depths:
            engine = levelled()
            make = partial(deep, engine, depth, constrained=constrained)
            points.append((depth, decision(engine, lambda one: make(name=one))))  # noqa: B023 - called at once
        curves.append(Curve(name, tuple(points)))
    return Panel(f"levels of a tree of {_TREE:,} pods (4,096 nodes)", tuple(curves), linear=True)


def levelled() -> Engine:
    """4 zones of 8 blocks of 8 racks of 16 nodes."""
    state = ClusterState()
    for number in range(4_096):
        rack, block, zone = number // 16, number // 128, number // 1_024
        labels = {HOST: f"n{number}", RACK: f"r{rack}", BLOCK: f"b{block}", ZONE: f"z{zone}"}
        state.put_node(f"n{number}", NODE, labels)
    return Engine(state)


def deep(engine: Engine, depth: int, *, constrained: bool, name: str) -> Demand:
    """Four children in each group: a zone, blocks of it, racks of those; at the fourth level a leaf is 16 pods."""
    keys = (ZONE, BLOCK, RACK, HOST)
    asks = {"cpu": 250, "memory": 1 << 30} if constrained else SMALL

    def below(group: str, level: int) -> Demand:
        key = keys[level] if constrained else None
        if level == depth - 1:
            return gang(engine, group, _TREE // 4**level, key, asks)
        return Branch(group, [below(f"{group}-{number}", level + 1) for number in range(4)], 4, key)

    return below(name, 0)


PANELS: dict[str, Callable[[], Panel]] = {
    "nodes": by_nodes,
    "running": by_running,
    "size": by_size,
    "depth": by_depth,
}


# ---- the picture

_WIDE, _HIGH = 430, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 44, 40
_APART = 26  # of two numbers at the axis
_COLOURS = ("#2f6fb5", "#c2571a")


def picture(panels: Sequence[Panel]) -> str:
    """Two panels in a row; milliseconds upwards, each line ten times the one below."""
    rows = math.ceil(len(panels) / 2)
    width, height = 2 * _WIDE, rows * _HIGH
    title = "Processor time of a placement decision against nodes, running pods, gang size and depth of a tree"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}" '
    parts = [
        head + 'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        parts.append(f'<g transform="translate({number % 2 * _WIDE} {number // 2 * _HIGH})">')
        parts += _panel(panel)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel) -> Iterator[str]:
    sizes = sorted({size for curve in panel.curves for size, _ in curve.points})
    times = [value for curve in panel.curves for _, value in curve.points]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    high = max(high, low + 1)

    def across(size: int) -> float:
        first, last = (sizes[0], sizes[-1]) if panel.linear else (math.log10(sizes[0]), math.log10(sizes[-1]))
        at = size if panel.linear else math.log10(size)
        return _LEFT + (_WIDE - _LEFT - _RIGHT) * (at - first) / (last - first)

    def up(value: float) -> float:
        return _HIGH - _BOTTOM - (_HIGH - _TOP - _BOTTOM) * (math.log10(value) - low) / (high - low)

    yield f'<text x="{_LEFT}" y="18" font-weight="bold">{escape(panel.title)}</text>'
    for number, curve in enumerate(panel.curves):
        yield f'<text x="{_LEFT + 150 * number}" y="35" fill="{_COLOURS[number]}">{escape(curve.name)}</text>'
    for power in range(low, high + 1):
        y = up(10.0**power)
        yield f'<path d="M{_LEFT} {y:.1f}H{_WIDE - _RIGHT}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#444">{10.0**power:g} ms</text>'
    said = -math.inf
    for size in sizes:
        if across(size) - said < _APART:
            continue
        said = across(size)
        yield (
            f'<text x="{across(size):.1f}" y="{_HIGH - _BOTTOM + 18}" text-anchor="middle" fill="#444">'
            f"{_short(size)}</text>"
        )
    for number, curve in enumerate(panel.curves):
        points = [(across(size), up(value)) for size, value in curve.points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline points="{line}" fill="none" stroke="{_COLOURS[number]}" stroke-width="2"/>'
        for (x, y), (size, value) in zip(points, curve.points, strict=True):
            says = f"{curve.name}, {size:,}: {value:.2f} ms"
            dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_COLOURS[number]}">'
            yield f"{dot}<title>{escape(says)}</title></circle>"


def _short(size: int) -> str:
    return f"{size // 1_000}k" if size >= 1_000 and size % 1_000 == 0 else f"{size}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", choices=tuple(PANELS), help="one of the panels")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw it")
    parser.add_argument("--json", action="store_true", help="for machines")
    args = parser.parse_args()
    panels = [PANELS[name]() for name in ([args.only] if args.only else PANELS)]
    if args.svg:
        args.svg.write_text(picture(panels))
    if args.json:
        print(json.dumps([asdict(one) for one in panels], indent=1))
        return 0
    for panel in panels:
        print(panel.title)
        for curve in panel.curves:
            print(f"  {curve.name:<24}" + "".join(f"{_short(size):>6} {value:8.2f} ms" for size, value in curve.points))
    return 0


if __name__ == "__main__":
    sys.exit(main())
