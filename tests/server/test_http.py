"""Over a real socket: TLS, tokens, keep-alive, streams, limits, and clients that do not know HTTP."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.talk import Talk

from kohort.server.http import _Protocol
from kohort.server.limits import DEFAULT as LIMITS
from kohort.server.server import Server
from kohort.server.settings import Settings

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(Settings(tmp_path, port=0, in_memory=True)) as made:
        yield made


def context(server: Server) -> ssl.SSLContext:
    assert server.pki is not None
    return ssl.create_default_context(cafile=str(server.pki.ca_file))


@pytest.fixture
async def session(server: Server) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {server.token}"}
    connector = aiohttp.TCPConnector(ssl=context(server))
    async with aiohttp.ClientSession(server.url, headers=headers, connector=connector) as made:
        yield made


async def test_the_kubeconfig_is_its_owners(server: Server) -> None:
    assert server.settings.kubeconfig_path.stat().st_mode & 0o777 == 0o600
    assert server.token in server.settings.kubeconfig_path.read_text()


async def test_requests_over_https(session: aiohttp.ClientSession) -> None:
    async with session.post(MAPS, json={"metadata": {"name": "a"}}) as answer:
        assert answer.status == 201
    async with session.get(f"{MAPS}/a") as answer:
        assert (await answer.json())["metadata"]["name"] == "a"
    async with session.head(f"{MAPS}/a") as answer:
        assert answer.status == 200
        assert await answer.read() == b""


async def test_a_wrong_token_is_nobody(server: Server, session: aiohttp.ClientSession) -> None:
    async with session.get(MAPS, headers={"Authorization": "Bearer wrong"}) as answer:
        assert answer.status == 401
        assert (await answer.json())["reason"] == "Unauthorized"


async def test_without_a_token_there_is_little_to_see(server: Server) -> None:
    connector = aiohttp.TCPConnector(ssl=context(server))
    async with aiohttp.ClientSession(server.url, connector=connector) as nobody:
        async with nobody.get("/healthz") as answer:
            assert answer.status == 200
        async with nobody.get("/api/v1/secrets") as answer:
            assert answer.status == 403
            assert "system:anonymous" in (await answer.json())["message"]


async def test_a_watch_streams_and_ends_with_its_client(server: Server, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{MAPS}?watch=1&fieldSelector=metadata.name=b") as answer:
        assert answer.headers["Content-Type"].startswith("application/json")
        async with session.post(MAPS, json={"metadata": {"name": "b"}}):
            pass
        line = await asyncio.wait_for(answer.content.readline(), 30)
        assert json.loads(line)["type"] == "ADDED"
        assert server.api.metrics.watchers == 1
    for _ in range(1500):
        if server.api.metrics.watchers == 0:
            break
        await asyncio.sleep(0.02)
    assert server.api.metrics.watchers == 0


async def test_connections_that_are_never_agreed_on_leave_nothing_behind(server: Server) -> None:
    """Whoever opens a thousand and says nothing, or no TLS: nobody may look for cycles for long."""
    gc.collect()
    before = _protocols()
    gc.disable()
    try:
        for _ in range(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.http.port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await asyncio.wait_for(reader.read(), 30)
            writer.close()
        assert _protocols() == before
    finally:
        gc.enable()


def _protocols() -> int:
    return sum(isinstance(one, _Protocol) for one in gc.get_objects())


async def test_closing_ends_watches_in_order(tmp_path: Path) -> None:
    server = Server(Settings(tmp_path, port=0, in_memory=True))
    await server.start()
    headers = {"Authorization": f"Bearer {server.token}"}
    connector = aiohttp.TCPConnector(ssl=context(server))
    async with aiohttp.ClientSession(server.url, headers=headers, connector=connector) as session:
        async with session.get(f"{MAPS}?watch=1&resourceVersion={server.store.revision}") as answer:
            closing = asyncio.create_task(server.close())
            rest = await asyncio.wait_for(answer.content.read(), 30)
            assert b"ERROR" not in rest
        await asyncio.wait_for(closing, 30)


async def test_a_body_that_is_too_large(session: aiohttp.ClientSession) -> None:
    async with session.post(
        MAPS, data=io.BytesIO(b"x" * (LIMITS.body_bytes + 1)), headers={"Content-Type": "application/json"}
    ) as answer:
        assert answer.status == 413
        assert (await answer.json())["reason"] == "RequestEntityTooLarge"


async def test_without_tls_only_loopback(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="only loopback"):
        Server(Settings(tmp_path, host="0.0.0.0", port=0, in_memory=True, secure=False))


@pytest.mark.parametrize(
    "raw",
    [
        b"GARBAGE\r\n\r\n",
        b"GET /api HTTP/9.9\r\n\r\n",
        b"GET /api HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
        b"GET /api HTTP/1.1\r\nHost: x\r\nBig: " + b"x" * 40_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"\x16\x03\x01\x00\x05hello",
        b"GET /api/v1/pods?" + b"&".join(b"a=%d" % n for n in range(300)) + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_answered_or_hung_up_on(server: Server, raw: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.http.port, ssl=context(server))
    writer.write(raw)
    answer = await asyncio.wait_for(reader.read(2000), 30)
    writer.close()
    if answer:
        code = int(answer.split()[1])
        assert 400 <= code < 500, answer
        assert b'"kind":"Status"' in answer


# ---- nonsense in well-formed requests


@pytest.fixture(scope="module")
def talk():
    made = Talk()
    made.create("/api/v1/namespaces", {"metadata": {"name": "default"}})
    made.create(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    yield made
    made.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "data", "spec", "op", "path", "name", "$patch"]), inner)
    ),
    max_leaves=12,
)
TYPES = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        "text/plain",
        "",
    ]
)
QUERY = st.sampled_from(
    [
        "",
        "?fieldManager=x",
        "?fieldManager=x&force=true",
        "?dryRun=All",
        "?fieldValidation=Strict",
        "?limit=1",
        "?continue=AAAA",
        "?labelSelector=a=b,,",
        "?fieldSelector=\\",
        "?resourceVersion=x",
        "?timeoutSeconds=x",
        "?gracePeriodSeconds=x",
    ]
)
PATHS = st.sampled_from(
    [
        MAPS,
        f"{MAPS}/a",
        f"{MAPS}/b/status",
        "/api/v1/namespaces",
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/pods/x/binding",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/apps/v1/namespaces/default/deployments/x/scale",
        "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ]
)
METHODS = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"])


@given(METHODS, PATHS, QUERY, TYPES, JSON.map(json.dumps) | st.text(max_size=60))
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_nonsense_is_the_clients_fault(talk: Talk, method: str, path: str, query: str, kind: str, body: str) -> None:
    answer = talk.request(method, path + query, text=body, content_type=kind)
    assert answer.code < 500 or answer.code in {501, 504}, answer.body
    if answer.code >= 400:
        assert answer.json()["kind"] == "Status"


@given(st.binary(max_size=80))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_bytes_as_protobuf(talk: Talk, tail: bytes) -> None:
    body = b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12" + tail
    answer = talk.send("POST", MAPS, body, "application/vnd.kubernetes.protobuf")
    assert answer.code < 500, answer.body


@pytest.mark.parametrize("kind", ["application/json", "application/yaml", "application/merge-patch+json"])
def test_deep_nesting_is_refused(talk: Talk, kind: str) -> None:
    body = '{"metadata":{"name":"a"},"data":' + "[" * 5000 + "]" * 5000 + "}"
    method = "PATCH" if "patch" in kind else "POST"
    answer = talk.request(method, f"{MAPS}/a" if method == "PATCH" else MAPS, text=body, content_type=kind)
    assert answer.code == 400, answer.body


def test_alias_bombs_are_refused(talk: Talk) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]" for n in range(9)]
    answer = talk.request("POST", MAPS, text="\n".join(lines), content_type="application/yaml")
    assert answer.code == 400
