"""Tokens that do not end: the administrator's, the read-only one, and any other user a data folder is given."""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING, Any

import msgspec

from kohort.kube.wire import User
from kohort.server.auth import private, users

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEFAULT: Mapping[str, User] = {"admin": users.ADMIN, "viewer": users.VIEWER}


class StaticTokens:
    """Token -> user, for a handful of tokens."""

    def __init__(self, known: Mapping[str, User]) -> None:
        self._known = tuple((token.encode(), users.authenticated(user)) for token, user in known.items())

    def user(self, token: str) -> User | None:
        """Every token is compared, each in constant time, so that how long it takes says nothing."""
        given, found = token.encode(), None
        for known, user in self._known:
            if hmac.compare_digest(known, given):
                found = user
        return found


def ensure(path: Path, wanted: Mapping[str, User] = DEFAULT) -> dict[str, str]:
    """The tokens of a data folder by name (0600); those that are wanted and missing are drawn."""
    known = _read(path)
    missing = [
        name
        for name, user in wanted.items()
        if known.get(name, {}).get("user") != user.name or not known[name].get("token")
    ]
    for name in missing:
        known[name] = {"token": secrets.token_urlsafe(32), "user": wanted[name].name}
    if missing:
        private.write(path, msgspec.json.format(msgspec.json.encode(known)) + b"\n")
    return {name: known[name]["token"] for name in wanted}


def load(path: Path, wanted: Mapping[str, User] = DEFAULT) -> StaticTokens:
    given = ensure(path, wanted)
    return StaticTokens({token: wanted[name] for name, token in given.items()})


def _read(path: Path) -> dict[str, dict[str, Any]]:
    content = private.read(path)
    if content is None:
        return {}
    try:
        return msgspec.json.decode(content, type=dict[str, dict[str, str]])
    except msgspec.DecodeError as error:
        raise private.FileError(
            f"{path}: not a file of tokens ({error}); remove it, and new tokens are drawn at the next start"
        ) from None
