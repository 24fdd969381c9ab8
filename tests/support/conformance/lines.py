"""The list of upstream's end-to-end tests that are Kohort's bar, and how its names are found among the real ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LIST: Final = Path(__file__).with_name("lines-1.37.txt")
SETS: Final = ("core", "wide", "more")
# Seconds that families of tests take, mostly in waits of their own (other tests take about one).
_SECONDS: Final = {
    "[sig-api-machinery] CustomResourceDefinition Watch": 60.0,
    "[sig-api-machinery] CustomResourcePublishOpenAPI": 60.0,
    "[sig-api-machinery] Servers with support for API chunking": 21.0,
    "[sig-api-machinery] Watchers": 35.0,
    "[sig-apps] Job": 14.0,
    "[sig-node] Pods": 11.0,
    "[sig-scheduling] GangScheduling": 16.0,
    "[sig-scheduling] Workload": 10.0,
    "[sig-scheduling] WorkloadAwarePreemption": 23.0,
}


@dataclass(frozen=True, slots=True)
class Line:
    """A test as the list names it: its group (`[sig-apps]`) and its words, without other tags."""

    name: str
    set: str  # of SETS


@dataclass(frozen=True, slots=True)
class Spec:
    """A test as e2e.test names it."""

    text: str
    family: str  # the outermost container: its tests may get in each other's way

    @property
    def alone(self) -> bool:
        return "[Serial]" in self.text or "[Disruptive]" in self.text


def read(path: Path = LIST) -> list[Line]:
    """The lines, in order. A heading such as `## core (88): …` says of which set, and of how many, they are."""
    lines: list[Line] = []
    counts: dict[str, int] = {}
    for text in path.read_text().splitlines():
        heading = re.match(r"## (\w+) \((\d+)\)", text)
        if heading:
            counts[heading[1]] = int(heading[2])
        elif text and not text.startswith("#"):
            lines.append(Line(text, list(counts)[-1]))
    for name, count in counts.items():
        found = sum(line.set == name for line in lines)
        if found != count:
            raise ValueError(f"{path}: {found} lines under {name!r}, {count} announced")
    return lines


def plain(text: str) -> str:
    """A name without its tags in brackets, the group excepted."""
    return " ".join(re.sub(r"\[(?!sig-)[^\]]*\]", " ", text).split())


def match(lines: Iterable[Line], specs: Iterable[Spec]) -> Mapping[Line, Spec | None]:
    """Each line with its test; None where there is none, or more than one."""
    by_name: dict[str, list[Spec]] = {}
    for spec in specs:
        by_name.setdefault(plain(spec.text), []).append(spec)
    return {line: found[0] if len(found := by_name.get(line.name, [])) == 1 else None for line in lines}


def shares(specs: Iterable[Spec], count: int) -> list[list[Spec]]:
    """So many lists that take about equally long. Tests of one family stay together, and so in order."""
    families: dict[str, list[Spec]] = {}
    for spec in specs:
        families.setdefault(spec.family, []).append(spec)
    seconds = {name: _SECONDS.get(plain(name), float(len(of))) for name, of in families.items()}
    found: list[list[Spec]] = [[] for _ in range(max(1, count))]
    taken = [0.0] * len(found)
    for name in sorted(families, key=lambda one: seconds[one], reverse=True):
        least = taken.index(min(taken))
        found[least].extend(families[name])
        taken[least] += seconds[name]
    return [share for share in found if share]
