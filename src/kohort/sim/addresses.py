"""Addresses of virtual nodes and pods: nobody answers there, but who lists pods or makes EndpointSlices expects them.

A pod's address follows from its uid, a node's from its name; where two meet, the later one takes the next that is free.
So a simulator that is started again goes on where it was, with what stands in the statuses.
"""

from __future__ import annotations

from hashlib import blake2s
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Final

from kohort.api.kind import Object

PODS: Final = IPv4Network("10.128.0.0/9")
NODES: Final = IPv4Network("172.16.0.0/12")


class Addresses:
    """Of one network. `owner`: what has the address, by any key."""

    def __init__(self, network: IPv4Network) -> None:
        self._first = int(network.network_address) + 1
        self._size = network.num_addresses - 2  # without those of the network itself and for all
        self._taken: dict[str, str] = {}  # address -> owner
        self._of: dict[str, str] = {}  # owner -> address

    def note(self, owner: str, address: str) -> None:
        """It has that address already."""
        if address and owner not in self._of:
            self._taken.setdefault(address, owner)
            self._of[owner] = address

    def of(self, owner: str) -> str:
        """Its address, from now on."""
        known = self._of.get(owner)
        if known is not None:
            return known
        place = int.from_bytes(blake2s(owner.encode(), digest_size=8).digest(), "big") % self._size
        address = str(IPv4Address(self._first + place))
        while address in self._taken and len(self._taken) < self._size:
            place = (place + 1) % self._size
            address = str(IPv4Address(self._first + place))
        self._taken[address] = owner
        self._of[owner] = address
        return address

    def release(self, owner: str) -> None:
        address = self._of.pop(owner, None)
        if address is not None and self._taken.get(address) == owner:
            del self._taken[address]


def of_node(node: Object, free: Addresses) -> str:
    """What the node says itself, else one that is free."""
    listed = (node.get("status") or {}).get("addresses") or ()
    own = next((str(one.get("address")) for one in listed if one.get("type") == "InternalIP"), "")
    return own or free.of(str(node["metadata"]["name"]))


def node_status(name: str, address: str) -> dict[str, Any]:
    return {"addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]}


def pod_status(pod: str, host: str) -> dict[str, Any]:
    return {"hostIP": host, "hostIPs": [{"ip": host}], "podIP": pod, "podIPs": [{"ip": pod}]}
