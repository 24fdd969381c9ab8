"""An answer that is read while it comes: a watch, which may go on for minutes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from kohort.kube.errors import TransportError
from kohort.kube.http1 import BadAnswerError, PieceReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_ROOM: Final = 1 << 20  # bytes that may wait in memory for us before the server has to wait


class GoneError(ConnectionError):
    """The connection ended before a whole answer. `untouched`: before any of it."""

    def __init__(self, text: str, *, untouched: bool) -> None:
        super().__init__(text)
        self.untouched = untouched


class Stream:
    """Fed by its connection, read by one task."""

    def __init__(self, transport: asyncio.Transport, method: str) -> None:
        self._transport = transport
        self._reader = PieceReader()
        self._reader.begin(method)
        self._pieces: list[bytes] = []
        self._size = 0
        self._paused = False
        self._over: Exception | None = None  # nothing comes any more
        self._waiting: asyncio.Future[None] | None = None
        self.status = 0
        self.headers: dict[str, str] = {}

    # ---- of the connection

    def feed(self, data: bytes) -> None:
        if self._over is not None:
            return
        try:
            piece = self._reader.piece(data)
        except BadAnswerError as error:
            self._end(error)
            return
        if piece:
            self._pieces.append(piece)
            self._size += len(piece)
            if self._size > _ROOM and not self._paused:
                self._paused = True
                self._transport.pause_reading()
        if self._reader.whole:
            self._end(EOFError())
        elif piece or self._reader.head is not None:
            self._wake()

    def lost(self, error: Exception | None) -> None:
        if self._over is None:
            gone = GoneError(str(error or "the server closed the connection"), untouched=not self._reader.touched)
            self._end(EOFError() if self._reader.over() else gone)

    def _end(self, how: Exception) -> None:
        self._over = how
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # ---- of the reader

    async def begun(self) -> None:
        """Until status and headers are there."""
        while self._reader.head is None:
            if self._over is not None:
                raise self._over
            await self._more()
        self.status, self.headers = self._reader.head

    async def chunks(self, seconds: float) -> AsyncGenerator[bytes]:
        """What has come, as it comes; an error if for `seconds` nothing does."""
        while True:
            if self._pieces:
                found = b"".join(self._pieces)
                self._pieces.clear()
                self._size = 0
                if self._paused:
                    self._paused = False
                    self._transport.resume_reading()
                yield found
                del found  # it may be long until there is more
                continue
            if isinstance(self._over, EOFError):
                return
            if self._over is not None:
                raise TransportError(str(self._over))
            try:
                async with asyncio.timeout(seconds):
                    await self._more()
            except TimeoutError:
                raise TransportError(f"nothing arrived for {seconds:g} s") from None

    async def _more(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None
