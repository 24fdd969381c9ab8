"""Writes requirements-run.lock: of requirements.lock what running needs, with the same versions and hashes; and
deploy/image/build.lock: what building the wheel needs, for the image.

pip-compile notes who asked for each package; what `dependencies` of pyproject.toml name, and whatever those ask for, is
what a user installs. `make lock` runs this; a test compares.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
RUN_LOCK = ROOT / "requirements-run.lock"
BUILD_LOCK = ROOT / "deploy" / "image" / "build.lock"
_BUILD_HEAD = "# What building the wheel needs of requirements.lock. Made by `make lock`: python -m hack.run_lock\n"
_HEAD = "# What running needs of requirements.lock, for `make demo`. Made by `make lock`: python -m hack.run_lock\n"
_NAME = re.compile(r"^([a-z0-9._-]+)==", re.MULTILINE)


def run_lock() -> str:
    return _HEAD + _needed(_roots())


def build_lock() -> str:
    """The lock does not say all that hatchling asks for."""
    return _BUILD_HEAD + _needed({"hatchling", "packaging", "pathspec", "pluggy"})


def _needed(roots: set[str]) -> str:
    """The blocks of these packages and of all that they ask for."""
    blocks = {found[1]: block for block in _blocks(LOCK.read_text()) if (found := _NAME.match(block))}
    wanted = {name for name in roots if name in blocks}
    more = set(wanted)
    while more:
        more = {name for name, block in blocks.items() if not more.isdisjoint(_via(block))} - wanted
        wanted |= more
    return "".join(block for name, block in blocks.items() if name in wanted)


def _roots() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = (re.match(r"[A-Za-z0-9._-]+", one) for one in project["dependencies"])
    return {re.sub(r"[-_.]+", "-", found[0]).lower() for found in names if found}


def _blocks(text: str) -> list[str]:
    """A package each: its line, its hashes, who asked for it."""
    return [block for block in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE) if _NAME.match(block)]


def _via(block: str) -> set[str]:
    comment = block.partition("# via")[2]
    return {word for line in comment.splitlines() for word in line.strip(" #").split() if word}


if __name__ == "__main__":
    RUN_LOCK.write_text(run_lock())
    BUILD_LOCK.write_text(build_lock())
