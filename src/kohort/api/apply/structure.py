"""What a value may be to a merge: a scalar, a list (whole, by key, or a set), a map (whole, or by member).

Read from OpenAPI schemas, lazily, because types may contain themselves. A schema without a type allows all three; what
a value then is, the value says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kohort.api import definitions
from kohort.api.releases import NEWEST

Schema = Mapping[str, Any]

_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
# Keys that have a default in Kubernetes which the published document does not show.
_KEY_DEFAULTS: Final = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.LocalObjectReference", "name"): "",
}
_ZEROES: Final[dict[str, Any]] = {"string": "", "integer": 0, "number": 0, "boolean": False}
_SCALARS: Final = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}


class MapOf:
    """`atomic`: one value, owned as a whole. Members that are not declared are of one sort, or not allowed."""

    __slots__ = ("_element", "_known", "_preserve", "_properties", "_reader", "atomic")

    def __init__(
        self, reader: Reader, properties: Schema, element: Structure | Schema | None, *, atomic: bool, preserve: bool
    ) -> None:
        self.atomic = atomic
        self._reader, self._properties, self._element, self._preserve = reader, properties, element, preserve
        self._known: dict[str, Structure] = {}

    def declares(self, name: str) -> bool:
        return name in self._properties

    @property
    def deduced(self) -> bool:
        return not self._properties and self._element is DEDUCED

    def of(self, name: str) -> Structure | None:
        """What a member is; None if there is no such member."""
        known = self._known.get(name)
        if known is None:
            if name not in self._properties:
                return self._other()
            known = self._known[name] = self._reader.read(self._properties[name], preserve=self._preserve)
        return known

    def _other(self) -> Structure | None:
        if self._element is not None and not isinstance(self._element, Structure):
            self._element = self._reader.read(self._element, preserve=self._preserve)
        return self._element


class ListOf:
    """`keys`: items are told apart by these members; without keys, and not atomic, it is a set of scalars."""

    __slots__ = ("_item", "_preserve", "_reader", "atomic", "defaults", "keys")

    def __init__(
        self,
        reader: Reader,
        item: Structure | Schema,
        *,
        atomic: bool,
        keys: tuple[str, ...] = (),
        preserve: bool = False,
    ) -> None:
        self._reader, self._item, self._preserve = reader, item, preserve
        self.atomic, self.keys = atomic, keys
        self.defaults: dict[str, Any] = {}
        if keys and not isinstance(item, Structure):
            self.defaults = reader.key_defaults(item, keys)

    @property
    def item(self) -> Structure:
        if not isinstance(self._item, Structure):
            self._item = self._reader.read(self._item, preserve=self._preserve)
        return self._item


class Structure:
    """What a value may be; more than one only where a schema says nothing of the type.

    `only`: map, scalar or list if it is one of them, else "". `first`: as what null is handled.
    """

    __slots__ = ("first", "list", "map", "only", "scalar")

    def __init__(self, scalar: str | None = None, list: ListOf | None = None, map: MapOf | None = None) -> None:  # noqa: A002
        self.scalar, self.list, self.map = scalar, list, map
        sorts = [name for name, sort in (("map", map), ("scalar", scalar), ("list", list)) if sort is not None]
        self.only = sorts[0] if len(sorts) == 1 else ""
        self.first = sorts[0]

    def sort_of(self, value: Any) -> str:
        """Which of map, scalar and list counts for a value; "" where it does not say (null, or the wrong type)."""
        if self.only:
            return self.only
        if isinstance(value, dict):
            return "map"
        if isinstance(value, list):
            return "list"
        return "" if value is None else "scalar"


class Reader:
    """Reads schemas that may refer to the definitions of one document."""

    __slots__ = ("_definitions", "_named")

    def __init__(self, known: Mapping[str, Schema]) -> None:
        self._definitions = known
        self._named: dict[tuple[str, object], Structure] = {}

    def read(self, schema: Schema, *, preserve: bool = False) -> Structure:
        reference = schema.get("$ref")
        if reference:
            return self._referred(str(reference).rpartition("/")[2], schema.get("x-kubernetes-map-type"))
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        match schema.get("type"):
            case "object":
                return Structure(map=self._map(schema, preserve))
            case "array":
                return Structure(list=self._list(schema, preserve))
            case None:
                return Structure("untyped", self._list(schema, preserve), self._map(schema, preserve))
            case "string":
                return Structure("string" if schema.get("format", "") in {"", "byte"} else "untyped")
            case kind:
                return Structure(_SCALARS.get(str(kind), "untyped"))

    def _referred(self, name: str, map_type: object) -> Structure:
        mark = (name, map_type)
        if mark not in self._named:
            self._named[mark] = self._definition(name, map_type)
        return self._named[mark]

    def _definition(self, name: str, map_type: object) -> Structure:
        if name == _QUANTITY:
            return Structure("untyped")
        if name == _RAW:
            return UNTYPED
        schema = dict(self._definitions[name])
        if map_type is not None:
            schema["x-kubernetes-map-type"] = map_type
        return self.read(schema)

    def _map(self, schema: Schema, preserve: bool) -> MapOf:
        properties = schema.get("properties") or {}
        more = schema.get("additionalProperties")
        element: Structure | Schema | None = None
        if isinstance(more, Mapping):
            element = more
        elif more is True or (more is None and (preserve or not properties)):
            element = DEDUCED
        atomic = schema.get("x-kubernetes-map-type") == "atomic"
        return MapOf(self, properties, element, atomic=atomic, preserve=preserve)

    def _list(self, schema: Schema, preserve: bool) -> ListOf:
        item = schema.get("items") or UNTYPED
        sort, keys = _list_type(schema)
        return ListOf(self, item, atomic=sort == "atomic", keys=keys, preserve=preserve)

    def key_defaults(self, item: Schema, keys: tuple[str, ...]) -> dict[str, Any]:
        """Values of keys that an item does not have. A required scalar of Kubernetes is never absent: it is zero."""
        name = definitions.target(dict(item)) or ""
        schema = self._definitions.get(name, item)
        properties, needed = schema.get("properties") or {}, schema.get("required") or ()
        found: dict[str, Any] = {}
        for key in keys:
            member = properties.get(key) or {}
            if (name, key) in _KEY_DEFAULTS:
                found[key] = _KEY_DEFAULTS[name, key]
            elif member.get("default") is not None:
                found[key] = member["default"]
            elif name and key in needed and member.get("type") in _ZEROES:
                found[key] = _ZEROES[member["type"]]
        return found


def _list_type(schema: Schema) -> tuple[str, tuple[str, ...]]:
    sort = schema.get("x-kubernetes-list-type")
    if sort is not None:
        return str(sort), tuple(schema.get("x-kubernetes-list-map-keys") or ()) if sort == "map" else ()
    if schema.get("x-kubernetes-patch-strategy") in {"merge", "merge,retainKeys"}:
        key = schema.get("x-kubernetes-patch-merge-key")
        return ("map", (str(key),)) if key else ("set", ())
    return "atomic", ()


_NO_DEFINITIONS: Final = Reader({})


def _anything(*, atomic: bool) -> Structure:
    """All three sorts, of which the maps contain the same again; lists are always one value."""
    made = Structure("untyped")
    made.list = ListOf(_NO_DEFINITIONS, made, atomic=True)
    made.map = MapOf(_NO_DEFINITIONS, {}, made, atomic=atomic, preserve=True)
    made.only, made.first = "", "map"
    return made


UNTYPED: Final = _anything(atomic=True)
DEDUCED: Final = _anything(atomic=False)  # nothing is known of it: maps are merged by member


@cache
def _reader(minor: str) -> Reader:
    return Reader(definitions.document(minor)["definitions"])


@cache
def native(minor: str, api_version: str, kind: str) -> Structure | None:
    """A kind of Kubernetes itself; None if the minor does not know it."""
    group, _, version = api_version.rpartition("/")
    name = definitions.of_kind(minor, group, version, kind)
    return None if name is None else _reader(minor).read({"$ref": f"#/definitions/{name}"})


def custom(schema: Schema | None, *, preserve_unknown: bool = False) -> Structure:
    """A kind of a CRD: `schema` is its openAPIV3Schema."""
    if not schema:
        return DEDUCED
    head = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": f"#/definitions/{_META}"},
    }
    whole = {**schema, "type": "object", "properties": {**(schema.get("properties") or {}), **head}}
    return _reader(NEWEST).read(whole, preserve=preserve_unknown)
