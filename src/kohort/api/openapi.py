"""A kind's schema as OpenAPI v3: structural, as a CRD wants it, or with references, as a server's document has it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any, Final

from kohort.api import cel, formats
from kohort.api.descriptions import described, of_kind
from kohort.api.expansion import Schema, any_object, anything, expanded, int_or_string
from kohort.api.schema import UNSET, Anything, Arr, Bool, Duration, Int, IntOrStr, Map, Node, Obj, Ref, Str, Time

if TYPE_CHECKING:
    from kohort.api.formats import Format
    from kohort.api.kind import Kind

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
# What a pattern can say of a format; the rest is said by the rules of the kind.
_PATTERNS: Final[dict[Format, Schema]] = {
    formats.label: {"maxLength": 63, "pattern": f"^{_LABEL}$"},
    formats.label_1035: {"maxLength": 63, "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"},
    formats.subdomain: {"maxLength": 253, "pattern": rf"^{_LABEL}(\.{_LABEL})*$"},
    formats.label_key: {"maxLength": 317, "pattern": r"^([^/]+/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"},
    formats.label_value: {"maxLength": 63, "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"},
}
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def structural(kind: Kind) -> Schema:
    """The schema of a version of a CRD: nothing is referred to, and every rule that has a bounded cost is in."""
    return _whole(kind, _Writer(expanded, with_rules=True), {"type": "object"})


def openapi_definition(kind: Kind, prefix: str = "#/definitions/") -> Schema:
    """The definition of a kind in a server's OpenAPI document; types of Kubernetes are referred to."""

    def refer(definition: str) -> Schema:
        return {"$ref": f"{prefix}{definition}"}

    whole = _whole(kind, _Writer(refer, with_rules=False), refer(_META))
    identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    return {**whole, "x-kubernetes-group-version-kind": [identity]}


def _whole(kind: Kind, writer: _Writer, meta: Schema) -> Schema:
    schema = writer.schema(kind.schema, cel.Spot())
    head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": meta}
    return described({**schema, "properties": head | schema.get("properties", {})}, of_kind(kind.kind))


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes nodes. `refer` says what stands for a type of Kubernetes; `above` are the objects around, by identity."""

    refer: Callable[[str], Schema]
    with_rules: bool
    above: tuple[int, ...] = ()

    def schema(self, node: Node, spot: cel.Spot) -> Schema:
        found = self._body(node, spot)
        if node.description:
            found = {**found, "description": node.description}
        if node.nullable:
            found["nullable"] = True
        # A default that depends on a gate is the server's, not the schema's.
        if node.default is not UNSET and node.gate is None:
            found["default"] = deepcopy(node.default)
        rules = cel.rules(node, spot) if self.with_rules else []
        if rules:
            found["x-kubernetes-validations"] = [*found.get("x-kubernetes-validations", []), *rules]
        return found

    @singledispatchmethod
    def _body(self, node: Node, _spot: cel.Spot) -> Schema:
        raise TypeError(f"{type(node).__name__} is not a schema node")

    @_body.register
    def _(self, node: Str, _spot: cel.Spot) -> Schema:
        found: Schema = {"type": "string"}
        if node.enum:
            found["enum"] = list(node.enum)
        elif node.format in _PATTERNS:
            found |= _PATTERNS[node.format]
        if node.pattern:
            found["pattern"] = node.pattern
        if node.min_length:
            found["minLength"] = node.min_length
        most = node.max_bytes if node.max_bytes is not None else node.most
        if most is not None:
            found["maxLength"] = most
        return found

    @_body.register
    def _(self, node: Int, _spot: cel.Spot) -> Schema:
        found: Schema = {"type": "integer", "format": f"int{node.bits}"}
        if node.minimum is not None:
            found["minimum"] = node.minimum
        if node.maximum is not None:
            found["maximum"] = node.maximum
        return found

    @_body.register
    def _(self, _node: Bool, _spot: cel.Spot) -> Schema:
        return {"type": "boolean"}

    @_body.register
    def _(self, _node: IntOrStr, _spot: cel.Spot) -> Schema:
        return int_or_string()

    @_body.register
    def _(self, _node: Time, _spot: cel.Spot) -> Schema:
        return {"type": "string", "format": "date-time"}

    @_body.register
    def _(self, _node: Duration, _spot: cel.Spot) -> Schema:
        return {"type": "string"}

    @_body.register
    def _(self, _node: Anything, _spot: cel.Spot) -> Schema:
        return anything()

    @_body.register
    def _(self, node: Ref, _spot: cel.Spot) -> Schema:
        return self.refer(node.definition)

    @_body.register
    def _(self, node: Map, spot: cel.Spot) -> Schema:
        return {"type": "object", "additionalProperties": self.schema(node.value, spot.within(None, correlated=True))}

    @_body.register
    def _(self, node: Arr, spot: cel.Spot) -> Schema:
        sort = _list_type(node)
        inner = spot.within(node.max_items, correlated="x-kubernetes-list-map-keys" in sort)
        found: Schema = {"type": "array", "items": self.schema(node.item, inner)}
        if node.max_items is not None:
            found["maxItems"] = node.max_items
        if node.min_items:
            found["minItems"] = node.min_items
        return found | sort

    @_body.register
    def _(self, node: Obj, spot: cel.Spot) -> Schema:
        mark = id(node.fields)
        if mark in self.above:  # a type within itself: no finite schema
            return any_object()
        inner = _Writer(self.refer, self.with_rules, (*self.above, mark)) if node.fields else self
        found: Schema = {"type": "object"}
        if node.fields:
            found["properties"] = {name: inner.schema(member, spot) for name, member in node.fields.items()}
        needed = [name for name, member in node.fields.items() if member.required]
        if needed:
            found["required"] = needed
        if node.preserve_unknown:
            found["x-kubernetes-preserve-unknown-fields"] = True
        return found


def _list_type(node: Arr) -> dict[str, Any]:
    """A list by key is one for a server only if its keys are always there and repeats are its own error."""
    if node.unique:
        return {"x-kubernetes-list-type": "set"}
    if not node.key:
        return {"x-kubernetes-list-type": "atomic"}
    if node.distinct and _always(node):
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(node.key)}
    return {}


def _always(node: Arr) -> bool:
    if isinstance(node.item, Ref):
        schema = expanded(node.item.definition)
        needed, properties = schema.get("required") or [], schema.get("properties") or {}
        return all(key in needed or "default" in properties.get(key, {}) for key in node.key)
    fields = node.item.fields if isinstance(node.item, Obj) else {}
    return all(key in fields and (fields[key].required or fields[key].default is not UNSET) for key in node.key)
