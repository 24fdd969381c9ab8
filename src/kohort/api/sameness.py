"""Whether two JSON values are the same. Python thinks that true is 1; who writes one for the other does not."""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def same(one: Any, other: Any) -> bool:
    """1 is 1.0, but true is not 1."""
    if one is other:
        return True
    if one != other:
        return False
    kind = one.__class__
    if kind is str:
        return True
    if kind is dict or kind is list:  # nearly always told apart by the quickest of all walks
        return _encode(one) == _encode(other) or _same_inside(one, other)
    return (kind is bool) == (other.__class__ is bool)


def identity(value: Any) -> Any:
    """Equal for values that are the `same`, and with a hash: long lists are compared in one pass."""
    return value if isinstance(value, str) else _encode_sorted(whole(value))


def _same_inside(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return all(_same_inside(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return all(map(_same_inside, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


def whole(value: Any) -> Any:
    """A copy in which numbers are as somebody reads them who does not know their type: 4.0 is 4."""
    if isinstance(value, dict):
        return {name: whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
