"""What a server listens with and knows its callers by: its own data folder's, or files that somebody else made."""

from __future__ import annotations

import base64
import csv
import json
import logging
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kohort.kube.wire import User
from kohort.server.auth import private, tls, tokens
from kohort.server.auth.jwt import SigningKey
from kohort.server.auth.serviceaccounts import ISSUER
from kohort.server.auth.tokens import StaticTokens

if TYPE_CHECKING:
    from pathlib import Path


log = logging.getLogger(__name__)
_COLUMNS: Final = 3  # of a token file: token, user, uid; a fourth has the groups


@dataclass(frozen=True, slots=True)
class Credentials:
    """`pki` and `token` (the administrator's) only where they are our own."""

    context: ssl.SSLContext
    static: StaticTokens
    key: SigningKey
    issuer: str = ISSUER
    audiences: tuple[str, ...] = ()
    pki: tls.Pki | None = None
    token: str = ""


@dataclass(frozen=True, slots=True)
class CredentialFiles:
    """Files that somebody else made, named as kube-apiserver's flags name them."""

    tls_cert_file: Path
    tls_private_key_file: Path
    client_ca_file: Path | None = None
    token_auth_file: Path | None = None
    service_account_signing_key_file: Path | None = None
    issuer: str = ISSUER
    audiences: tuple[str, ...] = ()

    def load(self) -> Credentials:
        """FileError names the file that does not serve."""
        context = tls.listening(self.tls_cert_file, self.tls_private_key_file, self.client_ca_file)
        path = self.token_auth_file
        static = StaticTokens({} if path is None else _token_file(path))
        key = _signing_key(self.service_account_signing_key_file)
        return Credentials(context, static, key, self.issuer, self.audiences)


def own(folder: Path, host: str) -> Credentials:
    """Those of a data folder, made where they are missing."""
    pki = tls.ensure(folder / "pki", names=[host])
    given = tokens.ensure(folder / "tokens.json")
    key = SigningKey.ensure(folder / "pki" / "sa.key")
    static = tokens.load(folder / "tokens.json")
    return Credentials(pki.server_context(), static, key, pki=pki, token=given["admin"])


def _signing_key(path: Path | None) -> SigningKey:
    """Tests make keys of several sorts, and rarely sign with them: one that we cannot sign with is not their end."""
    if path is None:
        return SigningKey.make()
    content = path.read_bytes()
    try:
        return SigningKey.loaded(content, path)
    except private.FileError as error:
        log.warning("%s; tokens of service accounts are signed with another key", error)
        return SigningKey.make()


def _token_file(path: Path) -> dict[str, User]:
    """--token-auth-file: a line of token, user, uid and, quoted, the groups."""
    found = {}
    for number, row in enumerate(csv.reader(path.read_text().splitlines(), skipinitialspace=True), 1):
        if not row:
            continue
        if len(row) < _COLUMNS or not row[0]:
            raise private.FileError(f'{path}, line {number}: expected token,user,uid and perhaps "group1,group2"')
        groups = tuple(one.strip() for one in row[_COLUMNS].split(",")) if len(row) > _COLUMNS and row[_COLUMNS] else ()
        found[row[0]] = User(row[1], row[2], groups)
    return found


def write_kubeconfig(path: Path, *, url: str, authority: bytes | None, token: str, name: str = "kohort") -> None:
    """The file that points clients at a server. By hand: a library for YAML would take longer to load."""
    trust = f"\n    certificate-authority-data: {base64.b64encode(authority).decode()}" if authority is not None else ""
    user = f"\n    token: {json.dumps(token)}" if token else " {}"
    text = f"""apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {json.dumps(url)}{trust}
users:
- name: {name}
  user:{user}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {name}
current-context: {name}
"""
    private.write(path, text.encode())
