"""What a running scheduler shows over HTTP: /metrics, /debug/state, /healthz, /readyz. Read only."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from kohort.scheduler.pages import JSON, METRICS, Answer, Headers, Page, guarded, shown

if TYPE_CHECKING:
    from aiohttp import web

    from kohort.scheduler.loop import Scheduler


def pages(scheduler: Scheduler, debug_token_file: str = "") -> dict[str, Page]:
    async def metrics(_: Headers) -> Answer:
        return Answer(scheduler.metrics.text(), kind=METRICS)

    async def state(_: Headers) -> Answer:
        return Answer(msgspec.json.encode(scheduler.state()), kind=JSON)

    async def healthy(_: Headers) -> Answer:
        return Answer("ok")

    async def ready(_: Headers) -> Answer:
        up = scheduler.started.is_set()
        return Answer("ok" if up else "listing, or waiting to be leader", 200 if up else 503)

    return {
        "/metrics": metrics,
        "/debug/state": guarded(state, debug_token_file),
        "/healthz": healthy,
        "/readyz": ready,
    }


@contextlib.asynccontextmanager
async def served(scheduler: Scheduler, host: str, port: int, debug_token_file: str = "") -> AsyncIterator[int]:
    """For the time of the block; gives the port."""
    async with shown(pages(scheduler, debug_token_file), host, port) as taken:
        yield taken


@contextlib.asynccontextmanager
async def listening(
    app: web.Application, host: str, port: int, context: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """An application for the time of the block, over TLS with a context; gives the port."""
    from aiohttp import web

    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=context)
        await site.start()
        server = site._server  # aiohttp has no public way to ask which free port was taken
        sockets = getattr(server, "sockets", None)
        yield int(sockets[0].getsockname()[1]) if sockets else port
    finally:
        await runner.cleanup()
