"""Gangs of LeaderWorkerSets on a whole cluster (spec lws 4; each test is named after its row of section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.e2e.lws import API, KIND, PREFIX, Sets, container, group_of, label, lws, minimum, refused, template

from kohort.api.kind import Object
from kohort.kube.errors import ApiError
from kohort.sim.cluster import Pool
from kohort.testing.cluster import Cluster, condition

GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
GROUPS = pytest.mark.releases("1.36", "1.37")  # that have groups as objects
NEWEST = pytest.mark.releases("1.37")


@pytest.fixture
def pools() -> Sequence[Pool]:
    """Room for eight pods of one CPU; a label brings a second node into play."""
    return [Pool(name="room", count=2, capacity={"cpu": "4", "memory": "8Gi", "pods": "110"})]


@pytest.fixture
def sets(cluster: Cluster) -> Sets:
    return Sets(cluster)


async def created(cluster: Cluster, name: str) -> Object:
    """The condition about the objects for the scheduler."""
    found = condition(await cluster.get(API, KIND, name), "WorkloadSchedulingCreated")
    assert found is not None
    return found


async def by_gang(sets: Sets) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for name, pod in sorted((await sets.pods()).items()):
        found.setdefault(group_of(pod), []).append(name)
    return found


async def test_l_50_l_60_a_gang_for_each_replica(cluster: Cluster, sets: Sets) -> None:
    await sets.create("duo", replicas=2, size=3, scheduling={})
    await sets.available("duo")
    assert sorted((await by_gang(sets)).values()) == [["duo-0", "duo-0-1", "duo-0-2"], ["duo-1", "duo-1-1", "duo-1-2"]]
    assert "" not in {name for name, _ in await by_gang(sets)}
    (workload,) = await cluster.workloads()
    templates = workload["spec"].get("podGroupTemplates") or workload["spec"]["podGroups"]
    assert [(one["name"], minimum(one)) for one in templates] == [("replica", 3)]
    assert workload["metadata"]["ownerReferences"][0]["name"] == "duo"
    assert (
        workload["metadata"]["name"]
        == (await sets.pods())["duo-0"]["metadata"]["annotations"][PREFIX + "workload-name"]
    )
    assert (await created(cluster, "duo"))["status"] == "True"


@GROUPS
async def test_l_50_objects_come_in_their_order(cluster: Cluster, sets: Sets) -> None:
    await sets.create("duo", replicas=2, size=3, scheduling={})
    await sets.available("duo")
    groups = await cluster.pod_groups()
    assert list((await sets.groups()).values()) == [3, 3]
    assert all(
        sorted(one["kind"] for one in group["metadata"]["ownerReferences"]) == [KIND, "Workload"] for group in groups
    )
    pods = await sets.pods()
    made = {group["metadata"]["name"]: group["metadata"]["creationTimestamp"] for group in groups}
    assert all(made[group_of(pod)[0]] <= pod["metadata"]["creationTimestamp"] for pod in pods.values())


async def test_l_51_one_of_two_fits(cluster: Cluster, sets: Sets) -> None:
    node = (await cluster.client.kind("v1", "Node").list()).items[1]["metadata"]["name"]
    await cluster.client.kind("v1", "Node").patch(node, {"spec": {"unschedulable": True}})
    await sets.create("duo", replicas=2, size=3, scheduling={})
    await sets.settled("duo", readyReplicas=1)
    await cluster.sleep(10)
    assert len(await sets.names()) == 6
    assert await sets.bound() in ({"duo-0", "duo-0-1", "duo-0-2"}, {"duo-1", "duo-1-1", "duo-1-2"})
    await cluster.client.kind("v1", "Node").patch(node, {"spec": {"unschedulable": None}})
    await sets.available("duo")


@NEWEST
async def test_l_52_the_whole_set_as_a_gang(cluster: Cluster, sets: Sets) -> None:
    await sets.create("all", replicas=2, size=2, scheduling=GANG)
    await sets.available("all")
    assert list((await sets.groups()).values()) == [4]
    await sets.patch("all", {"replicas": 0})
    await sets.settled("all", replicas=0)

    async def no_groups() -> bool:
        return not await sets.groups() and not await sets.names()

    await cluster.until(no_groups, what="the group going")
    (workload,) = await cluster.workloads()
    assert minimum(workload["spec"]["podGroupTemplates"][0]) == 1
    await sets.patch("all", {"replicas": 3})
    await sets.available("all")
    assert list((await sets.groups()).values()) == [6]


async def test_l_53_workers_as_a_gang_after_their_leader(cluster: Cluster, sets: Sets) -> None:
    scheduling = {"replica": {"leader": BASIC, "worker": GANG}}
    await sets.create("late", replicas=2, size=3, startupPolicy="LeaderReady", scheduling=scheduling)
    await sets.available("late")
    gangs = sorted((await by_gang(sets)).values())
    assert gangs == [["late-0"], ["late-0-1", "late-0-2"], ["late-1"], ["late-1-1", "late-1-2"]]


REFUSED: dict[str, dict[str, Any]] = {
    "W10": {"startupPolicy": "LeaderReady", "scheduling": {}},
    "W6": {"annotations": {f"{PREFIX}exclusive-topology": "rack"}, "scheduling": {}},
    "size 1 with roles": {"size": 1, "scheduling": {"replica": {"leader": GANG}}},
}


@pytest.mark.parametrize("case", REFUSED)
async def test_l_54_refused_and_nothing_made(cluster: Cluster, sets: Sets, case: str) -> None:
    await refused(cluster, sets, lws("no", **REFUSED[case]))


@GROUPS
async def test_l_54_a_group_by_hand_beside_scheduling(cluster: Cluster, sets: Sets) -> None:
    by_hand = template(schedulingGroup={"podGroupName": "x"})
    await refused(cluster, sets, lws("no", workerTemplate=by_hand, scheduling={}))


async def test_l_55_pods_of_before_and_after_never_share_a_gang(cluster: Cluster, sets: Sets) -> None:
    await sets.create("grp", size=3, scheduling={})
    await sets.available("grp")
    before = await sets.uids()
    await cluster.delete("v1", "Pod", "grp-0")  # the next leader comes while the old workers still stop
    shared: list[Any] = []

    async def renewed() -> bool:
        pods = await sets.pods()
        gangs = {key: group_of(pod) for key, pod in pods.items()}
        new = {key for key, pod in pods.items() if before[key] != pod["metadata"]["uid"]}
        shared.extend({gangs[key] for key in new} & {gangs[key] for key in set(pods) - new})
        return len(new) == 3

    await cluster.until(renewed, what="all pods being new")
    assert not shared
    await sets.available("grp")


@GROUPS
async def test_l_55_a_restart_has_groups_of_its_own(cluster: Cluster, sets: Sets) -> None:
    await sets.create("grp", replicas=2, size=3, scheduling={})
    await sets.available("grp")
    before, old = await sets.uids(), await by_gang(sets)
    await cluster.delete("v1", "Pod", "grp-1-1")
    await sets.renewed(before, {"grp-1", "grp-1-1", "grp-1-2"})
    now = await by_gang(sets)
    assert sorted(now.values()) == sorted(old.values())
    assert len(set(now) & set(old)) == 1  # that of the other replica

    async def tidy() -> bool:
        return set(await sets.groups()) in (set(), {name for name, _ in now})

    await cluster.until(tidy, what="the old group going")


async def test_l_55_a_single_pod_joins_the_group_that_is_there(cluster: Cluster, sets: Sets) -> None:
    await sets.create("grp", size=3, scheduling={}, restartPolicy="None")  # W5
    await sets.available("grp")
    before, old = await sets.uids(), await by_gang(sets)
    await cluster.delete("v1", "Pod", "grp-0-2")
    await sets.renewed(before, {"grp-0-2"})
    assert await by_gang(sets) == old


async def test_l_56_a_rollout_with_another_size(cluster: Cluster, sets: Sets) -> None:
    await sets.create("rev", replicas=2, size=2, scheduling={})
    await sets.available("rev")
    old = await by_gang(sets)
    await sets.patch("rev", {"leaderWorkerTemplate": {"size": 3}})
    await sets.settled("rev", readyReplicas=2, updatedReplicas=2)
    now = await by_gang(sets)
    assert sorted(map(len, now.values())) == [3, 3]
    assert not set(now) & set(old)

    async def tidy() -> bool:
        return len(await cluster.workloads()) == 1 and set((await sets.groups()).values()) <= {3}

    await cluster.until(tidy, what="what the old size needed going")


async def test_l_56_surge_and_a_partition_scaled_down_and_up(cluster: Cluster, sets: Sets) -> None:
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    await sets.create("rev", replicas=2, size=2, scheduling={}, rolloutStrategy=strategy)
    await sets.available("rev")
    await sets.image("rev", "tool:2")
    await sets.settled("rev", replicas=2, readyReplicas=2, updatedReplicas=2)
    rolling |= {"maxSurge": 0, "maxUnavailable": 1, "partition": 2}
    await sets.patch("rev", {"rolloutStrategy": strategy})
    await sets.image("rev", "tool:3")
    await sets.available("rev")
    for replicas in (1, 2):
        await sets.patch("rev", {"replicas": replicas})
        await sets.settled("rev", replicas=replicas, readyReplicas=replicas)
    images = await sets.images()
    assert images["rev-0"] == "tool:2"  # W8: nothing waits on a group that is not there
    assert (await created(cluster, "rev"))["status"] == "True"


def owned(parent: Object, template_name: str, **more: Any) -> Object:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": parent["metadata"]["uid"]}
    notes = {"scheduling.k8s.io/group-template-name": template_name}
    return lws("child", 1, 2, ownerReferences=[{**owner, "controller": True}], annotations=notes, **more)


@NEWEST
async def test_l_57_under_a_parent(cluster: Cluster, sets: Sets) -> None:
    parent = await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "parent"}})
    await cluster.create(owned(parent, "wing"))

    async def waits() -> bool:
        found = condition(await cluster.get(API, KIND, "child"), "WorkloadSchedulingCreated")
        return bool(found and found["reason"] == "ParentWorkloadNotReady")

    await cluster.until(waits, what="waiting for the parent")
    assert not await sets.names()
    await cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": {"name": "whole"},
            "spec": {
                "controllerRef": {"kind": "ConfigMap", "name": "parent"},
                "podGroupTemplates": [{"name": "wing", "schedulingPolicy": {"gang": {"minCount": 2}}}],
            },
        }
    )
    await sets.available("child")
    (group,) = await cluster.pod_groups()
    assert group["spec"]["workloadRef"] == {"workloadName": "whole", "templateName": "wing"}
    assert [one["kind"] for one in group["metadata"]["ownerReferences"]] == [KIND]
    assert len(await cluster.workloads()) == 1


@NEWEST
async def test_l_58_a_tree(cluster: Cluster, sets: Sets) -> None:
    scheduling = {**GANG, "replica": {**GANG, "leader": BASIC, "worker": GANG}}
    await sets.create("tree", replicas=2, size=3, scheduling=scheduling)
    await sets.available("tree")
    root, *branches = sorted(await cluster.composites(), key=lambda one: "parentCompositePodGroupName" in one["spec"])
    assert root["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}
    assert [one["spec"]["parentCompositePodGroupName"] for one in branches] == [root["metadata"]["name"]] * 2
    leaves = await cluster.pod_groups()
    assert sorted(str(label(one, "role")) for one in leaves) == ["leader", "leader", "worker", "worker"]
    before = await sets.uids()
    await cluster.delete("v1", "Pod", "tree-1-2")
    await sets.renewed(before, {"tree-1", "tree-1-1", "tree-1-2"})

    async def tidy() -> bool:
        return (len(await cluster.composites()), len(await cluster.pod_groups())) == (3, 4)

    await cluster.until(tidy, what="the old branch going")
    await cluster.delete(API, KIND, "tree")
    for look in (cluster.pod_groups, cluster.composites, cluster.workloads):

        async def none(look: Any = look) -> bool:
            return not await look()

        await cluster.until(none, what="everything going")


@pytest.mark.admission
@pytest.mark.releases("1.35", "1.36")
async def test_l_58_no_tree_where_there_are_no_composites(cluster: Cluster, sets: Sets) -> None:
    """A definition is the same for all versions."""
    with pytest.raises(ApiError):
        await sets.create("tree", replicas=2, size=3, scheduling={**GANG, "replica": {"worker": GANG}})


@GROUPS
async def test_l_59_a_group_of_somebody_else_is_reported_not_adopted(cluster: Cluster, sets: Sets) -> None:
    await sets.create("own", replicas=0, scheduling={})
    await sets.available("own")
    (workload,) = await cluster.workloads()
    (revision,) = await cluster.every("apps/v1", "ControllerRevision")
    name = f"{workload['metadata']['name']}-0-{label(revision, 'template-revision-hash')}"
    stranger = {"apiVersion": workload["apiVersion"], "kind": "PodGroup", "metadata": {"name": name}}
    await cluster.create({**stranger, "spec": BASIC})
    await sets.patch("own", {"replicas": 2})

    async def told() -> bool:
        return (await created(cluster, "own"))["reason"] == "PodGroupCreateFailed"

    await cluster.until(told, what="the conflict being told")
    await sets.settled("own", readyReplicas=1)
    assert "own-0" not in await sets.names()
    (found,) = [one for one in await cluster.pod_groups() if one["metadata"]["name"] == name]
    assert "ownerReferences" not in found["metadata"]


@GROUPS
async def test_l_49_a_group_by_hand(cluster: Cluster, sets: Sets) -> None:
    version = (await cluster.client.discovery.versions("scheduling.k8s.io", "PodGroup"))[0]
    group = {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup", "metadata": {"name": "mine"}}
    await cluster.create({**group, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
    await sets.create("byo", size=3, workerTemplate=template(schedulingGroup={"podGroupName": "mine"}))
    await sets.available("byo")
    assert [name for name, _ in await by_gang(sets)] == ["mine"]
    assert not await cluster.workloads()
    assert condition(await sets.get("byo"), "WorkloadSchedulingCreated") is None


def test_a_container_asks_for_a_cpu() -> None:
    """What the rooms above are counted in."""
    assert container()["resources"]["requests"] == {"cpu": "1"}
