"""What a running scheduler shows over HTTP: /metrics, /debug/state, /healthz, /readyz. Read only."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from aiohttp import web

    from kohort.scheduler.loop import Scheduler

    _Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_OFF: Final = "the state is not shown: name a file with a token for it (debugTokenFile, --debug-token-file)"


async def load_web() -> None:
    """aiohttp takes a fifth of a second, half of it for reading all certificates that the machine trusts: in a thread,
    while others wait for the API server."""
    await asyncio.to_thread(import_module, "aiohttp.web")


def guarded(show: _Handler, token_file: str) -> _Handler:
    """For those who have the token in the file, read at every request; for nobody, without a file.

    The state has all pods and nodes in it, and the port is that of probes, which every process can reach.
    """

    from aiohttp import web

    async def handle(request: web.Request) -> web.StreamResponse:
        if not token_file:
            return web.Response(text=_OFF, status=404)
        try:
            wanted = (await asyncio.to_thread(Path(token_file).read_bytes)).strip()
        except OSError:
            wanted = b""
        given = request.headers.get("Authorization", "").encode(errors="replace")
        if not wanted or not hmac.compare_digest(given, b"Bearer " + wanted):
            return web.Response(text="Unauthorized", status=401, headers={"WWW-Authenticate": "Bearer"})
        return await show(request)

    return handle


def application(scheduler: Scheduler, debug_token_file: str = "") -> web.Application:
    from aiohttp import web

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
            web.get("/debug/state", guarded(state, debug_token_file)),
            web.get("/healthz", healthy),
            web.get("/readyz", ready),
        ]
    )
    return made


@contextlib.asynccontextmanager
async def served(scheduler: Scheduler, host: str, port: int, debug_token_file: str = "") -> AsyncIterator[int]:
    """For the time of the block; gives the port."""
    async with listening(application(scheduler, debug_token_file), host, port) as taken:
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
