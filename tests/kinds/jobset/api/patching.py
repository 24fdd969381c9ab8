"""JSON patch and merge patch, as far as the recordings use them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kohort.api.kind import Object


def patched(obj: Object, patch: Any) -> Object:
    made = deepcopy(obj)
    if isinstance(patch, dict):
        return _merged(made, patch)
    for step in patch:
        _step(made, step)
    return made


def _merged(obj: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return deepcopy(patch)
    made = dict(obj) if isinstance(obj, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = _merged(made.get(name), value)
    return made


def _step(obj: Object, step: Object) -> None:
    if step["op"] == "move":
        _put(obj, step["path"], _take(obj, step["from"]))
    elif step["op"] == "remove":
        _take(obj, step["path"])
    else:
        _put(obj, step["path"], deepcopy(step["value"]), replace=step["op"] == "replace")


def _holder(obj: Any, path: str) -> tuple[Any, str]:
    *way, last = path.strip("/").split("/")
    for part in way:
        obj = obj[int(part)] if isinstance(obj, list) else obj[part]
    return obj, last


def _take(obj: Object, path: str) -> Any:
    holder, last = _holder(obj, path)
    return holder.pop(int(last) if isinstance(holder, list) else last)


def _put(obj: Object, path: str, value: Any, *, replace: bool = False) -> None:
    holder, last = _holder(obj, path)
    if not isinstance(holder, list):
        holder[last] = value
    elif last == "-":
        holder.append(value)
    elif replace:
        holder[int(last)] = value
    else:
        holder.insert(int(last), value)
