"""How requests travel: the contract that the client stands on, and the way inside one process.

The HTTPS way is in kohort.kube.http. Whoever implements `Transport` can be put under the client, tests included.
"""

from __future__ import annotations

import contextlib
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol

from kohort.kube import deadlines
from kohort.kube.clock import REAL
from kohort.kube.errors import TransportError
from kohort.kube.wire import Request, User

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from kohort.kube.clock import Clock
    from kohort.kube.wire import Response

ADMIN: Final = User("kohort:in-process", groups=("system:masters", "system:authenticated"))


class Transport(Protocol):
    """Sends requests, knows no objects. No answer is a TransportError; any answer, also a 500, is a Response."""

    async def request(self, request: Request, *, timeout: float, again: bool = True) -> Response:
        """The whole answer; its body is bytes. `again`: whether a refusal that says when to come back is obeyed."""

    def stream(self, request: Request, *, timeout: float) -> AbstractAsyncContextManager[Response]:
        """An answer whose body is read in the block, chunk by chunk. `timeout` seconds without one are an error."""

    async def close(self) -> None: ...


class Api(Protocol):
    """What answers in process: the embedded server, or a test's."""

    async def handle(self, request: Request) -> Response: ...


class InProcess:
    """Straight into an API of this process, as `user`: no sockets, no TLS, no bytes copied."""

    def __init__(self, api: Api, user: User | None = ADMIN, clock: Clock = REAL) -> None:
        self._api = api
        self.user = user
        self._clock = clock

    async def request(
        self,
        request: Request,
        *,
        timeout: float,
        again: bool = True,  # noqa: ARG002 - of Transport; here an answer is never lost
    ) -> Response:
        try:
            if self._clock is REAL:
                with deadlines.of_loop().within(timeout):
                    return await self._answer(request)
            async with self._clock.timeout(timeout):
                return await self._answer(request)
        except TimeoutError:
            raise TransportError(f"{request.method} {request.path}: no answer within {timeout:g} s") from None

    async def _answer(self, request: Request) -> Response:
        response = await self._api.handle(self._asked(request))
        if not isinstance(response.body, bytes):
            response.body = b"".join([chunk async for chunk in response.body])
        return response

    def _asked(self, one: Request) -> Request:
        """By whom. Written out: `replace` takes three times as long."""
        if one.user is self.user:
            return one
        return Request(
            one.method,
            one.path,
            one.query,
            one.headers,
            one.body,
            self.user,
            one.composed,
            one.whole_lines,
            one.unread,
            one.unmanaged,
        )

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float) -> AsyncGenerator[Response]:
        response = await self._api.handle(self._asked(request))
        if response.lines is not None:
            # The server ends it by itself, on this very loop: if that stands still, no timeout runs out, either.
            async with contextlib.aclosing(response.lines):
                yield response
            return
        if isinstance(response.body, bytes):
            response.body = _once(response.body)
        chunks = response.body
        response.body = _patient(chunks, timeout, f"{request.method} {request.path}", self._clock)
        try:
            yield response
        finally:
            # The server's side of a watch ends with ours, at once and not when garbage is collected.
            for one in (response.body, chunks):
                close = getattr(one, "aclose", None)
                if close is not None:
                    with contextlib.suppress(RuntimeError):
                        await close()

    async def close(self) -> None:
        """The API belongs to whoever made it."""


async def lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[list[bytes]]:
    """Whole lines, all that have arrived at once. What is left of a line when the stream ends is dropped."""
    rest: list[bytes] = []
    async for chunk in chunks:
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest.append(tail)
            continue
        found = [line for line in b"".join((*rest, head)).split(b"\n") if line]
        rest = [tail] if tail else []
        del chunk, head, tail
        yield found
        del found  # it may be long until there is more


async def _once(body: bytes) -> AsyncGenerator[bytes]:
    yield body


async def _patient(chunks: AsyncIterator[bytes], seconds: float, what: str, clock: Clock) -> AsyncGenerator[bytes]:
    """The chunks; an error if there is none for `seconds`."""
    iterator = aiter(chunks)
    while True:
        try:
            async with clock.timeout(seconds):
                chunk = await anext(iterator)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise TransportError(f"{what}: nothing arrived for {seconds:g} s") from None
        yield chunk
        del chunk
