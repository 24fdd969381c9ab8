"""A version of a definition as a Kind: a structural schema and its rules as the strategy of a kind."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.api import decode, registry
from kohort.api.errors import ErrorKind, FieldError, invalid
from kohort.api.kind import Column, Context, Kind, Object, Scale
from kohort.api.openapi import structural as schema_of
from kohort.api.schema import Node, Obj
from kohort.server import jsonpath
from kohort.server.crd import schema, validate
from kohort.server.crd.definition import spec_of

_UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
# After one of these, upstream does not try the rules: they may not fit what they are about.
_BLOCKING: Final = frozenset(
    {
        ErrorKind.NOT_SUPPORTED,
        ErrorKind.REQUIRED,
        ErrorKind.TOO_LONG,
        ErrorKind.TOO_MANY,
        ErrorKind.TYPE_INVALID,
    }
)
_MOST_REPLICAS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Structural(Node):
    """A member of a custom resource: wrong types are found by validation, unknown fields while decoding."""

    schema: Mapping[str, Any] = field(default_factory=dict)


@decode.check.register
def _(node: Structural, value: Any, path: str, _minor: str) -> Iterator[FieldError]:
    for found in schema.unknown(value, node.schema, path):
        yield FieldError(ErrorKind.UNKNOWN, found, "not a field of this kind")


class _SchemaStrategy:
    """The rules of one schema, as the functions of a Kind."""

    def __init__(self, whole: Mapping[str, Any], scale: Scale | None) -> None:
        # An object has metadata whether its schema says so or not.
        self._schema = {**whole, "x-kubernetes-embedded-resource": True}
        self._ruled = "x-kubernetes-validations" in str(whole)
        self._scale = scale

    def default(self, obj: Object, _: Context) -> None:
        schema.prune(obj, self._schema)
        schema.drop_nulls(obj, self._schema)
        schema.fill(obj, self._schema)

    def validate(self, obj: Object, _: Context) -> list[FieldError]:
        return self._checked(list(validate.check(self._schema, obj)), obj, validate.ABSENT)

    def validate_update(self, new: Object, old: Object, _: Context) -> list[FieldError]:
        return self._checked(list(validate.check(self._schema, new, "", old)), new, old)

    def _checked(self, found: list[FieldError], new: Object, old: Any) -> list[FieldError]:
        found += self._scaled(new)
        if not self._ruled:
            return found
        if any(one.kind in _BLOCKING for one in found):
            return [*found, FieldError(ErrorKind.INVALID, validate.NOWHERE, _UNCHECKED, None)]
        from kohort.server.crd import rules  # with the language: loaded by the first kind that has a rule

        return [*found, *rules.check(self._schema, new, old)]

    def _scaled(self, new: Object) -> Iterator[FieldError]:
        """What the scale endpoint will read must be a number of replicas."""
        for path in (self._scale.spec_replicas, self._scale.status_replicas) if self._scale is not None else ():
            found = jsonpath.first(new, path)
            if found is None:
                continue
            if isinstance(found, bool) or not isinstance(found, int):
                yield invalid(path, 0, f"{path} accessor error: {found} is of the type {_go(found)}, expected int64")
            elif found < 0:
                yield invalid(path, found, "should be a non-negative integer")
            elif found > _MOST_REPLICAS:
                yield invalid(path, found, f"should be less than or equal to {_MOST_REPLICAS}")


def _go(value: Any) -> str:
    names = {bool: "bool", str: "string", float: "float64", dict: "map[string]interface {}", list: "[]interface {}"}
    return names.get(type(value), type(value).__name__)


def kind_of(crd: Object, version: Mapping[str, Any], *, own_rules: bool = True) -> Kind:
    spec = spec_of(crd)
    names = (crd.get("status") or {}).get("acceptedNames") or spec.get("names") or {}
    whole = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    own = registry.find(f"{spec['group']}/{version['name']}", names["kind"]) if own_rules else None
    if own is not None and not own.native and _schema_of(own.api_version, own.kind) == whole:
        return own  # our own definition: our rules, which say more than a schema can
    members = {
        name: Structural(schema=member)
        for name, member in (whole.get("properties") or {}).items()
        if name not in schema.META
    }
    subresources = version.get("subresources") or {}
    scale = _scale(subresources.get("scale"))
    strategy = _SchemaStrategy(whole, scale)
    return Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        schema=Obj(fields=members, preserve_unknown=whole.get("x-kubernetes-preserve-unknown-fields") is True),
        singular=names.get("singular") or "",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        namespaced=spec.get("scope") == "Namespaced",
        native=False,
        columns=tuple(_column(one) for one in version.get("additionalPrinterColumns") or ()),
        status=subresources.get("status") is not None,
        scale=scale,
        storage=version.get("storage") is True,
        needs_version=True,
        counts_changes=True,
        default=strategy.default,
        validate=strategy.validate,
        validate_update=strategy.validate_update,
        validate_status=strategy.validate_update,
    )


@functools.cache
def _schema_of(api_version: str, kind: str) -> Mapping[str, Any] | None:
    own = registry.find(api_version, kind)
    return None if own is None else schema_of(own)


def _column(one: Mapping[str, Any]) -> Column:
    return Column(
        one["name"], one["type"], one["jsonPath"], None, int(one.get("priority") or 0), one.get("description") or ""
    )


def _scale(one: Mapping[str, Any] | None) -> Scale | None:
    if not one:
        return None
    return Scale(one["specReplicasPath"], one["statusReplicasPath"], one.get("labelSelectorPath"))


def default_on_read(rules_of: Kind, whole: Mapping[str, Any]) -> Callable[[Object], Object] | None:
    """Objects that were stored before a default was defined have it when they are read. Our own schemas are fixed."""
    if registry.find(rules_of.api_version, rules_of.kind) is rules_of or not _has_default(whole):
        return None

    def complete(obj: Object) -> Object:
        schema.fill(obj, whole)
        return obj

    return complete


def _has_default(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_default, value))
    return isinstance(value, dict) and ("default" in value or any(map(_has_default, value.values())))
