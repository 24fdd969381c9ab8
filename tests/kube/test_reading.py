"""Of listed and watched objects no more is read than is asked for, and that as an ordinary dictionary."""

from __future__ import annotations

import json
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from kohort.kube.codec import Codec, Event
from kohort.kube.jsonpieces import MORE, advance
from kohort.kube.reading import Reading

Object = dict[str, Any]


class Item(Struct):
    name: Any = UNSET


class Spec(Struct, rename="camel"):
    node_name: Any = UNSET
    items: list[Item] | UnsetType | None = UNSET


class Meta(Struct):
    name: Any = UNSET


class Thing(Struct, rename="camel"):
    api_version: Any = UNSET
    kind: Any = UNSET
    metadata: Meta | UnsetType = UNSET
    spec: Spec | UnsetType | None = UNSET


def is_whole(thing: Thing) -> bool:
    return thing.metadata is not UNSET and thing.metadata.name == "whole"


CODEC = Codec(dict[str, Any], kind="Thing", api_version="v1", reading=Reading(Thing, is_whole))
PLAIN = Codec(dict[str, Any], kind="Thing", api_version="v1")
FULL: Object = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "a", "labels": {"b": "c"}},
    "spec": {"nodeName": None, "items": [{"name": "i", "value": 1}, {"value": 2}], "rest": [1, 2]},
    "status": {"phase": "x"},
}
READ: Object = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "a"},
    "spec": {"nodeName": None, "items": [{"name": "i"}, {}]},
}
WHOLE: Object = {**FULL, "metadata": {"name": "whole"}}


def line(obj: Any, kind: str = "ADDED") -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode()


def in_pieces(codec: Codec[Object], text: bytes) -> tuple[Event[Object], int]:
    """What is read, and in how many pieces."""
    parts, count = codec.event_in_pieces(text), 1
    while (found := advance(parts)) is MORE:
        count += 1
    return found, count


def test_a_line_is_read_as_far_as_it_is_asked_for() -> None:
    assert CODEC.event(line(FULL)) == Event("ADDED", READ)
    assert CODEC.event(line({**FULL, "spec": None})).object == {**READ, "spec": None}
    assert CODEC.event(line({"metadata": {"name": "a"}}, "DELETED")) == Event("DELETED", {"metadata": {"name": "a"}})


def test_all_of_it_where_a_look_says_so() -> None:
    assert CODEC.event(line(WHOLE)).object == WHOLE


def test_a_list_is_read_alike_and_its_items_say_what_they_are() -> None:
    bare = [{name: value for name, value in one.items() if name not in ("apiVersion", "kind")} for one in (FULL, WHOLE)]
    page = CODEC.page(json.dumps({"metadata": {"resourceVersion": "7"}, "items": bare}).encode())
    assert (page.version, page.items) == ("7", [READ, WHOLE])
    assert CODEC.page(b'{"metadata":{"resourceVersion":"7"},"items":null}').items == []


def test_an_answer_about_one_object_has_all_of_it() -> None:
    assert CODEC.one(json.dumps(FULL).encode()) == FULL


def test_what_the_fields_cannot_hold_is_read_whole() -> None:
    odd = {**FULL, "spec": {"items": "none"}}
    assert CODEC.event(line(odd)).object == odd
    assert CODEC.page(json.dumps({"items": [odd]}).encode()).items == [odd]


def test_bookmarks_are_told_as_ever() -> None:
    text = line({"kind": "Thing", "metadata": {"resourceVersion": "9"}}, "BOOKMARK")
    assert CODEC.event(text) == PLAIN.event(text)
    assert CODEC.event(text).version == "9"


def test_a_large_line_is_one_piece_unless_all_of_it_is_wanted() -> None:
    large = {"data": {f"k{number}": "v" for number in range(50_000)}}
    assert in_pieces(CODEC, line({**FULL, **large})) == (Event("ADDED", READ), 1)
    found, pieces = in_pieces(CODEC, line({**WHOLE, **large}))
    assert found.object == {**WHOLE, **large}
    assert pieces > 1
