"""When each pod got its node, seen by a watch that takes next to no processor time from those who are measured.

Read as an asyncio stream, event by event, it took 0.5 ms for each bound pod on two cores that API server and scheduler
want as well. Here a thread takes what has come, writes down when, and looks for names only.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Final
from urllib.parse import urlsplit

import msgspec

from bench.e2e.objects import PODS
from bench.server import Target
from kohort.kube.http1 import PieceReader

_WATCH_SECONDS: Final = 300
_PIECE: Final = 1 << 18  # bytes
# An event begins with the object's name; what follows is not looked at.
_POD: Final = rb'\{"type":"ADDED","object":\{"kind":"Pod","apiVersion":"v1","metadata":\{"name":"([^"]+)"'
_ADDED: Final = re.compile(b"^" + _POD, re.MULTILINE)
_CONNECT_SECONDS: Final = 30.0


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Event(msgspec.Struct):
    type: str
    object: _Object


class BindingWatch:
    """`times`: of pods whose names begin so, the moment (`perf_counter`) when they were seen to have a node."""

    def __init__(self, target: Target, since: str, prefix: str = "") -> None:
        self.times: dict[str, float] = {}
        self._target, self._since, self._prefix = target, since, prefix
        self._loop = asyncio.get_running_loop()
        self._waits: list[tuple[int, asyncio.Event]] = []
        self._closed = False
        self._error: Exception | None = None
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="binding watch", daemon=True)

    async def until(self, count: int) -> None:
        """Until so many have nodes."""
        reached = asyncio.Event()
        self._waits.append((count, reached))
        self._look()
        await reached.wait()
        if self._error is not None:
            raise self._error

    async def __aenter__(self) -> BindingWatch:
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        await asyncio.to_thread(self._thread.join)
        if self._error is not None and kind is None:
            raise self._error

    # ---- in the thread

    def _run(self) -> None:
        try:
            while not self._closed:
                self._follow()
        except Exception as error:
            if not self._closed:
                self._error = error
                self._loop.call_soon_threadsafe(self._look)

    def _follow(self) -> None:
        """One watch, to its end; the next begins where it ended."""
        query = f"watch=1&resourceVersion={self._since}&timeoutSeconds={_WATCH_SECONDS}&allowWatchBookmarks=true"
        target, parts = self._target, urlsplit(self._target.url)
        plain = socket.create_connection((parts.hostname, parts.port), _CONNECT_SECONDS)
        with target.context.wrap_socket(plain, server_hostname=parts.hostname) as connection:
            connection.settimeout(None)
            self._socket = connection
            connection.sendall(
                f"GET {PODS}?{query}&fieldSelector=spec.nodeName!= HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench/1\r\n"
                f"Authorization: Bearer {target.token}\r\nAccept: application/json\r\n\r\n".encode()
            )
            reader = PieceReader()
            last = rest = b""
            while not self._closed and not reader.whole:
                whole, newline, rest = (rest + self._piece(connection, reader)).rpartition(b"\n")
                if newline:
                    last = whole[whole.rfind(b"\n") + 1 :]
                    self._seen(whole)
        self._resume(last)

    def _piece(self, connection: socket.socket, reader: PieceReader) -> bytes:
        come = connection.recv(_PIECE)
        if not come:
            raise RuntimeError("watch of pods: the API server closed the connection")
        found = reader.piece(come)
        if reader.head is not None and reader.head[0] != 200:
            raise RuntimeError(f"watch of pods: {reader.head[0]} {found[:300].decode()}")
        return found

    def _seen(self, lines: bytes) -> None:
        now, before = time.perf_counter(), len(self.times)
        for name in _ADDED.findall(lines):
            if name.startswith(self._prefix.encode()):
                self.times.setdefault(name.decode(), now)
        if any(before < count <= len(self.times) for count, _ in self._waits):
            self._loop.call_soon_threadsafe(self._look)

    def _resume(self, last: bytes) -> None:
        """By the last event, which is decoded only now."""
        if not last:
            return
        event = msgspec.json.decode(last, type=_Event)
        if event.type == "ERROR":
            raise RuntimeError(f"watch of pods: {last[:300].decode()}")
        self._since = event.object.metadata.resource_version or self._since

    def _look(self) -> None:
        for count, reached in self._waits:
            if len(self.times) >= count or self._error is not None:
                reached.set()
