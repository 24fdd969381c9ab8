"""A connection to a server through a proxy that only passes on what it cannot read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from kohort.kube.errors import TransportError
from kohort.kube.http1 import AnswerReader, BadAnswerError, request

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from kohort.kube.proxies import HttpProxy

P = TypeVar("P", bound=asyncio.Protocol)


class _Opening(asyncio.Protocol):
    """Until the proxy has answered."""

    def __init__(self) -> None:
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._reader = AnswerReader()
        self._reader.begin("HEAD")  # a tunnel has no body, and that of a refusal is not read

    def data_received(self, data: bytes) -> None:
        if self.status.done():
            return
        try:
            answer = self._reader.feed(data)
        except BadAnswerError as error:
            self.status.set_exception(TransportError(str(error)))
        else:
            if answer is not None:
                self.status.set_result(answer.status)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.status.done():
            self.status.set_exception(TransportError(str(exc or "it closed the connection")))


async def tunnelled(
    proxy: HttpProxy, host: str, port: int, context: ssl.SSLContext, name: str | None, make: Callable[[], P]
) -> P:
    """A protocol whose transport is TLS with the server. `name`: in the server's certificate."""
    loop = asyncio.get_running_loop()
    transport, opening = await loop.create_connection(_Opening, proxy.host, proxy.port)
    try:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        transport.write(request("CONNECT", address, {"host": address, **proxy.headers}, b""))
        try:
            status = await opening.status
        except TransportError as error:
            raise TransportError(f"proxy {proxy.host}:{proxy.port}: {error}") from None
        if not 200 <= status < 300:
            from http.client import responses  # a moment that a start without a proxy need not wait

            said = f"{status} {responses.get(status, '')}".rstrip()
            raise TransportError(f"proxy {proxy.host}:{proxy.port}: {said} for CONNECT {address}")
        made = make()
        secured = await loop.start_tls(transport, made, context, server_hostname=name)
    except BaseException:
        transport.abort()
        raise
    if secured is None:
        raise TransportError(f"proxy {proxy.host}:{proxy.port}: the connection was lost while TLS was agreed on")
    made.connection_made(secured)
    return made
