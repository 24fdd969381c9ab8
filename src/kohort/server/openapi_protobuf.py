"""The OpenAPI v2 document in its binary form, as far as clients look into it.

kubectl asks for it, and takes nothing else, when a file has `kind: List`, and older ones do always. They look for the
query parameters that the patch of a kind takes: a server that takes `fieldValidation` checks fields itself. So that is
what the document says. Numbers are those of gnostic's OpenAPIv2.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kohort.server.resources import Resource, Resources

MEDIA: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation", "force")


def document(resources: Resources, version: str) -> bytes:
    info = _field(1, b"Kubernetes") + _field(2, version.encode())
    patched = [one for one in resources.every() if "patch" in one.verbs]
    paths = b"".join(_field(2, _path(one)) for one in patched)
    return _field(1, b"2.0") + _field(2, info) + _field(8, paths)


def _path(one: Resource) -> bytes:
    """NamedPathItem with its patch."""
    root = f"/apis/{one.api_version}" if one.group else f"/api/{one.version}"
    spot = f"{root}/namespaces/{{namespace}}/{one.plural}" if one.namespaced else f"{root}/{one.plural}"
    return _field(1, f"{spot}/{{name}}".encode()) + _field(2, _field(8, _patch(one)))


def _patch(one: Resource) -> bytes:
    """Operation: its query parameters, and of which kind it is."""
    identity = {"group": one.group, "kind": one.kind, "version": one.version}
    extension = _field(1, b"x-kubernetes-group-version-kind") + _field(2, _field(2, json.dumps(identity).encode()))
    return b"".join(_field(8, _query(name)) for name in _PARAMETERS) + _field(13, extension)


def _query(name: str) -> bytes:
    """ParametersItem -> Parameter -> NonBodyParameter -> QueryParameterSubSchema."""
    schema = _field(2, b"query") + _field(4, name.encode()) + _field(6, b"string")
    return _field(1, _field(2, _field(3, schema)))


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
