"""An API server that cannot be relied on: a proxy before a real one that refuses, delays, cuts and loses answers.

Whoever it stands before is pointed at it by kubeconfig, with the credentials of the real server. What happens to a
request is thrown by a die with a seed. The cruellest throw is `lost`: the request was carried out, and whoever sent it
sees a broken connection.

    async with Proxy(env.url, env.ca_file, folder, Dice(seed)) as proxy:
        client = Client.connect(proxy.kubeconfig("me", token))
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from kohort.kube.sockets import Sockets
from kohort.server.auth import tls
from kohort.testing.environment import files

if TYPE_CHECKING:
    from types import TracebackType

REASONS: Final = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
_HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "host", "content-length"})
_UPSTREAM: Final = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=90.0)

Throw = int | str | None
"""409, 429, 500, 503: the proxy's own answer. `unsent`: cut before it was carried out. `lost`: cut afterwards.
`late`, `slow`: a pause before, or after. `cut`: a watch that is cut soon. None: nothing happens."""


@dataclass(slots=True)
class Dice:
    """What happens to which request. `rate` of them are hit while the weather is `bad`."""

    seed: int
    rate: float = 0.1
    bad: bool = True
    pause: float = 1.0  # of what is late or slow, at most, seconds
    met: Counter[str] = field(default_factory=Counter)  # what happened, how often
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def throw(self, method: str, *, watch: bool) -> Throw:
        if not self.bad or self.chance.random() > self.rate:
            return None
        found: Throw = self.chance.choice(self._sides(method, watch))
        self.met[str(found)] += 1
        return found

    def _sides(self, method: str, watch: bool) -> tuple[Throw, ...]:
        if watch:
            return (429, 500, 503, "unsent", "cut", "cut", "cut", "late")
        read: tuple[Throw, ...] = (429, 500, 503, "unsent", "lost", "late", "slow")
        return read if method == "GET" else (409, *read, "lost")

    def wait(self) -> float:
        return self.chance.uniform(0, self.pause)


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding that the server took, as its answer said."""

    uid: str
    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class Released:
    """A lease that its holder gives up, as it was sent: the server may have heard it though nobody was told so."""

    lease: str
    renew_time: str


class Proxy:
    """Before one server, for the time of an `async with` block.

    `bindings` are those that the server took, `releases` the leases that were given up. `sends` is called before each
    request is sent on; if it raises `ConnectionError`, the request is not sent, and cut. `secure`: whether it speaks
    TLS, as API servers do; without, many more fit on a machine.
    """

    def __init__(self, upstream: str, ca_file: Path, folder: Path, dice: Dice, *, secure: bool = True) -> None:
        self.dice = dice
        self.bindings: list[Bound] = []
        self.releases: list[Released] = []
        self.sends: Callable[[web.BaseRequest], None] = lambda _: None
        self._upstream, self._ca_file = upstream, ca_file
        self._pki = tls.ensure(folder)
        self._secure = secure
        self._open: set[asyncio.BaseTransport] = set()  # of watches
        self._under_way: set[asyncio.Task[web.Response]] = set()
        self._silence = asyncio.Event()
        self._silence.set()
        self._dead = False
        self._sockets = Sockets()
        self.port = 0

    async def __aenter__(self) -> Proxy:
        trust = ssl.create_default_context(cafile=str(self._ca_file))
        trust.verify_flags &= ~ssl.VERIFY_X509_STRICT  # kube-apiserver's own certificate is too plain for it
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=trust, socket_factory=self._sockets.make),
            auto_decompress=False,
            timeout=_UPSTREAM,
            skip_auto_headers=("content-type", "user-agent", "accept", "accept-encoding"),
        )
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        context = self._pki.server_context() if self._secure else None
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.die()
        await self._runner.cleanup()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._session.close()
        await self._sockets.hang_up()

    # ---- for those who use it

    @property
    def url(self) -> str:
        return f"{'https' if self._secure else 'http'}://127.0.0.1:{self.port}"

    def kubeconfig(self, user: str, token: str) -> str:
        return files.kubeconfig(self.url, self._pki.ca_file, user, token)

    # ---- what may happen to all of it

    def cut(self) -> None:
        """All watches, now."""
        for transport in tuple(self._open):
            _abort(transport)

    def die(self) -> None:
        """Nothing gets through, in either direction, until `revive`."""
        self._dead = True
        self._silence.set()
        self.cut()

    def revive(self) -> None:
        self._dead = False

    def hush(self) -> None:
        """Whatever comes waits, without a word, until `speak`; watches say nothing more."""
        self._silence.clear()

    def speak(self) -> None:
        self._silence.set()

    # ---- one request

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        watch = request.query.get("watch") in {"1", "true"}
        try:
            await self._way()
            if watch:
                return await self._watch(request)
            # What was sent is carried out, also if whoever sent it is gone meanwhile.
            work = asyncio.create_task(self._whole(request))
            self._under_way.add(work)
            work.add_done_callback(self._under_way.discard)
            return await asyncio.shield(work)
        except (ConnectionError, aiohttp.ClientError, TimeoutError):
            if request.transport is not None:
                _abort(request.transport)
            return web.Response()  # nobody hears it

    async def _way(self) -> None:
        """As far as here, or not at all."""
        await self._silence.wait()
        if self._dead:
            raise ConnectionResetError

    async def _set_out(self, fault: Throw) -> None:
        if fault == "unsent":
            raise ConnectionResetError
        if fault == "late":
            await asyncio.sleep(self.dice.wait())

    async def _whole(self, request: web.BaseRequest) -> web.Response:
        fault = self.dice.throw(request.method, watch=False)
        body = await request.read()
        if isinstance(fault, int):
            return _refusal(fault)
        await self._set_out(fault)
        await self._way()
        self.sends(request)
        self._note_release(request, body)
        async with self._sent(request, body) as answer:
            said = await answer.read()
        self._note(request, body, answer.status)
        if fault == "lost":
            raise ConnectionResetError
        if fault == "slow":
            await asyncio.sleep(self.dice.wait())
        await self._way()
        return web.Response(status=answer.status, body=said, headers=_carried(answer.headers))

    def _note_release(self, request: web.BaseRequest, body: bytes) -> None:
        if request.method == "PUT" and "/leases/" in request.path and request.content_type == "application/json":
            spec = json.loads(body).get("spec") or {}
            if not spec.get("holderIdentity"):
                self.releases.append(Released(request.path.rpartition("/")[2], spec.get("renewTime") or ""))

    def _note(self, request: web.BaseRequest, body: bytes, status: int) -> None:
        if request.method == "POST" and request.path.endswith("/binding") and status == 201:
            said = json.loads(body)
            self.bindings.append(Bound(said["metadata"]["uid"], request.path.split("/")[-2], said["target"]["name"]))

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        fault = self.dice.throw(request.method, watch=True)
        if isinstance(fault, int):
            return _refusal(fault)
        await self._set_out(fault)
        async with asyncio.timeout(self.dice.wait() if fault == "cut" else None), self._sent(request, b"") as answer:
            return await self._streamed(request, answer)

    async def _streamed(self, request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=_carried(answer.headers))
        await response.prepare(request)
        transport = request.transport
        assert transport is not None
        self._open.add(transport)
        try:
            async for chunk in answer.content.iter_any():
                await self._way()
                await response.write(chunk)
        finally:
            self._open.discard(transport)
        return response

    def _sent(self, request: web.BaseRequest, body: bytes) -> Any:
        return self._session.request(
            request.method,
            URL(self._upstream + request.path_qs, encoded=True),
            data=body or None,
            headers=_carried(request.headers),
            allow_redirects=False,
        )


def _abort(transport: asyncio.BaseTransport) -> None:
    """A reset, not a farewell."""
    with suppress(AttributeError):
        transport.abort()  # type: ignore[attr-defined]


def _carried(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in _HOP)


def _refusal(code: int) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    status |= {"reason": REASONS[code], "message": "bad weather"}
    headers = {"Retry-After": "1"} if code in {429, 503} else {}
    return web.Response(status=code, body=json.dumps(status), content_type="application/json", headers=headers)
