"""Services on a whole cluster: who is behind them."""

from __future__ import annotations

import pytest
from tests.controllermanager.build import owner

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
}


async def test_slices_and_endpoints_follow_the_pods(cluster: Cluster) -> None:
    await cluster.create(SERVICE, owner("ReplicaSet", replicas=2))

    async def ready(count: int) -> bool:
        found: list[Object] = [
            one
            for part in await cluster.every("discovery.k8s.io/v1", "EndpointSlice")
            for one in part.get("endpoints") or ()
        ]
        up = [one for one in found if one["conditions"]["ready"]]
        return len(up) == len(found) == count

    await cluster.until(lambda: ready(2), what="two ready endpoints")
    addresses = {pod["status"]["podIP"] for pod in await cluster.pods()}
    old = await cluster.get("v1", "Endpoints", "web")
    assert old is not None
    (subset,) = old["subsets"]
    assert {one["ip"] for one in subset["addresses"]} == addresses
    assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]
    await cluster.patch("apps/v1", "ReplicaSet", "web", {"spec": {"replicas": 0}}, "scale")
    await cluster.until(lambda: ready(0), what="no endpoints")
    (left,) = await cluster.every("discovery.k8s.io/v1", "EndpointSlice")
    # A slice that somebody deletes comes back; with the Service all of it goes.
    await cluster.delete("discovery.k8s.io/v1", "EndpointSlice", left["metadata"]["name"])

    async def back() -> bool:
        return bool(await cluster.every("discovery.k8s.io/v1", "EndpointSlice"))

    await cluster.until(back, what="another slice")
    await cluster.delete("v1", "Service", "web")
    await cluster.gone("discovery.k8s.io/v1", "EndpointSlice")
    await cluster.gone("v1", "Endpoints")


async def test_endpoints_that_are_written_by_hand_have_slices(cluster: Cluster) -> None:
    service = {**SERVICE, "spec": {"ports": [{"name": "http", "port": 80}]}}
    ports = [{"name": "http", "port": 80}]
    subsets = [{"addresses": [{"ip": "10.1.2.3"}], "notReadyAddresses": [{"ip": "10.1.2.4"}], "ports": ports}]
    await cluster.create(
        service, {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"}, "subsets": subsets}
    )

    async def shown() -> list[tuple[str, bool]]:
        return [
            (one["addresses"][0], one["conditions"]["ready"])
            for part in await cluster.every("discovery.k8s.io/v1", "EndpointSlice")
            for one in part.get("endpoints") or ()
        ]

    async def first() -> bool:
        return await shown() == [("10.1.2.3", True), ("10.1.2.4", False)]

    await cluster.until(first, what="both addresses")
    await cluster.patch("v1", "Endpoints", "web", {"subsets": [{"addresses": [{"ip": "10.1.2.5"}], "ports": ports}]})

    async def second() -> bool:
        return await shown() == [("10.1.2.5", True)]

    await cluster.until(second, what="the other address")
    await cluster.delete("v1", "Endpoints", "web")
    await cluster.gone("discovery.k8s.io/v1", "EndpointSlice")
