"""The declared schemas have the fields, types and list keys of the OpenAPI documents that real servers publish."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api import definitions
from kohort.api.kind import Kind
from kohort.api.scheduling import KINDS
from kohort.api.schema import Arr, Bool, Int, Node, Obj, Str, Time

PAIRS = [pytest.param(kind, minor, id=f"{minor}-{kind.version}-{kind.kind}") for kind in KINDS for minor in kind.minors]
_TYPES: dict[type[Node], tuple[str, ...]] = {
    Str: ("string",),
    Bool: ("boolean",),
    Int: ("integer",),
    Time: ("string",),
    Arr: ("array",),
    Obj: ("object",),
}


@pytest.mark.parametrize(("kind", "minor"), PAIRS)
def test_schema_is_that_of_the_server(kind: Kind, minor: str) -> None:
    name = definitions.of_kind(minor, kind.group, kind.version, kind.kind)
    assert name is not None
    whole = definitions.definition(minor, name)
    fields = {member: inner for member, inner in whole["properties"].items() if member not in _ENVELOPE}
    _same_members(kind.schema, fields, kind.kind, minor, ())


_ENVELOPE = ("apiVersion", "kind", "metadata")


def _same_members(node: Obj, properties: dict[str, Any], path: str, minor: str, above: tuple[str, ...]) -> None:
    assert set(node.fields) == set(properties), path
    for name, inner in properties.items():
        _same(node.fields[name], inner, f"{path}.{name}", minor, above)


def _same(node: Node, schema: dict[str, Any], path: str, minor: str, above: tuple[str, ...]) -> None:
    target = definitions.target(schema)
    if target is not None:
        if target in above:  # a composite template inside itself: seen already
            return
        above = (*above, target)
        schema = {**definitions.definition(minor, target), **schema}
    assert schema["type"] in _TYPES[type(node)], path
    if isinstance(node, Int):
        assert schema["format"] == f"int{node.bits}", path
    if isinstance(node, Time):
        assert schema["format"] == "date-time", path
    if isinstance(node, Str) and node.enum and "enum" in schema:
        assert set(node.enum) == set(schema["enum"]), path
    if isinstance(node, Arr):
        assert list(node.key) == schema.get("x-kubernetes-list-map-keys", []), path
        _same(node.item, schema["items"], f"{path}[]", minor, above)
    if isinstance(node, Obj):
        _same_members(node, schema.get("properties") or {}, path, minor, above)


@pytest.mark.parametrize(("kind", "minor"), PAIRS)
def test_discovery_of_the_server_lists_the_kind(kind: Kind, minor: str) -> None:
    text = str(definitions.discovery(minor))
    assert kind.plural in text
    assert kind.kind in text
    assert f"'{kind.version}'" in text


def test_a_schema_that_lost_a_field_would_be_noticed() -> None:
    kind = next(kind for kind in KINDS if kind.kind == "PriorityClass")
    fields = {name: node for name, node in kind.schema.fields.items() if name != "value"}
    with pytest.raises(AssertionError, match="PriorityClass"):
        _same_members(
            Obj(fields=fields), {"value": {"type": "integer", "format": "int32"}}, "PriorityClass", "1.37", ()
        )
