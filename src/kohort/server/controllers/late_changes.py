"""Large objects that were committed: told to the controllers later, so that whoever wrote beside them does not wait.

Everybody whose write was in the same commit hears of it in the same turn of the loop, and to read who owns an object
that names 20,000 owners takes 30 ms. So what is large waits, and with it whatever follows about the same namespace, in
order: whom a controller does not know yet might count as gone. What is outside of namespaces may own objects in all of
them, and never waits.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from kohort.server.store.records import Entry

LARGE: Final = 1 << 16  # bytes
_PART: Final = 0.002  # seconds of work, until there is a rest
_REST: Final = 4.0  # times as long as that took
_LONGEST_REST: Final = 0.1  # seconds
_MOST: Final = 500  # that wait; above, there is no rest


class LateChanges:
    """`observe` is called with each, and raises nothing."""

    def __init__(self, observe: Callable[[Entry], None]) -> None:
        self._observe = observe
        self._entries: deque[Entry] = deque()
        self._namespaces: Counter[str] = Counter()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def keeps(self, entry: Entry) -> bool:
        """Whether it is told later. If not, it is the caller's."""
        item = entry.event.item
        if not item.namespace or (len(item.value) <= LARGE and item.namespace not in self._namespaces):
            return False
        self._entries.append(entry)
        self._namespaces[item.namespace] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return True

    async def stop(self) -> None:
        """Nothing more is told."""
        self._entries.clear()
        self._namespaces.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._entries:
            began = time.perf_counter()
            self._pass(self._entries[0])
            while self._entries and time.perf_counter() - began < _PART:
                self._pass(self._entries[0])
            hurry = len(self._entries) > _MOST
            await asyncio.sleep(0.0 if hurry else min(_LONGEST_REST, _REST * (time.perf_counter() - began)))

    def _pass(self, entry: Entry) -> None:
        try:
            self._observe(entry)
        finally:
            self._entries.popleft()
            namespace = entry.event.item.namespace
            self._namespaces[namespace] -= 1
            if not self._namespaces[namespace]:
                del self._namespaces[namespace]
