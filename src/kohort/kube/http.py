"""The HTTPS way to an API server: kept connections, trust, credentials that change, polite retries."""

from __future__ import annotations

import asyncio
import os
import random
import re
import ssl
import tempfile
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode, urlsplit

from kohort.kube.clock import REAL
from kohort.kube.connections import REPEATABLE, Connections
from kohort.kube.errors import ConfigError, TransportError
from kohort.kube.http1 import BadAnswerError
from kohort.kube.proxies import is_here
from kohort.kube.resumption import ResumingContext
from kohort.kube.wire import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from kohort.kube.clock import Clock
    from kohort.kube.config import Config
    from kohort.kube.credentials import Credential
    from kohort.kube.streams import Stream
    from kohort.kube.wire import Request

CONNECTIONS: Final = 64
_HEAD_SECONDS: Final = 30.0
_RETRIES: Final = 5
_LONGEST_WAIT: Final = 30.0
_PLAIN: Final = re.compile(r"[A-Za-z0-9/._:~-]*").fullmatch  # a path that is the same in a URL


class Http:
    """A `Transport` to one server as one user. Requests share a bounded pool; each stream has its own connection."""

    def __init__(
        self,
        config: Config,
        *,
        connections: int = CONNECTIONS,
        agent: str = "kohort",
        clock: Clock = REAL,
        jitter: random.Random | None = None,
    ) -> None:
        self._config = config
        self._connections = connections
        self._agent = agent
        self._clock = clock
        self._jitter = jitter or random.Random()
        self._pool: Connections | None = None
        self._context: ssl.SSLContext | bool = False
        self._certificate: tuple[bytes, bytes] = (b"", b"")
        self._old: list[Connections] = []
        self._closed = False

    async def request(self, request: Request, *, timeout: float, again: bool = True) -> Response:
        end = self._clock.monotonic() + timeout
        for attempt in range(1, _RETRIES + 1):
            response = await self._authorised(request, max(0.001, end - self._clock.monotonic()))
            wait = self._pause(request, response) if again and attempt < _RETRIES else None
            if wait is None or self._clock.monotonic() + wait >= end:
                break
            await self._clock.sleep(wait)
        return response

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float) -> AsyncGenerator[Response]:
        async with AsyncExitStack() as stack:
            stream = await self._begin(request, stack)
            async with aclosing(_chunks(stream, timeout, self._what(request))) as chunks:
                yield Response(stream.status, stream.headers, chunks)

    async def close(self) -> None:
        """For good: who asks later, or is still asking, gets a TransportError."""
        self._closed = True
        pools = [one for one in (self._pool, *self._old) if one is not None]
        self._pool, self._old = None, []
        for pool in pools:
            await pool.close()

    # ---- inside

    async def _begin(self, request: Request, stack: AsyncExitStack) -> Stream:
        """A stream whose head is there."""
        credential = await self._config.credentials.get()
        stream = await self._send(request, credential, stack)
        if stream.status == 401 and await self._config.credentials.refused(credential):
            await stack.aclose()
            stream = await self._send(request, await self._config.credentials.get(), stack)
        return stream

    async def _authorised(self, request: Request, seconds: float) -> Response:
        """One answer; a second try if the server no longer takes the credential and there is a newer one."""
        credential = await self._config.credentials.get()
        response = await self._whole(request, credential, seconds)
        if response.status == 401 and await self._config.credentials.refused(credential):
            response = await self._whole(request, await self._config.credentials.get(), seconds)
        return response

    async def _whole(self, request: Request, credential: Credential, seconds: float) -> Response:
        headers = {**request.headers, **credential.headers}
        try:
            pool = await self._connected(credential)
            return await pool.ask(request.method, _target(request), headers, request.body, seconds)
        except (TransportError, TimeoutError, OSError) as error:
            raise TransportError(f"{self._what(request)}: {_said(error)}") from error

    async def _send(self, request: Request, credential: Credential, stack: AsyncExitStack) -> Stream:
        headers = {**request.headers, **credential.headers}
        try:
            pool = await self._connected(credential)
            beginning = pool.stream(request.method, _target(request), headers, request.body, _HEAD_SECONDS)
            return await stack.enter_async_context(beginning)
        except (TransportError, TimeoutError, OSError, BadAnswerError) as error:
            raise TransportError(f"{self._what(request)}: {_said(error)}") from error

    def _pause(self, request: Request, response: Response) -> float | None:
        """Seconds until this request may be sent again; None if it should not be."""
        said = retry_after(response)
        # A refusal to work now. The server has done nothing after 429; after 503 it may have.
        refused = response.status == 429 or (response.status == 503 and request.method in REPEATABLE)
        if not refused or said is None:
            return None
        # A little later than told, so that those who were refused together do not come back together.
        return min(said, _LONGEST_WAIT) * (1 + self._jitter.random() / 4)

    async def _connected(self, credential: Credential) -> Connections:
        if self._closed:
            raise TransportError("the client is closed")
        certificate = (credential.certificate, credential.key)
        if self._pool is None or certificate != self._certificate:
            # Connections made with the old certificate end their work while new ones are made with the new certificate.
            self._context = tls(self._config, credential)
            ended, self._certificate = self._old, certificate
            self._old = [self._pool] if self._pool is not None else []
            if self._pool is not None:
                self._pool.retire()
            pool = self._pool = self._requests(self._context)
            for one in ended:
                await one.close()
            return pool
        return self._pool

    def _requests(self, context: ssl.SSLContext | bool) -> Connections:
        config = self._config
        return Connections(
            config.server,
            context,
            limit=self._connections,
            name=config.tls_server_name,
            headers=self._headers(),
            proxy=config.proxy,
        )

    def _headers(self) -> dict[str, str]:
        # Compressing what never leaves the machine costs both sides and saves nobody anything.
        wanted = self._config.compress and not is_here(urlsplit(self._config.server).hostname or "")
        encoding = "gzip, deflate" if wanted else "identity"
        return {"user-agent": self._agent, "accept-encoding": encoding}

    def _what(self, request: Request) -> str:
        return f"{request.method} {self._config.server}{request.path}"


def _target(request: Request) -> str:
    """Path and query as they travel."""
    path = request.path if _PLAIN(request.path) else quote(request.path, safe="/:@!$&'()*+,;=~")
    return f"{path}?{urlencode(request.query, doseq=True)}" if request.query else path


def retry_after(response: Response) -> float | None:
    """The server's Retry-After in seconds, if it gave one that can be read."""
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def tls(config: Config, credential: Credential) -> ssl.SSLContext | bool:
    """Whom we trust and how we show who we are."""
    if urlsplit(config.server).scheme == "http":
        return False
    try:
        context = ResumingContext.trusting(config.ca.decode() if config.ca else None)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{config.context or config.server}: certificate-authority: {error}") from None
    # The certificates that Kubernetes makes for itself are too plain for the strict mode of newer Pythons.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Go: whatever is named is trusted, no root is needed
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credential.certificate:
        _load_pair(context, config, credential)
    return context


def _load_pair(context: ssl.SSLContext, config: Config, credential: Credential) -> None:
    """OpenSSL reads a key from a file only: one that nobody else can read, for the moment of reading."""
    handle, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(credential.certificate.rstrip() + b"\n" + credential.key)
        context.load_cert_chain(name, password=lambda: b"")
    except (ssl.SSLError, OSError) as error:
        place = f"{config.context or config.server}: client-certificate, client-key"
        raise ConfigError(f"{place}: {error}; accepted are a certificate and its key without a password, PEM") from None
    finally:
        os.unlink(name)  # noqa: PTH108 - the name as mkstemp gave it


async def _chunks(stream: Stream, seconds: float, what: str) -> AsyncGenerator[bytes]:
    async with aclosing(stream.chunks(seconds)) as chunks:
        try:
            async for chunk in chunks:
                yield chunk
                del chunk  # it may be long until there is another
        except TransportError as error:
            raise TransportError(f"{what}: {error}") from error


def _said(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
