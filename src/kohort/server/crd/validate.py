"""A value against the schema of a CRD: OpenAPI v3 as far as structural schemas have it, in the words of the server.

On an update, what did not change is not validated again (ratcheting).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kohort.api.errors import ErrorKind, FieldError, duplicate, invalid, not_supported, required
from kohort.api.sameness import identity
from kohort.apimachinery import regexp
from kohort.cel.string_formats import fits
from kohort.cel.values import equal
from kohort.server.crd.schema import Schema, inner

ABSENT: Final = object()
NOWHERE: Final = "<nil>"  # the field of errors that upstream does not place
_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def check(schema: Schema, value: Any, path: str = "", old: Any = ABSENT) -> Iterator[FieldError]:
    if old is not ABSENT and equal(value, old):
        return
    if value is None and schema.get("nullable"):
        return
    wrong = _type(schema, value, path)
    if wrong is not None:
        yield wrong
    yield from _enum(schema, value, path)
    if isinstance(value, dict):
        yield from _object(schema, value, path, old)
    elif isinstance(value, list):
        yield from _list(schema, value, path, old)
    elif isinstance(value, str):
        yield from _string(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(schema, value, path)
    yield from _combined(schema, value, path)


def _types(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (str(schema["type"]),) if schema.get("type") else ()


def _type(schema: Schema, value: Any, path: str) -> FieldError | None:
    wanted = _types(schema)
    found = "null" if value is None else _NAMES[type(value)]
    if not wanted or found in wanted:
        return None
    if found == "integer" and "number" in wanted:
        return None
    if isinstance(value, float) and value.is_integer() and "integer" in wanted:
        return None
    text = f'{path} in body must be of type {",".join(wanted)}: "{found}"'
    return FieldError(ErrorKind.TYPE_INVALID, path, text, found)


def _enum(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    words = schema.get("enum")
    if words and not any(equal(value, word) for word in words):
        yield not_supported(path, value, [word if isinstance(word, str) else _json(word) for word in words])


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _object(schema: Schema, value: dict[str, Any], path: str, old: Any) -> Iterator[FieldError]:
    before = old if isinstance(old, dict) else None
    for name in schema.get("required") or ():
        if name not in value:
            yield required(_at(path, name))
    if schema.get("x-kubernetes-embedded-resource"):
        for name in ("apiVersion", "kind"):
            if not value.get(name):
                yield required(_at(path, name), "must not be empty")
    yield from _count(schema, len(value), path, "Properties", "properties")
    for name, member in value.items():
        sub = inner(schema, name)
        if sub:
            earlier = before.get(name, ABSENT) if before is not None else ABSENT
            yield from check(sub, member, _at(path, name), earlier)


def _list(schema: Schema, value: list[Any], path: str, old: Any) -> Iterator[FieldError]:
    yield from _count(schema, len(value), path, "Items", "items")
    items = schema.get("items")
    if isinstance(items, Mapping):
        stored = Counterparts(schema, old)
        for place, item in enumerate(value):
            yield from check(items, item, f"{path}[{place}]", stored.of(item))
    yield from _repeated(schema, value, path)


class Counterparts:
    """The stored items of a list, by their keys; only lists by key have some."""

    def __init__(self, schema: Schema, old: Any) -> None:
        keyed = schema.get("x-kubernetes-list-type") == "map" and isinstance(old, list)
        self._keys = schema.get("x-kubernetes-list-map-keys") if keyed else None
        self._found: dict[Any, Any] = {}
        for one in old if self._keys else ():
            self._found.setdefault(identity(_keys(one, self._keys)), one)

    def of(self, item: Any) -> Any:
        return self._found.get(identity(_keys(item, self._keys)), ABSENT) if self._found else ABSENT


def _keys(item: Any, keys: Any) -> dict[str, Any]:
    return {key: item[key] for key in keys if key in item} if isinstance(item, dict) else {}


def _repeated(schema: Schema, value: list[Any], path: str) -> Iterator[FieldError]:
    sort = schema.get("x-kubernetes-list-type")
    if sort not in {"set", "map"}:
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: dict[Any, int] = {}
    for place, item in enumerate(value):
        mark = item if sort == "set" else _keys(item, keys)
        known = identity(mark)
        seen[known] = seen.get(known, 0) + 1
        if seen[known] == 2:
            yield duplicate(f"{path}[{place}]", mark)


def _count(schema: Schema, found: int, path: str, suffix: str, words: str) -> Iterator[FieldError]:
    most, least = schema.get(f"max{suffix}"), schema.get(f"min{suffix}")
    if most is not None and found > most:
        yield FieldError(ErrorKind.TOO_MANY, path, f"must have at most {most} item{'s' if most != 1 else ''}", found)
    if least is not None and found < least:
        yield invalid(path, found, f"{path} in body should have at least {least} {words}")


def _string(schema: Schema, value: str, path: str) -> Iterator[FieldError]:
    most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if most is not None and len(value) > most:
        yield FieldError(ErrorKind.TOO_LONG, path, f"may not be more than {most} bytes")
    if least is not None and len(value) < least:
        yield invalid(path, value, f"{path} in body should be at least {least} chars long")
    if pattern:
        yield from _matched(pattern, value, path)
    form = schema.get("format")
    if form and not fits(form, value):
        text = f'{path} in body must be of type {form}: "{value}"'
        yield FieldError(ErrorKind.TYPE_INVALID, path, text, value)


def _matched(pattern: str, value: str, path: str) -> Iterator[FieldError]:
    try:
        if not regexp.search(pattern, value):
            yield invalid(path, value, f"{path} in body should match '{pattern}'")
    except regexp.TooLongError as error:
        yield invalid(path, value, f"{path} in body cannot be matched with '{pattern}': {error}")


def _number(schema: Schema, value: float, path: str) -> Iterator[FieldError]:
    least, most, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        words = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid(path, value, f"{path} in body should be {words} {_plain(least)}")
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        words = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid(path, value, f"{path} in body should be {words} {_plain(most)}")
    if step and (value / step) % 1:
        yield invalid(path, value, f"{path} in body should be a multiple of {_plain(step)}")


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _combined(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    where = f'"{path}"'
    for one in schema.get("allOf") or ():
        yield from check(one, value, path)
    choices = [list(check(one, value, path)) for one in schema.get("anyOf") or ()]
    if choices and all(choices):
        yield invalid(NOWHERE, "", f"{where} must validate at least one schema (anyOf)")
        yield from _closest(choices)
    choices = [list(check(one, value, path)) for one in schema.get("oneOf") or ()]
    valid = sum(not found for found in choices)
    if choices and valid != 1:
        many = f"Found {valid} valid alternatives" if valid else "Found none valid"
        yield invalid(NOWHERE, "", f"{where} must validate one and only one schema (oneOf). {many}")
        if not valid:
            yield from _closest(choices)
    if schema.get("not") is not None and not any(True for _ in check(schema["not"], value, path)):
        yield invalid(NOWHERE, "", f"{where} must not validate the schema (not)")


def _closest(choices: list[list[FieldError]]) -> list[FieldError]:
    """What is wrong with the alternative that fits best."""
    return min(choices, key=len)
