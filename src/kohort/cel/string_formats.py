"""Formats of strings that a server checks in custom resources; others are notes for people."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Final

_DURATION: Final = re.compile(r"[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w))+)")
_EMAIL: Final = re.compile(r"[^@\s<>]+@[^@\s<>]+")
_HOST: Final = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_MAC: Final = re.compile(r"(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}|([0-9a-f]{4}\.){2}[0-9a-f]{4}")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+|/\S*")


def _raises(read: Callable[[str], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return fits


def _moment(text: str) -> object:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None or "T" not in text.upper():
        raise ValueError(text)
    return found


def _matching(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "datetime": _raises(_moment),
    "date": _raises(date.fromisoformat),
    "duration": _matching(_DURATION),
    "byte": _raises(lambda text: base64.b64decode(text, validate=True)),
    "email": _matching(_EMAIL),
    "hostname": _matching(_HOST),
    "ipv4": _raises(ipaddress.IPv4Address),
    "ipv6": _raises(ipaddress.IPv6Address),
    "cidr": _raises(lambda text: ipaddress.ip_network(text, strict=False)),
    "mac": _matching(_MAC),
    "uuid": _matching(_UUID),
    "uri": _matching(_URI),
}


def fits(form: str, text: str) -> bool:
    known = _FORMATS.get(form.replace("-", ""))
    return known is None or known(text)
