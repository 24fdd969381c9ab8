"""Makes the picture of README: what `kohort translate` prints, as SVG. Run it when the output changes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from kohort import library
from kohort.cli.treeprint import tree

ROOT = Path(__file__).parent.parent


def main() -> None:
    console = Console(record=True, width=118, highlight=False, force_terminal=True, file=sys.stderr)
    for example in ("jobset-gang", "jobset-tree"):
        console.print(Text.assemble(("$ ", "bold green"), f"kohort translate -f examples/{example}.yaml -o tree"))
        for result in library.compile(str(ROOT / "examples" / f"{example}.yaml")):
            console.print(tree(result), soft_wrap=False)
        console.print()
    svg = console.export_svg(title="kohort translate", clear=False)
    # The reader's own monospace font: nothing is fetched when the picture is shown.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    (ROOT / "docs" / "images" / "translate.svg").write_text(svg + "\n")


if __name__ == "__main__":
    main()
