"""Rules of Service."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, duplicate, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context, Object

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def service(obj: Object, _: Context) -> list[FieldError]:
    return list(_service(obj.get("spec") or {}))


def service_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    found = service(new, ctx)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    kept = before.get("type") != "ExternalName" and spec.get("type") != "ExternalName"
    if kept and before.get("clusterIP") and spec.get("clusterIP") != before["clusterIP"]:
        found.append(invalid("spec.clusterIPs[0]", [spec.get("clusterIP")], "may not change once set"))
    return found


def _service(spec: dict[str, Any]) -> Iterator[FieldError]:
    kind, ports = spec.get("type"), spec.get("ports") or []
    headless = spec.get("clusterIP") == "None"
    if kind not in _TYPES:
        yield not_supported("spec.type", kind, _TYPES)
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if kind == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName", "service must have an externalName when type is ExternalName")
    if spec.get("sessionAffinity") not in {"None", "ClientIP"}:
        yield not_supported("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    if spec.get("clusterIP") not in (None, "", "None") and not _is_address(spec["clusterIP"]):
        yield invalid("spec.clusterIPs[0]", spec["clusterIP"], "must be a valid IP address, (e.g. 10.9.8.7)")
    yield from _ports(ports)


def _is_address(text: Any) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def canonical_address(text: str) -> str | None:
    """The name of an IPAddress is the address; None: it is one, in the one way to write it."""
    try:
        same = str(ipaddress.ip_address(text)) == text
    except ValueError:
        same = False
    return None if same else "must be a valid IP address in canonical form"


def _ports(ports: list[dict[str, Any]]) -> Iterator[FieldError]:
    names: set[str] = set()
    pairs: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name, number = port.get("name") or "", port.get("port")
        if not name and len(ports) > 1:
            yield required(f"{path}.name")
        elif name:
            yield from (invalid(f"{path}.name", name, text) for text in formats.problems(formats.label, name))
            if name in names:
                yield duplicate(f"{path}.name", name)
            names.add(name)
        if not isinstance(number, int) or not 1 <= number <= 65535:
            yield invalid(f"{path}.port", number or 0, "must be between 1 and 65535, inclusive")
        if port.get("protocol") not in _PROTOCOLS:
            yield not_supported(f"{path}.protocol", port.get("protocol"), _PROTOCOLS)
        target = port.get("targetPort")
        if isinstance(target, int) and not 1 <= target <= 65535:
            yield invalid(f"{path}.targetPort", target, "must be between 1 and 65535, inclusive")
        if (port.get("protocol"), number) in pairs:
            yield duplicate(path, port)
        pairs.add((port.get("protocol"), number))
