"""Questions that are sent before the one who will ask them is there: while a process loads what it decides with, the
server may answer."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

import msgspec

from kohort.kube.calls import JSON
from kohort.kube.clock import REAL
from kohort.kube.errors import TransportError
from kohort.kube.wire import Request, Response

if TYPE_CHECKING:
    from kohort.kube.clock import Clock
    from kohort.kube.transport import Transport

FRESH: Final = 10.0  # seconds; who comes later asks himself
_TIMEOUT: Final = 60.0
_MOST: Final = 64 << 20  # bytes that wait to be read; the pages after them are asked for by whoever reads
_Key = tuple[str, tuple[tuple[str, str], ...], str]


class _Meta(msgspec.Struct):
    rest: str = msgspec.field(default="", name="continue")


class _Head(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_head = msgspec.json.Decoder(_Head)


class Ahead:
    """A `Transport` over another one. Whoever asks the same gets the answer, once; an answer that is old, missing or
    no success is nobody's, and the question is sent as if it had not been."""

    def __init__(self, transport: Transport, clock: Clock = REAL) -> None:
        self._transport = transport
        self._clock = clock
        self._asked: dict[_Key, tuple[float, asyncio.Task[Response]]] = {}

    def ask_list(self, path: str, page: int) -> None:
        """All pages, one after the other, as long as they are not too much to keep."""
        self._ask(path, {"limit": [str(page)]})

    async def request(self, request: Request, *, timeout: float, again: bool = True) -> Response:
        found = self._asked.pop(_key(request), None) if request.method == "GET" else None
        if found is not None:
            answer = await self._answer(*found, timeout)
            if answer is not None:
                return answer
        return await self._transport.request(request, timeout=timeout, again=again)

    def stream(self, request: Request, *, timeout: float) -> AbstractAsyncContextManager[Response]:
        return self._transport.stream(request, timeout=timeout)

    async def close(self) -> None:
        tasks = [task for _, task in self._asked.values()]
        self._asked.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._transport.close()

    # ---- inside

    def _ask(self, path: str, query: dict[str, list[str]]) -> None:
        request = Request("GET", path, query, {"accept": JSON})
        task = asyncio.create_task(self._page(request))
        self._asked[_key(request)] = (self._clock.monotonic(), task)

    async def _page(self, request: Request) -> Response:
        answer = await self._transport.request(request, timeout=_TIMEOUT)
        if answer.status == 200 and isinstance(answer.body, bytes):
            try:
                rest = _head.decode(answer.body).metadata.rest
            except msgspec.DecodeError:
                rest = ""  # who reads it will say so
            if rest and len(answer.body) + self._waiting() <= _MOST:
                self._ask(request.path, {**request.query, "continue": [rest]})
        return answer

    async def _answer(self, since: float, task: asyncio.Task[Response], timeout: float) -> Response | None:
        if self._clock.monotonic() - since > FRESH:
            task.cancel()
            return None
        try:
            async with self._clock.timeout(timeout):
                answer = await task
        except (TransportError, TimeoutError):
            return None
        return answer if answer.status == 200 else None

    def _waiting(self) -> int:
        """Bytes that have come and were not asked for yet."""
        done = (task for _, task in self._asked.values() if task.done() and not task.cancelled())
        bodies = (task.result().body for task in done if task.exception() is None)
        return sum(len(body) for body in bodies if isinstance(body, bytes))


def _key(request: Request) -> _Key:
    query = tuple(sorted((name, value) for name, values in request.query.items() for value in values))
    return request.path, query, request.headers.get("accept", "")
