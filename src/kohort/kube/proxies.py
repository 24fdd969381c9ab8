"""Which proxy stands before a server, if any: as kubectl finds it, in the kubeconfig or in the environment.

The rules of the environment are those of Go programs: HTTPS_PROXY or https_proxy (HTTP_PROXY for a server without TLS),
unless NO_PROXY names the server; never for this machine itself.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from kohort.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_ACCEPTED: Final = "accepted is a URL such as http://proxy.example.org:3128"
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HttpProxy:
    """`authorization`: the header's value, if it wants to know who asks."""

    host: str
    port: int
    authorization: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"proxy-authorization": self.authorization} if self.authorization else {}


def read(url: str) -> HttpProxy:
    """ValueError: what is accepted."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port or _PORTS["http"]
    except ValueError:
        raise ValueError(f"found {_shown(url)!r}, {_ACCEPTED}") from None
    if parts.scheme != "http" or not parts.hostname:  # TLS to the proxy and SOCKS are not spoken
        raise ValueError(f"found {_shown(url)!r}, {_ACCEPTED}")
    said = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        said = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return HttpProxy(parts.hostname, port, said)


def from_environment(server: str, env: Mapping[str, str]) -> HttpProxy | None:
    """Of a server's URL."""
    parts = urlsplit(server)
    names = ("HTTPS_PROXY", "https_proxy") if parts.scheme == "https" else ("HTTP_PROXY", "http_proxy")
    name = next((one for one in names if env.get(one)), "")
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    if not name or is_here(host) or _is_excepted(host, port, env.get("NO_PROXY") or env.get("no_proxy") or ""):
        return None
    try:
        return read(env[name])
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def _shown(url: str) -> str:
    """Without a password."""
    before, at, rest = url.rpartition("@")
    return f"{before.partition('://')[0]}://...@{rest}" if at else url


def is_here(host: str) -> bool:
    """Whether it is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_excepted(host: str, port: int, exceptions: str) -> bool:
    return any(_matches(one.strip().lower(), host.lower(), port) for one in exceptions.split(",") if one.strip())


def _matches(exception: str, host: str, port: int) -> bool:
    """An address, a range of them, or a name with all below it (behind a dot: only those); perhaps with a port."""
    with suppress(ValueError):
        return exception == "*" or ip_address(host) in ip_network(exception, strict=False)
    name, colon, wanted = exception.rpartition(":")
    if colon and wanted.isdigit():
        return int(wanted) == port and _matches(name.strip("[]"), host, port)
    exception = exception.removeprefix("*")
    return host == exception or host.endswith(f".{exception.removeprefix('.')}")
