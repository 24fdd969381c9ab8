"""A job of the server: it sees every committed change, remembers what it must look at, and works it off, one by one."""

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


class Job(ABC, Generic[K]):
    """`see` is called with each change, in order, before anything else can happen; `work` may take its time."""

    name = "job"

    def __init__(self, api: Api, clock: Clock) -> None:
        self.api, self.core, self.store, self.clock = api, api.core, api.store, clock
        self._waiting: dict[K, None] = {}
        self._failures: dict[K, int] = {}
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    def see(self, table: str, item: Item, event: Event | None) -> None:
        """An object that is there at the start (event is None), or a change of one."""

    @abstractmethod
    async def work(self, key: K) -> bool:
        """Whether it is done; if not, it is tried again later."""

    def look_at(self, key: K) -> None:
        self._waiting[key] = None
        self._some.set()

    def look_later(self, key: K, seconds: float) -> None:
        if seconds <= 0:
            self.look_at(key)
        else:
            self.clock.call_later(seconds, lambda: self.look_at(key))

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    @property
    def idle(self) -> bool:
        return not self._waiting

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            while self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                await self._try(key)

    async def _try(self, key: K) -> None:
        try:
            done = await self.work(key)
        except Exception:  # the next one must not suffer
            log.exception("%s: %s", self.name, key)
            done = False
        if done:
            self._failures.pop(key, None)
            return
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.look_later(key, min(_LONGEST, 0.05 * 2**failures))
