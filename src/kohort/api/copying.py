"""A copy of a tree of JSON values, several times faster than `copy.deepcopy`, which is made for everything."""

from __future__ import annotations

from typing import TypeVar

_T = TypeVar("_T")


def copied(value: _T) -> _T:
    """Mappings and lists are new all the way down; what they hold at the end is immutable anyway."""
    if isinstance(value, dict):
        return {name: copied(item) if isinstance(item, (dict, list)) else item for name, item in value.items()}  # type: ignore[return-value]
    if isinstance(value, list):
        return [copied(item) if isinstance(item, (dict, list)) else item for item in value]  # type: ignore[return-value]
    return value
