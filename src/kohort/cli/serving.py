"""A server that a process is there for: from its start until the process is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import TYPE_CHECKING

from kohort import tuning
from kohort.cli.common import write

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from kohort.server.server import Server
    from kohort.server.settings import Settings


class StartError(Exception):
    """It did not start, for a reason that is not a fault of ours."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


@contextlib.asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[tuple[Server, asyncio.Event]]:
    """The server, and the event that a signal sets. At the end it is closed."""
    from kohort.server.auth.private import FileError
    from kohort.server.server import Server
    from kohort.server.store import StoreError
    from kohort.tuning import raise_file_limit

    raise_file_limit()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        server = Server(settings)
        await server.start()
    except (StoreError, FileError, OSError) as error:
        raise StartError(error) from None
    try:
        yield server, stopped
    finally:
        await server.close()


async def until(
    stopped: asyncio.Event, server: Server, ready: str, announce: Callable[[], None] = lambda: None
) -> None:
    """Say that it is ready, and serve until then. `announce`: tells whoever started this process, after that."""
    from kohort.kube.watchdog import watching

    tuning.settle(calm=True)
    write(ready)
    sys.stdout.flush()
    announce()
    keeping = asyncio.create_task(tuning.give_back_when_calm())
    try:
        with watching() as server.api.metrics.watchdog:
            await stopped.wait()
    finally:
        keeping.cancel()
