"""What pages and docstrings name is there: files, modules and their members, make targets. A name means one thing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = {
    str(path.relative_to(ROOT))
    for top in ("src", "tests", "bench", "hack", "examples")
    for path in (ROOT / top).rglob("*.py")
}
# Decisions tell what was tried and replaced; the changelog what there was.
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "decisions"),
]
FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.py)(?:::\w+)?`")
MODULE = re.compile(r"(?<![\w./-])kohort(?:\.[A-Za-z_]\w*)+")
PACKAGES = sorted(
    path.stem for path in (ROOT / "src" / "kohort").iterdir() if path.stem[0] not in "_." and path.name != "py.typed"
)
# scheduler/queue, kinds/<family>/api, kinds/jobset/{api,admission}: places in the package, as maps name them
PLACE = re.compile(
    rf"(?<![\w./<>-])(?:src/kohort/)?((?:{'|'.join(PACKAGES)})(?:/(?:[\w*.-]*[\w*]|<\w+>|\{{[\w,]+\}}))+)(?![\w/])"
)
TARGET = re.compile(r"(?:`|\$ )make ([a-z][a-z0-9-]*)")


def _texts() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        yield str(page.relative_to(ROOT)), page.read_text()
    for path in sorted(name for name in SOURCES if name.startswith(("src/", "tests/support/"))):
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, ast.get_docstring(node) or ""


def _is_file(name: str) -> bool:
    return any(path == name or path.endswith(f"/{name}") for path in SOURCES)


def _is_module(name: str) -> bool:
    """A module, or what a module defines or passes on."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = ROOT / "src" / Path(*parts[:length])
        home = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if home.exists():
            return length == len(parts) or parts[length] in _defined(home)
    return False


@cache
def _defined(home: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(home.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def _targets() -> set[str]:
    files = [ROOT / "Makefile", *(ROOT / "mk").glob("*.mk")]
    return {name for file in files for name in re.findall(r"^([a-z][a-z0-9-]*):", file.read_text(), re.MULTILINE)}


def _places(text: str) -> Iterator[str]:
    for name in PLACE.findall(text):
        if not name.endswith((".md", ".go")):  # a page of docs/kinds, a file of upstream's
            yield from _spread(re.sub(r"<\w+>", "*", name))


def _spread(name: str) -> Iterator[str]:
    found = re.search(r"\{([\w,]+)\}", name)
    if found is None:
        yield name
        return
    for one in found[1].split(","):
        yield from _spread(name[: found.start()] + one + name[found.end() :])


def _is_place(name: str) -> bool:
    package = ROOT / "src" / "kohort"
    return any(package.glob(name)) or any(package.glob(f"{name}.py"))


@pytest.fixture(scope="module")
def texts() -> list[tuple[str, str]]:
    found = list(_texts())
    assert len(found) > 2000
    return found


def test_files(texts: list[tuple[str, str]]) -> None:
    assert [f"{place}: {name}" for place, text in texts for name in FILE.findall(text) if not _is_file(name)] == []


def test_modules(texts: list[tuple[str, str]]) -> None:
    named = [(place, name) for place, text in texts for name in MODULE.findall(text) if name != "kohort.dev"]
    assert len(named) > 50
    assert [f"{place}: {name}" for place, name in named if not _is_module(name)] == []


def test_places_of_the_package() -> None:
    found = [
        (page.name, name) for page in PAGES if page.parent.name != "spec" for name in _places(page.read_text())
    ]  # the specification names files of upstream's repositories
    assert len(found) > 90
    assert [f"{page}: {name}" for page, name in found if not _is_place(name)] == []


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_package_is_on_the_map(page: str) -> None:
    text = (ROOT / page).read_text()
    assert [name for name in PACKAGES if not re.search(rf"(?<![\w/]){name}(?![\w])", text)] == []


def test_make_targets(texts: list[tuple[str, str]]) -> None:
    targets = _targets()
    assert [
        f"{place}: make {name}" for place, text in texts for name in TARGET.findall(text) if name not in targets
    ] == []


@pytest.mark.parametrize("name", ["kohort.nowhere", "kohort.library.nothing", "kohort.kinds.jobset.control.gone"])
def test_what_is_not_there_is_found(name: str) -> None:
    (place,) = _places(f"see `{name.removeprefix('kohort.').replace('.', '/')}/x`") if name.count(".") > 1 else ("x/y",)
    assert not _is_place(place)
    assert not _is_module(name)
    assert not _is_file(f"{name.replace('.', '/')}.py")


def _classes(path: Path) -> Iterator[tuple[str, str]]:
    """(name, module it comes from) of the classes that a module defines, and of whatever it takes from our others."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            yield node.name, str(path)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kohort."):
            for alias in node.names:
                yield alias.name, node.module or ""


def test_no_module_meets_two_classes_of_one_name() -> None:
    """Not even under another name: whoever reads it has to keep the two apart."""
    met = []
    for path in sorted((ROOT / "src" / "kohort").rglob("*.py")):
        homes: dict[str, set[str]] = {}
        for name, home in _classes(path):
            if name[0].isupper() and not name.isupper():  # constants of several kinds may have one name
                homes.setdefault(name, set()).add(home)
        met += [f"{path.relative_to(ROOT)}: {name} of {sorted(of)}" for name, of in homes.items() if len(of) > 1]
    assert met == []
