"""The definitions of the kinds that Kubernetes does not have (JobSet and others), as a server stores them.

They follow from `kohort.api`, but to make them takes longer than all else that a server does before it is ready. So
they ship as data (`python hack/definitions.py` writes it, a test compares); schemas are decoded when somebody looks.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Collection
from functools import cached_property
from importlib.resources import files
from typing import Any, Final

import msgspec

from kohort.api.bundle import derived, registered

DATA: Final = "data/definitions.json.gz"
_SCHEMA: Final = "schema"


class _Version(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str
    served: bool
    storage: bool
    subresources: dict[str, Any] | None = None
    selectable_fields: list[dict[str, str]] | None = None


class _Outline(msgspec.Struct):
    group: str
    names: dict[str, Any]
    scope: str
    versions: list[_Version]


class Shipped(msgspec.Struct, frozen=True, dict=True):
    name: str
    spec: msgspec.Raw

    @cached_property
    def made_from(self) -> str:
        """Tells one version of a definition from another."""
        return hashlib.sha256(self.spec).hexdigest()[:16]

    @cached_property
    def outline(self) -> dict[str, Any]:
        """The spec without schemas and columns."""
        found: dict[str, Any] = msgspec.to_builtins(msgspec.json.decode(self.spec, type=_Outline))
        return found

    @property
    def whole(self) -> dict[str, Any]:
        """The spec, yours to change."""
        found: dict[str, Any] = msgspec.json.decode(self.spec)
        return found

    def schema(self, version: str) -> dict[str, Any]:
        found: dict[str, Any] = next(one for one in self.whole["versions"] if one["name"] == version)
        return dict(found[_SCHEMA]["openAPIV3Schema"])


@derived
def shipped() -> dict[str, Shipped]:
    """By name. Definitions of kinds that were registered in this process are made here."""
    packed = files("kohort.server").joinpath(DATA).read_bytes()
    found = _decode(gzip.decompress(packed))
    if more := [group for one in registered() if not one.native for group in one.groups]:
        found += _decode(made(more))
    return {one.name: one for one in found}


_decode = msgspec.json.Decoder(list[Shipped]).decode


def made(groups: Collection[str] | None = None) -> bytes:
    """What the data should be: all kinds that come with us, or those of the given API groups."""
    from kohort.api.crd import crds
    from kohort.api.kind import Context
    from kohort.server.codec import encode
    from kohort.server.crd import definition

    others = {group for one in registered() for group in one.groups}
    found = []
    for one in crds():
        group = one["spec"]["group"]
        if group in others if groups is None else group not in groups:
            continue
        definition.default(one, Context())
        found.append({"name": one["metadata"]["name"], "spec": one["spec"]})
    return encode(found)


class Stored(msgspec.Struct):
    """A definition in the store, its spec as it is written."""

    metadata: dict[str, Any]
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: dict[str, Any] | None = None

    def object(self, spec: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": self.metadata, "spec": spec, "status": self.status or {}}


read = msgspec.json.Decoder(Stored).decode
