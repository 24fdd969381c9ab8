"""Kept connections to one server, for requests whose answers are read as a whole, and for streams.

Controllers and the scheduler mostly send small writes, thousands a second in a burst, and the API server's time is what
they should wait for. Here such a write costs a fifth of the processor time that aiohttp spends on it (decision 25).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from kohort.kube.errors import TransportError
from kohort.kube.http1 import AnswerReader, BadAnswerError, request
from kohort.kube.resumption import ResumingContext
from kohort.kube.sockets import keep_alive
from kohort.kube.streams import GoneError, Stream
from kohort.kube.tunnel import tunnelled
from kohort.kube.width import Width

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from kohort.kube.proxies import HttpProxy
    from kohort.kube.wire import Response

CONNECT_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 60.0  # less than servers wait before they hang up
_GOODBYE_SECONDS: Final = 1.0
_INSIDE: Final = "/namespaces/"
# Methods whose calls may be repeated without harm: sent again if a kept connection turns out to be dead before anything
# was answered, and where a server refuses to work now.
REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class _Connection(asyncio.Protocol):
    """One request at a time; after a stream, none."""

    def __init__(self) -> None:
        self._reader = AnswerReader()
        self._stream: Stream | None = None
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Response] | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.used_at = 0.0
        self.uses = 0

    @property
    def usable(self) -> bool:
        transport = self._transport
        return self._reader.keeps and transport is not None and not transport.is_closing()

    def ask(self, method: str, data: bytes) -> asyncio.Future[Response]:
        assert self._transport is not None
        assert self._waiting is None
        self._reader.begin(method)
        self.uses += 1
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return self._waiting

    def follow(self, method: str, data: bytes) -> Stream:
        """A request whose answer goes on; nothing else is asked here any more."""
        assert self._transport is not None
        self._stream = Stream(self._transport, method)
        self.uses += 1
        self._transport.write(data)
        return self._stream

    def resume(self, context: ResumingContext) -> None:
        """Let the next connection go on with the TLS session of this one."""
        if self._transport is not None:
            context.keep(self._transport)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ---- of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # those of uvloop are not derived from it
        keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        if self._stream is not None:
            self._stream.feed(data)
            return
        try:
            self._settle(self._reader.feed(data))
        except BadAnswerError as error:
            self._fail(error)
            self.abort()

    def eof_received(self) -> None:
        if self._stream is None:
            self._settle(self._reader.end())

    def connection_lost(self, exc: Exception | None) -> None:
        if self._stream is not None:
            self._stream.lost(exc)
        else:
            with contextlib.suppress(BadAnswerError):
                self._settle(self._reader.end())
        self._fail(GoneError(str(exc or "the server closed the connection"), untouched=not self._reader.touched))
        if not self.closed.done():
            self.closed.set_result(None)

    def _settle(self, answer: Response | None) -> None:
        waiting = self._waiting
        if answer is not None and waiting is not None:
            self._waiting = None
            if not waiting.done():
                waiting.set_result(answer)

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)


class _Line:
    """Who waits for a connection: namespaces take turns, however many requests concern one of them."""

    def __init__(self) -> None:
        self._called: deque[asyncio.Future[None]] = deque()  # had a turn, and found nothing
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by namespace, in the order of their turns

    def __bool__(self) -> bool:
        return bool(self._called or self._waiting)

    def add(self, namespace: str, turn: asyncio.Future[None]) -> None:
        self._waiting.setdefault(namespace, deque()).append(turn)

    def add_first(self, turn: asyncio.Future[None]) -> None:
        self._called.appendleft(turn)

    def take(self) -> asyncio.Future[None]:
        if self._called:
            return self._called.popleft()
        namespace = next(iter(self._waiting))
        turns = self._waiting.pop(namespace)
        turn = turns.popleft()
        if turns:
            self._waiting[namespace] = turns  # behind the others
        return turn

    def leave(self, namespace: str, turn: asyncio.Future[None]) -> None:
        with contextlib.suppress(ValueError):
            self._called.remove(turn)
        turns = self._waiting.get(namespace)
        if turns is not None:
            with contextlib.suppress(ValueError):
                turns.remove(turn)
            if not turns:
                del self._waiting[namespace]


class Connections:
    """At most `limit` connections, fewer where more do not help; who finds none free waits for one: in turns by
    namespace, each in order."""

    def __init__(
        self,
        server: str,
        context: ssl.SSLContext | bool,
        *,
        limit: int,
        name: str = "",
        headers: Mapping[str, str],
        proxy: HttpProxy | None = None,
    ) -> None:
        """`name`: in the server's certificate, if not its host. `headers`: sent with every request."""
        parts = urlsplit(server)
        tls = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if tls else 80)
        self._prefix = parts.path.rstrip("/")
        self._context = context if tls and context else None
        self._name = (name or self._host) if self._context else None
        self._headers = {"host": parts.netloc.rpartition("@")[2], **headers}
        self._proxy = proxy
        if proxy is not None and self._context is None:  # it reads the requests, and passes each on
            self._prefix = f"http://{self._headers['host']}{self._prefix}"
            self._headers |= proxy.headers
        self._width = Width(limit)
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._streaming: set[_Connection] = set()  # beside the limit
        self._opening = 0
        self._line = _Line()
        self._called = 0  # out of the line, and not yet there
        self._closed = self._retired = False

    @property
    def kept(self) -> int:
        """Connections that wait for the next request."""
        return sum(1 for one in self._idle if one.usable)

    async def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes, seconds: float) -> Response:
        """The answer; TransportError if there is none, TimeoutError if it does not come in time."""
        data = request(method, self._prefix + target, {**self._headers, **headers}, body)
        async with asyncio.timeout(seconds):
            while True:
                connection = await self._take(target.partition(_INSIDE)[2].partition("/")[0], seconds)
                first = connection.uses == 0
                try:
                    answer = await connection.ask(method, data)
                except GoneError as error:
                    self._give(connection)
                    if first or not error.untouched or method not in REPEATABLE:
                        raise TransportError(str(error)) from None
                except BadAnswerError as error:
                    self._give(connection)
                    raise TransportError(str(error)) from None
                except BaseException:  # given up: the answer may still come, and belongs to nobody
                    connection.abort()
                    self._give(connection)
                    raise
                else:
                    self._give(connection)
                    return answer

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> AsyncGenerator[Stream]:
        """An answer that goes on, on a connection of its own, which ends with the block. `seconds`: until its head."""
        data = request(method, self._prefix + target, {**self._headers, **headers}, body)
        async with asyncio.timeout(seconds):
            connection, stream = await self._followed(method, data)
        try:
            yield stream
        finally:
            connection.abort()

    async def _followed(self, method: str, data: bytes) -> tuple[_Connection, Stream]:
        while True:
            if self._closed:
                raise TransportError("the client is closed")
            # One that lies idle does, too: as many as were needed for the lists at the start are there already.
            connection = self._from_idle() or await self._connect(CONNECT_SECONDS)
            first = connection.uses == 0
            self._open.discard(connection)
            self._streaming.add(connection)
            connection.closed.add_done_callback(lambda _, one=connection: self._streaming.discard(one))  # type: ignore[misc]
            self._next()  # somebody may open one in its place
            stream = connection.follow(method, data)
            try:
                await stream.begun()
            except GoneError as error:
                if first or not error.untouched or method not in REPEATABLE:
                    raise TransportError(str(error)) from None
            except BaseException:
                connection.abort()
                raise
            else:
                return connection, stream

    async def close(self) -> None:
        """Requests under way fail; every connection is seen to be closed."""
        self._closed = True
        left = self._open | self._streaming
        for one in left:
            one.abort()
        if left:
            await asyncio.wait([one.closed for one in left], timeout=_GOODBYE_SECONDS)
        self._idle.clear()
        self._open.clear()
        while self._line:  # nobody gives a connection back any more
            self._call()

    def retire(self) -> None:
        """No new requests: connections end when their answers are there."""
        self._retired = True
        for one in self._idle:
            one.abort()
        self._open.difference_update(self._idle)
        self._idle.clear()

    # ---- inside

    @property
    def _used(self) -> int:
        return len(self._open) - len(self._idle) + self._opening

    async def _take(self, namespace: str, seconds: float) -> _Connection:
        called = False
        while True:
            if self._closed:
                raise TransportError("the client is closed")
            if (called or not self._line) and self._used < self._width.now:
                found = self._from_idle()
                if found is not None:
                    return found
                return await self._connect(min(seconds, CONNECT_SECONDS))
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if called:
                self._line.add_first(turn)
            else:
                self._line.add(namespace, turn)
            called = True
            try:
                await turn
                self._called -= 1
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._called -= 1
                    self._next()  # it was ours to take, and is not taken
                raise
            finally:
                self._line.leave(namespace, turn)

    def _from_idle(self) -> _Connection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            one = self._idle.pop()
            if one.usable and now - one.used_at < _IDLE_SECONDS:
                return one
            one.abort()
            self._open.discard(one)
        return None

    async def _connect(self, seconds: float) -> _Connection:
        self._opening += 1
        made = None
        try:
            async with asyncio.timeout(seconds):
                made = await self._opened()
        except TimeoutError:
            raise
        except (OSError, ssl.SSLError) as error:
            raise TransportError(f"cannot connect to {self._towards}: {error}") from error
        finally:
            self._opening -= 1
            if made is None:
                self._next()
        self._open.add(made)
        return made

    async def _opened(self) -> _Connection:
        try:
            return await self._agreed()
        except (ssl.SSLError, ConnectionAbortedError, ConnectionResetError):
            context = self._context
            if not isinstance(context, ResumingContext) or context.session is None:
                raise
            context.session = None  # some servers break off where they should agree on a new one
        return await self._agreed()

    async def _agreed(self) -> _Connection:
        loop, proxy = asyncio.get_running_loop(), self._proxy
        if proxy is not None and isinstance(self._context, ssl.SSLContext):
            return await tunnelled(proxy, self._host, self._port, self._context, self._name, _Connection)
        host, port = (self._host, self._port) if proxy is None else (proxy.host, proxy.port)
        _, made = await loop.create_connection(_Connection, host, port, ssl=self._context, server_hostname=self._name)
        return made

    @property
    def _towards(self) -> str:
        proxy = self._proxy
        return f"{self._host}:{self._port}" + (f" through proxy {proxy.host}:{proxy.port}" if proxy else "")

    def _give(self, connection: _Connection) -> None:
        now = asyncio.get_running_loop().time()
        self._width.answered(now, waiting=bool(self._line))
        kept = not self._closed and (not self._retired or bool(self._line))
        if connection.uses == 1 and isinstance(self._context, ResumingContext):
            connection.resume(self._context)
        if connection.usable and kept:
            connection.used_at = now
            self._idle.append(connection)
        else:
            connection.abort()
            self._open.discard(connection)
        self._next()

    def _next(self) -> None:
        """Those whose turn it is may look again: as many as will find something."""
        while self._line and self._used + self._called < self._width.now:
            self._call()

    def _call(self) -> None:
        turn = self._line.take()
        if not turn.done():
            self._called += 1
            turn.set_result(None)
