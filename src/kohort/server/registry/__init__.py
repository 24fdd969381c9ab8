"""The registry of Kubernetes' kinds that `kohort.api` has no module for: structure from OpenAPI, strategies by hand.

The result is a `Kind` like any other, so that one pipeline (kohort.api.admit) serves them all.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from kohort.api import definitions, formats
from kohort.api.kind import Kind
from kohort.api.schema import Anything, Arr, Bool, Int, Map, Node, Obj, Ref, Str, Time
from kohort.server.registry import strategy

_HEAD: Final = ("apiVersion", "kind", "metadata")


@cache
def generic(minor: str, group: str, version: str, kind: str, plural: str, namespaced: bool, status: bool) -> Kind:
    """A kind as the OpenAPI document of a minor describes it, with what is known of it by hand."""
    name = definitions.of_kind(minor, group, version, kind)
    schema = Obj(fields=_members(minor, name)) if name is not None else Obj(preserve_unknown=True)
    known = strategy.of(group, kind)
    return Kind(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        schema=schema,
        namespaced=namespaced,
        native=True,
        status=status,
        name_format=known.name_format or formats.subdomain,
        needs_version=known.needs_version,
        counts_changes=known.counts_changes,
        first_status=known.first_status,
        default=known.default,
        validate=known.validate,
        validate_update=known.validate_update,
        warn=known.warn,
    )


def _members(minor: str, name: str) -> dict[str, Node]:
    properties = definitions.definition(minor, name).get("properties") or {}
    return {member: node(minor, schema) for member, schema in properties.items() if member not in _HEAD}


def node(minor: str, schema: dict[str, Any]) -> Node:
    """A member's OpenAPI schema as a node; types of their own stay references."""
    name = definitions.target(schema)
    if name is not None:
        inner = definitions.definition(minor, name)
        if name.endswith(("Time", "MicroTime")) and inner.get("format") == "date-time":
            return Time(micro=name.endswith("MicroTime"))
        return Ref(definition=name, parsed=True)
    sort = schema.get("type")
    if sort == "array":
        return Arr(item=node(minor, schema["items"]), distinct=False)
    if sort == "object" and "additionalProperties" in schema:
        return Map(value=node(minor, schema["additionalProperties"]))
    if sort == "integer":
        return Int(bits=64 if schema.get("format") == "int64" else 32)
    simple: dict[Any, Node] = {"boolean": Bool(), "string": Str(blank=True)}
    return simple.get(sort, Anything())
