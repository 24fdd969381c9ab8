"""Answers as bytes, in whatever pieces they arrive; and connections that end in the middle of one."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.kube.connections import Connections
from kohort.kube.errors import TransportError
from kohort.kube.http1 import AnswerReader, BadAnswerError, PieceReader, request
from kohort.kube.width import FIRST
from kohort.kube.wire import Response

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKS = b"5\r\nhello\r\n1;x=y\r\n \r\n5\r\nworld\r\n0\r\nTrailer: z\r\n\r\n"
ANSWERS = {
    "length": (OK + b"Content-Length: 11\r\nA: 1\r\na: 2\r\n\r\nhello world", b"hello world", True),
    "chunked": (OK + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS, b"hello world", True),
    "closed": (OK + b"Content-Length: 2\r\nConnection: close\r\n\r\nhi", b"hi", False),
    "empty": (OK + b"Content-Length: 0\r\n\r\n", b"", True),
    "none": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    "first a hint": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nhi", b"hi", True),
    "gzip": (
        OK + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"%x\r\n%b\r\n0\r\n\r\n" % (len(gzip.compress(b"hello", mtime=0)), gzip.compress(b"hello", mtime=0)),
        b"hello",
        True,
    ),
    "deflate": (
        OK
        + b"Content-Encoding: deflate\r\nContent-Length: %d\r\n\r\n%b"
        % (len(zlib.compress(b"hi")), zlib.compress(b"hi")),
        b"hi",
        True,
    ),
    "old": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi", False),
}


def read(data: bytes, cuts: list[int]) -> tuple[list[Response], AnswerReader]:
    """In pieces, cut at these places."""
    reader, found = AnswerReader(), []
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        if end > start and (answer := reader.feed(data[start:end])) is not None:
            found.append(answer)
    return found, reader


@pytest.mark.parametrize("name", ANSWERS)
@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_an_answer_is_the_same_in_any_pieces(name: str, cuts: list[int]) -> None:
    data, body, keeps = ANSWERS[name]
    (answer,), reader = read(data, cuts)
    assert answer.body == body
    assert reader.keeps is keeps


@pytest.mark.parametrize("name", ANSWERS)
@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_a_stream_gives_the_same_in_any_pieces(name: str, cuts: list[int]) -> None:
    data, body, keeps = ANSWERS[name]
    reader, found = PieceReader(), b""
    for start, end in pairwise([0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]):
        if end > start:
            assert not reader.whole
            found += reader.piece(data[start:end])
    assert (found, reader.whole, reader.keeps) == (body, True, keeps)
    assert reader.head is not None


def test_a_stream_gives_what_has_come_before_the_rest_has() -> None:
    reader = PieceReader()
    assert reader.piece(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel") == b"hel"
    assert reader.piece(b"lo\r") == b"lo"
    assert reader.piece(b"\n3\r\nyou\r\n") == b"you"
    assert not reader.over(), "it was cut off"
    until_closed = PieceReader()
    assert until_closed.piece(OK + b"\r\nhi") == b"hi"
    assert not until_closed.whole
    assert until_closed.over()


def test_headers_that_come_twice_are_one() -> None:
    (answer,), _ = read(ANSWERS["length"][0], [])
    assert answer.headers == {"content-length": "11", "a": "1, 2"}


def test_an_answer_to_head_has_no_body() -> None:
    reader = AnswerReader()
    reader.begin("HEAD")
    answer = reader.feed(OK + b"Content-Length: 11\r\n\r\n")
    assert answer is not None
    assert answer.body == b""


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    reader = AnswerReader()
    assert reader.feed(OK + b"\r\nhel") is None
    assert reader.feed(b"lo") is None
    answer = reader.end()
    assert answer is not None
    assert (answer.body, reader.keeps) == (b"hello", False)


@pytest.mark.parametrize("name", ["length", "chunked"])
def test_an_answer_that_is_cut_off_is_none(name: str) -> None:
    data = ANSWERS[name][0]
    found, reader = read(data[:-3], [])
    assert found == []
    assert reader.end() is None


def test_after_more_than_was_asked_for_a_connection_is_not_used_again() -> None:
    _, reader = read(ANSWERS["length"][0] + OK, [])
    assert not reader.keeps


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"Content-Length: -5\r\n\r\n",
        OK + b"Content-Length: 1_0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 5000,
        OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi",
        OK + b"A: " + b"x" * 300_000,
    ],
)
def test_what_is_not_http_is_said(data: bytes) -> None:
    with pytest.raises(BadAnswerError):
        AnswerReader().feed(data)


def test_a_request_has_its_length_and_no_line_breaks_inside() -> None:
    assert request("POST", "/a", {"host": "h"}, b"hi") == b"POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi"
    assert request("GET", "/a", {}, b"") == b"GET /a HTTP/1.1\r\n\r\n"
    for headers in ({"a": "b\r\nc: d"}, {"a": "b\nc: d"}, {"a": "b\rc: d"}):
        with pytest.raises(ValueError, match="line break"):
            request("GET", "/a", headers, b"")


# ---- on sockets

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]


@asynccontextmanager
async def server(answer: Answer, limit: int = 2) -> AsyncIterator[tuple[Connections, list[int]]]:
    """`answer` is asked for each request, with its number on its connection; gives how many each connection had."""
    asked: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = len(asked)
        asked.append(0)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                asked[own] += 1
                await answer(reader, writer, asked[own])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    pool = Connections(f"http://127.0.0.1:{port}", False, limit=limit, headers={})
    async with listener:
        yield pool, asked
        await pool.close()


async def _fine(_: asyncio.StreamReader, writer: asyncio.StreamWriter, __: int) -> None:
    writer.write(OK + b"Content-Length: 2\r\n\r\nhi")


async def _second_is_cut(_: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
    if number == 2:
        raise ConnectionResetError
    writer.write(OK + b"Content-Length: 2\r\n\r\nhi")


async def test_a_kept_connection_that_has_died_is_replaced_where_that_cannot_do_harm() -> None:
    async with server(_second_is_cut) as (pool, asked):
        for _ in range(2):
            assert (await pool.ask("GET", "/", {}, b"", 5)).body == b"hi"
        assert asked == [2, 1]
        with pytest.raises(TransportError):
            await pool.ask("POST", "/", {}, b"", 5)
        assert (await pool.ask("POST", "/", {}, b"", 5)).body == b"hi"
        assert asked == [2, 2, 1]


async def test_who_gives_up_leaves_no_answer_for_others() -> None:
    release = asyncio.Event()

    async def late(_: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await release.wait()
        writer.write(OK + b"Content-Length: 2\r\n\r\nhi")

    async with server(late) as (pool, asked):
        with pytest.raises(TimeoutError):
            await pool.ask("GET", "/", {}, b"", 0.05)
        release.set()
        assert (await pool.ask("GET", "/", {}, b"", 5)).body == b"hi"
        assert asked == [1, 1]


async def test_many_share_few_connections_and_those_who_go_away_hold_up_nobody() -> None:
    async with server(_fine) as (pool, asked):
        calls = [asyncio.create_task(pool.ask("GET", "/", {}, b"", 10)) for _ in range(50)]
        await asyncio.sleep(0)
        for one in calls[::3]:
            one.cancel()
        done = await asyncio.gather(*calls, return_exceptions=True)
        kept = [one for number, one in enumerate(done) if number % 3]
        assert all(isinstance(one, Response) for one in kept)
        assert pool.kept <= 2
        assert (await pool.ask("GET", "/", {}, b"", 5)).body == b"hi"
        assert max(asked) > 1


async def test_what_speaks_something_else_is_said() -> None:
    async def ssh(_: asyncio.StreamReader, writer: asyncio.StreamWriter, __: int) -> None:
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")

    async with server(ssh) as (pool, _):
        with pytest.raises(TransportError, match=r"not an answer of HTTP/1\.1"):
            await pool.ask("GET", "/", {}, b"", 5)


async def _followed(connections: Connections) -> list[bytes]:
    async with connections.stream("GET", "/watch", {}, b"", 10) as stream:
        assert stream.status == 200
        return [chunk async for chunk in stream.chunks(10)]


async def test_a_stream_takes_an_idle_connection_and_gives_its_place_back() -> None:
    release = asyncio.Event()

    async def goes_on(_: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        if number == 2:  # on its connection
            writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
            await release.wait()
            writer.write(b"0\r\n\r\n")
        else:
            writer.write(OK + b"Content-Length: 2\r\n\r\nok")

    async with server(goes_on) as (connections, seen):
        await connections.ask("GET", "/", {}, b"", 10)
        async with connections.stream("GET", "/watch", {}, b"", 10) as stream:
            chunks = stream.chunks(10)
            assert await anext(chunks) == b"hi"
            assert len(seen) == 1, "no new connection was opened for it"
            assert (await connections.ask("GET", "/", {}, b"", 10)).body == b"ok", "it counts for no request"
            release.set()
            assert [one async for one in chunks] == []


async def test_a_stream_on_a_kept_connection_that_has_died_begins_on_another() -> None:
    async with server(_second_is_cut) as (connections, seen):
        await connections.ask("GET", "/", {}, b"", 10)
        assert await _followed(connections) == [b"hi"]
        assert len(seen) == 2


async def test_a_stream_that_is_cut_off_or_is_not_http_is_an_error() -> None:
    async def cut(_: asyncio.StreamReader, writer: asyncio.StreamWriter, __: int) -> None:
        writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
        await writer.drain()
        writer.close()

    async with server(cut) as (connections, _):
        with pytest.raises(TransportError):
            await _followed(connections)


async def test_a_server_that_sends_faster_than_is_read_has_to_wait() -> None:
    size, written = 1 << 16, 0

    async def floods(_: asyncio.StreamReader, writer: asyncio.StreamWriter, __: int) -> None:
        nonlocal written
        writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        for _number in range(1000):
            writer.write(b"%x\r\n%b\r\n" % (size, b"x" * size))
            await writer.drain()
            written += size
        writer.write(b"0\r\n\r\n")

    async with server(floods) as (connections, _), connections.stream("GET", "/watch", {}, b"", 10) as stream:
        before = -1
        while written > before:  # until it stands still
            before = written
            await asyncio.sleep(0.05)
        assert written < 1000 * size
        assert sum([len(chunk) async for chunk in stream.chunks(10)]) == 1000 * size


async def test_after_a_connection_that_could_not_be_made_the_next_in_line_tries() -> None:
    """Nobody waits for the answer of one who gets none."""
    pool = Connections("http://127.0.0.1:1", False, limit=2, headers={})
    found = await asyncio.gather(*(pool.ask("GET", "/", {}, b"", 10) for _ in range(9)), return_exceptions=True)
    assert all(isinstance(one, TransportError) for one in found)
    await pool.close()


async def test_few_are_opened_at_first_and_more_where_that_helps() -> None:
    """The server takes a while for each answer, however many it is asked for at once."""
    now = most = 0

    async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter, __: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1
        writer.write(OK + b"Content-Length: 2\r\n\r\nhi")

    async with server(slow, limit=64) as (connections, seen):
        await asyncio.gather(*(connections.ask("GET", "/", {}, b"", 30) for _ in range(FIRST)))
        assert len(seen) == FIRST
        await asyncio.gather(*(connections.ask("GET", "/", {}, b"", 30) for _ in range(600)))
        assert FIRST < most <= 64
