"""When certificates of the webhook are made anew, and in which order, so that nobody meets one that is not trusted.

Authority and serving certificate are in one Secret that all processes share; whoever sees first that a step is due
takes it, and the API server lets one of two win. An authority is replaced in three steps: the new one is trusted beside
the old one (caBundle has both); minutes later, when every API server has read that, the serving certificate is signed
by it; the old one is dropped when it has ended. Pure: the Secret and the moment are given.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kohort.certificates import (
    BACKDATED,
    Pair,
    alternative_name,
    is_signed_by,
    new_authority,
    read_certificates,
    read_pair,
    sign,
)

CERTIFICATE, KEY, BUNDLE, AUTHORITY_KEY = "tls.crt", "tls.key", "ca.crt", "ca.key"
AUTHORITY_LIFE: Final = timedelta(days=3650)
LIFE: Final = timedelta(days=365)
_SPREAD: Final = timedelta(minutes=5)  # until every API server trusts a new authority
_NAME: Final = "kohort-webhook-ca"


@dataclass(frozen=True, slots=True)
class Lives:
    """How long they last; renewed when a third of that is left."""

    authority: timedelta = AUTHORITY_LIFE
    serving: timedelta = LIFE
    spread: timedelta = _SPREAD


@dataclass(frozen=True, slots=True)
class Keys:
    """What the Secret has. `trusted`: all authorities, the newest first; `authority`: the one that signs."""

    trusted: tuple[x509.Certificate, ...] = ()
    authority: Pair | None = None
    serving: Pair | None = None

    @property
    def bundle(self) -> bytes:
        return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in self.trusted)


def read(data: Mapping[str, str] | None) -> Keys:
    """From `data` of the Secret. What cannot be read is taken for missing: it is made anew."""
    parts = {name: _decoded(text) for name, text in (data or {}).items()}
    trusted = read_certificates(parts.get(BUNDLE, b""))
    authority = _pair(parts.get(BUNDLE, b""), parts.get(AUTHORITY_KEY, b""))
    return Keys(trusted, authority, _pair(parts.get(CERTIFICATE, b""), parts.get(KEY, b"")))


def write(keys: Keys) -> dict[str, str]:
    assert keys.authority is not None
    assert keys.serving is not None
    parts = {
        CERTIFICATE: keys.serving.certificate_pem,
        KEY: keys.serving.key_pem,
        BUNDLE: keys.bundle,
        AUTHORITY_KEY: keys.authority.key_pem,
    }
    return {name: b64encode(value).decode() for name, value in parts.items()}


def due(keys: Keys, names: Sequence[str], now: datetime, lives: Lives | None = None) -> Keys | None:
    """The Secret as it should be; None: as it is."""
    chosen = lives or Lives()
    trusted = tuple(one for one in keys.trusted if one.not_valid_after_utc > now)
    authority, serving = keys.authority, keys.serving
    if authority is None or not _lasts(authority.certificate, now, chosen.authority):
        authority = new_authority(_NAME, now, chosen.authority)
        trusted = (authority.certificate, *trusted)
    if serving is None or not _serves(serving.certificate, trusted, names, now):
        serving = _signed(authority, names, now, chosen)  # nobody can use what there is: nothing to wait for
    elif _made(authority.certificate) + chosen.spread <= now and (
        not _lasts(serving.certificate, now, chosen.serving)
        or not is_signed_by(serving.certificate, authority.certificate)
    ):
        serving = _signed(authority, names, now, chosen)
    made = Keys(trusted, authority, serving)
    return None if made == keys else made


def _made(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + BACKDATED


def _lasts(certificate: x509.Certificate, now: datetime, life: timedelta) -> bool:
    return certificate.not_valid_before_utc <= now and now + life / 3 < certificate.not_valid_after_utc


def _serves(
    certificate: x509.Certificate, trusted: Sequence[x509.Certificate], names: Sequence[str], now: datetime
) -> bool:
    """Whether an API server that trusts these, and asks for one of these names, would talk to it."""
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc:
        return False
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return all(alternative_name(name) in extension for name in names) and any(
        is_signed_by(certificate, one) for one in trusted
    )


def _signed(authority: Pair, names: Sequence[str], now: datetime, lives: Lives) -> Pair:
    """Not beyond the end of who signs it."""
    life = min(lives.serving, authority.certificate.not_valid_after_utc - now)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    return sign(authority, subject, now, life, ExtendedKeyUsageOID.SERVER_AUTH, names)


def _pair(certificate: bytes, key: bytes) -> Pair | None:
    try:
        return read_pair(certificate, key) if certificate and key else None
    except ValueError:
        return None


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""
