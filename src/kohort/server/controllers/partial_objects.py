"""What the built-in controllers need to know of an object, read without the rest of it."""

from __future__ import annotations

from typing import Final

import msgspec

from kohort.server.storage_codec import shorter
from kohort.server.store import Item

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class OwnerReference(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""
    name: str = ""
    kind: str = ""
    apiVersion: str = ""  # noqa: N815
    blockOwnerDeletion: bool | None = None  # noqa: N815

    @property
    def group(self) -> str:
        return self.apiVersion.rpartition("/")[0]

    @property
    def blocks(self) -> bool:
        return bool(self.blockOwnerDeletion)


class PartialMetadata(msgspec.Struct, frozen=True):
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815
    deletionGracePeriodSeconds: int | None = None  # noqa: N815
    finalizers: tuple[str, ...] | None = None
    ownerReferences: tuple[OwnerReference, ...] | None = None  # noqa: N815


class _Group(msgspec.Struct, frozen=True):
    podGroupName: str | None = None  # noqa: N815


class _Spec(msgspec.Struct, frozen=True):
    nodeName: str | None = None  # noqa: N815
    schedulingGroup: _Group | None = None  # noqa: N815


class _Status(msgspec.Struct, frozen=True):
    phase: str | None = None


class PartialObject(msgspec.Struct, frozen=True):
    metadata: PartialMetadata


class PartialPod(msgspec.Struct, frozen=True):
    metadata: PartialMetadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


_head: Final = msgspec.json.Decoder(PartialObject)
_pod: Final = msgspec.json.Decoder(PartialPod)


class _Last:
    """The item that was read last: controllers are told of a change one after the other, and the first decodes it."""

    item: Item | None = None
    meta = PartialMetadata()
    pod: PartialPod | None = None


def meta_of(item: Item) -> PartialMetadata:
    if _Last.item is not item:
        _Last.meta, _Last.pod, _Last.item = _head.decode(shorter(item)).metadata, None, item
    return _Last.meta


def pod_of(item: Item) -> PartialPod:
    if _Last.item is not item or _Last.pod is None:
        found = _pod.decode(shorter(item))
        _Last.meta, _Last.pod, _Last.item = found.metadata, found, item
        return found
    return _Last.pod
