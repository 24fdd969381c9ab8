"""Draws docs/images/ranks.svg from a real placement: what `kohort plan` answers for ten ranks on three racks.

python -m hack.topology_picture
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from kohort.cli.main import app

ROOT: Final = Path(__file__).parent.parent
FILE: Final = ROOT / "docs" / "images" / "ranks.svg"
_STEP, _MARGIN, _TOP = 46, 22, 70
_STYLE: Final = """<style>
text { font: 13px sans-serif; text-anchor: middle; fill: #1f2933 } .rack { fill: #eef2f7; stroke: #9aa5b1 }
.rank { fill: #2f6fde } .number { fill: #fff } path { fill: none; stroke: #7b8794; stroke-width: 1.5 }
.crosses { stroke: #d64545; stroke-width: 2.5 }
</style>"""


def placement() -> dict[str, list[int]]:
    """Rack -> ranks, in order."""
    words = ["plan", "-f", str(ROOT / "examples" / "job-ranks.yaml"), "-o", "json"]
    done = CliRunner().invoke(app, [*words, "--cluster", str(ROOT / "examples" / "clusters" / "three-racks.yaml")])
    (place,) = json.loads(done.output)["workloads"][0]["roots"][0]["places"]
    return {rack: list(_ranks(text)) for rack, text in place["standing"]["ranks"].items()}


def _ranks(text: str) -> Iterator[int]:
    for part in text.split(", "):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def drawn(racks: dict[str, list[int]]) -> str:
    where: dict[int, tuple[int, str]] = {}
    parts, left = [], _MARGIN
    for rack, ranks in racks.items():
        width = _STEP * len(ranks)
        parts.append(f'<rect class="rack" x="{left}" y="{_TOP - 30}" width="{width}" height="60" rx="8"/>')
        parts.append(f'<text x="{left + width // 2}" y="{_TOP + 50}">{rack}</text>')
        for number, rank in enumerate(ranks):
            where[rank] = (left + _STEP * number + _STEP // 2, rack)
        left += width + _MARGIN
    for one, other in pairwise(sorted(where)):
        (x, rack), (to, next_rack) = where[one], where[other]
        look = ' class="crosses"' if rack != next_rack else ""
        parts.append(f'<path{look} d="M{x} {_TOP - 14} Q{(x + to) // 2} {_TOP - 56} {to} {_TOP - 14}"/>')
    for rank, (x, _) in sorted(where.items()):
        parts.append(f'<circle class="rank" cx="{x}" cy="{_TOP}" r="15"/>')
        parts.append(f'<text class="number" x="{x}" y="{_TOP + 5}">{rank}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{_TOP + 66}" role="img">'
    title = "<title>Ranks in their racks; neighbours in different racks are joined in red</title>"
    return "\n".join([head, title, _STYLE, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    FILE.write_text(drawn(placement()))
