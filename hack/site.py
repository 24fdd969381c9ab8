"""Builds the documentation site from docs/ into build/site: `make docs`. Pages stay plain Markdown that reads as well
in a repository; what they link to outside docs/ is copied beside them. The navigation is in mkdocs.yml.

Strict: a page that is in no menu, a link or an anchor that leads nowhere, and anything that a browser would load from
another host end the build.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parent.parent
DOCS: Final = ROOT / "docs"
CONFIG: Final = ROOT / "mkdocs.yml"
STAGED: Final = ROOT / "build" / "docs"  # docs_dir of the configuration
SITE: Final = ROOT / "build" / "site"
_LINK: Final = re.compile(r"(?<!`)(\]\()([^)\s]+)(\))")
_CODE: Final = re.compile(r"```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LOADED: Final = re.compile(
    r"""<(?:script|img|iframe|source|link(?=[^>]*rel=["']?(?:stylesheet|preload|icon|preconnect)))[^>]*"""
    r"""(?:src|href)=["']?(?:https?:)?//([^/"'\s>]+)"""
)
# Pages that are reached from others, and would make a menu too long.
_UNLISTED: Final = ("spec/", "decisions/")


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def menu(entry: Any = None) -> Iterator[str]:
    """Paths that the navigation names."""
    entry = yaml.safe_load(CONFIG.read_text())["nav"] if entry is None else entry
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for one in entry.values():
            yield from menu(one)
    else:
        for one in entry:
            yield from menu(one)


def problems() -> list[str]:
    """Of the navigation and of links between pages, without building anything."""
    listed = list(menu())
    names = {str(page.relative_to(DOCS)) for page in pages()}
    found = [f"mkdocs.yml: {one} is not there" for one in listed if one not in names]
    found += [f"mkdocs.yml: {one} is there twice" for one in set(listed) if listed.count(one) > 1]
    left = sorted(names - set(listed))
    found += [f"{one}: in no menu of mkdocs.yml" for one in left if not one.startswith(_UNLISTED)]
    for page in pages():
        found += [f"{page.relative_to(ROOT)}: {target} leads nowhere" for target in _dead(page)]
    return found


def _dead(page: Path) -> Iterator[str]:
    for target in links(page.read_text()):
        path, _, anchor = target.partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        to = (page.parent / path).resolve() if path else page
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to.read_text())):
            yield target


def links(text: str) -> list[str]:
    return [match[2] for match in _LINK.finditer(_CODE.sub("``", text))]


def anchors(text: str) -> set[str]:
    """Of headings, as the site and the usual viewers of repositories make them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", one).lower()).replace(" ", "-") for one in heads}


def stage() -> None:
    """docs/ with what it links to outside."""
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.copytree(DOCS, STAGED)
    for page in pages():
        staged = STAGED / page.relative_to(DOCS)
        staged.write_text(_LINK.sub(partial(_inside, page=page), page.read_text()))


def _inside(match: re.Match[str], page: Path) -> str:
    path, hash_, anchor = match[2].partition("#")
    to = (page.parent / path).resolve() if path and "://" not in path else None
    if to is None or not to.is_file() or to.is_relative_to(DOCS):
        return match[0]
    copied = STAGED / "files" / to.relative_to(ROOT)
    copied.parent.mkdir(parents=True, exist_ok=True)
    text = to.read_text()
    # A page of elsewhere keeps its words, not its links.
    copied.write_text(_LINK.sub(r"](#)", text) if to.suffix == ".md" else text)
    up = "../" * len(page.relative_to(DOCS).parent.parts)
    return f"{match[1]}{up}files/{to.relative_to(ROOT)}{hash_}{anchor}{match[3]}"


def foreign() -> list[str]:
    """Hosts from which a page of the built site would load something."""
    return sorted({host for page in SITE.rglob("*.html") for host in _LOADED.findall(page.read_text())})


def main() -> int:
    found = problems()
    if not found:
        stage()
        tool = Path(sys.executable).with_name("zensical")
        done = subprocess.run([tool, "build", "--strict", "--clean", "-f", str(CONFIG)], cwd=ROOT, check=False)
        found = ["the site was not built"] if done.returncode else [f"loaded from {host}" for host in foreign()]
    made = f"{len(list(SITE.rglob('*.html')))} pages in {SITE.relative_to(ROOT)}: open index.html"
    sys.stdout.write("\n".join(found or [made]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
