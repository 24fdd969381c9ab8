"""Rules of EndpointSlice."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, duplicate, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kohort.api.formats import Format
    from kohort.api.kind import Context, Object

_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_NOT_AN_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_MULTICAST: Final = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}
_SPECIAL: Final[tuple[tuple[Callable[[_Address], bool], str], ...]] = (
    (lambda one: one.is_unspecified, "may not be unspecified ({})"),
    (lambda one: one.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
    (lambda one: one.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
    (
        lambda one: one in _MULTICAST[one.version],
        "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
    ),
)


def endpoint_slice(obj: Object, _: Context) -> list[FieldError]:
    return list(_slice(obj))


def endpoint_slice_update(new: Object, old: Object, _: Context) -> list[FieldError]:
    found = list(_slice(new))
    if new.get("addressType") != old.get("addressType"):
        found.append(invalid("addressType", new.get("addressType"), "field is immutable"))
    return found


def warn(obj: Object, _: Context) -> list[str]:
    return ["spec.addressType: FQDN endpoints are deprecated"] if obj.get("addressType") == "FQDN" else []


def _slice(obj: Object) -> Iterator[FieldError]:
    kind = obj.get("addressType") or ""
    if not kind:
        yield required("addressType")
    elif kind not in _TYPES:
        yield not_supported("addressType", kind, _TYPES)
    else:
        for index, endpoint in enumerate(obj.get("endpoints") or []):
            yield from _endpoint(endpoint, f"endpoints[{index}]", kind)
    yield from _ports(obj.get("ports") or [])


def _endpoint(endpoint: dict[str, Any], path: str, kind: str) -> Iterator[FieldError]:
    addresses = endpoint.get("addresses") or []
    if not addresses:
        yield required(f"{path}.addresses")
    for index, address in enumerate(addresses):
        yield from _address(address, f"{path}.addresses", index, kind)
    yield from _named(endpoint.get("nodeName"), f"{path}.nodeName", formats.subdomain)
    yield from _named(endpoint.get("hostname"), f"{path}.hostname", formats.label)
    hints = endpoint.get("hints") or {}
    for member, form in (("forZones", None), ("forNodes", formats.subdomain)):
        seen: set[str] = set()
        for index, hint in enumerate(hints.get(member) or []):
            spot, name = f"{path}.hints.{member}[{index}].name", hint.get("name") or ""
            if form is not None:
                yield from _named(name, spot, form)
            if name in seen:
                yield duplicate(spot, name)
            seen.add(name)


def _named(name: str | None, path: str, form: Format) -> Iterator[FieldError]:
    if name:
        yield from (invalid(path, name, text) for text in formats.problems(form, name))


def _address(address: str, path: str, index: int, kind: str) -> Iterator[FieldError]:
    spot = f"{path}[{index}]"
    if kind == "FQDN":
        if "." not in address.removesuffix("."):
            yield invalid(spot, address, "should be a domain with at least two segments separated by dots")
        else:
            yield from _named(address.removesuffix("."), spot, formats.subdomain)
        return
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        yield invalid(spot, address, "must not have leading 0s" if _has_leading_zeros(address) else _NOT_AN_ADDRESS)
        return
    if found.version != int(kind[-1]):
        yield invalid(path, address, f"must be an {kind} address")
        return
    yield from (invalid(spot, address, text.format(address)) for holds, text in _SPECIAL if holds(found))


def _has_leading_zeros(address: str) -> bool:
    parts = address.split(".")
    decimal = len(parts) == 4 and all(part.isdecimal() for part in parts)
    return decimal and any(len(part) > 1 and part.startswith("0") for part in parts)


def _ports(ports: list[dict[str, Any]]) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        yield from _named(name, f"{path}.name", formats.label)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        if port.get("protocol") not in _PROTOCOLS:
            yield not_supported(f"{path}.protocol", port.get("protocol"), _PROTOCOLS)
        yield from _named(port.get("appProtocol"), f"{path}.appProtocol", formats.label_key)
