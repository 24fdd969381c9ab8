"""A test's API behind a real socket, so that what aiohttp does with cuts, pools and certificates is tested."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kohort.kube.errors import TransportError
from kohort.kube.wire import Request


@asynccontextmanager
async def served(api: Any, context: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[str]:
    """The URL under which `api` answers. A TransportError raised by it cuts the connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        query = {name: request.query.getall(name) for name in request.query}
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert request.transport is not None
        try:
            found = await api.handle(Request(request.method, request.path, query, headers, await request.read()))
            if isinstance(found.body, bytes):
                return web.Response(status=found.status, headers=found.headers, body=found.body)
            response = web.StreamResponse(status=found.status, headers=found.headers)
            await response.prepare(request)
            async for chunk in found.body:
                await response.write(chunk)
        except TransportError:
            request.transport.abort()
            return web.Response()
        except (ConnectionResetError, asyncio.CancelledError):
            return web.Response()
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


class Authority:
    """Makes certificates."""

    def __init__(self, name: str = "test authority") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key.public_key(), authority=True)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, *, server: bool = False) -> tuple[bytes, bytes]:
        """Certificate and key, PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        found = self._sign(subject, key.public_key(), names=(name,) if server else ())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return found.public_bytes(serialization.Encoding.PEM), private

    def _sign(self, subject: x509.Name, key: Any, *, authority: bool = False, names: tuple[str, ...] = ()) -> Any:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if names:
            alternatives = [x509.IPAddress(ip_address(one)) if one[0].isdigit() else x509.DNSName(one) for one in names]
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(self.key, hashes.SHA256())
