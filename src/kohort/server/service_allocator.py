"""Cluster addresses and node ports of Services. Nobody routes them; clients expect them to be there and unique."""

from __future__ import annotations

import ipaddress
import itertools
import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from kohort.api.errors import invalid
from kohort.server import status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kohort.api.kind import Object
    from kohort.server.storage_codec import StoreLister

RANGE: Final = "10.96.0.0/12"
_SMALLEST: Final = 8  # addresses of a range
_RESERVED: Final = 256  # the first of a range, or a sixteenth of a small one, are for who asks by number
_TRIES: Final = 64  # at random, until one is looked for
_PORTS: Final = range(30000, 32768)
_NAMED: Final = "ExternalName"  # the type of a Service that needs no address
_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
_ADDRESS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")


class _Port(msgspec.Struct, rename="camel"):
    node_port: int | None = None


class _Spec(msgspec.Struct, rename="camel"):
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    ports: list[_Port] | None = None


class _Service(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Given(NamedTuple):
    """What a Service has been given."""

    cluster_ip: str | None
    node_ports: frozenset[int]


_service: Final = msgspec.json.Decoder(_Service)


def _read(value: bytes) -> Given:
    """As much as has to be kept: some have thousands of ports."""
    spec = _service.decode(value).spec
    return Given(spec.cluster_ip, frozenset(one.node_port for one in spec.ports or () if one.node_port))


class ServiceAllocator:
    """`given`: what every Service has; whoever has no store asks somebody who has."""

    def __init__(self, lister: StoreLister) -> None:
        self._lister = lister
        self.given: Callable[[], Iterable[Given]] = self._stored
        self._known: dict[tuple[str, str], tuple[int, Given]] = {}
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
    def range(self) -> str:
        return str(self._range)

    @staticmethod
    def family_of(address: str) -> str:
        return f"IPv{ipaddress.ip_address(address).version}"

    @property
    def family(self) -> str:
        return f"IPv{self._range.version}"

    def _stored(self) -> Iterable[Given]:
        """A Service may be large, and this is all that is kept of it."""
        known, self._known = self._known, {}
        for item in self._lister.items("", "services"):
            before = known.get(item.key)
            if before is None or before[0] != item.revision:
                before = (item.revision, _read(item.value))
            self._known[item.key] = before
        return [one for _, one in self._known.values()]

    def allocate(self, service: Object) -> None:
        """In place."""
        spec = service.setdefault("spec", {})
        if spec.get("type") == _NAMED:
            return
        others = self.given()
        taken = {one.cluster_ip for one in others}
        if not spec.get("clusterIP"):
            spec["clusterIP"] = self._free(taken)
        elif spec["clusterIP"] != "None" and spec["clusterIP"] in taken:
            problem = invalid("spec.clusterIPs", [spec["clusterIP"]], "provided IP is already allocated")
            raise status.invalid("", "Service", service["metadata"]["name"], [problem])
        spec["clusterIPs"] = [spec["clusterIP"]]
        spec.setdefault("ipFamilies", [self.family])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        if spec.get("type") in _NODE_PORTS:
            self._ports(spec, {port for one in others for port in one.node_ports})

    def reallocate(self, service: Object, old: Object) -> None:
        """In place, for an update: what was given out stays while the type needs it, goes, or is given out now."""
        spec, before = service.setdefault("spec", {}), old.get("spec") or {}
        addressed, was_addressed = spec.get("type") != _NAMED, before.get("type") != _NAMED
        if addressed and was_addressed:
            for member in ("clusterIP", "clusterIPs"):
                if not spec.get(member) and before.get(member):
                    spec[member] = before[member]
        elif was_addressed and spec.get("clusterIP") in (None, "", before.get("clusterIP")):
            for member in _ADDRESS:
                spec.pop(member, None)
        if was_addressed or not addressed:
            self._change_ports(spec, before)
            return
        if spec.get("externalName") == before.get("externalName"):
            spec.pop("externalName", None)
        self.allocate(service)

    def _change_ports(self, spec: dict[str, Any], before: dict[str, Any]) -> None:
        """Node ports of the same ports stay; other types of Services have none."""
        given = {(one.get("protocol"), one.get("port")): one.get("nodePort") for one in before.get("ports") or []}
        if spec.get("type") not in _NODE_PORTS:
            for port in spec.get("ports") or []:
                if before.get("type") in _NODE_PORTS and port.get("nodePort") in given.values():
                    port.pop("nodePort", None)
            return
        for port in spec.get("ports") or []:
            known = given.get((port.get("protocol"), port.get("port")))
            if not port.get("nodePort") and known:
                port["nodePort"] = known
        if any(not port.get("nodePort") for port in spec.get("ports") or []):
            self._ports(spec, {port for one in self.given() for port in one.node_ports})

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
