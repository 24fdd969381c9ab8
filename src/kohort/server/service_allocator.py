"""Cluster addresses and node ports of Services. Nobody routes them; clients expect them to be there and unique."""

from __future__ import annotations

import ipaddress
import itertools
import secrets
from typing import TYPE_CHECKING, Any, Final

from kohort.api.errors import invalid
from kohort.server import status

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.storage_codec import StoreLister

RANGE: Final = "10.96.0.0/12"
_SMALLEST: Final = 8  # addresses of a range
_RESERVED: Final = 256  # the first of a range, or a sixteenth of a small one, are for who asks by number
_TRIES: Final = 64  # at random, until one is looked for
_PORTS: Final = range(30000, 32768)


class ServiceAllocator:
    def __init__(self, lister: StoreLister) -> None:
        self._lister = lister
        self._range: ipaddress.IPv4Network | ipaddress.IPv6Network
        self.use(RANGE)

    def use(self, text: str) -> None:
        """Addresses of another range, such as 10.0.0.0/24; ValueError if it is none."""
        found = ipaddress.ip_network(text, strict=False)
        if found.num_addresses < _SMALLEST:
            raise ValueError(f"service range {text}: has {found.num_addresses} addresses; at least {_SMALLEST}")
        self._range = found

    @property
    def first(self) -> str:
        """That of the service `kubernetes`."""
        return str(self._range[1])

    @property
    def family(self) -> str:
        return f"IPv{self._range.version}"

    def allocate(self, service: Object) -> None:
        """In place."""
        spec = service.setdefault("spec", {})
        if spec.get("type") == "ExternalName":
            return
        others = [one.get("spec") or {} for one in self._lister.list("", "services")]
        taken = {one.get("clusterIP") for one in others}
        if not spec.get("clusterIP"):
            spec["clusterIP"] = self._free(taken)
        elif spec["clusterIP"] != "None" and spec["clusterIP"] in taken:
            problem = invalid("spec.clusterIPs", [spec["clusterIP"]], "provided IP is already allocated")
            raise status.invalid("", "Service", service["metadata"]["name"], [problem])
        spec["clusterIPs"] = [spec["clusterIP"]]
        spec.setdefault("ipFamilies", [self.family])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        if spec.get("type") in {"NodePort", "LoadBalancer"}:
            used = {port.get("nodePort") for one in others for port in one.get("ports") or []}
            self._ports(spec, used)

    def _ports(self, spec: dict[str, Any], used: set[Any]) -> None:
        for port in spec.get("ports") or []:
            if not port.get("nodePort"):
                port["nodePort"] = next(number for number in _PORTS if number not in used)
            used.add(port["nodePort"])

    def _free(self, taken: set[Any]) -> str:
        size = self._range.num_addresses
        first = min(_RESERVED, size // 16)
        drawn = (secrets.randbelow(size - 1 - first) + first for _ in range(_TRIES))
        for place in itertools.chain(drawn, range(first, size - 1), range(1, first)):
            found = str(self._range[place])
            if found not in taken and place:
                return found
        raise status.internal("failed to allocate a serviceIP: range is full")
