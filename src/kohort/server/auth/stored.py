"""`Objects` over the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.kind import Object
    from kohort.server.store import Item, Store

_REMEMBERED = 20_000


class StoredObjects:
    """Decodes what it is asked for, and keeps that as long as it stands."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode
        self._known: dict[tuple[str, str, str], tuple[Item, Object]] = {}

    def get(self, group: str, resource: str, namespace: str, name: str) -> Object | None:
        table = _table(group, resource)
        item = self._store.table(table).get(namespace, name)
        return None if item is None else self._object(table, item)

    def list(self, group: str, resource: str, namespace: str | None = None) -> Sequence[Object]:
        table = _table(group, resource)
        return [self._object(table, item) for item in self._store.table(table).items(namespace)]

    def version(self, group: str, resource: str) -> int:
        """The newest revision; below zero while the log has none, so that no state looks like an older one."""
        log = self._store.table(_table(group, resource)).log
        return log[-1].revision if log else -1 - self._store.compacted

    def _object(self, table: str, item: Item) -> Object:
        key = (table, item.namespace, item.name)
        known = self._known.get(key)
        if known is not None and known[0] is item:
            return known[1]
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        found = self._decode(item.value)
        self._known[key] = (item, found)
        return found


def _table(group: str, resource: str) -> str:
    return f"{group}/{resource}" if group else resource
