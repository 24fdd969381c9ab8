"""A Service changes its type: addresses and node ports that the new type needs are given out, others go."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.server.registry.network import canonical_address
from kohort.server.service_allocator import ServiceAllocator

Json = dict[str, Any]


class Nobody:
    def items(self, *_: object) -> list[Json]:
        return []


def allocator() -> ServiceAllocator:
    return ServiceAllocator(Nobody())  # type: ignore[arg-type]


def service(**spec: Any) -> Json:
    return {"metadata": {"name": "web"}, "spec": spec}


PORT = {"port": 80, "protocol": "TCP"}


def stored(kind: str) -> Json:
    if kind == "ExternalName":
        return service(type=kind, externalName="example.com")
    found = service(type=kind, ports=[dict(PORT)])
    allocator().allocate(found)
    return found


@pytest.mark.parametrize("before", ["ClusterIP", "NodePort", "ExternalName"])
@pytest.mark.parametrize("after", ["ClusterIP", "NodePort", "ExternalName"])
def test_what_the_type_needs_is_there_and_nothing_else(before: str, after: str) -> None:
    old = stored(before)
    new = service(**{**old["spec"], "type": after, "ports": [dict(one) for one in old["spec"].get("ports") or [PORT]]})
    if after == "ExternalName":
        new["spec"]["externalName"] = "example.com"
    allocator().reallocate(new, old)
    spec = new["spec"]
    assert bool(spec.get("clusterIP")) == bool(spec.get("clusterIPs")) == (after != "ExternalName")
    assert all(bool(port.get("nodePort")) == (after == "NodePort") for port in spec["ports"])
    assert ("externalName" in spec) == (after == "ExternalName")
    if before != "ExternalName" and after != "ExternalName":
        assert spec["clusterIP"] == old["spec"]["clusterIP"]


def test_a_body_without_what_was_given_out_keeps_it() -> None:
    old = stored("NodePort")
    new = service(type="NodePort", ports=[dict(PORT), {"port": 81, "protocol": "TCP"}])
    allocator().reallocate(new, old)
    first, second = (port["nodePort"] for port in new["spec"]["ports"])
    assert first == old["spec"]["ports"][0]["nodePort"]
    assert second != first
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]


@pytest.mark.parametrize(
    ("text", "good"),
    [("10.0.0.1", True), ("fe80::42:1dff:fe84:f9e2", True), ("010.0.0.1", False), ("FE80::1", False), ("web", False)],
)
def test_the_name_of_an_address_is_the_address(text: str, good: bool) -> None:
    assert (canonical_address(text) is None) == good
