"""Whatever a client sends, it is told what is wrong: 4xx with a Status; never 500, never a hang, never all the memory.

Objects of every kind that is served are made up from its schema, with wrong values here and there, and written in every
way there is. `KOHORT_SEED` and `KOHORT_WRITES` make it another run, or a longer one.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource as limits
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.talk import Talk

from kohort.api import definitions
from kohort.api.openapi import structural
from kohort.kube.transport import ADMIN
from kohort.kube.wire import Request, Response
from kohort.server.limits import DEFAULT as LIMITS
from kohort.server.resources import Resource
from kohort.server.server import Server
from kohort.server.settings import Settings

SEED = int(os.environ.get("KOHORT_SEED", "5"))
WRITES = int(os.environ.get("KOHORT_WRITES", "1500"))
WORDS = [
    "a", "b", "x-1", "default", "", " ", "A", "a.b", "a/b", "*", "1", "-1", "0.5", "10Gi", "nan", "\x00", "é", "..",
    "a" * 300,
    "2026-01-01T00:00:00Z", "gang", "Always", "Never", "IfNotPresent", "All", "10.0.0.1", "::1", "1.2.3.0/24", "50%",
    "true", "TCP", "ClusterIP", "metadata.name", "{.spec}", "{{", "(", "a==b", "a in (b)",
]  # fmt: skip
NONSENSE: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**70, 1.5, 1e308, "", "x", [], {}, [None], [[]], {"": None},
    {"a": {}}, [1, "x", {}], {"$patch": "delete"}, {"$patch": "replace"}, "\ud83d", "x" * 1000,
]  # fmt: skip
POINTERS = ["/spec", "/metadata/labels/x", "/spec/a/0", "/", "", "x", "/data/-", "/~2", "/spec/-1"]
MEDIA = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Maker:
    """Objects of a schema, mostly as it wants them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def value(self, schema: Any, depth: int = 0) -> Any:  # noqa: PLR0911
        if self.chance.random() < 0.03:
            return self.chance.choice(NONSENSE)
        name = definitions.target(schema)
        if name is not None:
            schema = definitions.definition("1.37", name)
        if "enum" in schema and self.chance.random() < 0.8:
            return self.chance.choice(schema["enum"])
        if "properties" in schema:
            return self._object(schema, depth)
        match schema.get("type"):
            case "array":
                return [self.value(schema["items"], depth + 1) for _ in range(self.chance.choice([0, 1, 1, 2]))]
            case "integer":
                return self.chance.choice([0, 1, 2, 3, 8080, -1, 2**31])
            case "boolean":
                return self.chance.random() < 0.5
            case "object":
                inner = schema.get("additionalProperties") or {"type": "string"}
                return {
                    self.chance.choice(WORDS): self.value(inner, depth + 1)
                    for _ in range(self.chance.choice([0, 1, 2]))
                }
        return self.chance.choice(WORDS)

    def _object(self, schema: Any, depth: int) -> dict[str, Any]:
        needed, found = set(schema.get("required") or ()), {}
        for name, member in schema["properties"].items():
            if name in ("apiVersion", "kind", "metadata") and depth == 0:
                continue
            often = 0.95 if name in needed else 0.9 if name in ("spec", "status") else max(0.05, 0.5 - depth * 0.12)
            if depth < 9 and self.chance.random() < often:
                found[name] = self.value(member, depth + 1)
        return found

    def meta(self, name: str) -> Any:
        meta: Any = {"name": name}
        for member, most in (("labels", 0.3), ("annotations", 0.2), ("finalizers", 0.1), ("ownerReferences", 0.1)):
            if self.chance.random() < most:
                schema = definitions.definition("1.37", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
                meta[member] = self.value(schema["properties"][member])
        if self.chance.random() < 0.05:
            meta[self.chance.choice(["uid", "resourceVersion", "generateName", "namespace", "managedFields"])] = (
                self.chance.choice(NONSENSE)
            )
        return meta if self.chance.random() > 0.02 else self.chance.choice(NONSENSE)

    def change(self, sort: str, body: Any) -> Any:
        """A patch of this sort."""
        if not isinstance(body, dict):
            return body
        if sort != "json":
            return {name: item for name, item in body.items() if self.chance.random() < 0.6}
        return [
            {
                "op": self.chance.choice(["add", "remove", "replace", "move", "copy", "test", "no"]),
                "path": self.chance.choice(
                    ["/spec", "/metadata/labels/x", "/spec/a/0", "/", "", "x", "/data/-", "/~2", "/spec/-1"]
                ),
                "from": self.chance.choice(["/metadata", "/spec", "", "/x"]),
                "value": self.chance.choice([*NONSENSE, body]),
            }
            for _ in range(self.chance.choice([1, 1, 2]))
        ]


def schema_of(resource: Resource) -> Any:
    if resource.definition is not None:
        return definitions.definition("1.37", resource.definition)
    return structural(resource.rules) if not resource.native else {"properties": {"spec": {"type": "object"}}}


async def send(server: Server, method: str, path: str, body: Any, media: str = "application/json") -> Response:
    plain, _, query = path.partition("?")
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request(method, plain, parse_qs(query), {"content-type": media, "user-agent": "fuzz"}, raw, ADMIN)
    return await asyncio.wait_for(server.api.handle(request), 20)


def judge(found: Response, what: Any) -> None:
    assert found.status < 500 or found.status == 501, (what, found.body)
    if found.status >= 400:
        assert isinstance(found.body, bytes)
        status = json.loads(found.body)
        assert (status["kind"], status["code"]) == ("Status", found.status), what
        assert status["message"], what


async def test_objects_of_every_kind_written_in_every_way(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    maker, seen = Maker(chance), set()
    async with Server(Settings(tmp_path, in_memory=True, listen=False)) as server:
        every = [one for one in server.api.resources.every() if "create" in one.verbs]
        for number in range(WRITES):
            resource = every[number % len(every)]
            root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
            base = (
                f"{root}/namespaces/default/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
            )
            name = chance.choice(["a", "b", "c"])
            body: Any = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": maker.meta(name)}
            rest = maker.value(schema_of(resource))
            body = {**body, **rest} if isinstance(rest, dict) else rest
            sub = chance.choice(["", "", "", "/status", "/scale", *(f"/{one}" for one in resource.subresources)])
            sort = chance.choice([*MEDIA])
            query = chance.choice(["", "", "?dryRun=All", "?fieldValidation=Strict", "?force=true"])
            query += ("&" if query else "?") + "fieldManager=f" if sort == "apply" else ""
            options: list[Any] = [b"", maker.value({}), {"preconditions": {"uid": "x"}}]
            method, path, media, sent = chance.choice(
                [
                    ("POST", base, "application/json", body),
                    ("POST", base, "application/json", body),
                    ("POST", f"{base}/{name}{sub}" if sub else base, "application/json", body),
                    ("PUT", f"{base}/{name}{sub}", "application/json", body),
                    ("PATCH", f"{base}/{name}{sub}{query}", MEDIA[sort], maker.change(sort, body)),
                    ("PATCH", f"{base}/{name}{sub}{query}", MEDIA[sort], maker.change(sort, body)),
                    ("DELETE", f"{base}/{name}", "application/json", chance.choice(options)),
                ]
            )  # fmt: skip
            found = await send(server, method, path, sent, media)
            judge(found, (method, path, media, json.dumps(sent) if not isinstance(sent, bytes) else sent))
            seen.add((method, found.status // 100))
    assert {("POST", 2), ("POST", 4), ("PUT", 4), ("PATCH", 2), ("PATCH", 4), ("DELETE", 2)} <= seen


# ---- what is asked beside the body


TEXT = st.text(max_size=40) | st.sampled_from(
    [
        "a in (",
        "!",
        "a,b",
        "a!=b,",
        "notin ()",
        "metadata.name=",
        "a" * 5000,
        "((((",
        "a in (b,c),d",
        "x=y=z",
        "\\",
        "==",
    ]
)
OPTIONS = st.dictionaries(
    st.sampled_from(
        [
            "labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch", "watch",
            "sendInitialEvents", "allowWatchBookmarks", "timeoutSeconds", "dryRun", "fieldManager", "pretty",
            "propagationPolicy", "gracePeriodSeconds", "orphanDependents", "fieldValidation", "force", "includeObject",
        ]
    ),
    TEXT,
    max_size=4,
)  # fmt: skip
ACCEPT = st.sampled_from(
    [
        "", "*/*", "application/json", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=", "x",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "application/vnd.kubernetes.protobuf",
        ";;;,,,", "application/json;q=x", "application/json;as=Table;v=v9", "a" * 3000,
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def talk():
    made = Talk()
    made.create("/api/v1/namespaces", {"metadata": {"name": "default"}})
    made.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}, "data": {"k": "v"}})
    yield made
    made.close()


@given(st.sampled_from(["GET", "DELETE", "PATCH", "PUT"]), OPTIONS, ACCEPT, st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_options_selectors_and_tokens(talk: Talk, method: str, query: dict[str, str], accept: str, named: bool) -> None:
    path = "/api/v1/namespaces/default/configmaps" + ("/a" if named else "")
    asked = {name: [value] for name, value in query.items()}
    headers = {
        "accept": accept,
        "content-type": "application/merge-patch+json" if method == "PATCH" else "application/json",
    }

    async def ask() -> Response:
        found = await talk.api.handle(Request(method, path, asked, headers, b"{}"))
        close = getattr(found.body, "aclose", None)
        if close is not None:
            await close()
        return found

    judge(talk.loop.run_until_complete(asyncio.wait_for(ask(), 20)), (method, query, accept))


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_bytes_as_a_path(talk: Talk, tail: bytes) -> None:
    for root in ("/api/v1/", "/apis/", "/openapi/v3/", "/"):
        for path in (root + quote(tail), root + tail.decode("latin-1")):
            request = Request("GET", path, {}, {}, b"")
            found = talk.loop.run_until_complete(asyncio.wait_for(talk.api.handle(request), 20))
            judge(found, path)


TOKENS = [
    "e30",
    "bnVsbA",
    "W10",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTk5OTk5OTk5LCJzdGFydCI6ImEifQ",
    "%00",
    "A" * 9000,
    "====",
    "é",
]


@pytest.mark.parametrize("token", TOKENS)
def test_continue_tokens_that_nobody_gave_out(talk: Talk, token: str) -> None:
    found = talk.request("GET", f"/api/v1/configmaps?limit=1&continue={quote(token)}")
    assert found.code in (400, 410), found.body
    assert found.json()["kind"] == "Status"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b'"x"', b"1", b"NaN", b'{"a":NaN}',
        b'{"metadata":{"name":"\xed\xa0\x80"}}',
        b'{"metadata":{"name":"x"},"metadata":{"name":"y"}}', b"{" * 100_000, b'{"a":' * 100_000, b"[" * 2_000_000,
        b'{"data":{"k":"' + b"\\u0000" * 50_000 + b'"}}', b'{"metadata":{"name":1e999}}', b"k8s\x00",
        b"k8s\x00" + b"\xff" * 5000,
        b"k8s\x00" + b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", b"k8s\x00\x12\xff\xff\xff\xff\x0f",
    ],
    ids=range(20),
)  # fmt: skip
@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        *MEDIA.values(),
        "application/cbor",
        "x",
    ],
)
def test_bodies(talk: Talk, body: bytes, media: str) -> None:
    if media in ("application/yaml", MEDIA["apply"]) and len(body) > 500_000:
        body = body[:20_000]
    method, name = ("PATCH", "/a") if "patch" in media else ("POST", "")
    path = f"/api/v1/namespaces/default/configmaps{name}?fieldManager=f"
    found = talk.send(method, path, body, media)
    assert found.code < 500, found.body
    if found.code >= 400:
        assert found.json()["kind"] == "Status"


# ---- over a socket


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(Settings(tmp_path, port=0, in_memory=True, custom_kinds=False)) as made:
        yield made


def context(server: Server) -> ssl.SSLContext:
    assert server.pki is not None
    return ssl.create_default_context(cafile=str(server.pki.ca_file))


HEAD = b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n"
RAW = [
    HEAD + b"No colon here\r\n\r\n",
    HEAD + b": empty\r\n\r\n",
    HEAD + b"A: \x00\r\n\r\n",
    HEAD + b"A: b\nC: d\n\n",
    HEAD + b"Content-Length: -1\r\n\r\n",
    HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    HEAD + b"Content-Length: 99999999999999999999\r\n\r\n",
    HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFF\r\n",
    HEAD + b"Transfer-Encoding: nonsense\r\n\r\n",
    HEAD + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n",
    HEAD + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n",
    HEAD + b"".join(b"H%d: v\r\n" % n for n in range(5000)) + b"\r\n",
    HEAD + b"Authorization: Bearer " + b"x" * 30_000 + b"\r\n\r\n",
    HEAD + b"Authorization: Bearer \xff\xfe.\xff.\xff\r\n\r\n",
    HEAD + b"Authorization: Bearer eyJhbGciOiJub25lIn0.e30.\r\n\r\n",
    HEAD + b"Impersonate-User: \xc3\x28\r\n\r\n",
    HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxxx",
    b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://example.org/api HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /api/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /api/v1/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /api/v1/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /api/v1/pods?labelSelector=%ff%fe HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET api HTTP/1.1\r\n\r\n",
    b"GET /api HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\r\n\r\n\r\n",
    b"\x00" * 1000,
    b"G" * 100_000,
]


@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
async def test_what_is_hardly_http(server: Server, raw: bytes) -> None:
    """Answered with a client's error, or hung up on; anonymous gets little even for a well-formed request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.http.port, ssl=context(server))
    writer.write(raw)
    writer.write(
        b"\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" if raw.startswith(b"\r\n") else b""
    )
    answer, may_wait = b"", raw.startswith((b"\x00", b"\r\n", HEAD + b"Expect", HEAD + b"Content-Length: 999"))
    try:
        answer = await asyncio.wait_for(reader.read(4000), 1 if may_wait else 30)
    except TimeoutError:
        assert may_wait, "a hang"
    except ConnectionResetError:
        pass
    writer.close()
    if answer:
        code = int(answer.split()[1])
        assert 400 <= code < 500 or code in (100, 200), answer
        assert b'"kind":"Status"' in answer or code < 300, answer
    ok, writer = await asyncio.open_connection("127.0.0.1", server.http.port, ssl=context(server))
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"200 OK" in await asyncio.wait_for(ok.read(), 30)  # it still works
    writer.close()


async def test_memory_is_bounded(server: Server) -> None:
    """Dozens of bodies of three megabytes that turn out to be nonsense only at their ends."""
    nested = b'{"metadata":{"name":"x","labels":{' + b'"a":"b",' * 350_000 + b'"c":1}},"data":{"k":[}'
    texts = b'{"metadata":{"name":"x"},"data":{' + b",".join(b'"k%d":"v"' % n for n in range(200_000)) + b"}"
    bodies = [
        body[: LIMITS.body_bytes - 1]
        for body in (nested, texts, b"[" * LIMITS.body_bytes, b'"' + b"\\n" * (LIMITS.body_bytes // 2))
    ]
    path = "/api/v1/namespaces/default/configmaps"
    for body in bodies:
        await send(server, "POST", path, body)
    before = limits.getrusage(limits.RUSAGE_SELF).ru_maxrss
    for number in range(40):
        found = await send(server, "POST", path, bodies[number % len(bodies)])
        assert found.status in (400, 413)
    grown = (limits.getrusage(limits.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 100, f"{grown:.0f} MiB more"
