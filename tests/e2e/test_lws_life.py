"""Lives of LeaderWorkerSets on a whole cluster, without gangs (spec lws 5; each test is named after its row)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.lws import API, KIND, PREFIX, Sets, env, label, lws, ready, template

from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster, condition


@pytest.fixture
def sets(cluster: Cluster) -> Sets:
    return Sets(cluster)


async def test_l_14_a_name_too_long_for_upstreams_statefulsets_runs_here(sets: Sets) -> None:
    name = "n" * 55
    await sets.create(name, size=2)
    await sets.available(name)
    assert await sets.names() == [f"{name}-0", f"{name}-0-1"]


async def test_l_15_objects_of_a_set(cluster: Cluster, sets: Sets) -> None:
    made = await sets.create("duo", replicas=2, size=3, labels={"team": "blue"})
    found = await sets.available("duo")
    assert await sets.names() == ["duo-0", "duo-0-1", "duo-0-2", "duo-1", "duo-1-1", "duo-1-2"]
    pods = await sets.pods()
    leader, worker = pods["duo-1"], pods["duo-1-2"]
    assert [one["kind"] for one in leader["metadata"]["ownerReferences"]] == [KIND]
    assert [one["uid"] for one in worker["metadata"]["ownerReferences"]] == [leader["metadata"]["uid"]]
    assert worker["spec"]["hostname"], worker["spec"]["subdomain"] == ("duo-1-2", "duo")
    assert env(worker)["LWS_LEADER_ADDRESS"] == f"duo-1.duo.{cluster.namespace}"
    assert (env(worker)["LWS_GROUP_SIZE"], env(worker)["LWS_WORKER_INDEX"]) == ("3", "2")
    assert label(leader, "group-key") == label(worker, "group-key")
    service = await cluster.get("v1", "Service", "duo")
    assert service is not None
    assert service["spec"]["selector"] == {f"{PREFIX}name": "duo"}
    (revision,) = await cluster.every("apps/v1", "ControllerRevision")
    assert revision["metadata"]["name"] == f"duo-{label(leader, 'template-revision-hash')}-1"
    assert revision["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    status = found["status"]
    assert [status[key] for key in ("replicas", "readyReplicas", "updatedReplicas")] == [2, 2, 2]
    assert status["hpaPodSelector"] == f"{PREFIX}name=duo,{PREFIX}worker-index=0"
    assert not await cluster.every("apps/v1", "StatefulSet")


async def test_l_17_workers_do_not_wait_for_their_leader(cluster: Cluster, sets: Sets) -> None:
    slow = template(annotations={"sim.kohort.dev/never-ready": "true"})
    await sets.create("pair", size=2, leaderTemplate=slow)
    await cluster.running(2)
    assert not await cluster.condition(API, KIND, "pair", "Available")


async def test_l_18_a_leader_alone(sets: Sets) -> None:
    await sets.create("one", replicas=2, size=1)
    await sets.available("one")
    assert await sets.names() == ["one-0", "one-1"]
    before = await sets.uids()
    await sets.restart_container("one-1")
    await sets.renewed(before, {"one-1"})
    await sets.image("one", "tool:2")
    await sets.available("one")
    assert set((await sets.images()).values()) == {"tool:2"}


async def test_l_19_none_two_none(sets: Sets) -> None:
    await sets.create("nil", replicas=0)
    assert (await sets.available("nil"))["status"].get("replicas", 0) == 0
    await sets.patch("nil", {"replicas": 2})
    await sets.available("nil")
    assert len(await sets.names()) == 4
    await sets.patch("nil", {"replicas": 0})
    await sets.settled("nil", replicas=0)
    assert condition(await sets.get("nil"), "Available")["status"] == "True"  # type: ignore[index]


async def test_l_20_a_subdomain_for_each_group(cluster: Cluster, sets: Sets) -> None:
    await sets.create("net", replicas=2)
    await sets.available("net")
    before = await sets.uids()
    await sets.patch("net", {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}})
    await sets.available("net")
    await sets.renewed(before, set(before))
    services = await cluster.every("v1", "Service", f"{PREFIX}name=net")
    assert [one["metadata"]["name"] for one in services] == ["net", "net-0", "net-1"]  # the shared one stays
    pods = await sets.pods()
    assert services[1]["metadata"]["ownerReferences"][0]["uid"] == pods["net-0"]["metadata"]["uid"]
    assert env(pods["net-0-1"])["LWS_LEADER_ADDRESS"] == f"net-0.net-0.{cluster.namespace}"


async def test_l_21_subgroups(sets: Sets) -> None:
    cases: dict[str, tuple[int, dict[str, Any], str]] = {
        "even": (4, {"subGroupSize": 2}, "0011"),
        "odd": (5, {"subGroupSize": 2}, "00011"),
        "excl": (5, {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}, "-0011"),
    }
    for name, (size, policy, _) in cases.items():
        await sets.create(name, size=size, subGroupPolicy=policy)
    for name, (_, _, indices) in cases.items():
        await sets.available(name)
        pods = await sets.pods(name)
        assert "".join(label(pods[one], "subgroup-index") or "-" for one in sorted(pods)) == indices


async def test_l_25_claims_of_pods(cluster: Cluster, sets: Sets) -> None:
    claim: dict[str, Any] = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none"},
    }
    claim["spec"] |= {"resources": {"requests": {"storage": "1Gi"}}}
    retention = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    await sets.create("vol", replicas=2, volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=retention)

    async def claims(*names: str) -> None:
        async def look() -> bool:
            every = await cluster.every("v1", "PersistentVolumeClaim")
            living = [one["metadata"]["name"] for one in every if "deletionTimestamp" not in one["metadata"]]
            return living == list(names)

        await cluster.until(look, what=f"claims {names}")

    await claims("data-vol-0", "data-vol-0-1", "data-vol-1", "data-vol-1-1")
    with pytest.raises(ApiError):
        await sets.patch("vol", {"leaderWorkerTemplate": {"volumeClaimTemplates": None}})
    await sets.patch("vol", {"replicas": 1})
    await claims("data-vol-0", "data-vol-0-1")


async def test_l_27_pods_that_are_refused_are_told_once_and_make_one_revision(cluster: Cluster, sets: Sets) -> None:
    await sets.create("bad", workerTemplate=template(priorityClassName="no-such-class"))
    await cluster.until(lambda: sets.notes("FailedCreate"), what="a refusal being told")
    await cluster.sleep(20)
    assert len(await cluster.every("apps/v1", "ControllerRevision")) == 1
    assert await cluster.condition(API, KIND, "bad", "Progressing")


async def test_l_28_names_that_are_taken(cluster: Cluster, sets: Sets) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "own"}, "spec": {"ports": [{"port": 80}]}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "own-1"}, "spec": template()["spec"]}
    await cluster.create(service, pod)
    await sets.create("own", replicas=2)
    await sets.settled("own", readyReplicas=1)
    await cluster.until(lambda: sets.notes("FailedCreate"), what="the conflict being told")
    kept = await cluster.get("v1", "Service", "own")
    assert kept is not None
    assert "ownerReferences" not in kept["metadata"]
    stranger = (await sets.pods())["own-1"]
    assert "ownerReferences" not in stranger["metadata"]


async def test_l_29_workers_after_a_ready_leader(cluster: Cluster, sets: Sets) -> None:
    slow = template(annotations={"sim.kohort.dev/ready-seconds": "5"})
    await sets.create("late", startupPolicy="LeaderReady", leaderTemplate=slow, size=3)
    await cluster.running(1)
    assert await sets.names() == ["late-0"]
    await sets.available("late")
    assert await sets.names() == ["late-0", "late-0-1", "late-0-2"]


GROUP = {"grp-1", "grp-1-1", "grp-1-2"}


async def test_l_30_a_group_starts_anew_with_one_of_its_pods(cluster: Cluster, sets: Sets) -> None:
    await sets.create("grp", replicas=2, size=3)
    await sets.available("grp")
    before = await sets.uids()
    await cluster.delete("v1", "Pod", "grp-1-2")
    await sets.renewed(before, GROUP)
    before = await sets.uids()
    await sets.restart_container("grp-1-1")
    await sets.renewed(before, GROUP)
    before = await sets.uids()
    await sets.restart_container("grp-1")
    await sets.renewed(before, GROUP)
    before = await sets.uids()
    await sets.fail("grp-1-1")
    await sets.renewed(before, GROUP)
    note = "Worker pod grp-1-1 failed, deleted leader pod grp-1 to recreate group 1"
    assert note in await sets.notes("RecreateGroup")


async def test_l_31_nothing_new_before_the_old_has_gone(cluster: Cluster, sets: Sets) -> None:
    await sets.create("grp", size=3)
    await sets.available("grp")
    before = await sets.uids()
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await cluster.patch("v1", "Pod", "grp-0-2", held)
    await cluster.delete("v1", "Pod", "grp-0-1")

    async def alone() -> bool:
        return await sets.names() == ["grp-0", "grp-0-2"]

    await cluster.until(alone, what="the others going")
    await cluster.sleep(10)
    leader = (await sets.pods())["grp-0"]
    assert leader["metadata"]["uid"] == before["grp-0"]
    assert leader["metadata"]["finalizers"] == ["foregroundDeletion"]
    await cluster.patch("v1", "Pod", "grp-0-2", {"metadata": {"finalizers": None}})
    await sets.renewed(before, {"grp-0", "grp-0-1", "grp-0-2"})


@pytest.mark.parametrize("policy", ["RecreateGroupOnPodRestart", "None"])
async def test_l_32_a_leader_takes_its_group_along(cluster: Cluster, sets: Sets, policy: str) -> None:
    await sets.create("grp", replicas=2, size=3, restartPolicy=policy)
    await sets.available("grp")
    before = await sets.uids()
    await cluster.delete("v1", "Pod", "grp-1")
    await sets.renewed(before, GROUP)
    assert "RecreateGroup" not in await sets.reasons()


async def test_l_33_only_that_pod(cluster: Cluster, sets: Sets) -> None:
    await sets.create("grp", replicas=2, size=3, restartPolicy="None")
    await sets.available("grp")
    before = await sets.uids()
    await cluster.delete("v1", "Pod", "grp-1-2")
    await sets.renewed(before, {"grp-1-2"})
    before = await sets.uids()
    await sets.restart_container("grp-1-1")
    await cluster.sleep(10)
    assert await sets.uids() == before


@pytest.mark.parametrize("by_annotation", [False, True])
async def test_l_34_restarts_before_the_start_are_forgiven(cluster: Cluster, sets: Sets, by_annotation: bool) -> None:
    more: dict[str, Any] = {"restartPolicy": "RecreateGroupAfterStart"}
    if by_annotation:
        more = {"annotations": {f"{PREFIX}experimental-recreate-group-after-start": "yes"}}
    slow = template(nodeSelector={"special": "yes"})
    await sets.create("grp", size=2, workerTemplate=slow, leaderTemplate=template(), **more)
    await cluster.running(1)
    before = await sets.uids()
    await sets.restart_container("grp-0")
    await cluster.sleep(5)
    node = (await cluster.client.kind("v1", "Node").list()).items[0]["metadata"]["name"]
    await cluster.client.kind("v1", "Node").patch(node, {"metadata": {"labels": {"special": "yes"}}})
    await sets.available("grp")
    assert await sets.uids() == before
    await sets.restart_container("grp-0-1")
    await sets.renewed(before, {"grp-0", "grp-0-1"})


async def test_l_35_all_workers_deleted_by_hand(cluster: Cluster, sets: Sets) -> None:
    await sets.create("grp", size=3, restartPolicy="None")
    await sets.available("grp")
    before = await sets.uids()
    for name in ("grp-0-1", "grp-0-2"):
        await cluster.delete("v1", "Pod", name)
    await sets.renewed(before, {"grp-0-1", "grp-0-2"})


async def test_l_46_scale_and_status(cluster: Cluster, sets: Sets) -> None:
    await sets.create("sca", replicas=2)
    await sets.available("sca")
    await sets.patch("sca", {"replicas": 4}, "scale")
    await sets.settled("sca", readyReplicas=4)
    scale = await cluster.client.kind(API, KIND).get("sca", cluster.namespace, subresource="scale")
    assert scale["status"] == {"replicas": 4, "selector": f"{PREFIX}name=sca,{PREFIX}worker-index=0"}
    await sets.patch("sca", {"replicas": 1}, "scale")
    await sets.settled("sca", replicas=1, readyReplicas=1, updatedReplicas=1)

    async def rest() -> bool:
        return await sets.names() == ["sca-0", "sca-0-1"]

    await cluster.until(rest, what="the others going")
    with pytest.raises(ApiError) as refused:
        await sets.patch("sca", {"replicas": -1}, "scale")
    assert refused.value.code == 422


@pytest.mark.parametrize("how", ["Background", "Foreground"])
async def test_l_47_nothing_is_left(cluster: Cluster, sets: Sets, how: str) -> None:
    await sets.create("del", replicas=2)
    await sets.available("del")
    await cluster.delete(API, KIND, "del", propagation=how)
    await cluster.gone(API, KIND)
    await cluster.gone("v1", "Pod")
    await cluster.gone("apps/v1", "ControllerRevision")

    async def no_service() -> bool:
        return await cluster.get("v1", "Service", "del") is None

    await cluster.until(no_service)


async def test_l_47_orphans_are_adopted(cluster: Cluster, sets: Sets) -> None:
    pods = template()
    pods["spec"]["containers"][0]["command"] = ["sh", "-c", "a <b >c && d"]  # a server writes these in its own way
    await sets.create("del", replicas=2, workerTemplate=pods)
    await sets.available("del")
    before = await sets.uids()
    await cluster.delete(API, KIND, "del", propagation="Orphan")
    await cluster.gone(API, KIND)
    made = await cluster.create(lws("del", 2, workerTemplate=pods))
    await sets.available("del")
    await cluster.sleep(5)
    assert await sets.uids() == before
    owners = [
        pod["metadata"]["ownerReferences"][0]["uid"] for name, pod in (await sets.pods()).items() if len(name) == 5
    ]
    assert owners == [made["metadata"]["uid"]] * 2
    assert len(await cluster.every("apps/v1", "ControllerRevision")) == 1
    assert all(ready(pod) for pod in (await sets.pods()).values())
