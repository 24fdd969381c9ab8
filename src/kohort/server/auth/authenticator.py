"""From what a request shows to who sent it: a client certificate, a bearer token, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from kohort.kube.wire import User
from kohort.server.auth import users
from kohort.server.auth.jwt import TokenError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kohort.server.auth.serviceaccounts import ServiceAccountTokens
    from kohort.server.auth.tokens import StaticTokens

_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_CERTIFICATES = 1024  # remembered users of certificates
_INVALID = "invalid bearer token"


class Authenticator:
    """`anonymous`: whether a request without credentials is somebody, or nobody."""

    def __init__(
        self,
        static: StaticTokens,
        accounts: ServiceAccountTokens | None = None,
        *,
        anonymous: bool = True,
    ) -> None:
        self._static, self.accounts, self._anonymous = static, accounts, anonymous
        self._certificates: dict[bytes, User | None] = {}

    def user(self, headers: Mapping[str, str], peer: bytes | None = None) -> User | None:
        """None: the credentials are not good (401). `peer`: the client's certificate (DER), its chain already checked.

        A certificate counts before a token. A token that is not good is an error, and not the same as none.
        """
        if peer is not None:
            found = self._certificate(peer)
            if found is not None:
                return found
        token = bearer(headers.get("authorization"))
        if token is None:
            return users.ANONYMOUS if self._anonymous else None
        try:
            return self.token(token)[0]
        except TokenError:
            return None

    def token(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, tuple[str, ...]]:
        """Whose token, and for which of these audiences; TokenError says why not."""
        own = self.accounts.audiences if self.accounts is not None else ()
        found = self._static.user(token)
        if found is not None:
            fitting = tuple(one for one in audiences or own if one in own)
            if audiences and not fitting:
                raise TokenError(_INVALID)
            return found, fitting
        if self.accounts is None or not self.accounts.ours(token):
            raise TokenError(_INVALID)
        try:
            return self.accounts.user(token, audiences)
        except TokenError as error:
            raise TokenError(f"[{_INVALID}, {error}]") from None

    def _certificate(self, der: bytes) -> User | None:
        if der not in self._certificates:
            if len(self._certificates) >= _CERTIFICATES:
                self._certificates.clear()
            self._certificates[der] = certificate_user(der)
        return self._certificates[der]


def bearer(header: str | None) -> str | None:
    """The token of an Authorization header; None where there is none, or another scheme."""
    scheme, _, token = (header or "").strip().partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token else None


def certificate_user(der: bytes) -> User | None:
    """Common name: the user; organisations: the groups. None without a common name."""
    certificate = x509.load_der_x509_certificate(der)
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if not names or not names[0].value:
        return None
    groups = [str(one.value) for one in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    digest = certificate.fingerprint(hashes.SHA256()).hex()
    extra = {_CREDENTIAL: (f"X509SHA256={digest}",)}
    return users.authenticated(User(str(names[0].value), "", tuple(groups), extra))
