"""Large texts read in pieces say the same as in one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from kohort.kube import jsonpieces
from kohort.kube.codec import Codec, Event

PLAIN = (
    some.none()
    | some.booleans()
    | some.integers(-(2**53), 2**53)
    | some.text()
    | some.floats(allow_nan=False, allow_infinity=False, width=32)
)
TREES = some.recursive(PLAIN, lambda of: some.lists(of) | some.dictionaries(some.text(), of), max_leaves=60)


def whole(text: bytes) -> tuple[Any, int]:
    """What it says, and in how many pieces it was read."""
    parts, number = jsonpieces.read(text), 1
    while True:
        try:
            next(parts)
        except StopIteration as end:
            return end.value, number
        number += 1


@given(tree=TREES, indent=some.sampled_from([None, 2]))
def test_the_same_as_at_once(tree: Any, indent: int | None) -> None:
    text = json.dumps(tree, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonpieces, "PIECE", 8)
        assert whole(text)[0] == msgspec.json.decode(text)


def test_pieces_are_small() -> None:
    tree = {
        "spec": {"containers": [{"env": [{"name": f"v{n}", "value": "x"} for n in range(9000)]}]},
        "a": {"b": ["c"]},
    }
    text = msgspec.json.encode(tree)
    found, pieces = whole(text)
    assert found == tree
    assert len(text) / jsonpieces.PIECE < pieces < 3 * len(text) / jsonpieces.PIECE


def test_nesting_costs_no_more_than_a_few_looks() -> None:
    text = b"[" * 900 + b"1" + b"]" * 900
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonpieces, "PIECE", 8)
        found, pieces = whole(text)
    assert pieces < 10
    for _ in range(900):
        (found,) = found
    assert found == 1


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
def test_a_line_in_pieces_is_the_event_that_it_is_at_once(kind: str) -> None:
    codec: Codec[dict[str, Any]] = Codec(dict[str, Any])
    meta = {"name": "n", "namespace": "s", "resourceVersion": "7"}
    line = msgspec.json.encode(
        {"type": kind, "object": {"metadata": meta, "data": {f"k{n}": "v" for n in range(40_000)}}}
    )
    parts = codec.event_in_pieces(line)
    breaks = 0
    found: Event[dict[str, Any]] | None = None
    while found is None:
        try:
            next(parts)
            breaks += 1
        except StopIteration as end:
            found = end.value
    assert found == codec.event(line)
    assert (breaks > 5) == (kind != "BOOKMARK")
