"""Storage: one counter of revisions over all objects, the committed state in memory, a journal that makes it durable.

`resourceVersion` is that counter. A change is visible to readers and watchers only when the journal has it, so that
nobody ever saw a revision that a crash takes back. Writers check against the newest value, committed or not; the
journal keeps their order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from kohort import tuning
from kohort.server.store.journal import MemoryJournal
from kohort.server.store.records import (
    ADDED,
    DELETED,
    MODIFIED,
    Change,
    CompactedError,
    ConflictError,
    Entry,
    Event,
    Item,
    StoreError,
)
from kohort.server.store.table import Table

if TYPE_CHECKING:
    from kohort.server.store.journal import Journal
    from kohort.server.store.packing import Packed

__all__ = [
    "ADDED",
    "DELETED",
    "MODIFIED",
    "Change",
    "CompactedError",
    "ConflictError",
    "Event",
    "Item",
    "Store",
    "StoreError",
    "Table",
]

log = logging.getLogger(__name__)
Encode = Callable[[int], bytes]  # a value that knows its own revision


class Store:
    """All methods belong to the event loop that called `open`."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal: Journal = journal or MemoryJournal()
        self._tables: dict[str, Table] = {}
        self._last = 0  # the newest revision given out
        self._waiting: deque[tuple[Entry, asyncio.Future[Item]]] = deque()
        self._failed: BaseException | None = None
        self._failed_since = 0.0
        self._accepts = asyncio.Event()
        self._accepts.set()
        self.revision = 0  # the newest committed one
        self.compacted = 0
        self.kept = 0  # bytes of values in the log
        self.listeners: list[Callable[[Sequence[Entry]], None]] = []  # told of what was committed, at once

    async def open(self) -> None:
        saved = self._journal.load()
        for revision, change, table, namespace, name, value in saved.entries:
            self._replay(revision, Change(change), table, namespace, name, value, saved.compacted)
        self._last = self.revision = saved.revision
        self.compacted = saved.compacted
        self._journal.start(self._committed, self._writable)

    def _replay(
        self, revision: int, change: Change, table: str, namespace: str, name: str, value: bytes, compacted: int
    ) -> None:
        found = self.table(table)
        event = Event(change, Item(namespace, name, revision, value), found.get(namespace, name))
        if revision > compacted:
            found.commit(event)
            self.kept += len(value)
        else:
            found.restore(event)

    async def close(self) -> None:
        """What is under way is written first."""
        while self._waiting and self._failed is None:
            await asyncio.wait([self._waiting[-1][1]])
        self._failed = self._failed or StoreError("the store is closed")
        self._journal.close()

    def table(self, name: str) -> Table:
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = Table()
        return found

    @property
    def tables(self) -> dict[str, Table]:
        return self._tables

    # ---- writing

    def write(
        self,
        table: str,
        namespace: str,
        name: str,
        encode: Encode,
        *,
        expect: Item | None,
        delete: bool = False,
        packed: Packed | None = None,
    ) -> asyncio.Future[Item]:
        """Replace `expect` (None: there is nothing), or raise ConflictError. Await the result: then it is durable.
        `packed`: what `encode` gives, for the journal."""
        if self._failed is not None:
            raise StoreError(str(self._failed))
        target = self.table(table)
        head = target.head(namespace, name)
        if head is not expect:
            raise ConflictError(head)
        revision = self._last + 1
        item = Item(namespace, name, revision, encode(revision))
        change = Change.DELETE if delete else Change.CREATE if head is None else Change.UPDATE
        self._last = revision
        event = Event(change, item, head)
        target.begin(event)
        entry = Entry(table, event, packed)
        waiter: asyncio.Future[Item] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, waiter))
        self._journal.append(entry)
        return waiter

    def _committed(self, entries: Sequence[Entry], error: BaseException | None) -> None:
        touched: set[str] = set()
        for entry in entries:
            _, waiter = self._waiting.popleft()
            entry.packed = None  # listeners may keep it for a while
            if error is not None:
                self.table(entry.table).give_up([entry.event])
                if not waiter.done():
                    waiter.set_exception(StoreError(str(error)))
                continue
            event = entry.event
            self._tables[entry.table].commit(event)
            self.revision = event.item.revision
            self.kept += len(event.item.value)
            touched.add(entry.table)
            if not waiter.done():  # whoever asked may have gone
                waiter.set_result(event.item)
        if error is not None:
            self._fail(error)
            return
        for listen in self.listeners:
            listen(entries)
        for name in touched:
            self._tables[name].wake()

    def _fail(self, error: BaseException) -> None:
        """The journal could not write: nothing is accepted until it can, so that memory and file stay the same."""
        if self._failed is not None:
            return
        self._failed, self._failed_since = error, time.monotonic()
        self._accepts.clear()
        log.error("%s: writes are refused until it can be written again", error)
        self._journal.refuses()

    def _writable(self) -> None:
        if self._accepts.is_set():
            return
        log.warning("the store accepts writes again, after %.0f s", time.monotonic() - self._failed_since)
        self._failed = None
        self._accepts.set()

    @property
    def accepts_writes(self) -> bool:
        return self._failed is None

    async def until_writable(self) -> None:
        await self._accepts.wait()

    # ---- the past

    def since(self, table: str, revision: int) -> Sequence[Event]:
        """The changes of a resource after a revision; CompactedError if they are no longer all there."""
        self.check(revision)
        return self.table(table).since(revision)

    def following(self, table: str, revision: int) -> Sequence[Event]:
        """As `since`, for whoever has read everything up to a revision: what was forgotten of others does not count.

        Somebody who writes much of one kind makes history short; watchers of other kinds have lost nothing by it.
        """
        found = self.table(table)
        if revision < found.forgotten:
            raise CompactedError(revision, self.compacted)
        return found.since(revision)

    def items_at(self, table: str, revision: int, namespace: str | None = None) -> list[Item]:
        self.check(revision)
        return self.table(table).items_at(revision, namespace)

    def check(self, revision: int) -> None:
        if revision < self.compacted:
            raise CompactedError(revision, self.compacted)

    def compact(self, revision: int) -> None:
        """Forget how things came to be up to a revision. What is there stays."""
        revision = min(revision, self.revision)
        if revision <= self.compacted:
            return
        self.compacted = revision
        dropped = [event for table in self._tables.values() for event in table.forget(revision)]
        size = sum(len(event.item.value) for event in dropped)
        self.kept -= size
        tuning.freed(size)
        self._journal.compact(revision, self.revision, list(_superseded(dropped)))
        self.wake()

    def wake(self) -> None:
        """Let every watcher look up."""
        for table in self._tables.values():
            table.wake()


def _superseded(events: Iterable[Event]) -> Iterable[int]:
    """The revisions that no reader needs once these events cannot be replayed."""
    for event in events:
        if event.before is not None:
            yield event.before.revision
        if event.change is Change.DELETE:
            yield event.revision
