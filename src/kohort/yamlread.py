"""YAML as kubectl reads it, event by event.

Nothing recurses and no graph is built first, so deep nesting, alias bombs and repeated keys are found while reading.
The dialect: YAML 1.1 booleans, dates stay strings, keys become strings, merge keys are merged.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

MAX_BYTES: Final = 3 << 20  # what an API server takes in one request
MAX_DEPTH: Final = 100
MAX_NODES: Final = 1_000_000  # with aliases written out
MAX_DIGITS: Final = 300

_TAG: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = {_TAG + name for name in ("null", "bool", "int", "float")}
_TEXT_TAGS: Final = {None, "!", *(_TAG + name for name in ("str", "binary", "timestamp"))}
_BOOL: Final = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_NULL: Final = {"", "~", "null", "Null", "NULL"}
_INT: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*|0o?[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class ManifestError(ValueError):
    """The text is not a manifest. The message is one line and names the place."""


def load(text: str, first_line: int) -> tuple[Any, dict[str, int]]:
    """One document as a value, and the line of every field path in it."""
    size = len(text.encode())
    if size > MAX_BYTES:
        raise ManifestError(f"{size / (1 << 20):.1f} MiB; an API server takes at most {MAX_BYTES >> 20} MiB")
    builder = _Builder(first_line)
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            builder.feed(event)
    except yaml.MarkedYAMLError as error:
        if text.lstrip().startswith("{") and (found := _as_json(text)) is not None:
            return found, {}
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + first_line}: " if mark is not None else ""
        raise ManifestError(f"{line}not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ManifestError(f"not YAML: {str(error).splitlines()[0] if str(error) else 'nested too deep'}") from None
    return builder.root, builder.lines


def _as_json(text: str) -> Any:
    """JSON that is not YAML (escaped surrogate pairs); None if it is not JSON either, so that YAML's error stands."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(pairs) > len(dict(pairs)):
            raise ValueError("a key is given twice")
        return dict(pairs)

    def finite(text: str) -> float:
        raise ValueError(f"{text} is not a JSON number")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=finite)
    except (ValueError, RecursionError):
        return None


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is being read."""

    value: Any
    path: str
    line: int
    anchor: str | None
    nodes_before: int
    key: str | None = None
    merges: list[dict[str, Any]] = field(default_factory=list)


class _Builder:
    """Turns events into Python values."""

    def __init__(self, first_line: int) -> None:
        self.root: Any = None
        self.lines: dict[str, int] = {}
        self._first_line = first_line
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0

    def feed(self, event: yaml.Event) -> None:
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._open(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close()
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _line(self, event: yaml.Event) -> int:
        return (event.start_mark.line if event.start_mark else 0) + self._first_line

    def _path(self) -> str:
        if not self._stack:
            return ""
        top = self._stack[-1]
        if isinstance(top.value, list):
            return f"{top.path}[{len(top.value)}]"
        return f"{top.path}.{top.key}" if top.path else str(top.key)

    def _count(self, nodes: int, line: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise ManifestError(f"line {line}: more than {MAX_NODES:,} values once aliases are written out")

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        line = self._line(event)
        if len(self._stack) >= MAX_DEPTH:
            raise ManifestError(f"line {line}: nested deeper than {MAX_DEPTH} levels")
        if self._wants_key():
            raise ManifestError(f"line {line}: a key must be a scalar, found a list or mapping")
        self._count(1, line)
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._stack.append(_Frame(value, self._path(), line, event.anchor, self._nodes - 1))

    def _close(self) -> None:
        frame = self._stack.pop()
        for merged in frame.merges:
            for key, item in merged.items():
                frame.value.setdefault(key, item)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, self._nodes - frame.nodes_before)
        self._put(frame.value, frame.line)

    def _wants_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        line = self._line(event)
        self._count(1, line)
        value = _scalar(event, line)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        if self._wants_key():
            self._key(_key(value), line)
        else:
            self._put(value, line)

    def _alias(self, event: yaml.AliasEvent) -> None:
        line = self._line(event)
        if event.anchor not in self._anchors:
            raise ManifestError(f"line {line}: alias *{event.anchor} names no anchor before it")
        value, nodes = self._anchors[event.anchor]
        self._count(nodes, line)
        if self._wants_key():
            self._key(_key(value), line)
        else:
            self._put(_copy(value), line)

    def _key(self, key: str, line: int) -> None:
        top = self._stack[-1]
        if key in top.value:
            where = f"{top.path}.{key}" if top.path else key
            raise ManifestError(
                f"line {line}: key {where} is given twice (first in line {self.lines.get(where, line)})"
            )
        top.key = key

    def _put(self, value: Any, line: int) -> None:
        if not self._stack:
            self.root = value
            self.lines[""] = line
            return
        top = self._stack[-1]
        self.lines[self._path()] = line
        if isinstance(top.value, list):
            top.value.append(value)
            return
        key, top.key = str(top.key), None
        if key == "<<":
            self._merge(top, value, line)
        else:
            top.value[key] = value

    def _merge(self, top: _Frame, value: Any, line: int) -> None:
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise ManifestError(f"line {line}: << takes a mapping or a list of mappings")
        top.merges += parts


def _copy(value: Any) -> Any:
    """A value of its own for each alias: whoever fills defaults in one place must not change the other."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _key(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _scalar(event: yaml.ScalarEvent, line: int) -> Any:
    text: str = event.value
    if not (event.implicit[0] or event.tag in _PLAIN_TAGS):
        if event.tag in _TEXT_TAGS:
            return text
        raise ManifestError(f"line {line}: tag {event.tag} is not accepted in a manifest")
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text) or _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return _number(text, line)
    return text


def _number(text: str, line: int) -> int | float:
    plain = text.replace("_", "")
    digits = plain.lstrip("+-")
    if len(digits) > MAX_DIGITS:
        raise ManifestError(f"line {line}: a number of {len(digits)} digits")
    if _INT.fullmatch(text):
        octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        return int(plain.replace("0", "0o", 1) if octal else plain, 0)
    number = math.nan if _NOT_FINITE.fullmatch(text) else float(plain)
    if not math.isfinite(number):
        raise ManifestError(f"line {line}: {text} is not a JSON number")
    # On its way to the server YAML becomes JSON, where a whole number has no point: 1e3 is 1000, 4.0 is 4.
    return int(number) if number.is_integer() and abs(number) < 1e21 else number
