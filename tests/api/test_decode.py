"""Shape of objects: wrong JSON types and unknown fields."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api.decode import decode
from kohort.api.schema import Anything, Arr, Bool, Duration, Int, IntOrStr, Map, Obj, Ref, Str, Time

SCHEMA = Obj(
    fields={
        "text": Str(),
        "number": Int(),
        "big": Int(bits=64),
        "flag": Bool(),
        "either": IntOrStr(),
        "at": Time(),
        "span": Duration(),
        "any": Anything(),
        "list": Arr(item=Obj(fields={"name": Str()})),
        "map": Map(value=Int()),
        "free": Obj(fields={"a": Int()}, preserve_unknown=True),
        "pod": Ref(definition="io.k8s.api.core.v1.PodSpec"),
        "late": Str(since="1.37"),
    }
)


def _found(obj: dict[str, Any], minor: str = "1.37") -> list[tuple[str, str]]:
    return [(error.kind.name, error.field) for error in decode(SCHEMA, obj, minor)]


@pytest.mark.parametrize(
    "obj",
    [
        {},
        dict.fromkeys(SCHEMA.fields),
        {"number": -(2**31), "big": 2**63 - 1, "either": "50%", "flag": False},
        {"at": "2026-11-01T08:00:00Z", "span": "1h30m"},
        {"list": [None, {}, {"name": "a"}], "map": {"x": 1}, "any": [{}, 1.5]},
        {"free": {"a": 1, "b": "kept"}},
        {"pod": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 2, "memory": "4Gi"}}}]}},
        {"metadata": {"name": "x", "labels": {"a": "b"}}, "apiVersion": "v", "kind": "k"},
    ],
)
def test_fits(obj: dict[str, Any]) -> None:
    assert _found(obj) == []


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        ({"text": 1}, "text"),
        ({"number": 2**31}, "number"),
        ({"number": 4.0}, "number"),
        ({"number": True}, "number"),
        ({"number": "4"}, "number"),
        ({"big": 2**63}, "big"),
        ({"flag": "yes"}, "flag"),
        ({"either": 1.5}, "either"),
        ({"at": "yesterday"}, "at"),
        ({"at": "2026-11-01T08:00:00"}, "at"),
        ({"span": "soon"}, "span"),
        ({"list": {}}, "list"),
        ({"list": ["a"]}, "list[0]"),
        ({"map": {"x": "1"}}, "map[x]"),
        ({"free": []}, "free"),
        ({"pod": {"containers": [{"name": 7}]}}, "pod.containers[0].name"),
        ({"metadata": {"labels": {"n": 1}}}, "metadata.labels[n]"),
    ],
)
def test_wrong_type(obj: dict[str, Any], field: str) -> None:
    assert _found(obj) == [("DECODE", field)]


def test_unknown_fields_come_in_the_order_of_the_document() -> None:
    obj = {"list": [{"colour": 1, "name": "a"}], "metadata": {"mood": "good"}, "pod": {"workloadRef": {}}, "z": 1}
    unknown = ["list[0].colour", "metadata.mood", "pod.workloadRef", "z"]
    assert _found(obj) == [("UNKNOWN", field) for field in unknown]


def test_a_field_of_a_later_minor_is_unknown_before() -> None:
    assert _found({"late": "x"}, "1.36") == [("UNKNOWN", "late")]
    assert _found({"late": "x"}, "1.37") == []


def test_the_message_says_what_was_found_and_what_is_accepted() -> None:
    [error] = decode(SCHEMA, {"number": "4"}, "1.37")
    assert str(error) == 'number: Cannot decode: expected int32, found string "4"'
