"""A few pages over HTTP/1.1, for probes and scrapers: read only, small, and there before a web framework is loaded.

Loading one takes a fifth of a second of processor time, which every start of a scheduler would wait for.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

_LONGEST_HEAD: Final = 1 << 14
_IDLE_SECONDS: Final = 75.0
_MOST: Final = 100  # connections at a time
_OFF: Final = "the state is not shown: name a file with a token for it (debugTokenFile, --debug-token-file)"
TEXT: Final = "text/plain; charset=utf-8"
METRICS: Final = "text/plain; version=0.0.4"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    body: bytes | str
    status: int = 200
    kind: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


Headers = Mapping[str, str]  # keys are lower case
Page = Callable[[Headers], Awaitable[Answer]]


def guarded(show: Page, token_file: str) -> Page:
    """For those who have the token in the file, read at every request; for nobody, without a file.

    The state has all pods and nodes in it, and the port is that of probes, which every process can reach.
    """

    async def answer(headers: Headers) -> Answer:
        if not token_file:
            return Answer(_OFF, 404)
        try:
            wanted = (await asyncio.to_thread(Path(token_file).read_bytes)).strip()
        except OSError:
            wanted = b""
        given = headers.get("authorization", "").encode(errors="replace")
        if not wanted or not hmac.compare_digest(given, b"Bearer " + wanted):
            return Answer("Unauthorized", 401, headers={"WWW-Authenticate": "Bearer"})
        return await show(headers)

    return answer


@contextlib.asynccontextmanager
async def shown(pages: Mapping[str, Page], host: str, port: int) -> AsyncIterator[int]:
    """For the time of the block; gives the port."""
    open_ones: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(open_ones) >= _MOST:
            writer.transport.abort()
            return
        open_ones.add(task)
        try:
            with contextlib.suppress(ConnectionError, TimeoutError, asyncio.IncompleteReadError):
                while await _answered(pages, reader, writer):
                    pass
        except asyncio.CancelledError:
            pass  # asyncio would take it for a fault of ours
        finally:
            open_ones.discard(task)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    server = await asyncio.start_server(connected, host, port, limit=_LONGEST_HEAD)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for one in tuple(open_ones):
            one.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)
        await server.wait_closed()


async def _answered(pages: Mapping[str, Page], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether the connection can take another request."""
    try:
        async with asyncio.timeout(_IDLE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        method, path, headers, keeps = _read(head)
    except asyncio.LimitOverrunError:
        answer, method, keeps = Answer("the headers are too long", 431), "GET", False
    except ValueError:
        answer, method, keeps = Answer("this is not a request of HTTP/1.1", 400), "GET", False
    else:
        answer = await _answer(pages, method, path, headers)
    writer.write(_written(answer, whole=method != "HEAD", keeps=keeps))
    await writer.drain()
    return keeps


async def _answer(pages: Mapping[str, Page], method: str, path: str, headers: Headers) -> Answer:
    page = pages.get(path)
    if page is None:
        return Answer("404: Not Found", 404)
    if method not in {"GET", "HEAD"}:
        return Answer("405: Method Not Allowed", 405, headers={"Allow": "GET,HEAD"})
    return await page(headers)


def _read(head: bytes) -> tuple[str, str, dict[str, str], bool]:
    """Method, path, headers, and whether more may follow: a body is not read, so that after one nothing can."""
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    method, target, version = first.split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(version)
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(line)
        headers[name.lower()] = value.strip()
    wish = headers.get("connection", "").lower()
    keeps = "keep-alive" in wish if version == "HTTP/1.0" else "close" not in wish
    body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    return method, target.partition("?")[0], headers, keeps and not body


def _written(answer: Answer, *, whole: bool, keeps: bool) -> bytes:
    body = answer.body.encode() if isinstance(answer.body, str) else answer.body
    fields = {
        "Content-Type": answer.kind,
        "Content-Length": str(len(body)),
        "Connection": "keep-alive" if keeps else "close",
        **answer.headers,
    }
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body if whole else b"")
