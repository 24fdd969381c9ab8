"""Serves the dashboard beside something else: for one person on this machine, or for the users of a cluster."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from kohort.scheduler.endpoints import listening
from kohort.web.access import Access, Reviewed
from kohort.web.app import Dashboard
from kohort.web.sessions import Sessions

if TYPE_CHECKING:
    from kohort.kube.client import Client

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


@contextlib.asynccontextmanager
async def local(client: Client, port: int = 0, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """On loopback, for whoever has the link that is given: it works once."""
    sessions = Sessions(Access(), client.clock)
    async with _served(Dashboard(client, sessions, hosts=_LOOPBACK), host, port) as taken:
        yield f"http://{host}:{taken}/?link={sessions.link()}"


@contextlib.asynccontextmanager
async def for_users(client: Client, host: str, port: int, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """For everybody who has a token of the cluster; each sees what they may read."""
    sessions = Sessions(Reviewed(client), client.clock)
    async with _served(Dashboard(client, sessions, secure=context is not None), host, port, context) as taken:
        shown = f"[{host}]" if ":" in host else host
        yield f"{'https' if context is not None else 'http'}://{shown}:{taken}/"


@contextlib.asynccontextmanager
async def _served(
    dashboard: Dashboard, host: str, port: int, context: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    async with listening(dashboard.application(), host, port, context) as taken:
        try:
            yield taken
        finally:
            await dashboard.close()
