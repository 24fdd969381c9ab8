"""Write what follows from code: roles of controllers in deploy/rbac.yaml and the table of kinds in README from the
bundles of kinds, the table of limits in docs/security.md from their type.

python hack/generated.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kohort.api.bundle import Page, bundles
from kohort.run.roles import roles
from kohort.server import limits

ROOT: Final = Path(__file__).parent.parent
_SHARED: Final = Page("Workload, PodGroup, CompositePodGroup", "docs/kinds/scheduling.md")


def table() -> str:
    pages = [*(one.page for one in bundles() if one.page is not None), _SHARED]
    return "".join(
        ("| kind | page |\n", "|---|---|\n", *(f"| {one.kinds} | [{one.path}]({one.path}) |\n" for one in pages))
    )


def between(text: str, begin: str, end: str, body: str) -> str:
    """The text with the lines between two marks replaced."""
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"the lines {begin.strip()} and {end.strip()} are not there")
    return f"{head}{begin}{body}{end}{tail}"


def files() -> dict[Path, str]:
    """The files as they should be."""
    rbac, readme, security = ROOT / "deploy" / "rbac.yaml", ROOT / "README.md", ROOT / "docs" / "security.md"
    note = "# {} of roles that follow from the bundles of kinds (python hack/generated.py)\n"
    return {
        rbac: between(rbac.read_text(), note.format("Begin"), note.format("End"), roles()),
        readme: between(
            readme.read_text(), "<!-- begin: table of kinds, hack/generated.py -->\n", "<!-- end -->\n", table()
        ),
        security: between(
            security.read_text(),
            "<!-- begin: table of limits, hack/generated.py -->\n\n",
            "\n<!-- end -->\n",
            limits.table(),
        ),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
