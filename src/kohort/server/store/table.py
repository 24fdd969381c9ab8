"""The objects of one resource: what is committed, what is being written, and the changes that are still kept."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kohort.server.store.records import Change, Event, Item

if TYPE_CHECKING:
    from collections.abc import Sequence


def _revision(event: Event) -> int:
    return event.item.revision


class Table:
    """Readers see committed items only. Writers build on the newest, committed or not (`head`)."""

    def __init__(self) -> None:
        self._items: dict[str, dict[str, Item]] = {}  # namespace -> name -> item
        self._pending: dict[tuple[str, str], tuple[int, Item | None]] = {}
        self._log: list[Event] = []
        self._waiters: dict[asyncio.Future[None], None] = {}  # woken in the order in which they came
        self.head_listeners: list[Callable[[str, str], None]] = []  # told of namespace and name, before commits
        self.size = 0
        self.changes = 0  # how often something was committed
        self.forgotten = 0  # the newest revision that the log no longer has

    # ---- reading

    def get(self, namespace: str, name: str) -> Item | None:
        return self._items.get(namespace, _NONE).get(name)

    def head(self, namespace: str, name: str) -> Item | None:
        """The newest value, also if its commit is still under way."""
        pending = self._pending.get((namespace, name))
        return pending[1] if pending is not None else self.get(namespace, name)

    def items(self, namespace: str | None = None) -> list[Item]:
        """In the order of their keys, as etcd has them."""
        if namespace is not None:
            found = self._items.get(namespace, _NONE)
            return [found[name] for name in sorted(found)]
        return [inner[name] for _, inner in sorted(self._items.items()) for name in sorted(inner)]

    def heads(self, namespace: str) -> list[Item]:
        """The newest values of a namespace, also those whose commit is still under way."""
        found = dict(self._items.get(namespace, _NONE))
        for (where, name), (_, item) in self._pending.items():
            if where == namespace and item is not None:
                found[name] = item
            elif where == namespace:
                found.pop(name, None)
        return list(found.values())

    def items_at(self, revision: int, namespace: str | None = None) -> list[Item]:
        """The same at an earlier revision, which the log must still reach back to."""
        then: dict[tuple[str, str], Item | None] = {}
        for event in self.since(revision):
            then.setdefault(event.item.key, event.before)
        if not then:
            return self.items(namespace)
        found = {item.key: item for item in self.items(namespace) if item.key not in then}
        found |= {key: item for key, item in then.items() if item is not None and namespace in (None, key[0])}
        return [found[key] for key in sorted(found)]

    def since(self, revision: int) -> Sequence[Event]:
        """All changes after a revision."""
        log = self._log
        if not log or log[-1].item.revision <= revision:
            return ()
        return log[bisect_right(log, revision, key=_revision) :]

    async def changed(self, seconds: float | None = None) -> None:
        """Until something is committed, or somebody is asked to look up, or so many seconds have passed."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters[waiter] = None
        timer = loop.call_later(seconds, _wake, waiter) if seconds is not None else None
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            self._waiters.pop(waiter, None)

    # ---- writing

    def begin(self, event: Event) -> None:
        item = event.item
        self._pending[item.key] = (item.revision, None if event.change is Change.DELETE else item)
        for listen in self.head_listeners:
            listen(item.namespace, item.name)

    def commit(self, event: Event) -> None:
        item = event.item
        pending = self._pending.get(item.key)
        if pending is not None and pending[0] == item.revision:
            del self._pending[item.key]
        self.restore(event)
        self._log.append(event)

    def restore(self, event: Event) -> None:
        """Apply a change without logging it."""
        item = event.item
        self.changes += 1
        names = self._items.setdefault(item.namespace, {})
        self.size += (event.change is not Change.DELETE) - (item.name in names)
        if event.change is not Change.DELETE:
            names[item.name] = item
        else:
            names.pop(item.name, None)
            if not names:
                del self._items[item.namespace]

    def give_up(self, events: Iterable[Event]) -> None:
        """These will not be committed."""
        for event in events:
            pending = self._pending.get(event.item.key)
            if pending is not None and pending[0] == event.item.revision:
                del self._pending[event.item.key]
                for listen in self.head_listeners:
                    listen(*event.item.key)

    def reread(self, item: Item, value: bytes) -> None:
        """The same revision of the same object in other words (a newer server's defaults); not an event."""
        if self.get(item.namespace, item.name) is item:
            self._items[item.namespace][item.name] = Item(item.namespace, item.name, item.revision, value)

    def wake(self) -> None:
        for waiter in self._waiters:
            _wake(waiter)

    def forget(self, revision: int) -> list[Event]:
        """Drop the log up to a revision; what was dropped."""
        upto = bisect_right(self._log, revision, key=_revision)
        dropped = self._log[:upto]
        self._log = self._log[upto:]
        if dropped:
            self.forgotten = dropped[-1].revision
        return dropped

    @property
    def log(self) -> Sequence[Event]:
        return self._log


_NONE: dict[str, Item] = {}


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
