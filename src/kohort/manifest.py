"""Manifests: files in, documents out, and objects as YAML again; an error of one line for all that is no manifest."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from kohort.yamlread import ManifestError, load

MAX_FILE_BYTES: Final = 64 << 20

_SEPARATOR: Final = re.compile(r"^---(?=\s|$)[^\n]*\n?", re.MULTILINE)
_MEMBERS: Final = ("apiVersion", "kind", "metadata", "spec", "status")  # of every object
_SUFFIXES: Final = {".yaml", ".yml", ".json"}


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a manifest: `number` counts from 1 in its source, `lines` maps field paths to lines."""

    obj: dict[str, Any]
    number: int = 1
    source: str = ""
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`JobSet/aurora`, as far as the document says."""
        meta = self.obj.get("metadata")
        meta = meta if isinstance(meta, dict) else {}
        return f"{self.obj.get('kind') or 'object'}/{meta.get('name') or meta.get('generateName') or '(no name)'}"

    @property
    def label(self) -> str:
        return f"document {self.number}, {self.name}"

    def line(self, path: str) -> int | None:
        """The line of a field, or of the nearest thing around it that is there; None for what is no field of it."""
        if not path.startswith(_MEMBERS):
            return None
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path)


def read(sources: Iterable[str], *, recursive: bool = False) -> list[Document]:
    """The documents of files, directories and `-` (standard input), in order. All errors of all files at once."""
    documents: list[Document] = []
    problems: list[str] = []
    for source in sources:
        for label, text in _texts(source, recursive, problems):
            found, wrong = parse(text, label)
            documents += found
            problems += wrong
    if problems:
        raise ManifestError("\n".join(problems))
    return documents


def _texts(source: str, recursive: bool, problems: list[str]) -> Iterator[tuple[str, str]]:
    if source == "-":
        yield from _text("standard input", sys.stdin.buffer.read(MAX_FILE_BYTES + 1), problems)
        return
    path = Path(source)
    if not path.exists():
        problems.append(f"{source}: no such file or directory")
        return
    for file in _files(path, recursive):
        try:
            yield from _text(str(file), file.read_bytes(), problems)
        except OSError as error:
            problems.append(f"{file}: cannot be read: {error.strerror}")


def _files(path: Path, recursive: bool) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = path.rglob("*") if recursive else path.iterdir()
    return sorted(file for file in found if file.suffix in _SUFFIXES and file.is_file())


def _text(label: str, raw: bytes, problems: list[str]) -> Iterator[tuple[str, str]]:
    if len(raw) > MAX_FILE_BYTES:
        problems.append(f"{label}: {len(raw) >> 20} MiB; at most {MAX_FILE_BYTES >> 20} MiB are read")
    elif b"\0" in raw:
        line = raw[: raw.index(b"\0")].count(b"\n") + 1
        problems.append(f"{label}: line {line}: a NUL byte; a manifest is text (YAML or JSON in UTF-8)")
    else:
        try:
            yield label, raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            problems.append(f"{label}: line {line}: not UTF-8; a manifest is text (YAML or JSON in UTF-8)")


def parse(text: str, source: str = "") -> tuple[list[Document], list[str]]:
    """The documents of a text and, a line each, what is wrong with those that cannot be read."""
    documents: list[Document] = []
    problems: list[str] = []
    number = 0
    for first_line, part in _split(text):
        if not _has_content(part):
            continue
        number += 1
        where = f"{source}: " if source else ""
        try:
            value, lines = load(part, first_line)
        except ManifestError as error:
            problems.append(f"{where}document {number}: {error}")
            continue
        for item, path in _items(value):
            if isinstance(item, dict):
                documents.append(Document(item, number, source, _beneath(lines, path)))
            else:
                problems.append(
                    f"{where}document {number}{path and ', ' + path}: an object was expected, found {_kind(item)}"
                )
    if not number:
        problems.append(f"{source or 'the text'}: no document in it")
    return documents, problems


def _split(text: str) -> Iterator[tuple[int, str]]:
    start, line = 0, 1
    for mark in _SEPARATOR.finditer(text):
        yield line, text[start : mark.start()]
        line += text.count("\n", start, mark.end())
        start = mark.end()
    yield line, text[start:]


def _has_content(part: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in part.splitlines())


def _items(value: Any) -> Iterator[tuple[Any, str]]:
    """The objects of a document: itself, or the items of a List."""
    if isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            yield item, f"items[{index}]"
    else:
        yield value, ""


def _beneath(lines: dict[str, int], path: str) -> dict[str, int]:
    if not path:
        return lines
    return {key[len(path) :].lstrip("."): line for key, line in lines.items() if key.startswith(path)}


def _kind(value: Any) -> str:
    return {list: "a list", str: "a string", bool: "a boolean", type(None): "nothing"}.get(type(value), "a number")


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML calls it so
        return True


def dump(value: Any) -> str:
    """As people write YAML: members in the order given, lists flush, no tags or aliases."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=10_000)
    return text
