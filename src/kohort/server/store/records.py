"""What the store keeps: the newest value of every object, and the changes that led there."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kohort.server.store.packing import Packed

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Change(IntEnum):
    """What one revision did to one object."""

    CREATE = 0
    UPDATE = 1
    DELETE = 2

    @property
    def event_type(self) -> str:
        return _EVENT_TYPES[self]


_EVENT_TYPES: Final = (ADDED, MODIFIED, DELETED)


class Item:
    """One object as it stands at a revision. Never changed: a newer value is a new item."""

    __slots__ = ("name", "namespace", "revision", "value")

    def __init__(self, namespace: str, name: str, revision: int, value: bytes) -> None:
        self.namespace = namespace
        self.name = name
        self.revision = revision
        self.value = value

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)


class Event:
    """One change: the item after it (for a deletion: the last state, with the revision of the deletion), and before."""

    __slots__ = ("before", "change", "decoded", "item")

    def __init__(self, change: Change, item: Item, before: Item | None) -> None:
        self.change = change
        self.item = item
        self.before = before
        self.decoded: object = None  # whoever reads events may keep here what it found out, once for all watchers

    @property
    def revision(self) -> int:
        return self.item.revision


class Entry:
    """An event of a table, for the journal and for listeners. `packed`: its value, where somebody has packed it."""

    __slots__ = ("event", "packed", "table")

    def __init__(self, table: str, event: Event, packed: Packed | None = None) -> None:
        self.table = table
        self.event = event
        self.packed = packed


class StoreError(Exception):
    """The store cannot be opened or written; the text says why and what to do."""


class ConflictError(Exception):
    """The object is not what the writer thought; `found` is what is there (or being written) now."""

    def __init__(self, found: Item | None) -> None:
        super().__init__("the object has changed")
        self.found = found


class CompactedError(Exception):
    """The revision asked for is no longer kept."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")
        self.asked = asked
        self.oldest = oldest
