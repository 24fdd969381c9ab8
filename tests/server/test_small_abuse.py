"""Small abuses: inputs that were answered with 500, files and headers without a bound, clocks that go back."""

import asyncio
import base64
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.e2e.grove_short import clique, cliqueset
from tests.server.crd.server import Running
from tests.server.talk import Talk

from kohort.kube.wire import Request
from kohort.server import render, timestamps
from kohort.server.auth import private, tls, tokens
from kohort.server.auth.jwt import SigningKey
from kohort.server.controllers import event_expiry
from kohort.server.server import Server
from kohort.server.settings import Settings

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
YAML = "application/yaml"


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk()
    made.create("/api/v1/namespaces", {"metadata": {"name": "default"}})
    yield made
    made.close()


@pytest.mark.parametrize(
    "value",
    [
        "1:" * 3_000 + "1",
        "1:" * 3_000 + "1.5",
        "1" * 5_000,
        "0x" + "1" * 5_000,
        "0b" + "1" * 5_000,
        "1" * 5_000 + ".5",
        ".inf",
        "-.INF",
        ".nan",
        "!!binary YQ==",
        "!!binary gA==",
        "!!set {a}",
        "!!omap [a: 1]",
        "!!pairs [a: 1]",
        "!!timestamp 2020-99-99",
        "{? [a] : 1}",
        "{!!binary YQ== : 1}",
    ],
)
def test_a_strange_value_in_yaml_is_the_clients_fault(talk: Talk, value: str) -> None:
    text = f"metadata: {{name: c, annotations: {{a: {value}}}}}\nspec: {{priority: {value}}}"
    assert talk.request("POST", PODS, text=text, content_type=YAML).code in (400, 422)


@pytest.mark.parametrize("value", ["12:30:45", "1:1.5", "99999999999999999999999999"])
def test_numbers_are_read_as_go_reads_them(talk: Talk, value: str) -> None:
    """Base 60 is text; what 64 bits cannot hold is a float, which an annotation cannot be."""
    text = f"metadata: {{name: c, annotations: {{a: {value}}}}}"
    found = talk.request("POST", "/api/v1/namespaces/default/configmaps", text=text, content_type=YAML)
    assert found.code == (201 if ":" in value else 400)
    if ":" in value:
        assert found.json()["metadata"]["annotations"] == {"a": value}


@pytest.mark.parametrize(
    "quantity", ["1" * 5_000, "1." + "1" * 5_000, "1e" + "1" * 5_000, "0" * 5_000, "1" * 5_000 + "Ki"]
)
def test_long_quantities_are_no_fault_of_the_server(talk: Talk, quantity: str) -> None:
    container = {"name": "a", "image": "i", "resources": {"requests": {"cpu": quantity}}}
    assert talk.request("POST", PODS, {"metadata": {"name": "a"}, "spec": {"containers": [container]}}).code < 500


@pytest.mark.parametrize(
    "token", [b"[" * 20_000, b'{"v":' + b"[" * 5_000, b"null", b"[1]", b'{"v":1,"rv":{},"start":[]}']
)
def test_a_continue_token_that_is_none(talk: Talk, token: bytes) -> None:
    found = talk.request("GET", f"{PODS}?limit=1&continue={base64.urlsafe_b64encode(token).decode()}")
    assert (found.code, found.json()["reason"]) == (400, "BadRequest")


def test_warnings_are_bounded_as_upstream_bounds_them() -> None:
    few = render.warning_header(["a" * 1_000, "b" * 1_000])
    assert few.count("299 ") == 2
    assert "b" * 1_000 in few
    many = render.warning_header([f"{number} " + "x" * 1_000 for number in range(1_000)])
    assert many.count("299 ") == 16  # of 256 letters each
    assert len(many) < 5_000


def test_a_path_cannot_write_lines_into_the_log(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("a fault")

    talk.api._authenticate = fail  # type: ignore[assignment, method-assign]
    request = Request("GET", "/api/v1/a\nERROR forged\x1b[2J", {}, {}, b"")
    assert talk.loop.run_until_complete(talk.api.handle(request)).status == 500
    assert len(caplog.records) == 1
    assert "\n" not in caplog.records[0].getMessage()
    assert "\x1b" not in caplog.records[0].getMessage()


def test_a_clock_that_goes_back_keeps_the_authority(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = datetime.now(UTC)
    first = tls.ensure(tmp_path, now=now)
    back = tls.ensure(tmp_path, now=now - timedelta(days=30))
    assert back.ca_pem == first.ca_pem
    assert "is the clock of this machine behind?" in caplog.text
    assert tls.ensure(tmp_path, now=now).ca_pem == first.ca_pem
    assert tls.ensure(tmp_path, now=now + timedelta(days=3640)).ca_pem != first.ca_pem
    assert "clients need the new one" in caplog.text


ENCRYPTED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n"


@pytest.mark.parametrize("content", [b"", b"hello", ENCRYPTED, b"\xff\xfe"])
@pytest.mark.parametrize("name", ["pki/ca.key", "pki/ca.crt", "pki/sa.key", "tokens.json"])
async def test_a_bad_key_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    tls.ensure(tmp_path / "pki")
    SigningKey.ensure(tmp_path / "pki" / "sa.key")
    tokens.ensure(tmp_path / "tokens.json")
    (tmp_path / name).write_bytes(content)
    server = Server(Settings(tmp_path, port=0, in_memory=True))
    with pytest.raises(private.FileError, match=Path(name).stem):
        await server.start()
    await server.close()


@pytest.mark.parametrize("content", [b"{}", b'{"admin": {}}', b'{"admin": {"user": "kohort:admin"}}'])
def test_tokens_that_are_missing_are_drawn(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokens.json").write_bytes(content)
    assert len(tokens.ensure(tmp_path / "tokens.json")["admin"]) > 20


def _event(name: str) -> dict[str, object]:
    about = {"kind": "Pod", "namespace": "default", "name": "a"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "message": "m", "type": "Normal"}


def test_events_go_an_hour_after_their_last_change(talk: Talk) -> None:
    talk.create(EVENTS, _event("old"))
    talk.create(EVENTS, _event("changed"))
    seen: event_expiry.Seen = {}

    def look(minutes: int) -> set[str]:
        moment = datetime.now(UTC) + timedelta(minutes=minutes)
        mark = timestamps.NOW.set(lambda: moment)
        try:
            talk.loop.run_until_complete(event_expiry.sync(talk.store, 3600, seen))
        finally:
            timestamps.NOW.reset(mark)
        return {item["metadata"]["name"] for item in talk.get(EVENTS)["items"]}

    assert look(50) == {"old", "changed"}
    changed = talk.request("PATCH", f"{EVENTS}/changed", {"count": 2}, content_type="application/merge-patch+json")
    assert changed.ok
    assert look(55) == {"old", "changed"}
    assert look(62) == {"changed"}
    assert look(116) == set()


async def test_expect_continue_is_answered(tmp_path: Path) -> None:
    """curl waits for it before it sends a large body."""
    async with Server(Settings(tmp_path, port=0, in_memory=True)) as server:
        context = ssl.create_default_context(cafile=str(tmp_path / "pki" / "ca.crt"))
        reader, writer = await asyncio.open_connection("127.0.0.1", server.http.port, ssl=context)
        body = json.dumps({"metadata": {"name": "n"}}).encode()
        head = (
            f"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
        )
        writer.write(head.encode())
        assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30) == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await asyncio.wait_for(reader.readline(), 30)).startswith(b"HTTP/1.1 201 ")
        writer.transport.abort()


async def test_without_a_token_no_body_is_asked_for(tmp_path: Path) -> None:
    async with Server(Settings(tmp_path, port=0, in_memory=True)) as server:
        context = ssl.create_default_context(cafile=str(tmp_path / "pki" / "ca.crt"))
        reader, writer = await asyncio.open_connection("127.0.0.1", server.http.port, ssl=context)
        lines = ("POST /api/v1/namespaces HTTP/1.1", "Host: localhost", "Authorization: Bearer wrong")
        more = ("Content-Length: 100", "Expect: 100-continue", "", "")
        writer.write("\r\n".join((*lines, *more)).encode())
        assert (await asyncio.wait_for(reader.readline(), 30)).startswith(b"HTTP/1.1 401 ")
        writer.transport.abort()


DELAYS = ("9" * 5_000 + "s", "0." + "1" * 6_000 + "h" * 2, "2562048h", "\u0663s")


@pytest.mark.parametrize(
    ("digits", "code"), [("9" * 5_000, 422), ("0" * 5_000, 201), ("\u0663", 422)], ids=["nines", "zeros", "not ASCII"]
)
def test_long_percentages_are_no_fault_of_the_server(talk: Talk, digits: str, code: int) -> None:
    talk.create("/api/v1/namespaces", {"metadata": {"name": "default"}})
    budget = {"metadata": {"name": "a"}, "spec": {"selector": {}, "maxUnavailable": f"{digits}%"}}
    assert talk.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget).code == code
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    rules = {"rules": [{"succeededIndexes": f"0-{digits}"}]}
    spec = {"completionMode": "Indexed", "completions": 3, "parallelism": 1, "template": template}
    job = {"metadata": {"name": "a"}, "spec": {**spec, "successPolicy": rules}}
    assert talk.request("POST", "/apis/batch/v1/namespaces/default/jobs", job).code in (201, 422)


@pytest.mark.parametrize("delay", DELAYS, ids=range(len(DELAYS)))
def test_long_durations_are_no_fault_of_the_server(delay: str) -> None:
    body = cliqueset("x", clique("a", 1))
    body["spec"]["template"]["terminationDelay"] = delay
    with Running(shipped=True) as server:
        found = server.request("POST", "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets", body)
    assert found.code == 400
    assert "terminationDelay: Cannot decode: expected duration" in found.json()["message"]
