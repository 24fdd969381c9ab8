"""Certificates: made once, private, trusted by strict clients, renewed in time."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from kohort.server.auth import tls
from kohort.server.auth.authenticator import certificate_user

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def names(pki: tls.Pki) -> set[str]:
    found = pki.server.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(one.value) for one in found}


def test_files_are_private_and_reused(tmp_path: Path) -> None:
    first = tls.ensure(tmp_path / "pki", now=NOW)
    assert sorted(file.name for file in (tmp_path / "pki").iterdir()) == [
        "ca.crt",
        "ca.key",
        "server.crt",
        "server.key",
    ]
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "pki").iterdir()} == {0o600}
    assert (tmp_path / "pki").stat().st_mode & 0o777 == 0o700
    second = tls.ensure(tmp_path / "pki", now=NOW + timedelta(days=300))
    assert second.authority.certificate == first.authority.certificate
    assert second.server.certificate == first.server.certificate


def test_a_file_that_others_can_read_is_tightened(tmp_path: Path) -> None:
    tls.ensure(tmp_path, now=NOW)
    (tmp_path / "ca.key").chmod(0o644)
    tls.ensure(tmp_path, now=NOW)
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600


def test_loopback_names_are_in_the_certificate(tmp_path: Path) -> None:
    assert names(tls.ensure(tmp_path, now=NOW)) >= {"localhost", "127.0.0.1", "::1", "kubernetes.default.svc"}


@pytest.mark.parametrize(
    ("days", "more", "renewed"),
    [(0, (), False), (334, (), False), (336, (), True), (400, (), True), (0, ("box.example.org", "10.0.0.9"), True)],
)
def test_server_certificate_is_renewed_when_needed(
    tmp_path: Path, days: int, more: tuple[str, ...], renewed: bool
) -> None:
    first = tls.ensure(tmp_path, now=NOW)
    second = tls.ensure(tmp_path, now=NOW + timedelta(days=days), names=more)
    assert (second.server.certificate != first.server.certificate) is renewed
    assert second.authority.certificate == first.authority.certificate
    assert names(second) >= set(more)


def test_a_new_authority_signs_a_new_server_certificate(tmp_path: Path) -> None:
    first = tls.ensure(tmp_path, now=NOW)
    second = tls.ensure(tmp_path, now=NOW + timedelta(days=3640))
    assert second.authority.certificate != first.authority.certificate
    second.server.certificate.verify_directly_issued_by(second.authority.certificate)
    (tmp_path / "ca.key").unlink()
    third = tls.ensure(tmp_path, now=NOW + timedelta(days=3640))
    third.server.certificate.verify_directly_issued_by(third.authority.certificate)


def test_rubbish_in_a_file_is_named(tmp_path: Path) -> None:
    tls.ensure(tmp_path, now=NOW)
    (tmp_path / "ca.crt").write_text("rubbish")
    with pytest.raises(ValueError, match=r"ca\.crt, \.key: not a certificate"):
        tls.ensure(tmp_path, now=NOW)


async def _peer(pki: tls.Pki, client: ssl.SSLContext, host: str) -> bytes | None:
    """The client certificate that the server saw."""
    seen: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.set_result(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=pki.server_context())
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=host)
        await reader.read()
        writer.close()
        return await seen


def strict(pki: tls.Pki) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=pki.ca_pem.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "kubernetes.default.svc"])
async def test_a_strict_client_trusts_the_server(tmp_path: Path, host: str) -> None:
    pki = tls.ensure(tmp_path)
    assert await _peer(pki, strict(pki), host) is None


async def test_a_client_certificate_says_who_asks(tmp_path: Path) -> None:
    pki = tls.ensure(tmp_path / "pki")
    mine = pki.client("alice", ["devs", "ops"], now=datetime.now(UTC))
    pem = tmp_path / "alice.pem"
    pem.write_bytes(mine.certificate_pem + mine.key_pem)
    context = strict(pki)
    context.load_cert_chain(pem)
    der = await _peer(pki, context, "localhost")
    assert der == mine.certificate.public_bytes(serialization.Encoding.DER)
    user = certificate_user(der)
    assert user is not None
    assert (user.name, user.groups) == ("alice", ("devs", "ops", "system:authenticated"))
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


async def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    pki, other = tls.ensure(tmp_path / "a"), tls.ensure(tmp_path / "b")
    theirs = other.client("mallory", ["system:masters"], now=datetime.now(UTC))
    pem = tmp_path / "mallory.pem"
    pem.write_bytes(theirs.certificate_pem + theirs.key_pem)
    context = strict(pki)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # with 1.3 the client learns of it only when it reads
    context.load_cert_chain(pem)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await _peer(pki, context, "localhost")


async def test_the_servers_own_certificate_is_no_client_certificate(tmp_path: Path) -> None:
    pki = tls.ensure(tmp_path)
    context = strict(pki)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await _peer(pki, context, "localhost")
