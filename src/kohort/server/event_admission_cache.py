"""The event admission cache: events of one sort are decoded, defaulted and validated once.

A scheduler says "Scheduled" of every pod, a controller "SuccessfulCreate". Such events differ in their name, their
moment, the object that they regard and their note; when all the rest is as it was for an earlier event, so is what the
pipeline makes of it. With mutating webhooks or policies the cache is not used; validating admission sees each event.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kohort.api import formats
from kohort.server import storage_codec, timestamps
from kohort.server.codec import encode
from kohort.server.pod_admission_cache import MUTATING, UID
from kohort.server.remembered import Key, Remembered

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.options import WriteOptions
    from kohort.server.resources import Resource
    from kohort.server.store import Store

_GROUP: Final = "events.k8s.io"
_METADATA: Final = {"name", "namespace"}
_MADE: Final = ["name", "namespace", "managedFields", "creationTimestamp", "uid"]  # of the metadata, in this order
_OWN: Final = ("note", "eventTime")
_LONGEST_NOTE: Final = 1024  # bytes
_LONGEST_NAME: Final = 253
_DAY: Final = r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_MOMENT: Final = re.compile(rf"20\d\d-{_DAY}T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{{6}}Z")


class _CachedEvent(NamedTuple):
    """What is kept of the first event: all but its metadata, and its manager."""

    rest: bytes
    manager: Object


class EventAdmissionCache:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._events: Remembered[_CachedEvent] = Remembered()
        self.allowed = True

    def use(self, plugins: list[Any]) -> None:
        """Admission changed: does the work of every mutating plugin follow from what is in the key (`repeatable`)?"""
        self._events.clear()
        self.allowed = all(getattr(one, "repeatable", False) for one in plugins)

    def key(self, resource: Resource, body: Object, namespace: str, chosen: WriteOptions) -> Key | None:
        """What the result depends on; None: this one is decoded and validated in full."""
        if resource.group != _GROUP or not self.allowed or any(self._store.table(name).size for name in MUTATING):
            return None
        meta, regarding = body.get("metadata"), body.get("regarding")
        if not isinstance(meta, dict) or not isinstance(regarding, dict) or not meta.keys() <= _METADATA:
            return None
        if meta.get("namespace", namespace) != namespace or not _is_name(meta.get("name")):
            return None
        if not _own_parts_fit(body, regarding):
            return None
        rest = {**body, "metadata": len(meta), "note": "", "eventTime": "", "regarding": {**regarding, **_NOBODY}}
        return encode(rest), namespace, chosen.manager, chosen.validation

    def add(self, key: Key, stored: Object, warnings: tuple[str, ...]) -> None:
        """Only what came out as it went in, and as `build` would make it."""
        meta, managers = stored["metadata"], stored["metadata"].get("managedFields") or []
        if warnings or list(meta) != _MADE or len(managers) != 1 or "time" not in managers[0]:
            return
        rest = {name: value for name, value in stored.items() if name not in ("metadata", "kind", "apiVersion")}
        self._events.keep(key, _CachedEvent(encode(rest), managers[0]))

    def build(self, key: Key, resource: Resource, body: Object, namespace: str, name: str) -> Object | None:
        """An event as the whole way would leave it, before validating admission; None if none is cached."""
        found = self._events.get(key)
        if found is None or formats.problems(resource.rules.name_format, name):
            return None
        now = timestamps.stamp()
        meta: Object = {"name": name, "namespace": namespace, "managedFields": [{**found.manager, "time": now}]}
        meta["creationTimestamp"] = now  # its uid comes last, from whoever creates it
        rest = storage_codec.decode(found.rest)
        for member in _OWN:
            rest[member] = body[member]
        for member in _NOBODY:
            rest["regarding"][member] = body["regarding"][member]
        return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta, **rest}

    def warnings(self, _key: Key) -> tuple[str, ...]:
        return ()


_NOBODY: Final = {"name": "", "uid": ""}


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME


def _own_parts_fit(body: Object, regarding: dict[str, Any]) -> bool:
    """Whether what differs from event to event is such that nothing but itself depends on it."""
    note, moment, uid = body.get("note"), body.get("eventTime"), regarding.get("uid")
    if not isinstance(note, str) or not note or len(note) * 4 > _LONGEST_NOTE:
        return False
    if not isinstance(moment, str) or not _MOMENT.fullmatch(moment):
        return False
    return _is_name(regarding.get("name")) and isinstance(uid, str) and UID.fullmatch(uid) is not None
