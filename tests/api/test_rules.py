"""Declared rules: what is reported, where the look ends, what an update re-examines (spec workload-api 0.3, 0.5)."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api import formats
from kohort.api.kind import Context
from kohort.api.rules import Operation, check_schema, check_value, same
from kohort.api.schema import EMPTY, Arr, Int, Map, Node, Obj, Str, Update, WhenOff, but

CTX = Context.of("1.37", gates=())
CREATE, UPDATE = Operation(CTX), Operation(CTX, update=True)
NAMED = Obj(fields={"name": Str(required=True, format=formats.label), "size": Int(minimum=1)})
KEYED = Arr(item=NAMED, key=("name",), max_items=3)
UNION = Obj(fields={"a": EMPTY, "b": EMPTY}, union=("a", "b"))


def _found(node: Node, value: Any, look: Operation = CREATE, old: Any = None) -> list[tuple[str, str]]:
    return [(error.kind.name, error.field) for error in check_value(node, value, "f", look, old)]


@pytest.mark.parametrize(
    ("node", "value", "wanted"),
    [
        (Str(), None, []),
        (Str(required=True), "", [("REQUIRED", "f")]),
        (Int(required=True, minimum=1), 0, [("REQUIRED", "f")]),
        (Int(required=True, minimum=1), -1, [("INVALID", "f")]),
        (Int(maximum=9), 10, [("INVALID", "f")]),
        (Str(enum=("x", "y")), "z", [("NOT_SUPPORTED", "f")]),
        (Str(format=formats.label), "", [("INVALID", "f")]),
        (Str(format=formats.label, blank=True), "", []),
        (Str(format=formats.label), "A." + "x" * 63, [("INVALID", "f"), ("INVALID", "f")]),
        (Str(max_bytes=2), "äx", [("TOO_LONG", "f")]),
        (Str(pattern="^x"), "y", [("INVALID", "f")]),
        (Map(value=Int(minimum=1)), {"k": 0}, [("INVALID", "f[k]")]),
        (Arr(item=Str(), unique=True), ["x", "y", "x"], [("DUPLICATE", "f[2]")]),
        (Arr(item=Str(), min_items=2), ["x"], [("INVALID", "f")]),
        (UNION, {}, [("INVALID", "f")]),
        (UNION, {"a": {}, "b": {}}, [("INVALID", "f")]),
        (but(UNION, union_optional=True), {}, []),
        (but(UNION, embedded=True), None, [("INVALID", "f")]),
        (UNION, None, []),
        (but(UNION, required=True), None, [("REQUIRED", "f")]),
        (KEYED, [None], [("REQUIRED", "f[0].name")]),
        (
            KEYED,
            [{"name": "a"}, {"name": "B_"}, {"name": "a", "size": 0}],
            [("DUPLICATE", "f[2]"), ("INVALID", "f[1].name"), ("INVALID", "f[2].size")],
        ),
        (but(KEYED, distinct=False), [{"name": "a"}, {"name": "a"}], []),
        (KEYED, [{}, {}, {}, {}], [("TOO_MANY", "f")]),  # items are not examined
        (Str(gate="Off"), "x", [("FORBIDDEN", "f")]),
        (Str(gate="Off", when_off=WhenOff.SILENT), "x", []),
    ],
)
def test_create(node: Node, value: Any, wanted: list[tuple[str, str]]) -> None:
    assert _found(node, value) == wanted


FROZEN = but(NAMED, update=Update.FROZEN)
KEYSET = but(KEYED, update=Update.KEYSET)


@pytest.mark.parametrize(
    ("node", "value", "old", "wanted"),
    [
        (Int(minimum=1), 0, 0, []),  # stored before the rule: not asked again
        (Int(minimum=1), 0, 5, [("INVALID", "f")]),
        (FROZEN, {"name": ""}, {"name": "a"}, [("INVALID", "f")]),  # nothing beneath is reported
        (but(FROZEN, required=True), None, {"name": "a"}, [("INVALID", "f"), ("REQUIRED", "f")]),
        (FROZEN, {"name": "a", "size": None}, {"name": "a"}, []),
        (but(EMPTY, update=Update.VARIANT), {}, None, [("INVALID", "f")]),
        (but(EMPTY, update=Update.VARIANT), None, {}, [("INVALID", "f")]),
        (but(NAMED, update=Update.VARIANT), {"name": "B_"}, {"name": "a"}, [("INVALID", "f.name")]),
        (KEYSET, [{"name": "b"}, {"name": "a"}], [{"name": "a"}, {"name": "b"}], []),
        (KEYSET, [{"name": "a", "size": 0}], [{"name": "a", "size": 1}], [("INVALID", "f[0].size")]),
        (KEYSET, [{"name": "c"}], [{"name": "a"}], [("FORBIDDEN", "f[0]"), ("FORBIDDEN", "f")]),
        (KEYSET, None, [{"name": "a"}, {"name": "b"}], [("FORBIDDEN", "f"), ("FORBIDDEN", "f")]),
        (
            KEYSET,
            [{"name": n} for n in "abcd"],
            [{"name": n} for n in "abc"],
            [("TOO_MANY", "f"), ("FORBIDDEN", "f[3]")],
        ),
        (UNION, {"a": {}, "b": {}}, {"a": {}, "b": {}}, []),
        (UNION, {"b": {}}, {"a": {}}, []),
        (UNION, {}, {"a": {}}, [("INVALID", "f")]),
        (but(FROZEN, gate="Off"), {"name": "b"}, {"name": "a"}, [("FORBIDDEN", "f"), ("INVALID", "f")]),
        (but(FROZEN, gate="Off"), None, {"name": "a"}, [("INVALID", "f")]),
        (but(FROZEN, gate="Off", when_off=WhenOff.SILENT), {"name": "b"}, {"name": "a"}, [("INVALID", "f")]),
        (but(FROZEN, gate="Off", when_off=WhenOff.THAWED), {"name": "b"}, {"name": "a"}, [("FORBIDDEN", "f")]),
        (but(FROZEN, gate="Off", when_off=WhenOff.THAWED), None, {"name": "a"}, []),
    ],
)
def test_update(node: Node, value: Any, old: Any, wanted: list[tuple[str, str]]) -> None:
    assert _found(node, value, UPDATE, old) == wanted


def test_zero_is_a_value_for_a_crd() -> None:
    crd = Operation(CTX, native=False)
    assert _found(Int(required=True), 0, crd) == []
    assert _found(Str(required=True), "", crd) == []
    assert _found(Int(required=True), None, crd) == [("REQUIRED", "f")]


def test_siblings_are_reported_in_the_order_of_the_schema() -> None:
    schema = Obj(fields={"one": Int(minimum=1), "two": FROZEN, "three": Str(required=True)})
    found = check_schema(schema, {"three": "", "two": {"name": "x"}, "one": 0}, {"two": {"name": "y"}}, UPDATE)
    assert [error.field for error in found] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("value", "old", "equal"),
    [
        (None, [], True),
        ({"a": None}, {}, True),
        ({"a": []}, {"a": None}, True),
        ([{"a": 1}], [{"a": 1, "b": None}], True),
        ({}, None, False),  # an empty object is not a missing one
        ("", None, False),
        ([1, 2], [2, 1], False),
        (0, None, False),
    ],
)
def test_same(value: Any, old: Any, equal: bool) -> None:
    assert same(value, old) is equal
    assert same(old, value) is equal
