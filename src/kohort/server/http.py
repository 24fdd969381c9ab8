"""The API over HTTPS, on aiohttp's lowest floor: no routes and no middlewares, one handler for everything."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from aiohttp.web_exceptions import HTTPRequestEntityTooLarge
from aiohttp.web_protocol import RequestHandler, RequestPayloadError
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response as HttpResponse
from aiohttp.web_response import StreamResponse
from aiohttp.web_server import Server

from kohort.kube.wire import Request
from kohort.server import render, status

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.streams import StreamReader

    from kohort.kube.wire import Response, User
    from kohort.server.api import Api

log = logging.getLogger(__name__)
MAX_BODY: Final = 3 << 20  # as kube-apiserver
_MAX_HEADER: Final = 32 << 10
_BODY_SECONDS: Final = 30.0
_REQUEST_SECONDS: Final = 60.0  # watches aside, as upstream
_IDLE_SECONDS: Final = 180.0
_GRACE_SECONDS: Final = 5.0
_FLUSHING: Final = 50  # hundredths of a second
_NO_QUERY: Final[dict[str, list[str]]] = {}


class _Protocol(RequestHandler):
    """One connection. Whatever is wrong with the HTTP itself is answered with a Status, too."""

    __slots__ = ()

    def handle_error(
        self, request: Any, status_code: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        if status_code >= 500:
            log.error("%s %s: %s", request.method, request.path, message or exc, exc_info=exc)
        reason = "BadRequest" if status_code < 500 else "InternalError"
        text = (message or str(exc or "")).strip().splitlines()
        wrong = status.ApiError(status.failure(status_code, reason, text[0][:500] if text else reason))
        found = _plain(render.failure(wrong))
        found.force_close()
        return found


class _Server(Server):
    def __call__(self) -> RequestHandler:
        return _Protocol(self, loop=self._loop, **self._kwargs)


class HttpServer:
    """Listens until `close`. `authenticator`: None if everybody is let in."""

    def __init__(self, api: Api, *, context: ssl.SSLContext | None = None, authenticator: Any = None) -> None:
        self._api, self._context, self._authenticator = api, context, authenticator
        self._server: _Server | None = None
        self._listening: asyncio.Server | None = None
        self.host, self.port = "", 0

    async def listen(self, host: str, port: int) -> None:
        """Port 0: any that is free; `port` says which."""
        loop = asyncio.get_running_loop()

        def make(
            message: RawRequestMessage,
            payload: StreamReader,
            protocol: RequestHandler,
            writer: AbstractStreamWriter,
            task: asyncio.Task[None],
        ) -> BaseRequest:
            return BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY)

        self._server = _Server(
            self._handle,
            request_factory=make,
            handler_cancellation=True,
            keepalive_timeout=_IDLE_SECONDS,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
            access_log=None,
        )
        self._listening = await loop.create_server(self._server, host, port, ssl=self._context, backlog=1024)
        self.host = host
        self.port = self._listening.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Watches end, requests under way are answered, then connections are closed."""
        self._api.stop()
        if self._listening is None or self._server is None:
            return
        server, self._server = self._server, None
        open_ = [one.transport for one in server.connections if one.transport is not None]
        self._listening.close()
        await asyncio.sleep(0)  # what came in before is begun
        server.pre_shutdown()
        await server.shutdown(_GRACE_SECONDS)
        self._listening = None
        # TLS says goodbye and waits for the other side, which may be a client that sleeps.
        for _ in range(_FLUSHING):
            if not any(map(_unsent, open_)):
                break
            await asyncio.sleep(0.01)
        for transport in open_:
            transport.abort()
        await asyncio.sleep(0)

    # ---- one request

    async def _handle(self, incoming: BaseRequest) -> StreamResponse:
        try:
            request = await self._read(incoming)
        except status.ApiError as error:
            return _plain(render.failure(error))
        # A client that hangs up ends its watch, but not a write that is half way.
        answer = asyncio.ensure_future(self._api.handle(request))
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                response = await asyncio.shield(answer)
        except TimeoutError:
            late = status.ApiError(status.failure(504, "Timeout", "the request took too long"))
            return _plain(render.failure(late))
        if isinstance(response.body, bytes):
            return _plain(response)
        return await _stream(incoming, response, response.body)

    async def _read(self, incoming: BaseRequest) -> Request:
        headers: dict[str, str] = {}
        for name, value in incoming.headers.items():
            key = name.lower()
            if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
                raise status.bad_request(f"header {name[:100]}: expected UTF-8")
            if key in headers:
                value = headers[key] + ("\n" if key.startswith("impersonate") else ", ") + value  # noqa: PLW2901
            headers[key] = value
        user = self._who(incoming, headers)
        body = b""
        if incoming.can_read_body:
            if (incoming.content_length or 0) > MAX_BODY:
                raise status.too_large(MAX_BODY)
            try:
                async with asyncio.timeout(_BODY_SECONDS):
                    body = await incoming.read()
            except HTTPRequestEntityTooLarge:
                raise status.too_large(MAX_BODY) from None
            except TimeoutError:
                raise status.ApiError(status.failure(408, "Timeout", "the body did not come")) from None
            except RequestPayloadError as error:
                raise status.bad_request(f"the body cannot be read: {' '.join(str(error).split())}") from None
        query = incoming.rel_url.raw_query_string
        try:
            parsed = parse_qs(query, keep_blank_values=True, max_num_fields=200) if query else _NO_QUERY
        except ValueError:
            raise status.bad_request("the query has too many fields") from None
        return Request(incoming.method, incoming.rel_url.path, parsed, headers, body, user)

    def _who(self, incoming: BaseRequest, headers: dict[str, str]) -> User | None:
        if self._authenticator is None:
            return None
        peer: bytes | None = None
        transport = incoming.transport
        shown = transport.get_extra_info("ssl_object") if transport is not None else None
        if shown is not None:
            peer = shown.getpeercert(binary_form=True)
        user: User | None = self._authenticator.user(headers, peer)
        if user is None:
            raise status.unauthorized()
        return user


def _unsent(transport: asyncio.Transport) -> int:
    try:
        return transport.get_write_buffer_size()
    except AttributeError:  # TLS over a connection that is closed (CPython 3.11)
        return 0


def _plain(response: Response) -> HttpResponse:
    assert isinstance(response.body, bytes)
    return HttpResponse(body=response.body, status=response.status, headers=response.headers)


async def _stream(incoming: BaseRequest, response: Response, chunks: AsyncIterator[bytes]) -> StreamResponse:
    outgoing = StreamResponse(status=response.status, headers=response.headers)
    outgoing.enable_chunked_encoding()
    try:
        await outgoing.prepare(incoming)
        async for chunk in chunks:
            await outgoing.write(chunk)
        await outgoing.write_eof()
    except (ConnectionResetError, BrokenPipeError):
        pass  # the watcher has gone
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            with contextlib.suppress(RuntimeError):
                await close()
    return outgoing
