"""Bodies: reading JSON and YAML with their repeated keys and their depth, writing JSON and YAML."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, Final

import msgspec

from kohort.server.status import NestingError, bad_request

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
READ: Final = (JSON, YAML, PROTOBUF)  # bodies of requests; answers are JSON or YAML
MAX_DEPTH: Final = 200

_MEMBER: Final = re.compile(rb'"[\s]*:')
_decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


def media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def parse(body: bytes, kind: str, content_type: str, *, composed: bool = False) -> tuple[Any, list[str]]:
    """The value of a body, and what is odd about it though it can be read (repeated keys).

    `composed`: there are no repeated keys, or nobody asks.
    """
    media = media_type(content_type)
    if media in (YAML, "application/x-yaml", "text/yaml"):
        return _parse_yaml(body, kind)
    if media == PROTOBUF:
        return _parse_protobuf(body, kind), []
    return parse_json(body, kind, composed=composed)


def _parse_protobuf(body: bytes, kind: str) -> Any:
    from kohort.server import protobuf  # its data is loaded when it is first needed

    try:
        return protobuf.decode(body)
    except protobuf.ProtobufError as error:
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {error}") from None


def parse_json(body: bytes, kind: str, *, composed: bool = False) -> tuple[Any, list[str]]:
    try:
        value = _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(_unrecognized(body, kind, str(error))) from None
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _check_depth(value)
    return value, [] if composed else [f'duplicate field "{path}"' for path in _repeated(body, value)]


def _unrecognized(body: bytes, kind: str, why: str) -> str:
    shown = body[:30].decode(errors="replace") + " ..." if len(body) > 30 else body.decode(errors="replace")
    text = f"couldn't get version/kind; json parse error: {why} ({shown or '<empty>'})"
    return f"the object provided is unrecognized (must be of type {kind}): {text}" if kind else text


def _check_depth(value: Any, depth: int = 0) -> None:
    """Refuses what is nested too deep to be an object of anybody's."""
    if depth > MAX_DEPTH:
        raise NestingError(MAX_DEPTH)
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(item, (dict, list)):
            _check_depth(item, depth + 1)


class _Pairs(list[tuple[str, Any]]):
    """An object before its repeated keys are lost."""


def _repeated(body: bytes, value: Any) -> list[str]:
    """Paths of the members that `body`, which was read as `value`, has more than once.

    Written again, `value` has each member once, so a body with as many colons behind quotes repeats none: text may hold
    them, too, but then in both. Only escapes of characters (`\\u0022`) may differ, and then a parser tells.
    """
    if b"\\u" not in body and len(_MEMBER.findall(body)) == len(_MEMBER.findall(encode(value))):
        return []
    try:
        root = json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    found: list[str] = []
    _walk(root, "", found)
    return list(dict.fromkeys(found))


def _walk(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, item in value:
            inner = f"{path}.{name}" if path else name
            if name in seen:
                found.append(inner)
            seen.add(name)
            _walk(item, inner, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _walk(item, f"{path}[{index}]", found)


def _parse_yaml(body: bytes, kind: str) -> tuple[Any, list[str]]:
    if body.lstrip().startswith(b"{"):  # what clients send as YAML is JSON most of the time
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = _decode(body)
            _check_depth(value)
            if not _repeated(body, value):
                return value, []
    from kohort.server import yaml_codec

    value, warnings = yaml_codec.load(body, kind, MAX_DEPTH)
    _check_depth(value)
    return value, warnings


def to_yaml(value: Any) -> bytes:
    from kohort.server import yaml_codec

    return yaml_codec.dump(value)
