"""What one client can do to the others over HTTP: compressed bodies, many requests, answers that nobody reads."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kohort.kube.transport import ADMIN
from kohort.kube.wire import Request
from kohort.server.limits import DEFAULT, Limits
from kohort.server.server import Server
from kohort.server.settings import Settings

MAPS = "/api/v1/namespaces/default/configmaps"
LIMITS = Limits(
    max_requests_inflight=4,
    max_mutating_requests_inflight=4,
    queue_length=2,
    queue_seconds=0.3,
    body_seconds=60.0,
    write_seconds=0.3,
)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(Settings(tmp_path, port=0, in_memory=True, limits=LIMITS)) as made:
        for name in ("mallory", "alice"):
            await account(made, name)
        yield made


async def send(server: Server, method: str, path: str, body: Any) -> Any:
    raw = json.dumps(body).encode()
    answer = await server.api.handle(Request(method, path, {}, {"content-type": "application/json"}, raw, ADMIN))
    assert answer.status == 201, answer.body
    assert isinstance(answer.body, bytes)
    return json.loads(answer.body)


async def account(server: Server, name: str) -> None:
    """A tenant who may edit the default namespace; its token is kept in `server.tokens`."""
    await send(server, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    await send(server, "POST", bindings, {"metadata": {"name": name}, "subjects": [subject], "roleRef": role})


async def token(server: Server, name: str) -> str:
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    found: str = (await send(server, "POST", path, {"spec": {}}))["status"]["token"]
    return found


def context(server: Server) -> ssl.SSLContext:
    assert server.pki is not None
    return ssl.create_default_context(cafile=str(server.pki.ca_file))


def session(server: Server, bearer: str = "") -> aiohttp.ClientSession:
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    connector = aiohttp.TCPConnector(ssl=context(server), limit=0)
    return aiohttp.ClientSession(server.url, headers=headers, connector=connector, auto_decompress=False)


async def head(server: Server, bearer: str, method: str, path: str, *lines: str) -> tuple[Any, Any]:
    """A connection that has sent no more than the head of a request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.http.port, ssl=context(server), limit=2**12)
    auth = [f"Authorization: Bearer {bearer}"] if bearer else []
    writer.write("\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *auth, *lines, "", ""]).encode())
    return reader, writer


async def until(found: Any, what: Any) -> None:
    async with asyncio.timeout(60):
        while not found():
            await asyncio.sleep(0.01)
    assert found(), what


# ---- bodies


async def test_a_gzip_body_is_read(server: Server) -> None:
    body = gzip.compress(json.dumps({"metadata": {"name": "small"}}).encode())
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    async with session(server, server.token) as admin, admin.post(MAPS, data=body, headers=headers) as answer:
        assert answer.status == 201


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_bomb_stops_at_the_limit(server: Server, encoding: str) -> None:
    raw = b" " * (64 * DEFAULT.body_bytes)
    body = gzip.compress(raw, 9) if encoding == "gzip" else zlib.compress(raw, 9)
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    async with session(server, server.token) as admin, admin.post(MAPS, data=body, headers=headers) as answer:
        assert answer.status == 413
        assert "limit is 3145728" in (await answer.json())["message"]


@pytest.mark.parametrize(
    ("body", "encoding", "code", "text"),
    [
        (b"{}", "gzip", 400, "cannot be read as gzip"),
        (gzip.compress(b"{}")[:-9], "gzip", 400, "its end is missing"),
        (gzip.compress(b"") * 1000, "gzip", 400, "something follows its end"),
        (b"{}", "br", 415, 'content-encoding: "br" is not accepted'),
    ],
    ids=["not gzip", "cut off", "many streams", "unknown"],
)
async def test_bodies_that_are_not_what_they_say(
    server: Server, body: bytes, encoding: str, code: int, text: str
) -> None:
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    async with session(server, server.token) as admin, admin.post(MAPS, data=body, headers=headers) as answer:
        assert answer.status == code
        assert text in (await answer.json())["message"]


@pytest.mark.parametrize(("bearer", "code"), [("", b"403"), ("wrong", b"401")])
async def test_who_may_not_is_told_before_the_body_has_come(server: Server, bearer: str, code: bytes) -> None:
    reader, writer = await head(
        server, bearer, "POST", MAPS, "Content-Type: application/json", "Content-Length: 3000000"
    )
    line = await asyncio.wait_for(reader.readline(), 30)
    writer.transport.abort()
    assert line.split()[1] == code


# ---- seats


async def test_one_tenants_slow_bodies_leave_room_for_others(server: Server) -> None:
    mallory, alice = await token(server, "mallory"), await token(server, "alice")
    lines = ("Content-Type: application/json", "Content-Length: 1000")
    slow = [await head(server, mallory, "POST", MAPS, *lines) for _ in range(20)]
    await until(lambda: server.http.flow.mutating.rejected >= 16, "sixteen find neither a seat nor a queue")
    async with session(server, alice) as other, other.post(MAPS, json={"metadata": {"name": "mine"}}) as answer:
        assert answer.status == 201
    async with session(server, mallory) as more, more.post(MAPS, json={"metadata": {"name": "late"}}) as answer:
        assert answer.status == 429
        assert answer.headers["Retry-After"] == "1"
        assert (await answer.json())["reason"] == "TooManyRequests"
    async with session(server, server.token) as admin, admin.get("/metrics") as answer:
        text = await answer.text()
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 2.0' in text
    assert "apiserver_flowcontrol_rejected_requests_total" in text
    for _, writer in slow:
        writer.transport.abort()
    await until(lambda: server.http.flow.mutating.taken == 0, "seats come back when clients go")


async def test_watches_hold_no_seat(server: Server) -> None:
    alice = await token(server, "alice")
    async with session(server, alice) as client:
        watches = [await client.get(f"{MAPS}?watch=1") for _ in range(10)]
        assert [one.status for one in watches] == [200] * 10
        assert server.http.flow.reading.taken == 0
        for one in watches:
            one.close()


# ---- clients that do not read


async def unread(server: Server, path: str) -> Any:
    """A client whose socket takes next to nothing, and that reads none of it."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", server.http.port))
    reader, writer = await asyncio.open_connection(
        sock=plain, ssl=context(server), server_hostname="127.0.0.1", limit=2**10
    )
    assert isinstance(writer.transport, asyncio.Transport)
    writer.transport.pause_reading()
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
    return reader, writer


async def fill(server: Server, count: int) -> None:
    for number in range(count):
        body = {"metadata": {"name": f"large-{number}"}, "data": {"k": "x" * 900_000}}
        await send(server, "POST", MAPS, body)


@pytest.mark.parametrize("path", [MAPS, f"{MAPS}/large-1"])
async def test_an_answer_that_nobody_reads_is_cut(server: Server, path: str) -> None:
    await fill(server, 12)
    # One object fits into what sockets buffer; twelve requests on one connection do not.
    _, writer = await unread(server, path)
    for _ in range(12):
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
    assert server.http._server is not None
    await until(lambda: server.http._server and len(server.http._server.connections) == 1, "it is connected")
    await until(lambda: server.http._server and not server.http._server.connections, "it is cut")
    writer.transport.abort()


async def test_a_watch_that_nobody_reads_ends_at_its_timeout(tmp_path: Path) -> None:
    async with Server(Settings(tmp_path, port=0, in_memory=True)) as server:  # writes may take 30 s here
        await fill(server, 12)
        _, writer = await unread(server, f"{MAPS}?watch=1&timeoutSeconds=1")
        await until(lambda: server.api.metrics.watchers == 1, "it has begun")
        await until(lambda: server.api.metrics.watchers == 0, "it has ended")
        writer.transport.abort()


# ---- connections that say nothing


@pytest.mark.parametrize("said", [b"", b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /livez HTTP/1.1\r\nHost:"])
async def test_an_idle_connection_is_closed(tmp_path: Path, said: bytes) -> None:
    """Before its first request, between two, and in the middle of a head that never ends."""
    limits = Limits(idle_seconds=1.0)
    async with Server(Settings(tmp_path, port=0, in_memory=True, limits=limits)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.http.port, ssl=context(server))
        writer.write(said)
        async with asyncio.timeout(30):
            answered = await reader.read()  # until the server closes it
        assert answered.startswith(b"HTTP/1.1 200") == said.endswith(b"\r\n\r\n")
        writer.transport.abort()
        await until(lambda: server.http._server and not server.http._server.connections, "it is closed")
