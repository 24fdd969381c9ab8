"""From a structural schema to the type of `self`, and from a stored value to the one that a rule sees."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from kohort.cel import times
from kohort.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Type
from kohort.cel.values import CelError, MapList, SetList

Schema = Mapping[str, Any]
LARGEST: Final = 3 << 20  # bytes of a request
_ANY_TEXT: Final = LARGEST - 2
_MARKS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_TOKENS: Final = frozenset({"true", "false", "null", "in"})
_RESERVED: Final = frozenset(  # no variable has such a name; after a dot it is a name like others
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    }
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TIMES: Final = {  # of a format: the type, bytes at least and at most
    "duration": (DURATION, 3, 32),
    "date": (TIMESTAMP, 12, 12),
    "date-time": (TIMESTAMP, 21, 32),
}
_SCALARS: Final = {"boolean": BOOL, "number": DOUBLE, "integer": INT}
_TEXT: Final[Schema] = {"type": "string"}
_LONGEST_NAME: Final = 253


def escaped(name: str) -> str | None:
    """A property's name in rules; None if it cannot have one."""
    if name in _TOKENS or name in _RESERVED:
        return f"__{name}__"
    found = re.sub(r"__|[./-]", lambda mark: _MARKS[mark[0]], name)
    return found if _NAME.fullmatch(found) else None


def declared(schema: Schema, root: bool = False, path: str = "self") -> Type | None:
    """None: rules cannot see such a value."""
    if schema.get("x-kubernetes-int-or-string"):
        longest = schema.get("maxLength")
        return _sized(DYN, _ANY_TEXT if longest is None else max(0, longest) * 4, 1)
    sort = schema.get("type")
    if sort == "array":
        return _list(schema, path)
    if sort == "object":
        return _object(schema, root, path)
    return _string(schema) if sort == "string" else _SCALARS.get(str(sort))


def _sized(kind: Type, most: int, least: int) -> Type:
    return Type(kind.kind, kind.parts, most=most, least=least)


def _inner(schema: Any, path: str) -> Type | None:
    if not isinstance(schema, Mapping):
        return None
    return declared(schema, schema.get("x-kubernetes-embedded-resource") is True, path)


def _list(schema: Schema, path: str) -> Type | None:
    items = _inner(schema.get("items"), f"{path}.@items")
    if items is None:
        return None
    most = schema.get("maxItems")
    return Type("list", (items,), most=_ANY_TEXT // (items.least + 1) if most is None else max(0, most), least=2)


def _object(schema: Schema, root: bool, path: str) -> Type | None:
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping) and not root:
        items = _inner(more, f"{path}.@values")
        if items is None:
            return None
        most = schema.get("maxProperties")
        limit = _ANY_TEXT // (items.least + 6) if most is None else max(0, most)
        return Type("map", (STRING, items), most=limit, least=2)
    properties = _with_metadata(schema.get("properties") or {}) if root else schema.get("properties") or {}
    fields: dict[str, Type] = {}
    least, required = 2, set(schema.get("required") or ())
    for name, member in properties.items():
        found = _inner(member, f"{path}.{name}")
        if found is None:
            continue
        shown = escaped(name)
        if shown is not None:
            fields[shown] = found
        if name in _RESERVED:
            fields[name] = found
        if name in required and "default" not in member:
            least += len(name.encode()) + found.least + 4
    return Type("object", name=path, fields=fields, least=least)


def _with_metadata(properties: Schema) -> Schema:
    """A whole object has names, and rules can see nothing else of its metadata unless its schema has all of them."""
    metadata = (properties.get("metadata") or {}).get("properties") or {}
    said = [properties.get("kind"), properties.get("apiVersion"), metadata.get("name"), metadata.get("generateName")]
    if all((one or {}).get("type") == "string" for one in said):
        return properties
    names = {
        name: {**_TEXT, "maxLength": min(longest, (metadata.get(name) or {}).get("maxLength", longest))}
        for name, longest in (("name", _LONGEST_NAME), ("generateName", _LONGEST_NAME - 1))
    }
    own = {"kind": _TEXT, "apiVersion": _TEXT, "metadata": {"type": "object", "properties": names}}
    return {**properties, **own}


def _string(schema: Schema) -> Type:
    form, longest = schema.get("format"), schema.get("maxLength")
    if form == "byte":
        return _sized(BYTES, _ANY_TEXT if longest is None else max(0, longest), 2)
    if form in _TIMES:
        kind, least, most = _TIMES[form]
        return _sized(kind, most, least)
    if longest is not None:
        return _sized(STRING, max(0, longest) * 4, 2)
    words = [len(one.encode()) for one in schema.get("enum") or () if isinstance(one, str)]
    return _sized(STRING, max(words, default=0) if schema.get("enum") else _ANY_TEXT, 2)


# ---- values


def converts(schema: Schema) -> bool:
    """Whether values of this schema look different to a rule."""
    sort = schema.get("type")
    if sort == "string":
        return schema.get("format") in {*_TIMES, "byte"}
    if sort == "number" or (sort == "array" and schema.get("x-kubernetes-list-type") in {"set", "map"}):
        return True
    inner = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(isinstance(one, Mapping) and converts(one) for one in inner)


def converted(value: Any, schema: Schema | None) -> Any:
    """The value with times, bytes, doubles and lists without order in it. What has another type stays as it is."""
    if schema is None or value is None:
        return value
    if isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        rest = more if isinstance(more, Mapping) else None
        return {name: converted(member, properties.get(name, rest)) for name, member in value.items()}
    if isinstance(value, list):
        return _items([converted(one, schema.get("items")) for one in value], schema)
    if isinstance(value, int) and not isinstance(value, bool) and schema.get("type") == "number":
        return float(value)
    return _text(value, schema) if isinstance(value, str) and schema.get("type") == "string" else value


def _items(value: list[Any], schema: Schema) -> list[Any]:
    sort = schema.get("x-kubernetes-list-type")
    if sort == "set":
        return SetList(value)
    if sort == "map":
        found = MapList(value)
        found.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        return found
    return value


def _text(value: str, schema: Schema) -> Any:
    form = schema.get("format")
    try:
        if form == "byte":
            return base64.b64decode(value, validate=True)
        if form == "duration":
            return times.parse_duration(value)
        if form in {"date", "date-time"}:
            return times.parse_date(value) if form == "date" else times.parse_timestamp(value)
    except (CelError, binascii.Error):
        pass
    return value
