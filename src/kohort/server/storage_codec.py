"""Between bytes in the store and objects: what is kept has no apiVersion and no kind, each version adds its own."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

import msgspec

from kohort import tuning
from kohort.kube.codec import decode_large
from kohort.server.codec import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.kind import Object
    from kohort.server.resources import Resource, Resources
    from kohort.server.store import Event, Item, Store

_decoder: Final = msgspec.json.Decoder(dict[str, Any])
_LARGE: Final = 1 << 15  # bytes
_LARGE_MEMBER: Final = 1 << 12


class _Named(TypedDict, total=False):
    name: str
    namespace: str
    labels: dict[str, str] | None


_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_named: Final = msgspec.json.Decoder(_Named)
_value: Final = msgspec.json.Decoder()


def decode(value: bytes) -> Object:
    return decode_large(_decoder.decode, value)


def selectable(resource: Resource, value: bytes) -> Object:
    """What selectors look at. In a large object of a native kind that is its name and labels, and what is small one or
    two levels down: the rest is not made into objects."""
    if len(value) <= _LARGE or not resource.native:
        return decode(value)
    return {
        name: _named.decode(raw) if name == "metadata" else _values(raw) if _is_large(raw) else _value.decode(raw)
        for name, raw in _members.decode(value).items()
    }


def _values(raw: msgspec.Raw) -> Object:
    if bytes(memoryview(raw)[:1]) != b"{":
        return {}
    return {name: _value.decode(one) for name, one in _members.decode(raw).items() if not _is_large(one)}


def _is_large(raw: msgspec.Raw) -> bool:
    """Of lists and maps: a text is one object, however long."""
    view = memoryview(raw)
    return len(view) > _LARGE_MEMBER and bytes(view[:1]) in (b"{", b"[")


def object_prefix(resource: Resource) -> bytes:
    """How an object of this resource begins."""
    return encode({"kind": resource.kind, "apiVersion": resource.api_version})[:-1] + b","


def load(resource: Resource, item: Item) -> Object:
    """A fresh object, for its reader to keep."""
    stored = resource.read(decode(item.value)) if resource.converts else decode(item.value)
    return {"kind": resource.kind, "apiVersion": resource.api_version, **stored}


def dump(resource: Resource, obj: Object, revision: int) -> bytes:
    """An object as it is kept. The object's resourceVersion is set."""
    meta = obj["metadata"]
    meta["resourceVersion"] = str(revision)
    body = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
    text = encode(resource.write(body) if resource.converts else body)
    managers = meta.get("managedFields")
    if isinstance(managers, msgspec.Raw) and text.startswith(_BEGINS) and len(text) <= _MUCH:
        _keep_split(text, _without(text, bytes(managers)))  # soon asked for by all who watch
    return text


class _Metadata(msgspec.Struct):
    managedFields: msgspec.Raw = msgspec.Raw()  # noqa: N815


class _HasMetadata(msgspec.Struct):
    metadata: _Metadata


class Unmanaged(NamedTuple):
    """A stored object with null in the place of its managers, and the managers. They are two fifths of a pod, and take
    four fifths of the time that reading it takes, since their names are full of escaped quotes."""

    value: bytes
    managers: bytes


_metadata: Final = msgspec.json.Decoder(_HasMetadata)
_BEGINS: Final = b'{"metadata":{'
_MANAGERS: Final = b'"managedFields":'
_MUCH: Final = 1 << 16  # bytes of an object that is left as it is
_SPLIT: Final = 256  # items: all who watch read them one soon after the other


class _Split(dict[bytes, Unmanaged]):
    """By the value, which remembers its hash."""

    def forget(self) -> None:
        self.clear()


_split: Final = _Split()
tuning.when_calm(_split.forget)


def unmanaged(item: Item) -> Unmanaged:
    if len(item.value) > _MUCH:  # not kept: a tenant could fill memory with what nobody asks for again
        return Unmanaged(item.value, b"")
    found = _split.get(item.value)
    return found if found is not None else _keep_split(item.value, _unmanaged(item.value))


def shorter(item: Item) -> bytes:
    """For whoever reads no managers: the value without them where that is at hand, else the value."""
    found = _split.get(item.value)
    return found.value if found is not None else item.value


def _keep_split(value: bytes, found: Unmanaged) -> Unmanaged:
    if len(_split) >= _SPLIT:
        del _split[next(iter(_split))]
    _split[value] = found
    return found


def load_quickly(resource: Resource, item: Item) -> Object:
    """As `load`, of what is stored in the version of the resource; its managers are left as the text that they are."""
    value, managers = unmanaged(item)
    obj = {"kind": resource.kind, "apiVersion": resource.api_version, **decode(value)}
    if managers:
        obj["metadata"]["managedFields"] = msgspec.Raw(managers)
    return obj


def _unmanaged(value: bytes) -> Unmanaged:
    """In front of them in the metadata there are texts, and maps and lists of texts: what is found first is theirs."""
    if len(value) > _MUCH or not value.startswith(_BEGINS):
        return Unmanaged(value, b"")
    return _without(value, bytes(_metadata.decode(value).metadata.managedFields))


def _without(value: bytes, managers: bytes) -> Unmanaged:
    at = value.find(_MANAGERS) if managers else -1
    while at >= 0 and not value.startswith(managers, at + len(_MANAGERS)):  # a label may have that name
        at = value.find(_MANAGERS, at + 1)
    if at < 0:
        return Unmanaged(value, b"")
    at += len(_MANAGERS)
    return Unmanaged(b"".join((value[:at], b"null", value[at + len(managers) :])), managers)


def object_bytes(resource: Resource, head: bytes, item: Item, end: bytes = b"", *, managed: bool = True) -> bytes:
    """A stored object as it is answered, `end` after it."""
    if resource.converts:
        return encode(load(resource, item)) + end
    return b"".join((head, memoryview(item.value if managed else unmanaged(item).value)[1:], end))


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
