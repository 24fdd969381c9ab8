"""Reading Kubernetes' binary format: recent kubectl and client-go write their own kinds that way.

Only bodies of requests: answers are JSON, which every client that writes this also accepts. Field numbers are data
(hack/protobuf.py); a Go zero value that JSON would leave out is left out here, too.
"""

from __future__ import annotations

import base64
import gzip
import struct
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.apimachinery import times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAGIC: Final = b"k8s\x00"
_DEPTH: Final = 64
_SCHEMA: Final = "apiextensions/v1.JSONSchemaProps"
_META_KINDS: Final = {"DeleteOptions", "Status", "PatchOptions", "CreateOptions", "UpdateOptions"}


class ProtobufError(ValueError):
    """The bytes are not of this format, or of a kind that is not known."""


class _Field:
    __slots__ = ("container", "element", "keeps", "name")

    def __init__(self, name: str, container: str, element: str, keeps: bool) -> None:
        self.name, self.container, self.element, self.keeps = name, container, element, keeps


@cache
def _types() -> dict[str, dict[int, _Field]]:
    packed = files("kohort.server").joinpath("data/protobuf.json.gz").read_bytes()
    raw: dict[str, list[list[Any]]] = msgspec.json.decode(gzip.decompress(packed))
    return {name: {one[0]: _Field(*one[1:]) for one in fields} for name, fields in raw.items()}


def decode(body: bytes) -> dict[str, Any]:
    """A whole object, with its apiVersion and kind."""
    if not body.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version = kind = ""
    raw = b""
    for number, _, value in _wire(body[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            meta = {inner: _text(one) for inner, _, one in _wire(value)}
            api_version, kind = meta.get(1, ""), meta.get(2, "")
        elif number == 2 and isinstance(value, bytes):
            raw = value
    name = _type_of(api_version, kind)
    if name not in _types():
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **_message(name, raw, 0)}


def _type_of(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if kind in _META_KINDS:
        return f"meta/v1.{kind}"
    return f"{group.partition('.')[0] or 'core'}/{version}.{kind}"


# ---- the wire


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ProtobufError("unexpected end of protobuf data")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _wire(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Field number, wire type, value."""
    at, size = 0, len(data)
    while at < size:
        tag, at = _varint(data, at)
        number, sort = tag >> 3, tag & 7
        value: int | bytes
        if sort == 0:
            value, at = _varint(data, at)
        elif sort in (1, 5):
            width = 8 if sort == 1 else 4
            value, at = data[at : at + width], at + width
        elif sort == 2:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            raise ProtobufError(f"wire type {sort} is not known")
        if at > size:
            raise ProtobufError("unexpected end of protobuf data")
        yield number, sort, value


# ---- values


def _message(name: str, data: bytes, depth: int) -> dict[str, Any]:
    if depth > _DEPTH:
        raise ProtobufError("nested too deep")
    fields = _types().get(name, {})
    found: dict[str, Any] = {}
    for number, _, raw in _wire(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.container == "map":
            key, value = _entry(field.element, raw, depth)
            found.setdefault(field.name, {})[key] = value
        elif field.container == "list":
            found.setdefault(field.name, []).append(_value(field.element, raw, depth))
        else:
            element = f"wrapped {field.element}" if field.container == "wrapped" else field.element
            value = _value(element, raw, depth)
            if not field.name:  # inlined in JSON
                found.update(value if isinstance(value, dict) else {})
            elif field.keeps or value not in (0, "", False, None, {}, []):
                found[field.name] = value
    return found


def _entry(element: str, raw: int | bytes, depth: int) -> tuple[str, Any]:
    key: str = ""
    value: Any = None
    for number, _, inner in _wire(_bytes(raw)):
        if number == 1:
            key = _text(inner)
        elif number == 2:
            value = _value(element, inner, depth)
    if value is None:
        value = "" if element in ("string", "bytes") else {} if "." in element else 0
    return key, value


def _value(element: str, raw: int | bytes, depth: int) -> Any:
    read = _READERS.get(element)
    if read is not None:
        return read(raw)
    if element.startswith("schemaor"):
        return _schema_or(element.removeprefix("schemaor"), _bytes(raw), depth)
    if element.startswith("wrapped "):
        inner = element.removeprefix("wrapped ")
        return [_value(inner, one, depth) for number, _, one in _wire(_bytes(raw)) if number == 1]
    return _message(element, _bytes(raw), depth + 1)


def _schema_or(other: str, data: bytes, depth: int) -> Any:
    """A member of a JSON schema that is a schema or something else: a list of them, a yes or no, names."""
    schema: dict[str, Any] | None = None
    rest: list[Any] = []
    for number, _, one in _wire(data):
        if number == (2 if other == "bool" else 1):
            schema = _message(_SCHEMA, _bytes(one), depth + 1)
        elif other == "bool":
            rest = [bool(_number(one))]
        else:
            rest.append(_text(one) if other == "stringarray" else _message(_SCHEMA, _bytes(one), depth + 1))
    if other == "bool":
        return schema if schema is not None else any(rest)
    return rest or schema


def _bytes(raw: int | bytes) -> bytes:
    if not isinstance(raw, bytes):
        raise ProtobufError("a number stands where a message is expected")
    return raw


def _text(raw: int | bytes) -> str:
    try:
        return _bytes(raw).decode()
    except UnicodeDecodeError:
        raise ProtobufError("a text is not UTF-8") from None


def _number(raw: int | bytes) -> int:
    if isinstance(raw, bytes):
        raise ProtobufError("a message stands where a number is expected")
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _float(raw: int | bytes) -> float:
    data = _bytes(raw)
    if len(data) != 8:
        raise ProtobufError("a number has the wrong size")
    return float(struct.unpack("<d", data)[0])


def _quantity(raw: int | bytes) -> str:
    return next((_text(one) for number, _, one in _wire(_bytes(raw)) if number == 1), "0")


def _int_or_string(raw: int | bytes) -> int | str:
    found = {number: one for number, _, one in _wire(_bytes(raw))}
    if found.get(1, 0) == 1:
        return _text(found.get(3, b""))
    return _number(found.get(2, 0))


def _moment(raw: int | bytes) -> datetime | None:
    found = {number: _number(one) for number, _, one in _wire(_bytes(raw))}
    if not found:
        return None
    try:
        return datetime.fromtimestamp(found.get(1, 0), UTC).replace(microsecond=found.get(2, 0) // 1000)
    except (ValueError, OverflowError, OSError):
        raise ProtobufError("a time is out of range") from None


def _time(raw: int | bytes) -> str | None:
    found = _moment(raw)
    return times.seconds(found) if found is not None and found.year > 1 else None


def _micro_time(raw: int | bytes) -> str | None:
    found = _moment(raw)
    return times.micros(found) if found is not None and found.year > 1 else None


def _duration(raw: int | bytes) -> str:
    nanoseconds = next((_number(one) for number, _, one in _wire(_bytes(raw)) if number == 1), 0)
    return f"{nanoseconds / 1e9:g}s"


def _raw(raw: int | bytes) -> Any:
    """JSON inside."""
    inner = next((_bytes(one) for number, _, one in _wire(_bytes(raw)) if number == 1), b"")
    try:
        return msgspec.json.decode(inner) if inner else {}
    except msgspec.DecodeError:
        raise ProtobufError("a raw extension is not JSON") from None


def _json(raw: int | bytes) -> Any:
    inner = next((_bytes(one) for number, _, one in _wire(_bytes(raw)) if number == 1), b"")
    try:
        return msgspec.json.decode(inner) if inner else None
    except msgspec.DecodeError:
        raise ProtobufError("a value of a schema is not JSON") from None


def _base64(raw: int | bytes) -> str:
    return base64.b64encode(_bytes(raw)).decode()


_READERS: Final[dict[str, Callable[[int | bytes], Any]]] = {
    "string": _text,
    "bool": lambda raw: bool(_number(raw)),
    "int32": _number,
    "int64": _number,
    "int": _number,
    "uint32": _number,
    "uint64": _number,
    "byte": _number,
    "float64": _float,
    "bytes": _base64,
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "time": _time,
    "microtime": _micro_time,
    "duration": _duration,
    "raw": _raw,
    "json": _json,
}
