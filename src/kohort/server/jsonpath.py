"""The part of JSONPath that printer columns and scale paths use.

`.a.b`, `['x']`, `[0]`, `[-1:]`, `[*]`, `[?(@.k=="v")]`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

Step = tuple[str, ...]
_STEP: Final = re.compile(
    r"""\.(?P<name>[A-Za-z0-9_\-$/]+)
      | \[['"](?P<quoted>[^'"]+)['"]\]
      | \[(?P<index>-?\d+)\]
      | \[(?P<slice>-?\d*:-?\d*)\]
      | \[(?P<all>\*)\]|\.(?P<every>\*)
      | \[\?\(@\.(?P<key>[\w.\-]+)\s*==\s*(?P<value>"[^"]*"|'[^']*'|[^)\s]+)\)\]""",
    re.VERBOSE,
)


class JsonPathError(ValueError):
    """Not a path that is understood here."""


@lru_cache(maxsize=1024)
def steps(path: str) -> tuple[Step, ...]:
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$").replace("\\.", "\0")
    if text and not text.startswith((".", "[")):
        text = f".{text}"
    text = re.sub(r"\.([^\[\].]*\0[^\[\].]*)", r"['\1']", text)
    found: list[Step] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise JsonPathError(f"{path!r}: cannot read {text[at:]!r}")
        at = match.end()
        if match["name"] or match["quoted"]:
            found.append(("name", (match["name"] or match["quoted"]).replace("\0", ".")))
        elif match["index"]:
            found.append(("index", match["index"]))
        elif match["slice"]:
            found.append(("slice", *match["slice"].split(":")))
        elif match["all"] or match["every"]:
            found.append(("all",))
        else:
            found.append(("where", match["key"], match["value"].strip("\"'")))
    return tuple(found)


def find(value: Any, path: str) -> list[Any]:
    """Everything that a path leads to."""
    found = [value]
    for step in steps(path):
        found = [inner for one in found for inner in _take(one, step)]
    return found


def first(value: Any, path: str) -> Any:
    found = find(value, path)
    return found[0] if found else None


def _take(value: Any, step: Step) -> list[Any]:
    match step[0]:
        case "name":
            return [value[step[1]]] if isinstance(value, dict) and step[1] in value else []
        case "index":
            index = int(step[1])
            return [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else []
        case "slice":
            start, stop = (int(part) if part else None for part in step[1:])
            return value[start:stop] if isinstance(value, list) else []
        case "all":
            return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    items = value if isinstance(value, list) else []
    return [item for item in items if str(_deep(item, step[1])) == step[2]]


def _deep(value: Any, key: str) -> Any:
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
