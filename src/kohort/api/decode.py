"""Does an object have the shape of its kind? Wrong JSON types (a server answers 400) and unknown fields (strict mode).

Nothing is changed: unknown fields stay in the object. `null` counts as absent everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    if value is not None and not _fits(schema, minor, node.parsed)(value):
        yield from _against(schema, value, path, minor, node.parsed)


# ---- the OpenAPI documents of Kubernetes


Fits = Callable[[Any], bool]
_FITS: Final[dict[tuple[str, str, bool], Fits]] = {}


def _fits(schema: dict[str, Any], minor: str, parsed: bool) -> Fits:
    """Says whether `_against` would find nothing: nearly always so, and much quicker to say than to write down what.

    A function for each type of the document, made when a value of that type is first met.
    """
    name = definitions.target(schema)
    if name is None:
        return _fits_inline(schema, schema, minor, parsed)
    key = (minor, name, parsed)
    if key not in _FITS:
        _FITS[key] = _fits_inline(definitions.definition(minor, name), schema, minor, parsed)
    return _FITS[key]


def _fits_inline(schema: dict[str, Any], whole: dict[str, Any], minor: str, parsed: bool) -> Fits:
    kind, properties = schema.get("type"), schema.get("properties")
    if kind == "object" or properties is not None:
        return _object_fits(schema, minor, parsed)
    if kind == "array":
        return _array_fits(schema, minor, parsed)
    if schema is whole and "format" not in schema and kind in _PLAIN:
        plain = _PLAIN[kind]
        return lambda value: type(value) is plain
    node = _scalar(kind, schema.get("format", ""), definitions.target(whole)) if kind is not None else None
    if isinstance(node, Int):
        limit = 1 << (node.bits - 1)
        return lambda value: type(value) is int and -limit <= value < limit
    if isinstance(node, Time):
        return lambda value: isinstance(value, str) and _is_time(value)
    return lambda value: not any(True for _ in _against(whole, value, "", minor, parsed))


def _array_fits(schema: dict[str, Any], minor: str, parsed: bool) -> Fits:
    item_fits: list[Fits] = []

    def fits(value: Any) -> bool:
        if not isinstance(value, list):
            return False
        if value and not item_fits:
            item_fits.append(_fits(schema["items"], minor, parsed))
        return all(item is None or item_fits[0](item) for item in value)

    return fits


def _object_fits(schema: dict[str, Any], minor: str, parsed: bool) -> Fits:
    properties, extra = schema.get("properties"), schema.get("additionalProperties")
    known: dict[str, Fits] = {}  # of members that the type names; what a map holds may have any name
    others: list[Fits] = []

    def member_fits(name: str) -> Fits | None:
        if properties is not None and name in properties:
            known[name] = _fits(properties[name], minor, parsed)
            return known[name]
        if extra is None:
            return None
        if not others:
            others.append(_fits(extra, minor, parsed))
        return others[0]

    def fits(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        for name, item in value.items():
            inner = known.get(name) or member_fits(name)
            if inner is None:
                if properties is not None:
                    return False
            elif item is not None and not inner(item):
                return False
        return True

    return fits


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
