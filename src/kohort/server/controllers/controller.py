"""A built-in controller: it observes every committed change, queues the keys it concerns, and reconciles one by one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from kohort.kube.clock import Clock
    from kohort.server.api import Api
    from kohort.server.store import Event, Item

log = logging.getLogger(__name__)
_LONGEST: Final = 60.0
K = TypeVar("K", bound=Hashable)


class Controller(ABC, Generic[K]):
    """`observe` is called with each change, in order, before anything else happens; `reconcile` may take its time."""

    name = "controller"
    tables: frozenset[str] | None = None  # whose changes it wants to see; None: all

    def __init__(self, api: Api, clock: Clock) -> None:
        self.api, self.core, self.store, self.clock = api, api.core, api.store, clock
        self._queue: dict[K, None] = {}
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    def observe(self, table: str, item: Item, event: Event | None) -> None:
        """An object that is there at the start (event is None), or a change of one."""

    @abstractmethod
    async def reconcile(self, key: K) -> bool:
        """Whether it is done; if not, it is tried again later."""

    def enqueue(self, key: K) -> None:
        self._queue[key] = None
        self._wake.set()

    def enqueue_after(self, key: K, seconds: float) -> None:
        if seconds <= 0:
            self.enqueue(key)
        else:
            self.clock.call_later(seconds, lambda: self.enqueue(key))

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    @property
    def idle(self) -> bool:
        return not self._queue

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                key = next(iter(self._queue))
                del self._queue[key]
                await self._reconcile_once(key)

    async def _reconcile_once(self, key: K) -> None:
        try:
            done = await self.reconcile(key)
        except Exception:  # the next one must not suffer
            log.exception("%s: %s", self.name, key)
            done = False
        if done:
            self._failures.pop(key, None)
            return
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.enqueue_after(key, min(_LONGEST, 0.05 * 2**failures))
