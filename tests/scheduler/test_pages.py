"""Probes and scrapers: what they ask, and what whoever finds the port may ask."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from kohort.scheduler import pages
from kohort.scheduler.pages import Answer, Headers, guarded, shown


async def fine(_: Headers) -> Answer:
    return Answer("ok")


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


async def asked(port: int, request: bytes) -> bytes:
    """Everything that is answered until the connection is closed."""
    async with connected(port) as (reader, writer):
        writer.write(request)
        return await reader.read()


async def test_a_client_gets_pages_over_one_connection() -> None:
    async with shown({"/healthz": fine}, "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}"
        for path, code in (("/healthz", 200), ("/healthz?verbose=1", 200), ("/nothing", 404), ("/healthz", 200)):
            async with session.get(url + path) as answer:
                assert (answer.status, answer.headers["connection"]) == (code, "keep-alive")
                assert code != 200 or await answer.text() == "ok"
        async with session.head(f"{url}/healthz") as answer:
            assert (answer.status, answer.headers["content-length"], await answer.read()) == (200, "2", b"")
        async with session.post(f"{url}/healthz", data=b"body") as answer:
            assert (answer.status, answer.headers["connection"]) == (405, "close")
        async with session.get(f"{url}/healthz") as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    ("request_bytes", "line"),
    [
        (b"GET /healthz HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET /healthz HTTP/2\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * (1 << 15), b"HTTP/1.1 431 Request Header Fields Too Large"),
    ],
)
async def test_the_connection_ends_after_an_answer_to_what_is_odd(request_bytes: bytes, line: bytes) -> None:
    async with shown({"/healthz": fine}, "127.0.0.1", 0) as port:
        assert (await asked(port, request_bytes)).startswith(line + b"\r\n")


async def test_who_opens_connections_and_says_nothing_does_not_take_all_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_MOST", 2)
    async with shown({"/healthz": fine}, "127.0.0.1", 0) as port, contextlib.AsyncExitStack() as stack:
        kept = [await stack.enter_async_context(connected(port)) for _ in range(2)]
        for reader, writer in kept:  # both are being served
            writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
            await reader.readuntil(b"ok")
        with contextlib.suppress(ConnectionError):
            assert await asked(port, b"GET /healthz HTTP/1.1\r\n\r\n") == b""


async def test_the_end_does_not_wait_for_idle_connections() -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with shown({"/healthz": fine}, "127.0.0.1", 0) as port:
            reader, writer = await stack.enter_async_context(connected(port))
            writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
            await reader.readuntil(b"ok")
        assert await reader.read() == b""


async def test_the_state_is_for_who_has_the_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    assert (await guarded(fine, "")({"authorization": "Bearer secret"})).status == 404
    page = guarded(fine, str(file))
    assert (await page({})).status == 401
    assert (await page({"authorization": "Bearer other"})).status == 401
    assert (await page({"authorization": "Bearer secret"})).status == 200
    file.unlink()
    assert (await page({"authorization": "Bearer "})).status == 401, "no token is not an empty one"
