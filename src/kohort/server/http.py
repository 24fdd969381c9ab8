"""The API over HTTPS, on aiohttp's lowest floor: no routes and no middlewares, one handler for everything."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response as HttpResponse
from aiohttp.web_response import StreamResponse
from aiohttp.web_server import Server

from kohort.kube.wire import Request
from kohort.server import render, request_stream, status
from kohort.server.flowcontrol import FlowControl
from kohort.server.limits import DEFAULT

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.streams import StreamReader

    from kohort.kube.wire import Response, User
    from kohort.server.api import Api
    from kohort.server.limits import Limits

log = logging.getLogger(__name__)
_GRACE_SECONDS: Final = 5.0
_FLUSHING: Final = 50  # hundredths of a second
_LATE_SECONDS: Final = 1.0  # of a watch after its end
_BUFFERED: Final = 64 << 10  # answers up to here fit what a connection buffers
_NO_QUERY: Final[dict[str, list[str]]] = {}


class _Protocol(RequestHandler):
    """One connection. Whatever is wrong with the HTTP itself is answered with a Status, too."""

    __slots__ = ()

    def handle_error(
        self, request: Any, status_code: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        if status_code >= 500:
            log.error("%s %r: %s", request.method, request.path, message or exc, exc_info=exc)
        reason = "BadRequest" if status_code < 500 else "InternalError"
        text = (message or str(exc or "")).strip().splitlines()
        wrong = status.ApiError(status.failure(status_code, reason, text[0][:500] if text else reason))
        found = _plain(render.failure(wrong))
        found.force_close()
        return found

    async def finish_response(
        self, request: BaseRequest, resp: StreamResponse, start_time: float | None
    ) -> tuple[StreamResponse, bool]:
        """A connection that waits for its next request holds the last one and its answer, but not their bodies."""
        found = await super().finish_response(request, resp, start_time)
        request._read_bytes = None
        if isinstance(resp, HttpResponse):
            resp._body = None
        return found


class _Server(Server):
    """A factory of what a connection is until it is agreed on; `serving` makes what serves it then."""

    def __call__(self) -> _Agreeing:  # type: ignore[override]
        return _Agreeing(self.serving)

    def serving(self) -> RequestHandler:
        return _Protocol(self, loop=self._loop, **self._kwargs)


class _Agreeing(asyncio.Protocol):
    """A connection until its TLS is agreed on, if it ever is. aiohttp's protocol holds its parser and the parser the
    protocol, until the connection is lost; one that was never made is never lost, and a thousand of them would stay
    until somebody looks for cycles."""

    __slots__ = ("_serving",)

    def __init__(self, serving: Callable[[], RequestHandler]) -> None:
        self._serving = serving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        protocol = self._serving()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


class HttpServer:
    """Listens until `close`. `authenticator`: None if everybody is let in."""

    def __init__(
        self,
        api: Api,
        *,
        context: ssl.SSLContext | None = None,
        authenticator: Any = None,
        limits: Limits = DEFAULT,
    ) -> None:
        self._api, self._context, self._authenticator = api, context, authenticator
        self.limits = limits
        self.flow = api.metrics.flow = FlowControl(limits)
        self._server: _Server | None = None
        self._listening: asyncio.Server | None = None
        self.host, self.port = "", 0

    async def listen(self, host: str, port: int) -> None:
        """Port 0: any that is free; `port` says which."""
        loop = asyncio.get_running_loop()
        body, header = self.limits.body_bytes, self.limits.header_bytes

        def make(
            message: RawRequestMessage,
            payload: StreamReader,
            protocol: RequestHandler,
            writer: AbstractStreamWriter,
            task: asyncio.Task[None],
        ) -> BaseRequest:
            return BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=body)

        self._server = _Server(
            self._handle,
            request_factory=make,
            handler_cancellation=True,
            keepalive_timeout=self.limits.idle_seconds,
            max_line_size=header,
            max_field_size=header,
            auto_decompress=False,  # a kilobyte can become gigabytes: see request_stream
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
        """In kube-apiserver's order: who it is, a seat, whether they may, and only then the body."""
        try:
            request = self._head(incoming)
            seats, name = self.flow.seats(request.method, request.path, request.user), _name(request.user)
            if seats is not None:
                await seats.take(name)
        except status.ApiError as error:
            return await self._send(incoming, render.failure(error))
        try:
            response = await self._answer(incoming, request)
            if response.seconds is None:
                return await self._send(incoming, response)
        finally:
            if seats is not None:
                seats.leave(name)
        return await self._send(incoming, response)  # a watch: it lasts, and holds no seat

    async def _answer(self, incoming: BaseRequest, request: Request) -> Response:
        read_body = partial(request_stream.read, incoming, self.limits) if incoming.can_read_body else None
        # A client that hangs up ends its watch, but not a write that is half way.
        answer = asyncio.ensure_future(self._api.handle(request, read_body))
        try:
            async with asyncio.timeout(self.limits.request_seconds):
                return await asyncio.shield(answer)
        except TimeoutError:
            return render.failure(status.ApiError(status.failure(504, "Timeout", "the request took too long")))

    async def _send(self, incoming: BaseRequest, response: Response) -> StreamResponse:
        if not isinstance(response.body, bytes):
            return await _stream(incoming, response, response.body, self.limits.write_seconds)
        outgoing = _plain(response)
        if len(response.body) > _BUFFERED:
            try:
                async with asyncio.timeout(self.limits.write_seconds):
                    await outgoing.prepare(incoming)
                    await outgoing.write_eof()
            except TimeoutError:
                _cut(incoming)
        return outgoing

    def _head(self, incoming: BaseRequest) -> Request:
        """Everything but the body."""
        headers: dict[str, str] = {}
        for name, value in incoming.headers.items():
            key = name.lower()
            if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
                raise status.bad_request(f"header {name[:100]}: expected UTF-8")
            if key in headers:
                value = headers[key] + ("\n" if key.startswith("impersonate") else ", ") + value  # noqa: PLW2901
            headers[key] = value
        user = self._who(incoming, headers)
        query = incoming.rel_url.raw_query_string
        try:
            parsed = parse_qs(query, keep_blank_values=True, max_num_fields=200) if query else _NO_QUERY
        except ValueError:
            raise status.bad_request("the query has too many fields") from None
        return Request(incoming.method, incoming.rel_url.path, parsed, headers, b"", user)

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


def _name(user: User | None) -> str:
    return user.name if user is not None else ""


def _cut(incoming: BaseRequest) -> None:
    """What a client does not take is not kept for it."""
    if incoming.transport is not None:
        incoming.transport.abort()


async def _stream(
    incoming: BaseRequest, response: Response, chunks: AsyncIterator[bytes], write_seconds: float
) -> StreamResponse:
    outgoing = StreamResponse(status=response.status, headers=response.headers)
    outgoing.enable_chunked_encoding()
    try:
        # The end of a watch that nobody reads is not sent either: it is cut, shortly after.
        async with asyncio.timeout(None if response.seconds is None else response.seconds + _LATE_SECONDS):
            await outgoing.prepare(incoming)
            async for chunk in chunks:
                async with asyncio.timeout(write_seconds):
                    await outgoing.write(chunk)
                del chunk  # it may be long until there is another
            await outgoing.write_eof()
    except (ConnectionResetError, BrokenPipeError):
        pass  # the watcher has gone
    except TimeoutError:
        _cut(incoming)
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            with contextlib.suppress(RuntimeError):
                await close()
    return outgoing
