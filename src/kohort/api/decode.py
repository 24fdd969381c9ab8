"""Does an object have the shape of its kind? Wrong JSON types (a server answers 400) and unknown fields (strict mode).

Nothing is changed: unknown fields stay in the object. `null` counts as absent everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import singledispatch
from typing import Any, Final

from kohort.api import definitions
from kohort.api.errors import ErrorKind, FieldError, at, show
from kohort.api.schema import Anything, Arr, Bool, Duration, Int, IntOrStr, Map, Node, Obj, Ref, Str, Time, known
from kohort.apimachinery import quantity
from kohort.apimachinery.duration import DurationError, nanoseconds

_META: Final = Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
_BARE: Final = {False: {"off", "no", "n"}, True: {"on", "yes", "y"}}
_PLAIN: Final = {"string": str, "boolean": bool}
_NAMES: Final = {dict: "object", list: "list", str: "string", bool: "boolean", int: "number", float: "number"}


def decode(schema: Obj, obj: dict[str, Any], minor: str) -> list[FieldError]:
    """All type errors and unknown fields of a whole object."""
    members = {"apiVersion": Str(), "kind": Str(), "metadata": _META, **schema.fields}
    whole = Obj(fields=members, preserve_unknown=schema.preserve_unknown)
    return list(check(whole, obj, "", minor))


@singledispatch
def check(node: Node, _value: Any, _path: str, _minor: str) -> Iterator[FieldError]:
    raise TypeError(f"{type(node).__name__} is not a schema node")


def _wrong(path: str, value: Any, wanted: str) -> FieldError:
    found = _NAMES.get(type(value), type(value).__name__)
    shown = "" if isinstance(value, (dict, list)) else f" {show(value)}"
    return FieldError(ErrorKind.DECODE, path, f"expected {wanted}, found {found}{shown}")


def _unknown(path: str, since: str | None = None) -> FieldError:
    known = f"known from Kubernetes {since} on" if since else "not a field of this kind"
    return FieldError(ErrorKind.UNKNOWN, path, known, since=since or "")


@check.register
def _(_node: Anything, _value: Any, _path: str, _minor: str) -> Iterator[FieldError]:
    return iter(())


@check.register
def _(node: Str, value: Any, path: str, _minor: str) -> Iterator[FieldError]:
    if value is None or isinstance(value, str):
        return
    wanted = "string"
    if isinstance(value, bool):  # YAML 1.1, which kubectl speaks, reads a bare Off as false
        bare = _BARE[value].intersection(word.lower() for word in node.enum)
        wanted += "".join(f' (in YAML write "{word}" with quotes)' for word in node.enum if word.lower() in bare)
    yield _wrong(path, value, wanted)


@check.register
def _(_node: Bool, value: Any, path: str, _minor: str) -> Iterator[FieldError]:
    if value is not None and not isinstance(value, bool):
        yield _wrong(path, value, "boolean")


@check.register
def _(node: Int, value: Any, path: str, _minor: str) -> Iterator[FieldError]:
    if value is None:
        return
    limit = 1 << (node.bits - 1)
    if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value < limit:
        yield _wrong(path, value, f"int{node.bits}")


@check.register
def _(_node: IntOrStr, value: Any, path: str, _minor: str) -> Iterator[FieldError]:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, str))):
        yield _wrong(path, value, "integer or string")


@check.register
def _(_node: Time, value: Any, path: str, _minor: str) -> Iterator[FieldError]:
    if value is not None and not (isinstance(value, str) and _is_time(value)):
        yield _wrong(path, value, "RFC 3339 time")


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _is_duration(text: str) -> bool:
    try:
        nanoseconds(text)
    except DurationError:
        return False
    return True


@check.register
def _(_node: Duration, value: Any, path: str, _minor: str) -> Iterator[FieldError]:
    if value is not None and not (isinstance(value, str) and _is_duration(value)):
        yield _wrong(path, value, "duration such as 90s or 4h")


@check.register
def _(node: Map, value: Any, path: str, minor: str) -> Iterator[FieldError]:
    if value is None:
        return
    if not isinstance(value, dict):
        yield _wrong(path, value, "object")
        return
    for key, item in value.items():
        yield from check(node.value, item, f"{path}[{key}]", minor)


@check.register
def _(node: Arr, value: Any, path: str, minor: str) -> Iterator[FieldError]:
    if value is None:
        return
    if not isinstance(value, list):
        yield _wrong(path, value, "list")
        return
    for index, item in enumerate(value):
        yield from check(node.item, item, f"{path}[{index}]", minor)


@check.register
def _(node: Obj, value: Any, path: str, minor: str) -> Iterator[FieldError]:
    if value is None:
        return
    if not isinstance(value, dict):
        yield _wrong(path, value, "object")
        return
    for name, item in value.items():
        member = node.fields.get(name)
        if member is not None and known(member, minor):
            yield from check(member, item, at(path, name), minor)
        elif name in node.replaced:
            yield FieldError(ErrorKind.FORBIDDEN, at(path, name), f"is not served; write {node.replaced[name]}")
        elif not node.preserve_unknown:
            yield _unknown(at(path, name), member.since if member is not None else None)


@check.register
def _(node: Ref, value: Any, path: str, minor: str) -> Iterator[FieldError]:
    schema = {"$ref": f"#/definitions/{node.definition}"}
    if not _fits(schema, value, minor, node.parsed):
        yield from _against(schema, value, path, minor, node.parsed)


# ---- the OpenAPI documents of Kubernetes


def _fits(schema: dict[str, Any], value: Any, minor: str, parsed: bool) -> bool:
    """Whether `_against` would find nothing: nearly always so, and much quicker to say than to write down what."""
    if value is None:
        return True
    whole, name = schema, definitions.target(schema)
    if name is not None:
        schema = definitions.definition(minor, name)
    kind, properties = schema.get("type"), schema.get("properties")
    if kind == "object" or properties is not None:
        return isinstance(value, dict) and _members_fit(schema, value, minor, parsed)
    if kind == "array":
        return isinstance(value, list) and all(_fits(schema["items"], item, minor, parsed) for item in value)
    if name is None and "format" not in schema and kind in _PLAIN:
        return type(value) is _PLAIN[kind]
    return not any(True for _ in _against(whole, value, "", minor, parsed))


def _members_fit(schema: dict[str, Any], value: dict[str, Any], minor: str, parsed: bool) -> bool:
    properties, extra = schema.get("properties"), schema.get("additionalProperties")
    for member, item in value.items():
        inner = properties.get(member, extra) if properties is not None else extra
        if inner is None:
            if properties is not None:
                return False
        elif item is not None and not _fits(inner, item, minor, parsed):
            return False
    return True


def _against(schema: dict[str, Any], value: Any, path: str, minor: str, parsed: bool) -> Iterator[FieldError]:
    name = definitions.target(schema)
    if name is not None:
        schema = definitions.definition(minor, name)
    if value is None:
        return
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        yield from _object(schema, value, path, minor, parsed)
    elif kind == "array":
        yield from _array(schema, value, path, minor, parsed)
    elif parsed and name is not None and name.endswith(".Quantity"):
        if not quantity.well_formed(value):
            yield _wrong(path, value, "quantity such as 500m, 2 or 4Gi")
    elif kind is not None:
        yield from check(_scalar(kind, schema.get("format", ""), name), value, path, minor)


def _scalar(kind: str, form: str, name: str | None) -> Node:
    if form == "int-or-string":
        return IntOrStr()
    if name is not None and name.endswith(".Quantity"):
        return IntOrStr()
    if form == "date-time":
        return Time()
    if kind == "integer":
        return Int(bits=64 if form == "int64" else 32)
    if kind == "boolean":
        return Bool()
    return Str() if kind == "string" else Anything()


def _object(schema: dict[str, Any], value: Any, path: str, minor: str, parsed: bool) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield _wrong(path, value, "object")
        return
    properties = schema.get("properties")
    extra = schema.get("additionalProperties")
    for name, item in value.items():
        if properties is not None and name in properties:
            yield from _against(properties[name], item, at(path, name), minor, parsed)
        elif extra is not None:
            yield from _against(extra, item, f"{path}[{name}]", minor, parsed)
        elif properties is not None:
            yield _unknown(at(path, name))


def _array(schema: dict[str, Any], value: Any, path: str, minor: str, parsed: bool) -> Iterator[FieldError]:
    if not isinstance(value, list):
        yield _wrong(path, value, "list")
        return
    for index, item in enumerate(value):
        yield from _against(schema["items"], item, f"{path}[{index}]", minor, parsed)
