"""The storage form of an object: what a server's decoding leaves of a body, and what its encoding writes.

A native server decodes into structs and encodes them again: unknown fields and nulls vanish, empty lists, maps and
plain strings too, and a few absent fields come back as null. Objects of our kinds that come as CRDs only
lose unknown fields and nulls. Quantities take their shortest form in both: the webhooks of those kinds see to it.
"""

from __future__ import annotations

import operator
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from kohort.api import definitions
from kohort.api.copying import copied
from kohort.api.schema import Arr, Bool, Int, Map, Node, Obj, Ref, Str, Time, known
from kohort.apimachinery.quantity import MILLI, NANO, canonical
from kohort.apimachinery.times import micros, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from kohort.api.kind import Kind, Object

    Form = Callable[[Any], Any]

_EMPTY_ITEMS: Final[tuple[tuple[type[Node], Any], ...]] = ((Str, ""), (Int, 0), (Bool, False))
_SECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MICROS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_AMOUNTS: Final = "io.k8s.api.core."  # maps of quantities in these types are amounts of resources


def to_storage(kind: Kind, obj: Object, minor: str, prior: Object | None = None) -> Object:
    """A copy of a decodable object as it would be kept. `prior`: one that is kept so; what they share is in form."""
    fields = kind.schema.fields
    shared = {name: copied(obj[name]) for name in fields if prior and name in obj and obj[name] is prior.get(name)}
    fresh = {name: value for name, value in obj.items() if name not in shared} if shared else obj
    body = {**_object(kind.schema, fresh, minor, kind.native), **shared}
    if shared:
        body = {**{name: body[name] for name in fields if name in body}, **body}  # in the usual order
    meta = obj.get("metadata") or {}
    in_form = prior is not None and meta is prior.get("metadata")
    meta = copied(meta) if in_form else _keep(Ref(definition=_META), meta, minor, True)
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **body}


def to_response(kind: Kind, obj: Object) -> Object:
    """A kept object as a server answers it: with the nulls that it writes for some absent fields."""
    return {**obj, **_show(kind.schema, {name: obj[name] for name in kind.schema.fields if name in obj})}


def writes_nulls(kind: Kind) -> bool:
    """Whether there are such fields."""
    key = (kind.api_version, kind.kind)
    if key not in _SHOWS:
        _SHOWS[key] = _has_shown(kind.schema)
    return _SHOWS[key]


_SHOWS: Final[dict[tuple[str, str], bool]] = {}


def _has_shown(node: Node) -> bool:
    inner = node.fields.values() if isinstance(node, Obj) else (node.item,) if isinstance(node, Arr) else ()
    return node.shown or any(map(_has_shown, inner))


def _object(node: Obj, value: Any, minor: str, native: bool) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, member in node.fields.items():
        if not known(member, minor):
            continue
        item = _keep(member, value.get(name), minor, native)
        if item is not None:
            kept[name] = item
    if node.preserve_unknown:
        kept |= {name: copied(item) for name, item in value.items() if name not in node.fields}
    return kept


def _keep(node: Node, value: Any, minor: str, native: bool) -> Any:
    if isinstance(node, Obj):
        return None if value is None and not node.embedded else _object(node, value or {}, minor, native)
    if value is None:
        return None
    if isinstance(node, Ref):
        metadata = node.definition == _META
        decoded = native or metadata  # into structs, also where the rest is a CRD's
        return _form({"$ref": f"#/definitions/{node.definition}"}, minor, metadata, decoded)(value)
    if isinstance(node, Arr):
        kept: Any = [_item(node.item, item, minor, native) for item in value]
    elif isinstance(node, Map):
        kept = {key: item for key, one in value.items() if (item := _keep(node.value, one, minor, False)) is not None}
    elif isinstance(node, Time) and native:
        kept = _utc(value, micro=node.micro)
    else:
        kept = copied(value)
    return None if native and _blank(node, kept) else kept


def _blank(node: Node, value: Any) -> bool:
    """Whether a struct's encoding leaves the value out."""
    return not value and (isinstance(node, (Arr, Map)) or (isinstance(node, (Str, Int)) and node.blank))


def _item(node: Node, value: Any, minor: str, native: bool) -> Any:
    if isinstance(node, Obj):  # in a list nothing can be left out: null is an empty item
        return _object(node, value or {}, minor, native)
    kept = _keep(node, value, minor, native)
    if kept is not None:
        return kept
    if isinstance(node, Ref):
        return {}
    return next((empty for sort, empty in _EMPTY_ITEMS if isinstance(node, sort)), None)


_FORMS: Final[dict[tuple[str, str, bool, bool], Form]] = {}
_ZEROES: Final[dict[str, Any]] = {"string": "", "integer": 0, "boolean": False}


def _form(schema: dict[str, Any], minor: str, tidy: bool, decoded: bool, finest: int = NANO) -> Form:
    """As `_keep`, for a type of the OpenAPI document: a function for each, made when a value of it is first met.

    `tidy`: empty values vanish as well (metadata). `finest`: of quantities in a map.
    """
    name = definitions.target(schema)
    if name is None:
        return _form_inline(schema, minor, tidy, decoded, finest)
    key = (minor, name, tidy, decoded)
    if key not in _FORMS:
        _FORMS[key] = _named_form(name, minor, tidy, decoded)
    return _FORMS[key]


def _named_form(name: str, minor: str, tidy: bool, decoded: bool) -> Form:
    if name == _QUANTITY:
        return lambda value: value if value is None and not decoded else canonical(value)
    finest = MILLI if decoded and name.startswith(_AMOUNTS) else NANO
    inline = _form_inline(definitions.definition(minor, name), minor, tidy, decoded, finest)
    if decoded and name.endswith(("v1.Time", "v1.MicroTime")):
        micro = name.endswith("MicroTime")
        return lambda value: _utc(value, micro=micro) if isinstance(value, str) else inline(value)
    return inline


def _form_inline(schema: dict[str, Any], minor: str, tidy: bool, decoded: bool, finest: int) -> Form:
    kind = schema.get("type", "")
    inside: list[Form] = []

    def form(value: Any) -> Any:
        if value is None:
            return _ZEROES.get(kind, [] if kind == "array" else {})
        if isinstance(value, list) and "items" in schema:
            if not inside:
                inside.append(_form(schema["items"], minor, tidy, decoded))
            return [inside[0](item) for item in value]
        return copied(value)

    if "properties" not in schema and "additionalProperties" not in schema:
        return form
    members = _members_form(schema, minor, tidy, decoded, finest)
    return lambda value: members(value) if isinstance(value, dict) else form(value)


def _members_form(schema: dict[str, Any], minor: str, tidy: bool, decoded: bool, finest: int) -> Form:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    if not properties and definitions.target(extra or {}) == _QUANTITY:
        return lambda value: {
            key: canonical(item, finest) for key, item in value.items() if item is not None or decoded
        }
    required = frozenset(schema.get("required", ()))
    known: dict[str, Form] = {}  # of members that the type names; a map's keys may be any
    others: list[Form] = []
    # Most of what there is are texts, kept as they are by all that follows.
    texts = frozenset(key for key, inner in properties.items() if "$ref" not in inner)
    other_texts = extra is not None and "$ref" not in extra

    def form_of(key: str) -> Form:
        if key in properties:
            known[key] = _form(properties[key], minor, tidy, decoded, finest)
            return known[key]
        if not others:
            others.append(_form(extra or {}, minor, tidy, decoded, finest))
        return others[0]

    def members(value: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, item in value.items():
            named = key in properties
            if type(item) is str and item and (key in texts or (other_texts and not named)):
                kept[key] = item
                continue
            # A struct's member stays unset, but a map's key is there, with an empty value.
            if (not named and extra is None) or (item is None and (named or not decoded)):
                continue
            inside = (known.get(key) or form_of(key))(item)
            if named and not inside and _vanishes(key, inside):
                continue
            kept[key] = inside
        return kept

    def _vanishes(key: str, inside: Any) -> bool:
        """A struct's encoding leaves out empty lists and maps, but not empty structs, nor what is required."""
        if tidy and (inside in ("", [], {}) or (key == "generation" and inside == 0)):
            return True
        return decoded and inside in ([], {}) and _collection(properties[key]) and key not in required

    return members


def _utc(text: str, *, micro: bool = False) -> str:
    """A time as a server writes it, however a client has: in UTC, with as many digits as its type has."""
    if (_MICROS if micro else _SECONDS).fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return text  # decoding has said so
    return micros(moment) if micro else seconds(moment)


def _collection(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "array" or "additionalProperties" in schema


def _show(node: Node, value: Any) -> Any:
    """What needs no change is given back as it is."""
    if isinstance(node, Arr) and isinstance(value, list):
        items = [_show(node.item, item) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    if isinstance(node, Obj) and isinstance(value, dict):
        changed: dict[str, Any] = {}
        for name, member in node.fields.items():
            before = value.get(name)
            if before is not None:
                item = _show(member, before)
                if item is not before:
                    changed[name] = item
            elif member.shown:
                changed[name] = "" if isinstance(member, Str) else None
        return {**value, **changed} if changed else value
    return value
