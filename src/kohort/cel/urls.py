"""URLs, IP addresses and networks, as Go parses them."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote

from kohort.cel.functions import define, defined
from kohort.cel.types import CIDR, IP, URL
from kohort.cel.values import CelError

# ---- URLs

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ESCAPES: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+(?:%25[^\]\s]+)?\]|[^\[\]\s#@^`{|}\\/?%\x00-\x20\x7f:]|:(?=[^:]*$))*")
_PLAIN_PATH: Final = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/\[\]]|%[0-9A-Fa-f]{2})*")


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    kind = URL.kind

    @property
    def hostname(self) -> str:
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        return self.host.rpartition("]")[2].partition(":")[2]


def absolute(text: str) -> Url | None:
    """What can stand in a request: an absolute URI or an absolute path. None for all else."""
    if not text or any(ord(sign) < 32 or ord(sign) == 127 for sign in text):
        return None
    found = _SCHEME.match(text)
    scheme, rest = (found[1].lower(), text[found.end() :]) if found else ("", text)
    rest, _, query = rest.partition("#")[0].partition("?")
    if not rest.startswith("/"):
        return Url(scheme, "", "", query) if scheme else None
    host = ""
    if scheme and rest.startswith("//") and not rest.startswith("///"):
        authority, slash, path = rest[2:].partition("/")
        host, rest = authority.rpartition("@")[2], slash + path
        port = host.rpartition("]")[2].partition(":")[2]
        if not _HOST.fullmatch(host) or (port and not (port.isascii() and port.isdigit())):
            return None
    elif scheme and rest.startswith("///"):
        rest = rest[2:]
    return None if _ESCAPES.search(rest) else Url(scheme, host, rest, query)


@defined("url", "(string) URL")
def _url(text: str) -> Url:
    found = absolute(text)
    if found is None:
        raise CelError(f'URL parse error during conversion from string: parse "{text[:200]}": invalid URI for request')
    return found


def _escaped_path(one: Url) -> str:
    if _PLAIN_PATH.fullmatch(one.path):
        return one.path
    return quote(unquote(one.path), safe="/$&+,:;=@~-._")


def _query(one: Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(one.query, keep_blank_values=True):
        found.setdefault(name, []).append(value)
    return found


define("isURL", "(string) bool", run=lambda text: absolute(text) is not None)
define("getScheme", "URL.() string", run=lambda one: one.scheme)
define("getHost", "URL.() string", run=lambda one: one.host)
define("getHostname", "URL.() string", run=lambda one: one.hostname)
define("getPort", "URL.() string", run=lambda one: one.port)
define("getEscapedPath", "URL.() string", run=_escaped_path)
define("getQuery", "URL.() map(string, list(string))", run=_query)


# ---- addresses and networks

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Ip:
    address: _Address
    kind = IP.kind


@dataclass(frozen=True, slots=True)
class Cidr:
    address: _Address
    bits: int
    kind = CIDR.kind

    @property
    def masked(self) -> Any:
        return ipaddress.ip_network((self.address, self.bits), strict=False)


def _address(text: str) -> _Address | None:
    """No zones, and no IPv4 in the clothes of IPv6."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None
    return None if "%" in text or mapped or not text.isascii() else found


def _network(text: str) -> Cidr | None:
    begin, slash, bits = text.partition("/")
    address = _address(begin)
    if address is None or not slash or not (bits.isascii() and bits.isdigit()) or (bits[0] == "0" and bits != "0"):
        return None
    return Cidr(address, int(bits)) if len(bits) <= 3 and int(bits) <= address.max_prefixlen else None


@defined("ip", "(string) IP")
def _ip(text: str) -> Ip:
    found = _address(text)
    if found is None:
        shown = text[:100]
        raise CelError(
            f'IP Address "{shown}" parse error during conversion from string: ParseAddr("{shown}"): unable to parse IP'
        )
    return Ip(found)


@defined("cidr", "(string) CIDR")
def _cidr(text: str) -> Cidr:
    found = _network(text)
    if found is None:
        raise CelError(
            f'network address parse error during conversion from string: netip.ParsePrefix("{text[:100]}"): no prefix'
        )
    return found


@defined("ip.isCanonical", "(string) bool")
def _canonical(text: str) -> bool:
    return str(_ip(text).address) == text


@defined("containsIP", "CIDR.(string) bool", "CIDR.(IP) bool")
def _contains_ip(net: Cidr, other: Any) -> bool:
    address: Any = (_ip(other) if isinstance(other, str) else other).address
    return bool(address.version == net.address.version and address in net.masked)


@defined("containsCIDR", "CIDR.(string) bool", "CIDR.(CIDR) bool")
def _contains_cidr(net: Cidr, other: Any) -> bool:
    inner: Cidr = _cidr(other) if isinstance(other, str) else other
    return _contains_ip(net, Ip(inner.address)) and net.bits <= inner.bits


def _masked(net: Cidr) -> Cidr:
    return Cidr(net.masked.network_address, net.bits)


def _global(address: _Address) -> bool:
    """As Go has it: private addresses are global, too."""
    limited = isinstance(address, ipaddress.IPv4Address) and int(address) == (1 << 32) - 1
    return not (
        limited or address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    )


def _link_local_multicast(address: _Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.ip_network("224.0.0.0/24")
    return int(address) >> 112 & 0xFF0F == 0xFF02


define("isIP", "(string) bool", run=lambda text: _address(text) is not None)
define("isCIDR", "(string) bool", run=lambda text: _network(text) is not None)
define("family", "IP.() int", run=lambda one: one.address.version)
define("isUnspecified", "IP.() bool", run=lambda one: one.address.is_unspecified)
define("isLoopback", "IP.() bool", run=lambda one: one.address.is_loopback)
define("isLinkLocalMulticast", "IP.() bool", run=lambda one: _link_local_multicast(one.address))
define("isLinkLocalUnicast", "IP.() bool", run=lambda one: one.address.is_link_local)
define("isGlobalUnicast", "IP.() bool", run=lambda one: _global(one.address))
define("ip", "CIDR.() IP", run=lambda net: Ip(net.address))
define("prefixLength", "CIDR.() int", run=lambda net: net.bits)
define("masked", "CIDR.() CIDR", run=_masked)
define("string", "(IP) string", run=lambda one: str(one.address))
define("string", "(CIDR) string", run=lambda net: f"{net.address}/{net.bits}")
