"""Makes the pictures of README as SVG: what `kohort translate` and `make demo` print. Run it when that changes."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from kohort import library
from kohort.cli.demo.__main__ import PARTS, perform
from kohort.cli.demo.screen import Screen
from kohort.cli.treeprint import tree

ROOT = Path(__file__).parent.parent


def main() -> None:
    keep(translated(), "kohort translate", "translate.svg")
    keep(told(), "make demo", "demo.svg")


def recorder() -> Console:
    return Console(record=True, width=90, highlight=False, force_terminal=True, file=sys.stderr)


def translated() -> Console:
    console = recorder()
    for example in ("jobset-gang", "jobset-tree"):
        console.print(Text.assemble(("$ ", "bold green"), f"kohort translate -f examples/{example}.yaml -o tree"))
        for result in library.compile(str(ROOT / "examples" / f"{example}.yaml")):
            console.print(tree(result), soft_wrap=False)
        console.print()
    return console


def told() -> Console:
    console = recorder()
    console.print(Text.assemble(("$ ", "bold green"), "make demo"))
    if not asyncio.run(perform(Screen(console, live=False), [part for part in PARTS if part != "kinds"])):
        sys.exit("the demo broke a promise: no picture")
    return console


def keep(console: Console, title: str, file: str) -> None:
    svg = console.export_svg(title=title, clear=False)
    # The reader's own monospace font: nothing is fetched when the picture is shown.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    (ROOT / "docs" / "images" / file).write_text(svg + "\n")


if __name__ == "__main__":
    main()
