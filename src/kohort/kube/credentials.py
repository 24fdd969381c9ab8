"""Who we are to a server: fixed, read again from a file that somebody rotates, or asked of a helper program."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from kohort.kube.clock import REAL
from kohort.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kohort.kube.clock import Clock

# Kubelets replace a projected token long before it ends; a minute is how late other clients notice, too.
TOKEN_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Credential:
    """What goes with a request: headers, and a certificate with its key (PEM) for the connection."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


class Credentials(Protocol):
    """Where credentials come from."""

    async def get(self) -> Credential: ...

    async def refused(self, credential: Credential) -> bool:
        """The server answered 401 to `credential`. True if another one may now be had."""


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same for the life of the process."""

    credential: Credential = Credential()

    async def get(self) -> Credential:
        return self.credential

    async def refused(self, credential: Credential) -> bool:  # noqa: ARG002 - of Credentials
        return False


class TokenFile:
    """A token in a file, read again once a minute and when the server no longer takes it."""

    def __init__(self, path: Path, base: Credential = Credential(), clock: Clock = REAL) -> None:  # noqa: B008 - frozen
        self._path = path
        self._base = base
        self._clock = clock
        self._read_at = 0.0
        self._current: Credential | None = None

    async def get(self) -> Credential:
        if self._current is None or self._clock.monotonic() - self._read_at >= TOKEN_SECONDS:
            self._read()
        assert self._current is not None
        return self._current

    async def refused(self, credential: Credential) -> bool:
        self._read()
        return self._current != credential

    def _read(self) -> None:
        self._read_at = self._clock.monotonic()
        try:
            token = self._path.read_text().strip()
        except OSError as error:
            # While the file is being replaced the old token still works; only a first read has nothing to fall back to.
            if self._current is None:
                raise ConfigError(f"{self._path}: cannot read the token: {error.strerror}") from None
            return
        if token:
            headers = {**self._base.headers, **bearer(token)}
            self._current = Credential(headers, self._base.certificate, self._base.key)
        elif self._current is None:
            raise ConfigError(f"{self._path}: the file is empty, accepted is a bearer token")
