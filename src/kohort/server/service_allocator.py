"""Cluster addresses and node ports of Services. Nobody routes them; clients expect them to be there and unique."""

from __future__ import annotations

import ipaddress
import secrets
from typing import TYPE_CHECKING, Any, Final

from kohort.api.errors import invalid
from kohort.server import status

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.storage_codec import StoreLister

_RANGE: Final = ipaddress.ip_network("10.96.0.0/12")
_PORTS: Final = range(30000, 32768)


class ServiceAllocator:
    def __init__(self, lister: StoreLister) -> None:
        self._lister = lister

    def allocate(self, service: Object) -> None:
        """In place."""
        spec = service.setdefault("spec", {})
        if spec.get("type") == "ExternalName":
            return
        others = [one.get("spec") or {} for one in self._lister.list("", "services")]
        taken = {one.get("clusterIP") for one in others}
        if not spec.get("clusterIP"):
            spec["clusterIP"] = _free(taken)
        elif spec["clusterIP"] != "None" and spec["clusterIP"] in taken:
            problem = invalid("spec.clusterIPs", [spec["clusterIP"]], "provided IP is already allocated")
            raise status.invalid("", "Service", service["metadata"]["name"], [problem])
        spec["clusterIPs"] = [spec["clusterIP"]]
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        if spec.get("type") in {"NodePort", "LoadBalancer"}:
            used = {port.get("nodePort") for one in others for port in one.get("ports") or []}
            self._ports(spec, used)

    def _ports(self, spec: dict[str, Any], used: set[Any]) -> None:
        for port in spec.get("ports") or []:
            if not port.get("nodePort"):
                port["nodePort"] = next(number for number in _PORTS if number not in used)
            used.add(port["nodePort"])


def _free(taken: set[Any]) -> str:
    while True:
        found = str(_RANGE[secrets.randbelow(_RANGE.num_addresses - 512) + 256])
        if found not in taken:
            return found
