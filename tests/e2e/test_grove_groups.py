"""Groups of PodCliqueSets: their objects, what stands in their way, and the gates that wait for them (spec grove 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.e2e.grove_short import (
    GANGS,
    GATE,
    GROVE,
    available,
    binding,
    clique,
    cliqueset,
    gangs,
    gates,
    group,
    is_true,
    names,
    scale,
    shared,
    uids,
)

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster, condition

NEWEST = pytest.mark.releases("1.37")
GROUPS = pytest.mark.releases("1.36", "1.37")  # that have groups as objects


async def written(c: Cluster) -> dict[str, Any]:
    """Groups as their makers wrote them: a scheduler adds conditions, which are no change of these."""
    found = [*await c.workloads(), *await c.composites(), *await c.pod_groups()]
    return {f"{one['kind']}/{one['metadata']['name']}": (one["metadata"]["uid"], one["spec"]) for one in found}


async def made(c: Cluster, count: int) -> list[Object]:
    """Waits until so many pods exist."""

    async def look() -> list[Object]:
        found = await c.pods()
        return found if len(found) == count else []

    return await c.until(look, what=f"{count} pods")


async def backend(c: Cluster, reason: str, gang: str = "a-0") -> None:
    """Waits until the PodGang says so of its groups."""

    async def look() -> bool:
        return (condition(await c.get(GANGS, "PodGang", gang), "BackendReady") or {}).get("reason") == reason

    await c.until(look, what=f"PodGang {gang} being {reason}")


async def waiting(c: Cluster, seconds: float = 3) -> None:
    """No pod is let go."""

    async def free() -> bool:
        return any(GATE not in gates(pod) for pod in await c.pods())

    await c.never(free, seconds)


def quota(hard: Mapping[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": dict(hard)}}


async def stripped(c: Cluster, group: Object) -> None:
    """Deleted for good, whoever holds it."""
    resource = c.client.kind(group["apiVersion"], group["kind"])
    await resource.delete(group["metadata"]["name"], c.namespace)
    found = await c.get(group["apiVersion"], group["kind"], group["metadata"]["name"])
    if found is not None and found["metadata"]["uid"] == group["metadata"]["uid"]:
        await resource.patch(group["metadata"]["name"], {"metadata": {"finalizers": None}}, c.namespace)


# ---- objects


async def test_g5_the_order_of_groups(cluster: Cluster, minor: str) -> None:
    """Standalone cliques, then scaling groups replica by replica."""
    parts = [clique(name) for name in ("s", "pl", "pw", "dl", "dw")]
    groups = [group("p", ["pl", "pw"], 1, 1), group("d", ["dl", "dw"], 2, 2)]
    await cluster.create(cliqueset("a", *parts, groups=groups))
    await cluster.running(7)
    (gang,) = await gangs(cluster)
    assert [one["name"] for one in gang["spec"]["podgroups"]] == [
        "a-0-s",
        *(f"a-0-p-0-{name}" for name in ("pl", "pw")),
        *(f"a-0-d-{index}-{name}" for index in (0, 1) for name in ("dl", "dw")),
    ]


@NEWEST
class TestFlat:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"GroveFlat": True}

    async def test_g14_g17_groups_without_a_tree(self, cluster: Cluster) -> None:
        gold = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gold"}}
        await shared(cluster, {**gold, "value": 7000})
        eight = [clique(f"c{index}") for index in range(8)]
        await cluster.create(cliqueset("a", *eight, template={"priorityClassName": "gold"}))
        await cluster.running(8)
        (workload,) = await cluster.workloads()
        assert workload["apiVersion"] == "scheduling.k8s.io/v1beta1"
        assert [one["name"] for one in workload["spec"]["podGroupTemplates"]] == [f"a-0-c{index}" for index in range(8)]
        assert await cluster.composites() == []
        for one in await cluster.pod_groups():
            ref = one["spec"]["workloadRef"]
            assert one["metadata"]["name"] == f"a-0-{ref['templateName']}"
            assert (ref["workloadName"], one["spec"]["priorityClassName"]) == ("a-0", "gold")


class TestWithoutGroups:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"GroveGangScheduling": False}

    async def test_g15_only_the_name_of_the_scheduler(self, cluster: Cluster) -> None:
        await cluster.create(cliqueset("a", clique("x", 2), clique("y")))
        pods = await cluster.running(3)
        assert [*await cluster.workloads(), *await cluster.pod_groups()] == []
        assert {pod["spec"]["schedulerName"] for pod in pods} == {"default-scheduler"}
        assert not [pod for pod in pods if {"schedulingGroup", "workloadRef"} & pod["spec"].keys()]


class TestAnotherScheduler:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"GroveVolcano": True}

    async def test_g16_pods_of_another_scheduler_are_its_business(self, cluster: Cluster) -> None:
        """It reads the PodGang; no gate holds the pods back."""
        await cluster.create(cliqueset("a", clique("x", 2, pod={"schedulerName": "volcano"})))

        async def free() -> bool:
            found = await cluster.pods()
            return len(found) == 2 and not any(gates(pod) for pod in found)

        await cluster.until(free, what="two pods without gates")
        assert names(await gangs(cluster)) == ["a-0"]
        assert [*await cluster.workloads(), *await cluster.pod_groups()] == []
        assert {pod["spec"]["schedulerName"] for pod in await cluster.pods()} == {"volcano"}
        assert not any(pod["spec"].get("nodeName") for pod in await cluster.pods())


# ---- again and again


async def test_g22_g23_looking_again_changes_nothing(cluster: Cluster) -> None:
    """What a server fills in is no drift, and what pods there are is nothing that groups know."""
    await cluster.create(cliqueset("a", clique("x", 2, 1), clique("w"), groups=[group("g", ["w"], 2)]))
    await cluster.running(4)
    await available(cluster, "a")
    before = await written(cluster)
    for number in range(2):
        await cluster.patch(GROVE, "PodCliqueSet", "a", {"metadata": {"labels": {"look": str(number)}}})
        await cluster.sleep(1)
    await scale(cluster, "PodClique", "a-0-x", 4)
    await cluster.running(6)
    assert await written(cluster) == before
    assert await cluster.events("WorkloadDrift") == []
    await backend(cluster, "GroupsCreated")


@GROUPS
async def test_g24_only_what_is_missing_is_made(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("x", 2), clique("y")))
    await cluster.running(3)
    before = await uids(cluster)
    (lost,) = [one for one in await cluster.pod_groups() if one["metadata"]["name"] == "a-0-a-0-y"]
    await stripped(cluster, lost)

    async def again() -> bool:
        after = await uids(cluster)
        return {name for name in before if after.get(name) != before[name]} == {"PodGroup/a-0-a-0-y"} and set(
            after
        ) == set(before)

    await cluster.until(again, what="the group being made again")


async def test_g25_a_workload_that_cannot_be_made(cluster: Cluster) -> None:
    await cluster.create(quota({"count/workloads.scheduling.k8s.io": "0"}))
    await cluster.create(cliqueset("a", clique("x", 2), clique("y")))
    await backend(cluster, "WorkloadSyncFailed")
    await made(cluster, 3)
    await waiting(cluster)
    assert [*await cluster.workloads(), *await cluster.composites(), *await cluster.pod_groups()] == []
    assert await cluster.events("WorkloadSyncFailed")
    found = await cluster.get(GROVE, "PodCliqueSet", "a")
    assert "WorkloadSyncFailed" in {one["code"] for one in (found or {})["status"]["lastErrors"]}
    await cluster.delete("v1", "ResourceQuota", "q")
    await cluster.running(3)


@pytest.mark.releases("1.36")
async def test_g26_a_workload_that_is_going(cluster: Cluster) -> None:
    """Its groups cannot be made: waited for, without deleting anything."""
    await cluster.create(cliqueset("a", clique("x", 2), clique("y")))
    await cluster.running(3)
    (workload,) = await cluster.workloads()
    resource = cluster.client.kind(workload["apiVersion"], "Workload")
    await resource.patch("a-0", {"metadata": {"finalizers": ["example.net/hold"]}}, cluster.namespace)
    await resource.delete("a-0", cluster.namespace)
    (lost,) = [one for one in await cluster.pod_groups() if one["metadata"]["name"] == "a-0-a-0-y"]
    await stripped(cluster, lost)
    await backend(cluster, "PodGroupTerminating")
    await cluster.sleep(2)
    assert names(await cluster.pod_groups()) == ["a-0-a-0-x"]
    await resource.patch("a-0", {"metadata": {"finalizers": None}}, cluster.namespace)
    await backend(cluster, "GroupsCreated")


async def test_g27_a_workload_of_somebody_else(cluster: Cluster, minor: str) -> None:
    (version, *_) = await cluster.client.discovery.versions("scheduling.k8s.io", "Workload")
    policy = "policy" if minor == "1.35" else "schedulingPolicy"
    spec = {"podGroups" if minor == "1.35" else "podGroupTemplates": [{"name": "z", policy: {"basic": {}}}]}
    foreign = {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "Workload", "metadata": {"name": "a-0"}}
    await cluster.create({**foreign, "spec": spec})
    await cluster.create(cliqueset("a", clique("x", 2)))
    await backend(cluster, "WorkloadSyncFailed")
    await made(cluster, 2)
    await waiting(cluster)
    (found,) = await cluster.workloads()
    assert "ownerReferences" not in found["metadata"]
    await cluster.delete(found["apiVersion"], "Workload", "a-0")
    await cluster.running(2)


@NEWEST
async def test_g42_a_level_that_vanishes(cluster: Cluster) -> None:
    """What runs goes on with the groups it has; new pods wait until the level is back."""
    body, lost = binding("fading"), binding("fading")
    lost["spec"]["levels"] = [one for one in lost["spec"]["levels"] if one["domain"] != "host"]
    await shared(cluster, body)
    resource = cluster.client.of(body)
    await resource.patch("fading", {"spec": body["spec"]})
    host = {"topologyConstraint": {"topologyName": "fading", "pack": {"required": "host"}}}
    await cluster.create(cliqueset("a", clique("x", 2), clique("y"), template=host))
    await cluster.running(3)
    before = await written(cluster)
    await resource.patch("fading", {"spec": lost["spec"]})
    await backend(cluster, "WorkloadDrift")

    async def said() -> bool:
        return is_true(await cluster.get(GROVE, "PodCliqueSet", "a"), "TopologyLevelsUnavailable")

    await cluster.until(said, what="the set telling what is not there")
    gang = await cluster.get(GANGS, "PodGang", "a-0")
    assert gang is not None
    assert "topologyConstraint" not in gang["spec"]
    assert await written(cluster) == before
    assert len(await cluster.running(3)) == 3
    await scale(cluster, "PodClique", "a-0-x", 3)
    late = await made(cluster, 4)
    assert sorted(len(gates(pod)) for pod in late) == [0, 0, 0, 1]
    await resource.patch("fading", {"spec": body["spec"]})
    await cluster.running(4)


# ---- gates


async def test_g43_no_pod_goes_before_all_are_there(cluster: Cluster) -> None:
    await cluster.create(quota({"pods": "3"}))
    await cluster.create(cliqueset("a", clique("x", 4, 2)))
    await made(cluster, 3)
    await waiting(cluster)
    (gang,) = await gangs(cluster)
    assert not is_true(gang, "Initialized")
    await cluster.delete("v1", "ResourceQuota", "q")
    await cluster.running(4)


@GROUPS
async def test_g44_no_pod_goes_before_its_group_is_there(cluster: Cluster) -> None:
    await cluster.create(quota({"count/podgroups.scheduling.k8s.io": "0"}))
    await cluster.create(cliqueset("a", clique("x", 2), clique("y")))
    await made(cluster, 3)

    async def initialized() -> bool:
        return is_true(await cluster.get(GANGS, "PodGang", "a-0"), "Initialized")

    await cluster.until(initialized, what="all pods being there")
    await waiting(cluster)
    assert await cluster.pod_groups() == []
    await cluster.delete("v1", "ResourceQuota", "q")
    await cluster.running(3)


async def test_g46_gates_of_others_stay(cluster: Cluster, minor: str) -> None:
    """A pod that got a gate of somebody else's, too: made by hand here, in the place of one that a quota refuses."""
    only = quota({"pods": "0"})
    only["spec"]["scopes"] = ["BestEffort"]
    await cluster.create(only)
    await cluster.create(cliqueset("a", clique("x")))

    async def refused() -> Object | None:
        found = await cluster.get(GROVE, "PodClique", "a-0-x")
        return found if (found or {}).get("status", {}).get("lastErrors") else None

    owner = await cluster.until(refused, what="the pod being refused")
    assert owner is not None
    await cluster.create(by_hand(owner, minor))

    async def ours() -> bool:
        return [gates(pod) for pod in await cluster.pods()] == [["example.net/wait"]]

    await cluster.until(ours, what="only Grove's gate going")


def by_hand(owner: Object, minor: str) -> Object:
    meta = owner["metadata"]
    link = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    old, new = {"workloadRef": {"name": "a-0", "podGroup": "a-0-x"}}, {"schedulingGroup": {"podGroupName": "a-0-a-0-x"}}
    container = {"name": "main", "image": "tool:1", "resources": {"requests": {"cpu": "1m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a-0-x-mine",
            "labels": {**meta["labels"], "grove.io/podclique": "a-0-x", "grove.io/podclique-pod-index": "0"},
            "ownerReferences": [{**link, "controller": True}],
        },
        "spec": {
            "containers": [container],
            "schedulingGates": [{"name": GATE}, {"name": "example.net/wait"}],
            **(old if minor == "1.35" else new),
        },
    }
