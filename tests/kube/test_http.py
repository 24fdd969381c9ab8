"""The HTTPS way: what happens on real sockets."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube.fake import ABORT, HALF, FakeApi, answer_of, status
from tests.kube.served import Authority, served

from kohort.kube.client import Client
from kohort.kube.clock import VirtualClock
from kohort.kube.config import Config
from kohort.kube.credentials import Credential, Fixed, TokenFile, bearer
from kohort.kube.errors import ApiError, ConfigError, TransportError
from kohort.kube.http import Http
from kohort.kube.informer import Informer
from kohort.kube.wire import Request, Response


class Script:
    """Answers in the given order, then 200."""

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.seen: list[Request] = []
        self.now = 0
        self.most = 0

    async def handle(self, request: Request) -> Response:
        self.seen.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0.01)
            return self.answers.pop(0) if self.answers else answer_of(200, {"kind": "Pod", "metadata": {"name": "p"}})
        finally:
            self.now -= 1


class Impatient(VirtualClock):
    """Virtual time that jumps over every sleep, and remembers them."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._seconds += seconds


def http(url: str, clock: VirtualClock | None = None, **config: Any) -> Http:
    return Http(Config(url, **config), clock=clock or Impatient(), jitter=random.Random(1))


BUSY = answer_of(429, status(429, "TooManyRequests"), **{"retry-after": "3"})
AWAY = answer_of(503, status(503, "ServiceUnavailable"), **{"retry-after": "3"})
GET, POST, PUT = (
    Request(method, "/api/v1/pods", {}, {"accept": "application/json"}) for method in ("GET", "POST", "PUT")
)


async def sent(api: Script, request: Request, **options: Any) -> tuple[Response, list[float]]:
    clock = Impatient()
    async with served(api) as url:
        transport = http(url, clock)
        try:
            return await transport.request(request, timeout=options.pop("timeout", 60), **options), clock.slept
        finally:
            await transport.close()


async def test_paths_and_queries_arrive_as_they_were_meant() -> None:
    api = Script()
    request = Request(
        "GET", "/apis/rbac/clusterroles/system:a b", {"labelSelector": ["a in (b,c),d!=é+&="], "x": ["1"]}
    )
    await sent(api, request)
    assert api.seen[0].path == request.path
    assert api.seen[0].query == request.query


@pytest.mark.parametrize("request_", [GET, PUT, POST], ids=["GET", "PUT", "POST"])
async def test_429_is_obeyed_and_tried_again_because_nothing_was_done(request_: Request) -> None:
    api = Script(BUSY, BUSY)
    response, slept = await sent(api, request_)
    assert response.status == 200
    assert len(api.seen) == 3
    assert all(3.0 <= one <= 3.75 for one in slept)


async def test_503_is_tried_again_only_where_that_cannot_do_harm() -> None:
    assert (await sent(Script(AWAY), GET))[0].status == 200
    assert (await sent(Script(AWAY), POST))[0].status == 503


async def test_without_retry_after_the_answer_stands() -> None:
    assert (await sent(Script(answer_of(429, {})), GET))[0].status == 429
    assert (await sent(Script(answer_of(429, {}, **{"retry-after": "soon"})), GET))[0].status == 429


async def test_who_does_not_want_to_wait_gets_the_refusal() -> None:
    response, slept = await sent(Script(BUSY), POST, again=False)
    assert (response.status, slept) == (429, [])


async def test_retries_are_bounded_in_number_and_in_time() -> None:
    api = Script(*[BUSY] * 50)
    assert (await sent(api, GET))[0].status == 429
    assert len(api.seen) == 5
    api = Script(*[BUSY] * 50)
    assert (await sent(api, GET, timeout=8))[0].status == 429
    assert len(api.seen) == 3


async def test_connections_are_kept_and_bounded() -> None:
    api = Script()
    async with served(api) as url:
        transport = Http(Config(url), connections=3)
        await asyncio.gather(*(transport.request(GET, timeout=10) for _ in range(20)))
        assert api.most == 3
        assert transport._pool is not None
        assert transport._pool.kept == 3
        await transport.close()


async def test_namespaces_take_turns_at_the_connections() -> None:
    """A hundred writes for one namespace are in line: the one for another does not wait for all of them."""
    api = Script()
    async with served(api) as url:
        transport = Http(Config(url), connections=2)
        wanted = [*["many"] * 100, "one"]
        asked = [Request("POST", f"/api/v1/namespaces/{name}/pods") for name in wanted]
        await asyncio.gather(*(transport.request(one, timeout=10) for one in asked))
        order = [one.path.split("/")[4] for one in api.seen]
        assert order.index("one") <= 4
        assert len(order) == 101
        await transport.close()


async def test_a_server_that_is_too_slow_is_given_up() -> None:
    class Slow:
        async def handle(self, request: Request) -> Response:
            await asyncio.sleep(60)
            return answer_of(200, {})

    async with served(Slow()) as url:
        transport = http(url)
        with pytest.raises(TransportError, match=r"GET http://127.0.0.1:\d+/api/v1/pods: no answer in time"):
            await transport.request(GET, timeout=0.05)
        await transport.close()


async def test_a_closed_client_is_closed_for_good() -> None:
    """Whoever is late, or in the middle of something, gets an error, and leaves no connection behind."""
    api = Script()
    async with served(api) as url:
        transport = Http(Config(url), connections=2)
        under_way = [asyncio.create_task(transport.request(GET, timeout=10)) for _ in range(6)]
        while api.now < 2:
            await asyncio.sleep(0)
        await transport.close()
        found = await asyncio.gather(*under_way, return_exceptions=True)
        assert all(isinstance(one, TransportError) for one in found)
        with pytest.raises(TransportError, match="the client is closed"):
            await transport.request(GET, timeout=10)
        with pytest.raises(TransportError, match="the client is closed"):
            async with transport.stream(GET, timeout=10):
                pass
        assert transport._pool is None


async def test_nobody_there_is_said_plainly() -> None:
    transport = http("http://127.0.0.1:1")
    with pytest.raises(TransportError, match=r"GET http://127\.0\.0\.1:1/api/v1/pods: .*127\.0\.0\.1:1"):
        await transport.request(GET, timeout=30)
    await transport.close()


async def test_a_silent_stream_is_given_up() -> None:
    class Silent:
        async def handle(self, request: Request) -> Response:
            async def chunks() -> AsyncIterator[bytes]:
                yield b"first\n"
                await asyncio.sleep(30)

            return Response(200, {}, chunks())

    async with served(Silent()) as url:
        transport = http(url)
        async with transport.stream(GET, timeout=1.0) as response:
            assert not isinstance(response.body, bytes)
            assert await anext(response.body) == b"first\n"
            with pytest.raises(TransportError, match="/api/v1/pods: "):
                await anext(response.body)
        await transport.close()


async def test_a_rotated_token_is_read_again_when_refused(tmp_path: Path) -> None:
    valid = {"token": "old"}

    class Strict(Script):
        async def handle(self, request: Request) -> Response:
            answer = await super().handle(request)
            good = request.headers.get("authorization") == f"Bearer {valid['token']}"
            return answer if good else answer_of(401, status(401, "Unauthorized"))

    file = tmp_path / "token"
    file.write_text("old\n")
    api = Strict()
    async with served(api) as url:
        transport = http(url, credentials=TokenFile(file))
        assert (await transport.request(GET, timeout=30)).status == 200
        valid["token"] = "new"
        assert (await transport.request(GET, timeout=30)).status == 401, "no newer token, no second try"
        seen = len(api.seen)
        file.write_text("new\n")
        assert (await transport.request(POST, timeout=30)).status == 200
        assert len(api.seen) == seen + 2
        valid["token"] = "newer"
        file.write_text("newer\n")
        async with transport.stream(GET, timeout=30) as response:
            assert response.status == 200
        await transport.close()


def config_for(authority: Authority, url: str, **fields: Any) -> Config:
    return Config(url, ca=authority.pem, **fields)


def server_context(
    authority: Authority, folder: Path, *, clients: bool = False, name: str = "127.0.0.1"
) -> ssl.SSLContext:
    certificate, key = authority.issue(name, server=True)
    (folder / "server.pem").write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.pem.decode())
    return context


async def get(config: Config) -> int:
    transport = Http(config)
    try:
        return (await transport.request(GET, timeout=30)).status
    finally:
        await transport.close()


async def test_only_the_authority_of_the_configuration_is_trusted(tmp_path: Path) -> None:
    ours, other = Authority(), Authority("other")
    async with served(Script(), server_context(ours, tmp_path)) as url:
        assert await get(config_for(ours, url)) == 200
        assert await get(Config(url, insecure=True)) == 200
        for stranger in (config_for(other, url), Config(url)):
            with pytest.raises(TransportError, match="certificate verify failed"):
                await get(stranger)


async def test_the_name_in_the_certificate_may_be_given(tmp_path: Path) -> None:
    ours = Authority()
    async with served(Script(), server_context(ours, tmp_path, name="kubernetes.default")) as url:
        with pytest.raises(TransportError, match="certificate"):
            await get(config_for(ours, url))
        assert await get(config_for(ours, url, tls_server_name="kubernetes.default")) == 200


async def test_only_the_first_connection_is_agreed_on_in_full(tmp_path: Path) -> None:
    """A gang's bindings open dozens: the others go on with its session, also after a server that knows none of it."""
    ours, connections, refuses = Authority(), list[ssl.SSLObject](), list[int]()
    context = server_context(ours, tmp_path, name="kubernetes.default")

    def begins(connection: Any, name: str | None, _: ssl.SSLContext) -> int | None:
        connections.append(connection)
        return refuses.pop() if refuses else None

    context.sni_callback = begins
    async with served(Script(), context) as url:
        transport = Http(config_for(ours, url, tls_server_name="kubernetes.default"))

        async def ask(times: int) -> list[bool]:
            connections.clear()
            answers = await asyncio.gather(*(transport.request(GET, timeout=30) for _ in range(times)))
            assert {one.status for one in answers} == {200}
            return [bool(one.session_reused) for one in connections]

        assert await ask(1) == [False]
        assert await ask(5) == [True] * 4
        refuses.append(ssl.ALERT_DESCRIPTION_HANDSHAKE_FAILURE)
        assert (await ask(6))[0] is True, "it was refused with its session, and asked again without"
        await transport.close()


async def test_a_server_that_was_started_anew_knows_no_session(tmp_path: Path) -> None:
    ours = Authority()
    api = Script()
    async with served(api, server_context(ours, tmp_path)) as url:
        transport = Http(config_for(ours, url))
        assert (await transport.request(GET, timeout=30)).status == 200
    async with served(api, server_context(ours, tmp_path), port=int(url.rpartition(":")[2])):
        answers = await asyncio.gather(*(transport.request(GET, timeout=30) for _ in range(3)))
        assert {one.status for one in answers} == {200}
    await transport.close()


async def test_client_certificates_are_shown_and_can_change(tmp_path: Path) -> None:
    ours = Authority()
    pairs = [ours.issue("first"), ours.issue("second")]
    current = {"pair": pairs[0]}

    class Changing:
        async def get(self) -> Credential:
            return Credential({}, *current["pair"])

        async def refused(self, credential: Credential) -> bool:
            return False

    async with served(Script(), server_context(ours, tmp_path, clients=True)) as url:
        with pytest.raises(TransportError):
            await get(config_for(ours, url))
        transport = Http(config_for(ours, url, credentials=Changing()))
        assert (await transport.request(GET, timeout=30)).status == 200
        before = transport._pool
        current["pair"] = pairs[1]
        assert (await transport.request(GET, timeout=30)).status == 200
        assert transport._pool is not before
        await transport.close()
    assert not list(Path(tmp_path).glob("tmp*")), "no key is left in a file"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ca": b"-----BEGIN CERTIFICATE-----\nxx"}, "here: certificate-authority: "),
        ({"credentials": Fixed(Credential({}, b"no", b"pem"))}, "here: client-certificate, client-key: .*accepted are"),
    ],
)
async def test_bad_certificates_are_errors_of_the_configuration(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        await get(Config("https://127.0.0.1:1", context="here", **fields))


async def test_local_answers_are_not_compressed() -> None:
    api = Script()
    async with served(api) as url:
        assert await get(Config(url, credentials=Fixed(Credential(bearer("t"))))) == 200
    assert api.seen[0].headers["accept-encoding"] == "identity"
    assert api.seen[0].headers["authorization"] == "Bearer t"


@pytest.mark.parametrize("how", [ABORT, HALF])
async def test_an_informer_over_sockets_survives_cuts(how: str) -> None:
    api = FakeApi()
    api.put("a")
    async with served(api) as url, Client.connect(Config(url)) as client:
        changed = asyncio.Event()
        async with Informer(client.resource("pods")) as informer:
            informer.handle(added=lambda pod: changed.set(), updated=lambda old, new: changed.set())
            await informer.ready()
            for number in range(3):
                api.cut(how)
                changed.clear()
                api.put("a", x=number)
                await asyncio.wait_for(changed.wait(), 20)
                assert informer.cache.get(("default", "a")) == api.state()["default", "a"]
        assert informer.counts.lists == 1


async def test_errors_of_the_server_carry_its_words() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "too small", "field": "spec.x"}]
    body = {**status(422, "Invalid", "Pod is invalid"), "details": {"kind": "Pod", "causes": causes}}
    async with served(Script(answer_of(422, body))) as url, Client.connect(Config(url)) as client:
        with pytest.raises(ApiError) as caught:
            await client.calls.call("GET", "/api/v1/pods")
    error = caught.value
    assert str(error) == "422 Invalid: Pod is invalid"
    assert [(one.reason, one.field) for one in error.causes] == [("FieldValueInvalid", "spec.x")]


async def test_a_page_of_a_proxy_is_an_error_too() -> None:
    page = Response(502, {"content-type": "text/html"}, b"<h1>Bad gateway</h1>")
    async with served(Script(page)) as url, Client.connect(Config(url)) as client:
        with pytest.raises(ApiError, match="502 Unknown: <h1>Bad gateway</h1>"):
            await client.calls.call("GET", "/api/v1/pods")
