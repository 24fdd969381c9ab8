"""Signed claims (JWT, RFC 7519) with one elliptic curve key per data folder: ES256 and nothing else."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kohort.server.auth import private

if TYPE_CHECKING:
    from pathlib import Path

_HALF = 32  # bytes of a number on P-256
_HASH = ec.ECDSA(hashes.SHA256())

Claims = dict[str, Any]


class TokenError(Exception):
    """Why a token does not count."""


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    if not text.isascii() or any(character in "+/= \n\r\t" for character in text):
        raise TokenError("not base64url")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise TokenError("not base64url") from None


def _mapping(text: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(_decode(text))
    except (msgspec.DecodeError, RecursionError):  # anybody may send anything
        raise TokenError("not JSON") from None
    if not isinstance(value, dict):
        raise TokenError("not a JSON object")
    return value


def peek(token: str) -> Claims | None:
    """The claims of anything that looks like a JWT, unverified; None for other tokens."""
    parts = token.split(".")
    try:
        return _mapping(parts[1]) if len(parts) == 3 else None
    except TokenError:
        return None


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Signs and verifies. `id` is the hash of the public key, as other servers name theirs."""

    key: ec.EllipticCurvePrivateKey
    id: str

    @classmethod
    def of(cls, key: ec.EllipticCurvePrivateKey) -> SigningKey:
        public = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return cls(key, _encode(hashlib.sha256(public).digest()))

    @classmethod
    def make(cls) -> SigningKey:
        return cls.of(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def ensure(cls, path: Path) -> SigningKey:
        """The key of a data folder, made at first (0600)."""
        content = private.read(path)
        if content is not None:
            return cls.loaded(content, path)
        made = cls.make()
        # Go's tools (a controller manager that signs tokens too) read this form as well.
        form = serialization.PrivateFormat.TraditionalOpenSSL
        private.write(path, made.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        return made

    @classmethod
    def loaded(cls, content: bytes, path: Path) -> SigningKey:
        """From the content of a file; FileError if it is not a key that signs tokens here."""
        try:
            loaded = serialization.load_pem_private_key(content, None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise private.FileError(
                f"{path}: not a private key ({error}); remove it, and tokens given out end"
            ) from None
        if not isinstance(loaded, ec.EllipticCurvePrivateKey) or not isinstance(loaded.curve, ec.SECP256R1):
            raise private.FileError(
                f"{path}: the key is not an elliptic curve key on P-256, which is what signs tokens here"
            )
        return cls.of(loaded)

    def sign(self, claims: Claims) -> str:
        head = _encode(msgspec.json.encode({"alg": "ES256", "kid": self.id}))
        signed = f"{head}.{_encode(msgspec.json.encode(claims, order='sorted'))}"
        first, second = decode_dss_signature(self.key.sign(signed.encode(), _HASH))
        return f"{signed}.{_encode(first.to_bytes(_HALF, 'big') + second.to_bytes(_HALF, 'big'))}"

    def verify(self, token: str) -> Claims:
        """The claims, if this key signed them."""
        parts = token.split(".")
        if len(parts) != 3:
            raise TokenError("a token of this kind has three parts")
        head, signature = _mapping(parts[0]), _decode(parts[2])
        if head.get("alg") != "ES256":
            raise TokenError("the algorithm is not ES256")
        if len(signature) != 2 * _HALF or _encode(signature) != parts[2]:
            raise TokenError("the signature is malformed")
        numbers = (int.from_bytes(signature[:_HALF], "big"), int.from_bytes(signature[_HALF:], "big"))
        try:
            self.key.public_key().verify(encode_dss_signature(*numbers), f"{parts[0]}.{parts[1]}".encode(), _HASH)
        except InvalidSignature:
            raise TokenError("the signature does not match") from None
        return _mapping(parts[1])

    def jwks(self) -> dict[str, Any]:
        """The public key as others read it (/openid/v1/jwks)."""
        numbers = self.key.public_key().public_numbers()
        point = {"x": _encode(numbers.x.to_bytes(_HALF, "big")), "y": _encode(numbers.y.to_bytes(_HALF, "big"))}
        return {"keys": [{"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256", **point}]}


def openid_configuration(issuer: str, url: str) -> dict[str, Any]:
    """/.well-known/openid-configuration"""
    return {
        "issuer": issuer,
        "jwks_uri": f"{url}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
