"""Exclusive placement of JobSets (spec jobset 2.4): each Job alone in its rack, its first pod leading."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.e2e.jobsets import JOB, PREFIX, jobset, pod, rj

from kohort.api.kind import Object
from kohort.sim.cluster import Pool
from kohort.testing.cluster import Cluster

RACK = "example.com/rack"
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
BY_SELECTOR = {**EXCLUSIVE, "alpha.jobset.sigs.k8s.io/node-selector": "true"}
NAMESPACED = "alpha.jobset.sigs.k8s.io/namespaced-job"
INDEX = "batch.kubernetes.io/job-completion-index"


@pytest.fixture
def pools() -> Sequence[Pool]:
    return [Pool(name=f"rack-{rack}", count=2, labels={RACK: rack}) for rack in "abc"]


async def racks(cluster: Cluster, found: Sequence[Object]) -> dict[str, set[str]]:
    """By Job: the racks that its pods are in."""
    nodes = {one["metadata"]["name"]: one["metadata"]["labels"] for one in await nodes_of(cluster)}
    by_job: dict[str, set[str]] = {}
    for one in found:
        index = one["metadata"]["labels"][f"{PREFIX}job-index"]
        by_job.setdefault(index, set()).add(nodes[one["spec"]["nodeName"]][RACK])
    return by_job


async def nodes_of(cluster: Cluster) -> list[Object]:
    return (await cluster.client.kind("v1", "Node").list()).items


@pytest.mark.releases("1.37")
async def test_each_job_has_a_rack_of_its_own(cluster: Cluster) -> None:
    await cluster.create(jobset("hawk", rj("a", 2, 3, runs=pod(None)), notes=EXCLUSIVE))
    by_job = await racks(cluster, await cluster.running(6))
    assert [len(found) for found in by_job.values()] == [1, 1]
    assert by_job["0"] != by_job["1"]


@pytest.mark.admission
@pytest.mark.releases("1.37")
async def test_the_first_pod_leads(cluster: Cluster) -> None:
    """As upstream's webhooks do it. Where a cluster has none, the Job's template keeps its pods together."""
    await cluster.create(jobset("hawk", rj("a", 2, 3, runs=pod(None)), notes=EXCLUSIVE))
    for one in await cluster.running(6):
        follows = one["metadata"]["annotations"][INDEX] != "0"
        assert (RACK in (one["spec"].get("nodeSelector") or {})) == follows
        assert ("affinity" in one["spec"]) != follows
        assert one["metadata"]["labels"][f"{PREFIX}priority"] == "0"


@pytest.mark.releases("1.36", "1.37")
async def test_a_fourth_job_waits_for_a_rack(cluster: Cluster) -> None:
    await cluster.create(jobset("four", rj("a", 4, 2, runs=pod(None)), notes=EXCLUSIVE))
    first = await cluster.running(6)
    assert len(await racks(cluster, first)) == 3
    left = first[0]["metadata"]["labels"][f"{PREFIX}job-index"]
    for one in first:
        if one["metadata"]["labels"][f"{PREFIX}job-index"] == left:
            over = {"metadata": {"annotations": {"sim.kohort.dev/run-seconds": "0"}}}
            await cluster.patch("v1", "Pod", one["metadata"]["name"], over)

    async def follows() -> bool:
        running = [one for one in await cluster.pods() if one["status"].get("phase") == "Running"]
        return len(running) == 6 and left not in await racks(cluster, running)

    await cluster.until(follows, what="the fourth Job in the rack that is free")


@pytest.mark.admission
@pytest.mark.releases("1.37")
async def test_followers_go_where_their_leader_went(cluster: Cluster) -> None:
    """The rack changes its name under the leader: followers that were sent to the old one are replaced."""
    await cluster.create(jobset("hare", rj("a", 1, 2, runs=pod(None), job={"backoffLimit": 9}), notes=EXCLUSIVE))
    first = await cluster.running(2)
    leader = next(one for one in first if one["metadata"]["annotations"][INDEX] == "0")
    follower = next(one for one in first if one is not leader)
    old = follower["spec"]["nodeSelector"][RACK]
    nodes = cluster.client.kind("v1", "Node")
    for node in await nodes_of(cluster):
        if node["metadata"]["labels"][RACK] == old:
            await nodes.patch(node["metadata"]["name"], {"metadata": {"labels": {RACK: "new"}}})
    name = leader["metadata"]["name"]
    await cluster.patch("v1", "Pod", name, {"metadata": {"annotations": {"example.com/touched": "yes"}}})

    async def moved() -> bool:
        found = [one for one in await cluster.pods() if one["status"].get("phase") == "Running"]
        return sorted((one["spec"].get("nodeSelector") or {}).get(RACK, "") for one in found) == ["", "new"]

    await cluster.until(moved, what="the follower following")


@pytest.mark.releases("1.37")
async def test_by_node_selectors_that_an_administrator_gives(cluster: Cluster) -> None:
    await cluster.create(jobset("hobby", rj("a", 1, 2, runs=pod(None)), notes=BY_SELECTOR))

    async def made() -> list[Object]:
        return await cluster.pods()

    found = await cluster.until(made)
    assert found[0]["spec"]["nodeSelector"] == {NAMESPACED: f"{cluster.namespace}_hobby-a-0"}
    await cluster.client.kind("v1", "Node").patch(
        "rack-b-1", {"metadata": {"labels": {NAMESPACED: f"{cluster.namespace}_hobby-a-0"}}}
    )
    assert {one["spec"]["nodeName"] for one in await cluster.running(2)} == {"rack-b-1"}


@pytest.mark.admission
@pytest.mark.releases("1.37")
async def test_jobs_that_are_not_indexed_have_no_first_pod(cluster: Cluster) -> None:
    spec = {"completionMode": "NonIndexed"}
    await cluster.create(jobset("odd", rj("a", 1, 2, job=spec, runs=pod(None)), notes=EXCLUSIVE))

    async def told() -> list[Object]:
        return [one for one in await cluster.events("FailedCreate") if "Indexed" in one["message"]]

    await cluster.until(told, what="why no pod is let in")
    assert not await cluster.pods()
    assert len(await cluster.every(*JOB)) == 1
