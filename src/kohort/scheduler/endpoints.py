"""What a running scheduler shows over HTTP: /metrics, /debug/state, /healthz, /readyz. Read only."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

if TYPE_CHECKING:
    from kohort.scheduler.loop import Scheduler


def application(scheduler: Scheduler) -> web.Application:
    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=scheduler.metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4"})

    async def state(_: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(scheduler.state()), content_type="application/json")

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(_: web.Request) -> web.Response:
        up = scheduler.started.is_set()
        return web.Response(text="ok" if up else "listing, or waiting to be leader", status=200 if up else 503)

    made = web.Application()
    made.add_routes(
        [
            web.get("/metrics", metrics),
            web.get("/debug/state", state),
            web.get("/healthz", healthy),
            web.get("/readyz", ready),
        ]
    )
    return made


@contextlib.asynccontextmanager
async def served(scheduler: Scheduler, host: str, port: int) -> AsyncIterator[int]:
    """For the time of the block; gives the port."""
    async with listening(application(scheduler), host, port) as taken:
        yield taken


@contextlib.asynccontextmanager
async def listening(
    app: web.Application, host: str, port: int, context: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """An application for the time of the block, over TLS with a context; gives the port."""
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
