"""Kept connections to one server, for requests whose answers are read as a whole.

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
from kohort.kube.sockets import keep_alive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kohort.kube.wire import Response

CONNECT_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 60.0  # less than servers wait before they hang up
_GOODBYE_SECONDS: Final = 1.0
_INSIDE: Final = "/namespaces/"
# Methods whose calls may be repeated without harm: sent again if a kept connection turns out to be dead before anything
# was answered, and where a server refuses to work now.
REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class _GoneError(ConnectionError):
    """The connection ended before a whole answer. `untouched`: before any of it."""

    def __init__(self, text: str, *, untouched: bool) -> None:
        super().__init__(text)
        self.untouched = untouched


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self._reader = AnswerReader()
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

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ---- of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # those of uvloop are not derived from it
        keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        try:
            self._settle(self._reader.feed(data))
        except BadAnswerError as error:
            self._fail(error)
            self.abort()

    def eof_received(self) -> None:
        self._settle(self._reader.end())

    def connection_lost(self, exc: Exception | None) -> None:
        with contextlib.suppress(BadAnswerError):
            self._settle(self._reader.end())
        self._fail(_GoneError(str(exc or "the server closed the connection"), untouched=not self._reader.touched))
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
    """At most `limit` connections; who finds none free waits for one: in turns by namespace, each in order."""

    def __init__(
        self, server: str, context: ssl.SSLContext | bool, *, limit: int, name: str = "", headers: Mapping[str, str]
    ) -> None:
        """`name`: in the server's certificate, if not its host. `headers`: sent with every request."""
        parts = urlsplit(server)
        tls = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if tls else 80)
        self._prefix = parts.path.rstrip("/")
        self._context = context if tls and context else None
        self._name = (name or self._host) if self._context else None
        self._headers = {"host": parts.netloc.rpartition("@")[2], **headers}
        self._limit = limit
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._opening = 0
        self._line = _Line()
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
                except _GoneError as error:
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

    async def close(self) -> None:
        """Requests under way fail; every connection is seen to be closed."""
        self._closed = True
        for one in self._open:
            one.abort()
        if self._open:
            await asyncio.wait([one.closed for one in self._open], timeout=_GOODBYE_SECONDS)
        self._idle.clear()
        self._open.clear()
        while self._line:  # nobody gives a connection back any more
            self._next()

    def retire(self) -> None:
        """No new requests: connections end when their answers are there."""
        self._retired = True
        for one in self._idle:
            one.abort()
        self._idle.clear()

    # ---- inside

    async def _take(self, namespace: str, seconds: float) -> _Connection:
        called = False
        while True:
            if self._closed:
                raise TransportError("the client is closed")
            if called or not self._line:
                found = self._from_idle()
                if found is not None:
                    return found
                if len(self._open) + self._opening < self._limit:
                    return await self._connect(min(seconds, CONNECT_SECONDS))
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if called:
                self._line.add_first(turn)
            else:
                self._line.add(namespace, turn)
            called = True
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
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
        try:
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(seconds):
                _, made = await loop.create_connection(
                    _Connection, self._host, self._port, ssl=self._context, server_hostname=self._name
                )
        except (OSError, ssl.SSLError) as error:
            self._next()
            if isinstance(error, TimeoutError):
                raise
            raise TransportError(f"cannot connect to {self._host}:{self._port}: {error}") from error
        except BaseException:
            self._next()
            raise
        finally:
            self._opening -= 1
        self._open.add(made)
        return made

    def _give(self, connection: _Connection) -> None:
        kept = not self._closed and (not self._retired or bool(self._line))
        if connection.usable and kept:
            connection.used_at = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.abort()
            self._open.discard(connection)
        self._next()

    def _next(self) -> None:
        """Whose turn it is may look again."""
        while self._line:
            turn = self._line.take()
            if not turn.done():
                turn.set_result(None)
                return
