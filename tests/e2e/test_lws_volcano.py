"""LeaderWorkerSets whose gangs are Volcano's business (spec lws 4.2): the objects that it reads are made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest
from tests.e2e.lws import Sets, lws, refused, template

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")
VERSION = "scheduling.volcano.sh/v1beta1"
_SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.volcano.sh"},
    "spec": {
        "group": "scheduling.volcano.sh",
        "scope": "Namespaced",
        "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"},
        "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": _SCHEMA}],
    },
}


@pytest.fixture
def gates() -> Mapping[str, bool]:
    return {"LWSVolcano": True}


@pytest.fixture
def sets(cluster: Cluster) -> Sets:
    return Sets(cluster)


@pytest.fixture
async def volcano(cluster: Cluster) -> AsyncIterator[None]:
    """Its kind, for the time of a test."""
    await cluster.client.of(CRD).create(CRD)

    async def served() -> bool:
        await cluster.client.discovery.refresh()
        return await cluster.serves(VERSION, "PodGroup")

    await cluster.until(served, what="Volcano's kind")
    yield
    await cluster.client.of(CRD).delete(CRD["metadata"]["name"])

    async def gone() -> bool:
        found = await cluster.client.of(CRD).list()
        return CRD["metadata"]["name"] not in {one["metadata"]["name"] for one in found.items}

    await cluster.until(gone, what="Volcano's kind going")


async def groups(cluster: Cluster) -> dict[str, int]:
    return {one["metadata"]["name"]: one["spec"]["minMember"] for one in await cluster.every(VERSION, "PodGroup")}


@pytest.mark.usefixtures("volcano")
async def test_l_48_a_group_of_volcanos_for_each_replica(cluster: Cluster, sets: Sets) -> None:
    notes = {"scheduling.volcano.sh/queue-name": "fast", "volcano.sh/some": "x", "other": "y"}
    await sets.create("vol", replicas=2, size=3, annotations=notes)
    await sets.available("vol")
    first, second = await cluster.every(VERSION, "PodGroup")
    assert first["spec"] == {"minMember": 3, "minResources": {"cpu": "3"}, "queue": "fast"}
    assert first["metadata"]["annotations"] == {"volcano.sh/some": "x"}
    pods = await sets.pods()
    assert first["metadata"]["ownerReferences"][0]["uid"] == pods["vol-0"]["metadata"]["uid"]
    named = {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods.values()}
    assert named == {first["metadata"]["name"], second["metadata"]["name"]}
    before = await sets.uids()
    await cluster.delete("v1", "Pod", "vol-0-1")
    await sets.renewed(before, {"vol-0", "vol-0-1", "vol-0-2"})
    leader = (await sets.pods())["vol-0"]["metadata"]["uid"]
    again, same = await cluster.every(VERSION, "PodGroup")
    assert same["metadata"]["uid"] == second["metadata"]["uid"]
    assert [one["uid"] for one in again["metadata"]["ownerReferences"]] == [leader]
    await sets.patch("vol", {"replicas": 1, "leaderWorkerTemplate": {"workerTemplate": template("tool:2")}})
    await sets.settled("vol", replicas=1, readyReplicas=1, updatedReplicas=1)

    async def one() -> bool:
        return list((await groups(cluster)).values()) == [3]

    await cluster.until(one, what="the other group going")


@pytest.mark.usefixtures("volcano")
async def test_l_48_leader_ready_counts_the_leader(cluster: Cluster, sets: Sets) -> None:
    await sets.create("rdy", size=3, startupPolicy="LeaderReady")
    await sets.available("rdy")
    assert list((await groups(cluster)).values()) == [1]


async def test_l_48_without_its_kind_workers_wait_and_it_is_told(cluster: Cluster, sets: Sets) -> None:
    await sets.create("vol")
    await cluster.until(lambda: sets.notes("FailedCreate"), what="it being told")
    assert await sets.names() == ["vol-0"]


async def test_l_48_scheduling_is_refused(cluster: Cluster, sets: Sets) -> None:
    await refused(cluster, sets, lws("no", scheduling={}))  # W7
