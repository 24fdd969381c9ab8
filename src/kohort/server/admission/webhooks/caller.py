"""One question to one webhook over HTTPS."""

from __future__ import annotations

import asyncio
import posixpath
import ssl
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from kohort.server.admission.webhooks.review import WebhookCallError
from kohort.server.codec import encode

if TYPE_CHECKING:
    import aiohttp

    from kohort.server.admission.webhooks.matching import Hook
    from kohort.server.auth.lister import Lister

_LARGEST: Final = 16 * 1024 * 1024  # bytes of an answer
_HEADERS: Final = {"content-type": "application/json", "accept": "application/json, */*", "user-agent": "kohort"}

# Namespace, name and port of a Service -> host and port where it can be reached from here. LookupError: why not.
Resolver = Callable[[str, str, int], tuple[str, int]]
CallWebhook = Callable[["Hook", dict[str, Any]], Awaitable[bytes]]


_LOOPBACK: Final = (
    " (here a Service leads to its target port on the server's own machine: run the operator there, or delete its "
    "webhook configuration)"
)


class _Address(NamedTuple):
    """`url` is called. `server`: whom the certificate has to be for, if not the URL's host; `shown`: in messages."""

    url: str
    server: str = ""
    shown: str = ""


class WebhookClient:
    """Keeps connections. The time-out of a call is the webhook's own."""

    def __init__(self, resolve: Resolver) -> None:
        self._resolve = resolve
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def call(self, hook: Hook, review: dict[str, Any]) -> bytes:
        """The body of the answer; WebhookCallError if there is none."""
        return await self.send(hook, encode(review))

    async def send(self, hook: Hook, review: bytes) -> bytes:
        from aiohttp import ClientError

        to = _Address("")
        try:
            to = self._address(hook)
            async with asyncio.timeout(hook.timeout):
                return await self._post(to, hook, review)
        except TimeoutError:
            raise WebhookCallError(f'Post "{to.shown or to.url}": context deadline exceeded') from None
        except LookupError as error:
            raise WebhookCallError(str(error)) from None
        except (ClientError, OSError, ValueError) as error:
            raise WebhookCallError(f'Post "{to.shown or to.url}": {_told(error, to)}') from None

    async def _post(self, to: _Address, hook: Hook, review: bytes) -> bytes:
        if self._session is None:
            from aiohttp import ClientSession, ClientTimeout

            self._session = ClientSession(timeout=ClientTimeout(total=None), trust_env=False)
        context = await self._context((hook.spec.get("clientConfig") or {}).get("caBundle") or "")
        async with self._session.post(
            to.url,
            data=review,
            headers=_HEADERS,
            ssl=context,
            server_hostname=to.server or None,
            allow_redirects=False,
        ) as answer:
            body = await answer.content.read(_LARGEST + 1)
            while len(body) <= _LARGEST and not answer.content.at_eof():
                body += await answer.content.read(_LARGEST + 1 - len(body))
            if len(body) > _LARGEST:
                raise WebhookCallError(f"the answer is larger than {_LARGEST} bytes")
            if answer.status != 200:
                text = f'an error on the server ("{body[:200].decode(errors="replace") or "unknown"}", {answer.status})'
                raise WebhookCallError(f"{text} has prevented the request from succeeding")
            return body

    def _address(self, hook: Hook) -> _Address:
        config = hook.spec.get("clientConfig") or {}
        timeout = f"timeout={hook.timeout}s"
        service = config.get("service")
        if service is None:
            url = str(config.get("url") or "")
            parts = urlsplit(url)
            if parts.scheme != "https":
                raise LookupError(f'Post "{url}": only https is called')
            query = "&".join(filter(None, (parts.query, timeout)))
            return _Address(urlunsplit((parts.scheme, parts.netloc, _clean(parts.path), query, "")))
        namespace, name = str(service.get("namespace") or ""), str(service.get("name") or "")
        wanted = int(service.get("port") or 443)
        path = _clean(str(service.get("path") or ""))
        shown = f"https://{name}.{namespace}.svc:{wanted}{path}?{timeout}"
        try:
            host, port = self._resolve(namespace, name, wanted)
        except LookupError as error:
            raise LookupError(f'Post "{shown}": {error.args[0]}') from None
        host = f"[{host}]" if ":" in host else host
        return _Address(f"https://{host}:{port}{path}?{timeout}", f"{name}.{namespace}.svc", shown)

    async def _context(self, bundle: str) -> ssl.SSLContext:
        """What the webhook's certificate has to be signed by: its bundle, or what this machine trusts, which takes some
        50 ms to read."""
        found = self._contexts.get(bundle)
        if found is None:
            if len(self._contexts) > 256:
                self._contexts.clear()
            pem = b64decode(bundle).decode() if bundle else None
            found = await asyncio.to_thread(ssl.create_default_context, cadata=pem)
            # Tools that make webhook certificates are not as thorough as OpenSSL's strict mode asks.
            found.verify_flags &= ~ssl.VERIFY_X509_STRICT
            # As in Go, whatever is in the bundle is trusted, also if it is the webhook's own certificate (envtest).
            found.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            self._contexts[bundle] = found
        return found

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def _told(error: Exception, to: _Address) -> str:
    """In Go's words where nobody listens, which people search for."""
    cause = getattr(error, "os_error", error)
    if not isinstance(cause, ConnectionRefusedError):
        return str(error) or type(error).__name__
    parts = urlsplit(to.url)
    return f"dial tcp {parts.netloc}: connect: connection refused" + (_LOOPBACK if _is_here(to) else "")


def _is_here(to: _Address) -> bool:
    return bool(to.server) and urlsplit(to.url).hostname == "127.0.0.1"


def _clean(path: str) -> str:
    """As client-go joins it: without double slashes, dots and a slash at the end (envtest's URLs have two)."""
    return posixpath.normpath("/" + path.lstrip("/"))


def local_services(lister: Lister) -> Resolver:
    """There is no cluster network: a Service leads to its target port on loopback, where an operator under
    development listens; one of type ExternalName leads to its name."""

    def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        service = lister.get("", "services", namespace, name)
        if service is None:
            raise LookupError(f'service "{name}" not found')
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return str(spec.get("externalName")), port
        found = next((one for one in spec.get("ports") or () if one.get("port") == port), None)
        if found is None:
            raise LookupError(f'no service port {port} found for service "{name}"')
        aim = found.get("targetPort") or port
        if not isinstance(aim, int):
            raise LookupError(
                f'service "{name}": targetPort {aim!r} is a name, which only pods have; a number is a port of 127.0.0.1'
            )
        return "127.0.0.1", aim

    return resolve
