"""The cluster is followed while somebody looks, and for some minutes after."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from kohort.web.follower import ClusterFollower
from kohort.web.view import View

if TYPE_CHECKING:
    from kohort.kube.client import Client

log = logging.getLogger(__name__)
IDLE: Final = 900.0  # seconds without a visitor, after which nothing is followed any more


class Following:
    """Begins with the first visitor; others wait until there is something to show."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[View] | None = None
        self._visitors = 0
        self._left = 0.0

    @contextlib.asynccontextmanager
    async def view(self) -> AsyncIterator[View]:
        """What is followed; whatever keeps it from being read is raised here."""
        self._visitors += 1
        try:
            if self._task is None or self._task.done():
                self._ready = asyncio.get_running_loop().create_future()
                self._task = asyncio.create_task(self._follow(self._ready))
            assert self._ready is not None
            yield await asyncio.shield(self._ready)
        finally:
            self._visitors -= 1
            self._left = self._client.clock.monotonic()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self, ready: asyncio.Future[View]) -> None:
        try:
            async with ClusterFollower(self._client, pods_later=True) as follower:
                view = View(follower)
                work = asyncio.create_task(view.run())
                try:
                    await view.told()
                    ready.set_result(view)
                    await self._until_idle(work)
                finally:
                    work.cancel()
                    await asyncio.gather(work, return_exceptions=True)
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
                ready.exception()  # whoever waits gets it; if nobody does, nobody need be told
            else:
                log.exception("the dashboard begins anew")

    async def _until_idle(self, work: asyncio.Task[None]) -> None:
        clock = self._client.clock
        while not work.done():
            await clock.sleep(1.0)
            if not self._visitors and clock.monotonic() - self._left > IDLE:
                return
        work.result()
