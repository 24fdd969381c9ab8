"""Repeated members of a body are found whatever its text holds, and none where there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.server import codec
from kohort.server.status import NestingError

TEXT = st.text(alphabet='ab":\\ {}[],\n\té', max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(TEXT, inner), max_size=4).map(tuple),
    max_leaves=12,
)


def written(value: Any, escaped: bool, space: str) -> str:
    """JSON in which an object (a tuple of pairs) may have a member twice."""
    if isinstance(value, tuple):
        pairs = (f"{text(name, escaped)}{space}:{space}{written(item, escaped, space)}" for name, item in value)
        return "{" + f"{space},".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(item, escaped, space) for item in value) + "]"
    return text(value, escaped)


def text(value: Any, escaped: bool) -> str:
    if escaped and isinstance(value, str):
        return '"' + "".join(f"\\u{ord(character):04x}" for character in value) + '"'
    return json.dumps(value, ensure_ascii=False)


def repeats(value: Any) -> bool:
    if isinstance(value, tuple):
        names = [name for name, _ in value]
        return len(names) != len(set(names)) or any(repeats(item) for _, item in value)
    return isinstance(value, list) and any(map(repeats, value))


@given(VALUES, st.booleans(), st.sampled_from(["", " ", "\n"]))
def test_a_warning_for_repeated_members_and_only_for_them(value: Any, escaped: bool, space: str) -> None:
    _, warnings = codec.parse_json(written(value, escaped, space).encode(), "")
    assert bool(warnings) == repeats(value)


def test_the_path_of_each_is_told() -> None:
    body = b'{"a": [{"k": "\\":\\":", "k": 2}], "b\\":c": {"d": 1, "d": 1, "d": 3}}'
    _, warnings = codec.parse_json(body, "")
    assert warnings == ['duplicate field "a[0].k"', 'duplicate field "b":c.d"']


def test_what_is_nested_too_deep_is_refused() -> None:
    for inner in (b"[" * 150 + b"]" * 150, b'{"a":' * 150 + b"1" + b"}" * 150):
        codec.parse_json(inner, "")
    for inner in (b"[" * 300 + b"]" * 300, b'{"a":' * 300 + b"1" + b"}" * 300):
        with pytest.raises(NestingError):
            codec.parse_json(inner, "")
