"""The server's certificates: a certificate authority of its own for every data folder, and what it signs.

The authority stays for ten years, so that a kubeconfig keeps working; the server's certificate is renewed on a start
within thirty days of its end, or when it lacks a name. Clients may show a certificate of the same authority (common
name: user, organisations: groups), they need not.
"""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kohort.certificates import Pair, alternative_name, is_signed_by, new_authority, read_pair, sign
from kohort.server.auth import private

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

log = logging.getLogger(__name__)
# What clients on this machine call the server, and what a pod would.
NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
)
_AUTHORITY_LIFE: Final = timedelta(days=3650)
_LIFE: Final = timedelta(days=365)
_RENEW: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Pki:
    """What `ensure` found or made, and the files it is in."""

    folder: Path
    authority: Pair
    server: Pair

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def ca_pem(self) -> bytes:
        return self.authority.certificate_pem

    def client(self, user: str, groups: Sequence[str] = (), *, now: datetime, life: timedelta = _LIFE) -> Pair:
        """A certificate for a user. Not kept: whoever asks for it keeps it."""
        name = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        name.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return sign(self.authority, x509.Name(name), now, life, ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def server_context(self) -> ssl.SSLContext:
        """For listening."""
        return listening(self.folder / "server.crt", self.folder / "server.key", self.ca_file)


def listening(certificate: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    """TLS 1.2 or newer; a client's certificate is checked if it shows one. FileError names what does not serve."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise private.FileError(f"{certificate}, {key}: not a certificate and its key ({error})") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (ssl.SSLError, OSError) as error:
            raise private.FileError(f"{client_ca}: not certificates of an authority ({error})") from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def ensure(folder: Path, *, now: datetime | None = None, names: Iterable[str] = ()) -> Pki:
    """The certificates of a data folder: as they are if they still serve, else made or renewed.

    `names`: more host names and addresses that clients use, beside those of loopback.
    """
    moment = now or datetime.now(UTC)
    wanted = (*NAMES, *(name for name in names if name not in NAMES))
    authority = _load(folder, "ca")
    if authority is not None and moment < authority.certificate.not_valid_before_utc:
        # A new one would shut out every client that has the old one, also when the clock is right again.
        log.warning("%s is not valid yet: is the clock of this machine behind?", folder / "ca.crt")
    if authority is None or authority.certificate.not_valid_after_utc <= moment + _RENEW:
        if authority is not None:
            log.warning("%s has come to its end: clients need the new one", folder / "ca.crt")
        authority = new_authority("kohort-ca", moment, _AUTHORITY_LIFE)
        _save(folder, "ca", authority)
    server = _load(folder, "server")
    if server is None or not _serves(server.certificate, authority.certificate, moment, wanted):
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kohort")])
        server = sign(authority, subject, moment, _LIFE, ExtendedKeyUsageOID.SERVER_AUTH, wanted)
        _save(folder, "server", server)
    return Pki(folder, authority, server)


# ---- files


def _load(folder: Path, name: str) -> Pair | None:
    """None where a file is missing; a pair of which one half was lost is made anew."""
    certificate, key = private.read(folder / f"{name}.crt"), private.read(folder / f"{name}.key")
    if certificate is None or key is None:
        return None
    try:
        return read_pair(certificate, key)
    except ValueError as error:
        raise private.FileError(
            f"{folder / name}.crt, .key: not a certificate and its key ({error}); remove both"
        ) from None


def _save(folder: Path, name: str, pair: Pair) -> None:
    private.write(folder / f"{name}.key", pair.key_pem)
    private.write(folder / f"{name}.crt", pair.certificate_pem)


# ---- whether one still serves


def _lasts(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now and now + _RENEW < certificate.not_valid_after_utc


def _serves(certificate: x509.Certificate, authority: x509.Certificate, now: datetime, names: Iterable[str]) -> bool:
    if not _lasts(certificate, now):
        return False
    if not is_signed_by(certificate, authority):
        return False
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return all(alternative_name(name) in extension for name in names)
