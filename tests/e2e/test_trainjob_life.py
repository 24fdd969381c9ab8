"""The life of TrainJobs and their groups (spec trainjob 6, scenarios 50 to 72 and 80)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.e2e import training as t
from tests.kinds.trainer.compile.build import rjob, trainer

from kohort.api.kind import Object
from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster, condition


async def versions(cluster: Cluster) -> list[str]:
    found = [*await cluster.workloads(), *await cluster.pod_groups(), *await cluster.every(*t.CONFIG_MAP)]
    jobset = await cluster.get(*t.JOBSET, "job")
    assert jobset is not None
    return [f"{obj['kind']} {obj['metadata']['uid']} {obj['metadata']['resourceVersion']}" for obj in found] + [
        str(jobset["metadata"]["generation"])
    ]


async def brought(cluster: Cluster, **owner: Any) -> Object:
    """The Workload that a job "job" of two nodes gets, for a user to make: without owner and with another name."""
    await cluster.create(t.runtime(), t.trainjob(2))
    await cluster.running(2)
    (workload,) = await cluster.workloads()
    await cluster.delete(*t.TRAINJOB, "job")
    await t.no_groups(cluster)
    await cluster.gone(*t.JOBSET)
    body = {"apiVersion": workload["apiVersion"], "kind": "Workload", "spec": workload["spec"]}
    return {**body, "metadata": {"name": "mine", **owner}}


# ---- again and again


async def test_50_looking_again_changes_nothing(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(3))
    await cluster.running(3)
    await cluster.sleep(5)
    before = await versions(cluster)
    for number in range(3):
        await cluster.patch(*t.TRAINJOB, "job", {"metadata": {"labels": {"look": str(number)}}})
        await cluster.sleep(3)
    assert await versions(cluster) == before
    assert len(await cluster.workloads()) == 1


async def test_51_what_a_crash_left_is_used(cluster: Cluster) -> None:
    workload = await brought(cluster)
    made = await cluster.create(t.trainjob(2, suspend=True))
    owner = {key: made[key] for key in ("apiVersion", "kind")} | {"name": "job", "uid": made["metadata"]["uid"]}
    reference = {**owner, "controller": True, "blockOwnerDeletion": True}
    stored = await cluster.create({**workload, "metadata": {"name": "job", "ownerReferences": [reference]}})
    await t.suspend(cluster, False)
    await cluster.running(2)
    (found,) = await cluster.workloads()
    assert found["metadata"]["uid"] == stored["metadata"]["uid"]


# ---- suspension


async def test_53_54_55_suspended_resumed_suspended(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(3, suspend=True))
    await t.idle(cluster)
    assert await t.uids(cluster) == []
    job = await cluster.get(*t.TRAINJOB, "job")
    assert (condition(job, "Suspended") or {})["reason"] == "Suspended"
    await t.suspend(cluster, False)
    pods = await cluster.running(3)
    assert len(await cluster.workloads()) == 1
    job = await cluster.get(*t.TRAINJOB, "job")
    assert [(condition(job, "Suspended") or {})[key] for key in ("status", "reason")] == ["False", "Resumed"]
    name = t.group_of(pods[0])
    await t.suspend(cluster)
    await t.idle(cluster)
    await t.no_groups(cluster)
    await t.suspend(cluster, False)
    assert {t.group_of(pod) for pod in await cluster.running(3)} == {name}


@pytest.mark.releases("1.36", "1.37")
async def test_56_a_group_on_its_way_out_is_waited_for(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(2))
    await cluster.running(2)
    (group,) = await cluster.pod_groups()
    resource = cluster.client.kind(group["apiVersion"], "PodGroup")
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await resource.patch(group["metadata"]["name"], held, cluster.namespace)
    await t.suspend(cluster)
    await t.idle(cluster)

    async def going() -> bool:
        return all(one["metadata"].get("deletionTimestamp") for one in await cluster.pod_groups())

    await cluster.until(going)
    await t.suspend(cluster, False)

    async def resumed() -> bool:
        jobset = await cluster.get(*t.JOBSET, "job")
        return jobset is not None and not jobset["spec"]["suspend"]

    await cluster.never(resumed, 5)
    await resource.patch(group["metadata"]["name"], {"metadata": {"finalizers": None}}, cluster.namespace)
    await cluster.until(resumed)
    await cluster.running(2)
    (again,) = await cluster.pod_groups()
    assert again["metadata"]["name"] == group["metadata"]["name"]
    assert again["metadata"]["uid"] != group["metadata"]["uid"]


async def test_66_a_patch_while_suspended_reaches_the_pods(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(2, suspend=True))
    await t.idle(cluster)
    before = await cluster.get(*t.JOBSET, "job")
    assert before is not None
    pod = {"tolerations": [{"key": "spot", "operator": "Exists"}]}
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]
    entry = {"manager": "acme.io/tool", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    await cluster.patch(*t.TRAINJOB, "job", {"spec": {"runtimePatches": [entry]}})

    async def patched() -> bool:
        jobset = await cluster.get(*t.JOBSET, "job")
        return jobset is not None and any(
            one.get("key") == "spot" for one in t.pod_template(jobset).get("tolerations", ())
        )

    await cluster.until(patched)
    await t.suspend(cluster, False)
    pods = await cluster.running(2)
    assert all(any(one.get("key") == "spot" for one in pod["spec"]["tolerations"]) for pod in pods)
    after = await cluster.get(*t.JOBSET, "job")
    assert after is not None
    link = ("schedulingGroup", "workloadRef")
    assert [t.pod_template(after).get(key) for key in link] == [t.pod_template(before).get(key) for key in link]
    assert t.groups_of((await cluster.workloads())[0]) == {"trainer": 2}


# ---- deletion


@pytest.mark.releases("1.36", "1.37")
async def test_58_deletion_with_running_pods(cluster: Cluster) -> None:
    jobs = t.lasting(trainer(terminationGracePeriodSeconds=30), t.FOR_EVER, stop_seconds="5")
    await cluster.create(t.runtime(jobs), t.trainjob(2))
    await cluster.running(2)
    await cluster.delete(*t.TRAINJOB, "job")

    async def half() -> bool:
        groups = await cluster.pod_groups()
        return not await cluster.workloads() and any(one["metadata"].get("deletionTimestamp") for one in groups)

    await cluster.until(half, what="the Workload gone, the PodGroup held by its pods")
    assert await cluster.pods()
    await t.no_groups(cluster)
    await cluster.gone(*t.JOBSET)
    await cluster.gone("v1", "Pod")
    assert [one for one in await cluster.every(*t.CONFIG_MAP) if one["metadata"]["name"].startswith("job-")] == []


async def test_59_a_workload_that_somebody_deletes(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(2))
    await cluster.running(2)
    groups = [one["metadata"]["uid"] for one in await cluster.pod_groups()]
    (workload,) = await cluster.workloads()
    await cluster.delete(workload["apiVersion"], "Workload", "job")
    await t.told(cluster, "WorkloadMissing")
    await cluster.sleep(10)
    assert await cluster.workloads() == []
    assert [one["metadata"]["uid"] for one in await cluster.pod_groups()] == groups
    assert len(await cluster.running(2)) == 2


async def test_60_deleted_and_made_again_at_once(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(2))
    old = await cluster.running(2)
    before = await t.uids(cluster)
    await cluster.delete(*t.TRAINJOB, "job")
    made = await cluster.create(t.trainjob(2))

    async def renewed() -> bool:
        jobset = await cluster.get(*t.JOBSET, "job")
        owner = (jobset or {"metadata": {}})["metadata"].get("ownerReferences", [{}])[0]
        return bool(owner.get("uid") == made["metadata"]["uid"])

    await cluster.until(renewed)
    gone = {pod["metadata"]["uid"] for pod in old}

    async def all_new() -> bool:
        """A garbage collector that is late leaves the old ones for a moment."""
        return gone.isdisjoint(pod["metadata"]["uid"] for pod in await cluster.pods())

    await cluster.until(all_new, what="the end of the old pods")
    await cluster.running(2)
    assert not set(await t.uids(cluster)) & set(before)
    (workload,) = await cluster.workloads()
    assert workload["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


# ---- Workloads of others


async def test_61_a_foreign_workload_of_the_jobs_name(cluster: Cluster) -> None:
    workload = await brought(cluster)
    foreign = deepcopy(workload)
    foreign["metadata"]["name"] = "job"
    foreign["spec"]["controllerRef"] = {"apiGroup": "batch", "kind": "Job", "name": "other"}
    await cluster.create(foreign, t.trainjob(2))
    (event,) = await t.told(cluster, "TrainJobResourcesCreationFailed")
    assert "job" in event["message"]
    assert await cluster.get(*t.JOBSET, "job") is None
    await cluster.delete(workload["apiVersion"], "Workload", "job")
    await cluster.running(2)


async def test_62_two_workloads_for_one_job(cluster: Cluster) -> None:
    workload = await brought(cluster)
    second = {**workload, "metadata": {"name": "mine-too"}}
    await cluster.create(workload, second, t.trainjob(2))
    (event,) = await t.told(cluster, "TrainJobResourcesCreationFailed")
    assert "mine" in event["message"]
    assert "mine-too" in event["message"]
    assert await cluster.get(*t.JOBSET, "job") is None
    assert len(await cluster.workloads()) == 2
    assert await cluster.pod_groups() == []


async def test_63_a_workload_that_a_user_has_made(cluster: Cluster) -> None:
    workload = await brought(cluster)
    await cluster.create(workload, t.trainjob(2))
    await cluster.running(2)
    (found,) = await cluster.workloads()
    assert found["metadata"]["name"] == "mine"
    assert "ownerReferences" not in found["metadata"]
    assert all("mine" in str(group["spec"]) for group in await cluster.pod_groups())
    await t.suspend(cluster)
    await t.idle(cluster)

    async def gone() -> bool:
        return not await cluster.pod_groups()

    await cluster.until(gone)
    assert len(await cluster.workloads()) == 1


# ---- what may not change, and what has no effect


async def test_64_sizes_are_frozen(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(4), t.trainjob(name="bare"))
    for name, change in (("job", {"trainer": {"numNodes": 5}}), ("bare", {"trainer": {"numNodes": 2}})):
        with pytest.raises(ApiError) as refused:
            await cluster.patch(*t.TRAINJOB, name, {"spec": change})
        assert refused.value.code == 422


async def test_65_runtimes_are_taken_as_they_were(cluster: Cluster) -> None:
    await cluster.create(t.runtime(ml={"numNodes": 2}), t.trainjob())
    await cluster.running(2)
    await cluster.sleep(5)
    before = await versions(cluster)
    await cluster.patch(t.API_VERSION, "TrainingRuntime", "rt", {"spec": {"mlPolicy": {"numNodes": 5}}})
    await cluster.patch(*t.TRAINJOB, "job", {"metadata": {"labels": {"look": "again"}}})
    await cluster.sleep(5)
    assert await versions(cluster) == before
    await cluster.delete(t.API_VERSION, "TrainingRuntime", "rt")
    await t.suspend(cluster)
    await t.idle(cluster)
    await t.suspend(cluster, False)
    await cluster.running(2)


async def test_67_managed_elsewhere(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(2, managedBy="kueue.x-k8s.io/multikueue"))
    await cluster.sleep(5)
    assert await cluster.get(*t.JOBSET, "job") is None
    assert await cluster.get(*t.CONFIG_MAP, "job-runtime-snapshot") is None
    assert await t.uids(cluster) == []
    job = await cluster.get(*t.TRAINJOB, "job")
    assert job is not None
    assert not job.get("status")


# ---- the end


async def test_71_deadline(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(2, activeDeadlineSeconds=10))
    await cluster.running(2)
    groups = await t.uids(cluster)
    failed = await cluster.until(lambda: cluster.condition(*t.TRAINJOB, "job", "Failed"))
    assert failed["reason"] == "DeadlineExceeded"
    await cluster.gone(*t.JOBSET)
    await cluster.gone("v1", "Pod")
    await cluster.sleep(5)
    assert await t.uids(cluster) == groups
    assert await cluster.get(*t.JOBSET, "job") is None


async def test_72_a_restart_of_the_jobset_keeps_the_groups(cluster: Cluster) -> None:
    once = t.lasting(trainer(), 1, exit_code="1")
    once["template"]["spec"]["backoffLimit"] = 0
    await cluster.create(t.runtime(once, template={"failurePolicy": {"maxRestarts": 1}}), t.trainjob(2))
    first = await cluster.running(2)
    groups = await t.uids(cluster)

    async def restarted() -> bool:
        jobset = await cluster.get(*t.JOBSET, "job")
        return jobset is not None and jobset.get("status", {}).get("restarts") == 1

    await cluster.until(restarted)
    second = await cluster.running(2)
    assert await t.uids(cluster) == groups
    assert {t.group_of(pod) for pod in first} == {t.group_of(pod) for pod in second}
    failed = await cluster.until(lambda: cluster.condition(*t.TRAINJOB, "job", "Failed"))
    assert failed["reason"] == "ReachedMaxRestarts"
    assert await t.uids(cluster) == groups


async def test_80_a_finished_job_is_left_alone(cluster: Cluster) -> None:
    await cluster.create(t.runtime(seconds=1), t.trainjob(2))
    await t.complete(cluster)
    await cluster.sleep(5)
    before = await versions(cluster)
    stored = await cluster.get(*t.TRAINJOB, "job")
    await cluster.patch(*t.TRAINJOB, "job", {"metadata": {"labels": {"look": "again"}}})
    await cluster.sleep(3)
    after = await cluster.get(*t.TRAINJOB, "job")
    assert stored is not None
    assert after is not None
    assert after["status"] == stored["status"]
    assert await versions(cluster) == before
    await cluster.delete(*t.JOBSET, "job")
    await cluster.sleep(5)
    assert await cluster.get(*t.JOBSET, "job") is None


async def test_keys_and_hostfile_are_put_right(cluster: Cluster) -> None:
    """Recorded l-mpi-secret: an edited hostfile is put back, lost keys are made again."""
    await cluster.create(t.runtime(trainer("launcher"), rjob("node"), ml={"mpi": {}}), t.trainjob(2))
    await cluster.running(3)
    hosts, keys = await cluster.get(*t.CONFIG_MAP, "job-mpi-hostfile"), await cluster.get(*t.SECRET, "job-mpi-ssh-auth")
    assert hosts is not None
    assert keys is not None
    await cluster.patch(*t.CONFIG_MAP, "job-mpi-hostfile", {"data": {"hostfile": "edited", "more": "1"}})
    await cluster.delete(*t.SECRET, "job-mpi-ssh-auth")

    async def right() -> bool:
        found = await cluster.get(*t.CONFIG_MAP, "job-mpi-hostfile")
        again = await cluster.get(*t.SECRET, "job-mpi-ssh-auth")
        return (
            found is not None
            and again is not None
            and found["data"] == {"hostfile": hosts["data"]["hostfile"], "more": "1"}
        )

    await cluster.until(right)
    again = await cluster.get(*t.SECRET, "job-mpi-ssh-auth")
    assert again is not None
    assert again["data"] != keys["data"]
