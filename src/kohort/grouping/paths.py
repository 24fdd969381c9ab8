"""Numbers in an object by JSONPath: members, `[0]`, `[*]`, `['a.b']`; all that is found is added up."""

from __future__ import annotations

import re
from typing import Any, Final

from kohort.grouping.model import WrongError

_PART: Final = re.compile(r"\.([A-Za-z0-9_-]+)|\[(\d+|\*)\]|\['([^']+)'\]")
Path = tuple[str | int, ...]  # "*" stands for all items


def parse(text: str) -> Path | None:
    """None: it is not understood."""
    body = text.strip()
    if body.startswith("{") and body.endswith("}"):
        body = body[1:-1]
    body = body.removeprefix("$")
    parts: list[str | int] = []
    end = 0
    while end < len(body):
        found = _PART.match(body, end)
        if found is None:
            return None
        member, index, quoted = found.groups()
        parts.append(index if index == "*" else int(index) if index is not None else member or quoted)
        end = found.end()
    return tuple(parts) or None


def total(paths: tuple[Path, ...], obj: dict[str, Any], shown: str) -> int:
    """Nothing found counts as nothing."""
    numbers = [one for path in paths for one in _values(path, [obj])]
    for one in numbers:
        if isinstance(one, bool) or not isinstance(one, int) or one < 0:
            raise WrongError(f"{shown}: {one!r}: accepted are whole numbers that are not negative")
    return sum(numbers)


def _values(path: Path, found: list[Any]) -> list[Any]:
    for part in path:
        if part == "*":
            found = [item for one in found for item in _items(one)]
        elif isinstance(part, int):
            found = [one[part] for one in found if isinstance(one, list) and part < len(one)]
        else:
            found = [one[part] for one in found if isinstance(one, dict) and one.get(part) is not None]
    return found


def _items(one: Any) -> list[Any]:
    return list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
