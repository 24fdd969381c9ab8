"""Between bytes in the store and objects: what is kept has no apiVersion and no kind, each version adds its own."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.kube.codec import decode_large
from kohort.server.codec import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.kind import Object
    from kohort.server.resources import Resource, Resources
    from kohort.server.store import Event, Item, Store

_decoder: Final = msgspec.json.Decoder(dict[str, Any])


def decode(value: bytes) -> Object:
    return decode_large(_decoder.decode, value)


def object_prefix(resource: Resource) -> bytes:
    """How an object of this resource begins."""
    return encode({"kind": resource.kind, "apiVersion": resource.api_version})[:-1] + b","


def load(resource: Resource, item: Item) -> Object:
    """A fresh object, for its reader to keep."""
    stored = resource.read(decode(item.value)) if resource.converts else decode(item.value)
    return {"kind": resource.kind, "apiVersion": resource.api_version, **stored}


def dump(resource: Resource, obj: Object, revision: int) -> bytes:
    """An object as it is kept. The object's resourceVersion is set."""
    obj["metadata"]["resourceVersion"] = str(revision)
    body = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
    return encode(resource.write(body) if resource.converts else body)


def object_bytes(resource: Resource, head: bytes, item: Item, end: bytes = b"") -> bytes:
    """A stored object as it is answered, `end` after it."""
    if resource.converts:
        return encode(load(resource, item)) + end
    return b"".join((head, memoryview(item.value)[1:], end))


def list_item_bytes(resource: Resource, item: Item) -> bytes:
    """The same within a list of a native kind."""
    return encode(resource.read(decode(item.value))) if resource.converts else item.value


class DecodedEvent:
    """What selectors look at in an item, decoded once for all watchers."""

    __slots__ = ("before", "labels", "obj")

    def __init__(self, obj: Object, before: Object | None) -> None:
        self.obj = obj
        self.before = before


class _Recent:
    """The events that were decoded last: a decoded object takes ten times the room of its bytes, and the history of a
    server is long."""

    def __init__(self) -> None:
        self._events: deque[tuple[Event, int]] = deque()
        self._bytes = 0

    def add(self, event: Event) -> None:
        size = len(event.item.value) + (len(event.before.value) if event.before is not None else 0)
        self._events.append((event, size))
        self._bytes += size
        while self._bytes > _DECODED_BYTES or len(self._events) > _DECODED_EVENTS:
            oldest, held = self._events.popleft()
            oldest.decoded = None
            self._bytes -= held


_DECODED_BYTES: Final = 16 << 20
_DECODED_EVENTS: Final = 4096
_recent: Final = _Recent()


def decoded(event: Event) -> DecodedEvent:
    found = event.decoded
    if not isinstance(found, DecodedEvent):
        found = DecodedEvent(decode(event.item.value), decode(event.before.value) if event.before is not None else None)
        event.decoded = found
        _recent.add(event)
    return found


class StoreLister:
    """Committed objects for those who decide: authorization, admission. Each is decoded once for each of its states."""

    def __init__(self, store: Store, resources: Resources) -> None:
        self._store, self._resources = store, resources
        self._cache: dict[str, tuple[int, Sequence[Object]]] = {}
        self._decoded: dict[str, dict[tuple[str, str], tuple[int, Object]]] = {}

    def get(self, group: str, resource: str, namespace: str, name: str) -> Object | None:
        found = self._resources.of_plural(group, resource)
        if found is None:
            return None
        item = self._store.table(found.table).get(namespace, name)
        return load(found, item) if item is not None else None

    def list(self, group: str, resource: str, namespace: str | None = None) -> Sequence[Object]:
        found = self._resources.of_plural(group, resource)
        if found is None:
            return ()
        if namespace is not None:
            return [load(found, item) for item in self._store.table(found.table).items(namespace)]
        version = self.version(group, resource)
        cached = self._cache.get(found.table)
        if cached is None or cached[0] != version:
            cached = self._cache[found.table] = (version, self._every(found))
        return cached[1]

    def _every(self, found: Resource) -> Sequence[Object]:
        """Only what has changed is decoded: somebody who changes one object often does not make others pay for all."""
        known = self._decoded.get(found.table, {})
        objects: dict[tuple[str, str], tuple[int, Object]] = {}
        for item in self._store.table(found.table).items():
            before = known.get(item.key)
            same = before is not None and before[0] == item.revision
            objects[item.key] = before if before is not None and same else (item.revision, load(found, item))
        self._decoded[found.table] = objects
        return [obj for _, obj in objects.values()]

    def items(self, group: str, resource: str) -> Sequence[Item]:
        """Not decoded: for whoever needs little of each."""
        found = self._resources.of_plural(group, resource)
        return self._store.table(found.table).items() if found is not None else ()

    def list_with_prefix(self, group: str, resource: str, namespace: str, prefix: str) -> Sequence[Object]:
        """Those whose names begin like this; only they are decoded."""
        found = self._resources.of_plural(group, resource)
        items = self._store.table(found.table).items(namespace) if found is not None else ()
        return [load(found, item) for item in items if item.name.startswith(prefix)] if found is not None else ()

    def version(self, group: str, resource: str) -> int:
        found = self._resources.of_plural(group, resource)
        return self._store.table(found.table).changes if found is not None else 0
