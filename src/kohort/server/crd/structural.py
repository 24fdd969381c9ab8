"""Whether a schema is one that a CRD may have: structural, complete, without what servers do not support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kohort.api.errors import ErrorKind, FieldError, forbidden, invalid, not_supported, required
from kohort.apimachinery import regexp
from kohort.server.crd import rule_check, validate
from kohort.server.crd.schema import META, Schema, unknown

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
# What may not stand under allOf, anyOf, oneOf and not, and the word that upstream has for it.
_NESTED: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_EMPTY_TYPE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_ROOT_WITH_STATUS: Final = ("$schema", "id", "title", "description", "type", "example", "externalDocs")  # and these:
_ROOT_ALLOWED: Final = frozenset(
    {
        *_ROOT_WITH_STATUS,
        *("properties", "required", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"),
    }
)


def problems(schema: Schema, path: str, *, status: bool) -> list[FieldError]:
    """Everything that is wrong with the schema of a version. `status`: it has the status subresource."""
    found = [*_root(schema, path, status)]
    if any(one.get(word) for _, one in _walk(schema, path) for word in _UNSUPPORTED):
        return [*found, *_supported(schema, path)]  # no structure can be made of it
    shape = [*_invariants(schema, path, "root"), *_complete(schema, schema, path, path)]
    shape.sort(key=str)
    found += shape or list(_defaults(schema, path))
    found += _supported(schema, path)
    if not shape:
        found += rule_check.problems(schema, path)
    return found


def _walk(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, member in (schema.get("properties") or {}).items():
        if isinstance(member, Mapping):
            yield from _walk(member, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield from _walk(schema[name], f"{path}.{name}")


def _root(schema: Schema, path: str, status: bool) -> Iterator[FieldError]:
    if status:
        strange = [name for name, value in schema.items() if name not in _ROOT_ALLOWED and value]
        if schema.get("type") not in (None, "", "object"):
            text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            yield invalid(f"{path}.type", schema["type"], text)
        elif strange:
            text = "only certain fields are allowed at the root of the schema if the status subresource is enabled"
            yield invalid(path, ", ".join(strange), text)
    if schema.get("nullable"):
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")


# ---- structure


def _invariants(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    sort, embedded = schema.get("type") or "", schema.get("x-kubernetes-embedded-resource") is True
    if sort == "array" and schema.get("items") is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(schema.get("items"), Mapping):
        yield from _invariants(schema["items"], f"{path}.items", "item")
    for name, member in (schema.get("properties") or {}).items():
        yield from _invariants(member, f"{path}.properties[{name}]", "field")
    more = schema.get("additionalProperties")
    if more is not None and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(more, Mapping):
        yield from _invariants(more, f"{path}.additionalProperties", "field")
    yield from _extensions(schema, path)
    yield from _junctors(schema, path)
    yield from _named_type(schema, path, level, sort, embedded)
    yield from _metadata(schema, path, level, embedded)


def _named_type(schema: Schema, path: str, level: str, sort: str, embedded: bool) -> Iterator[FieldError]:
    loose = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if embedded and sort != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield required(f"{path}.type", text) if not sort else invalid(f"{path}.type", sort, text)
    elif not sort and not loose:
        yield required(f"{path}.type", _EMPTY_TYPE[level])
    if embedded and schema.get("additionalProperties") is not None:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", text)
    if level == "root" and sort and sort != "object":
        yield invalid(f"{path}.type", sort, "must be object at the root")
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", text)


def _metadata(schema: Schema, path: str, level: str, embedded: bool) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    if level != "root" and not embedded:
        return
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type") != "string":
            yield invalid(f"{path}.properties[{name}].type", properties[name].get("type", ""), "must be string")
    meta = properties.get("metadata")
    if meta is None:
        return
    at = f"{path}.properties[metadata]"
    if meta.get("type") != "object":
        yield invalid(f"{at}.type", meta.get("type", ""), "must be object")
    said = {name for name, value in meta.items() if name not in {"type", "description", "properties"} and value}
    if level == "root" and (said or set(meta.get("properties") or {}) - {"name", "generateName"}):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(at, text)


def _extensions(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                yield invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")
    pattern = schema.get("pattern")
    if pattern:
        problem = regexp.problem(pattern)
        if problem:
            yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {problem}")


def _junctors(schema: Schema, path: str) -> Iterator[FieldError]:
    for at, one in _alternatives(schema, path):
        if at.endswith(("anyOf[0]", "anyOf[1]")) and _is_int_or_string(schema):
            continue
        yield from _nested(one, at)


def _is_int_or_string(schema: Schema) -> bool:
    return bool(schema.get("anyOf") == _INT_OR_STRING)


def _alternatives(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    for word in ("allOf", "anyOf", "oneOf"):
        for place, one in enumerate(schema.get(word) or ()):
            yield f"{path}.{word}[{place}]", one
    if isinstance(schema.get("not"), Mapping):
        yield f"{path}.not", schema["not"]


def _nested(schema: Schema, path: str) -> Iterator[FieldError]:
    first = (schema.get("anyOf") == _INT_OR_STRING) and path.endswith("allOf[0]")
    for at, one in _alternatives(schema, path):
        if not (first and ".anyOf[" in at[len(path) :]):
            yield from _nested(one, at)
    if isinstance(schema.get("items"), Mapping):
        yield from _nested(schema["items"], f"{path}.items")
    for name, member in (schema.get("properties") or {}).items():
        yield from _nested(member, f"{path}.properties[{name}]")
    for name, text in _NESTED.items():
        if schema.get(name) not in (None, False, "", [], ()):
            yield forbidden(f"{path}.{name}", text)
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _complete(schema: Schema, whole: Schema | None, at: str, path: str) -> Iterator[FieldError]:
    """Whatever is validated under a junctor is also declared outside of it."""
    if whole is None:
        yield required(path, f"because it is defined in {at}")
        return
    for inner_at, one in _alternatives(schema, at):
        yield from _complete_nested(one, whole, inner_at, path)


def _complete_nested(schema: Schema, whole: Schema, at: str, path: str) -> Iterator[FieldError]:
    yield from _complete(schema, whole, at, path)
    if isinstance(schema.get("items"), Mapping):
        items = whole.get("items")
        if isinstance(items, Mapping):
            yield from _complete_nested(schema["items"], items, f"{at}.items", f"{path}.items")
        else:
            yield required(f"{path}.items", f"because it is defined in {at}.items")
    for name, member in (schema.get("properties") or {}).items():
        declared = (whole.get("properties") or {}).get(name)
        inside, spot = f"{at}.properties[{name}]", f"{path}.properties[{name}]"
        if declared is None:
            yield required(spot, f"because it is defined in {inside}")
        else:
            yield from _complete_nested(member, declared, inside, spot)


# ---- defaults


def _defaults(schema: Schema, path: str) -> Iterator[FieldError]:
    for at, one in _walk(schema, path):
        default = one.get("default")
        if default is None:
            continue
        for found in validate.check(one, default):
            where = f"{at}.default" + (f".{found.field}" if found.field else "")
            yield FieldError(found.kind, where, found.detail, found.value)
        for stray in unknown(default, one, ""):
            yield invalid(f"{at}.default", default, f"must not have unknown fields: {stray}")


# ---- what is supported


def _supported(schema: Schema, path: str, within: str = "root") -> Iterator[FieldError]:
    yield from _words(schema, path, within)
    yield from _lists(schema, path)
    more = schema.get("additionalProperties")
    if more not in (None, True) and schema.get("properties"):
        text = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", text)
    if isinstance(more, Mapping):
        yield from _supported(more, f"{path}.additionalProperties", "value")
    for name, member in (schema.get("properties") or {}).items():
        inside = f"top {name}" if within == "root" and name in META else "top" if within.startswith("top") else "value"
        if within.startswith("top "):
            inside = within
        yield from _supported(member, f"{path}.properties[{name}]", inside)
    for at, one in _alternatives(schema, path):
        yield from _supported(one, at, "value")
    if isinstance(schema.get("items"), Mapping):
        yield from _supported(schema["items"], f"{path}.items", "value")


def _words(schema: Schema, path: str, within: str) -> Iterator[FieldError]:
    sort = schema.get("type")
    if sort == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if sort and sort not in _TYPES:
        yield not_supported(f"{path}.type", sort, _TYPES)
    if schema.get("default") is not None and within.startswith("top "):
        yield forbidden(f"{path}.default", f"must not be set in top-level {within[4:]}")
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", text)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")


def _lists(schema: Schema, path: str) -> Iterator[FieldError]:
    sort, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    for name, wanted in (("x-kubernetes-map-type", "object"), ("x-kubernetes-list-type", "array")):
        if schema.get(name) and schema.get("type") != wanted:
            text = f"must be {wanted} if {name} is specified"
            given = schema.get("type")
            yield required(f"{path}.type", text) if not given else invalid(f"{path}.type", given, text)
    accepted: dict[str, tuple[str, ...]] = {
        "x-kubernetes-map-type": ("atomic", "granular"),
        "x-kubernetes-list-type": ("atomic", "set", "map"),
    }
    for name, words in accepted.items():
        if schema.get(name) and schema[name] not in words:
            yield not_supported(f"{path}.{name}", schema[name], words)
    if keys and sort != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        at = f"{path}.x-kubernetes-list-type"
        yield required(at, text) if sort is None else invalid(at, sort, text)
    if sort == "map":
        yield from _map_list(schema, keys, path)
    items = schema.get("items")
    if sort in {"set", "map"} and isinstance(items, Mapping) and items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {sort}")
    inside = items if isinstance(items, Mapping) else {}
    if sort == "set" and inside.get("type") == "object" and inside.get("x-kubernetes-map-type") != "atomic":
        text = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield FieldError(ErrorKind.INVALID, f"{path}.items.x-kubernetes-map-type", text, None)


def _map_list(schema: Schema, keys: list[str], path: str) -> Iterator[FieldError]:
    if not keys:
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    items = schema.get("items")
    if not isinstance(items, Mapping):
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.get("type", ""), text)
    properties, needed = items.get("properties") or {}, items.get("required") or ()
    for place, key in enumerate(keys):
        member = properties.get(key)
        if key in keys[:place]:
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, "entries must be unique")
        if member is None:
            text = "entries must all be names of item properties"
            yield invalid(f"{path}.x-kubernetes-list-map-keys[{place}]", key, text)
            continue
        if member.get("type") in {"array", "object"}:
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", member["type"], text)
        if key not in needed and member.get("default") is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield required(f"{path}.items.properties[{key}].default", text)
        if member.get("nullable"):
            text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield forbidden(f"{path}.items.properties[{key}].nullable", text)
