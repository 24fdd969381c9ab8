"""Draws docs/images/search-ladder.svg: the rungs of the search, what each finds, and what its failure proves.

python -m hack.search_picture
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).parent.parent / "docs" / "images" / "search-ladder.svg"


@dataclass(frozen=True, slots=True)
class Rung:
    """`finds`: whether it may end in a placement; `proves`: whether it may end in a proof that there is none."""

    name: str
    what: str
    finds: bool = True
    proves: bool = False


RUNGS: Final = (
    Rung("greedy", "kube-scheduler's ranking, several orders", proves=True),
    Rung("bounds, sums", "counts and amounts by level and domain", finds=False, proves=True),
    Rung("best fit", "the node that is left with least"),
    Rung("patterns", "fillings of nodes, groups to racks, mixtures"),
    Rung("seats", "pods with rules between them change places"),
    Rung("exact solver, lean", "only what the minimums need"),
    Rung("exact solver, whole", "the tree as whole numbers", proves=True),
)
_WIDE, _HIGH, _STEP, _LEFT = 330, 44, 62, 150
_STYLE: Final = """<style>
text { font: 13px sans-serif; fill: #1f2933 } .name { font-weight: bold } .what { fill: #52606d }
.rung { fill: #eef2f7; stroke: #9aa5b1 } .aside { fill: #e3f0fb; stroke: #2f6fde } .end { text-anchor: middle }
path { fill: none; stroke: #7b8794; stroke-width: 1.5 } .found { stroke: #2f855a } .proof { stroke: #d64545 }
</style>"""


def drawn() -> str:
    height, right = 30 + _STEP * len(RUNGS) + 40, _LEFT + _WIDE
    parts = []
    for number, rung in enumerate(RUNGS):
        top = 30 + _STEP * number
        middle = top + _HIGH // 2
        look = "rung" if number < 3 else "aside"
        parts.append(f'<rect class="{look}" x="{_LEFT}" y="{top}" width="{_WIDE}" height="{_HIGH}" rx="6"/>')
        parts.append(f'<text class="name" x="{_LEFT + 12}" y="{top + 19}">{rung.name}</text>')
        parts.append(f'<text class="what" x="{_LEFT + 12}" y="{top + 36}">{rung.what}</text>')
        parts.append(f'<path d="M{_LEFT + _WIDE // 2} {top + _HIGH} V{top + _STEP}"/>')
        if rung.finds:
            parts.append(f'<path class="found" d="M{right} {middle} H{right + 60}"/>')
        if rung.proves:
            parts.append(f'<path class="proof" d="M{_LEFT} {middle} H{_LEFT - 50}"/>')
    last = 30 + _STEP * (len(RUNGS) - 1) + _HIGH // 2
    parts.append(f'<path class="found" d="M{right + 60} {30 + _HIGH // 2} V{last}"/>')
    parts.append(f'<path class="proof" d="M{_LEFT - 50} {30 + _HIGH // 2} V{last}"/>')
    parts.append(f'<text x="{right + 72}" y="{height // 2}">placed</text>')
    parts.append(f'<text x="8" y="{height // 2 - 8}">proven</text><text x="8" y="{height // 2 + 9}">impossible</text>')
    end = f'<text class="end" x="{_LEFT + _WIDE // 2}" y="{height - 12}">'
    parts.append(f"{end}NotFoundInTime: time was up</text>")
    size = f'width="{right + 150}" height="{height}"'
    title = "<title>The ladder of the search; blue rungs are climbed in a process of their own</title>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, title, _STYLE, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    FILE.write_text(drawn())
