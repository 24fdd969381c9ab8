"""TrainJobs become groups and run (spec trainjob 6, scenarios 1 to 49 where a cluster has something to say)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e import training as t
from tests.kinds.trainer.compile.build import initializer, rjob, trainer

from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster

MPI = {"mpi": {"numProcPerNode": 2}}


async def test_1_torch_gang_starts_and_completes(cluster: Cluster) -> None:
    await cluster.create(t.runtime(seconds=2), t.trainjob(8))
    await t.complete(cluster)
    (workload,) = await cluster.workloads()
    assert t.groups_of(workload) == {"trainer": 8}
    jobset = await cluster.get(*t.JOBSET, "job")
    assert jobset is not None
    assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 8
    pods = await cluster.pods()
    groups = {group["metadata"]["name"] for group in await cluster.pod_groups()} or {"job/trainer"}
    assert {t.group_of(pod) for pod in pods} == groups
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"] * 8


async def test_5_no_nodes_completes_at_once(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(0))
    await t.complete(cluster)
    assert t.groups_of((await cluster.workloads())[0]) == {"trainer": 1}
    assert await cluster.pods() == []


async def test_6_without_policy_nothing_is_grouped(cluster: Cluster) -> None:
    """Not by the TrainJob, that is: 1.36 takes Jobs of that shape for gangs, whoever owns them."""
    await cluster.create(t.runtime(groups=False), t.trainjob(3))
    await cluster.running(3)
    assert [one for one in await cluster.workloads() if one["spec"]["controllerRef"]["kind"] == "TrainJob"] == []
    jobset = await cluster.get(*t.JOBSET, "job")
    assert jobset is not None
    assert not {"schedulingGroup", "workloadRef"} & t.pod_template(jobset).keys()


async def test_7_one_policy_only(cluster: Cluster) -> None:
    with pytest.raises(ApiError) as refused:
        await cluster.create(t.runtime(podGroupPolicy={"workload": {}, "volcano": {}}))
    assert refused.value.code == 422


async def test_8_policy_and_alias(cluster: Cluster) -> None:
    """Refused where Kohort's rules stand in front of the API; nothing is built from it in any case."""
    try:
        await cluster.create(t.runtime(podGroupPolicy={"workload": {}}, scheduling={}))
    except ApiError as error:
        if error.code != 422:
            raise
        return
    await cluster.create(t.trainjob(2))
    (event,) = await t.told(cluster, "TrainJobResourcesCreationFailed")
    assert "scheduling" in event["message"]
    assert await cluster.get(*t.JOBSET, "job") is None


async def test_11_updates_of_runtimes_are_checked(cluster: Cluster) -> None:
    await cluster.create(t.runtime())
    change: dict[str, Any] = {"spec": {"podGroupPolicy": {"coscheduling": {}}}}
    with pytest.raises(ApiError) as refused:
        await cluster.patch(t.API_VERSION, "TrainingRuntime", "rt", change)
    assert refused.value.code == 422


async def test_12_launcher_and_nodes_are_one_gang(cluster: Cluster) -> None:
    await cluster.create(t.runtime(trainer("launcher"), rjob("node"), ml=MPI, seconds=2), t.trainjob(6))
    await t.complete(cluster)
    assert t.groups_of((await cluster.workloads())[0]) == {"trainer": 7}
    assert len({t.group_of(pod) for pod in await cluster.pods()}) == 1
    hosts = await cluster.get(*t.CONFIG_MAP, "job-mpi-hostfile")
    keys = await cluster.get(*t.SECRET, "job-mpi-ssh-auth")
    assert hosts is not None
    assert keys is not None
    assert hosts["data"]["hostfile"].splitlines() == [f"job-node-0-{pod}.job slots=2" for pod in range(6)]
    assert set(keys["data"]) == {"ssh-privatekey", "ssh-publickey"}
    assert keys["immutable"]


async def test_13_launcher_that_waits_for_its_nodes_joins_their_gang(cluster: Cluster) -> None:
    launcher = trainer("launcher", after=[("node", "Ready")])
    success = {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]}}
    jobs = (t.lasting(rjob("node"), t.FOR_EVER), t.lasting(launcher, 2))
    await cluster.create(t.runtime(*jobs, ml=MPI, template=success), t.trainjob(4))
    await cluster.running(5)
    assert t.groups_of((await cluster.workloads())[0]) == {"trainer": 4}
    assert len({t.group_of(pod) for pod in await cluster.pods()}) == 1
    await t.complete(cluster)


async def test_18_initializers_first_then_the_gang(cluster: Cluster) -> None:
    after = trainer(after=[("dataset-initializer", "Complete"), ("model-initializer", "Complete")])
    jobs = (initializer("dataset-initializer"), initializer("model-initializer"), after)
    await cluster.create(t.runtime(*jobs, seconds=1), t.trainjob(4))
    await t.complete(cluster)
    (workload,) = await cluster.workloads()
    assert t.groups_of(workload) == {"initializer": None, "trainer": 4}
    first = {t.group_of(pod) for pod in await cluster.pods("jobset.sigs.k8s.io/replicatedjob-name!=node")}
    then = {t.group_of(pod) for pod in await cluster.pods("jobset.sigs.k8s.io/replicatedjob-name=node")}
    assert len(first) == len(then) == 1
    assert first != then


async def test_20_an_evaluator_is_a_gang_of_its_own(cluster: Cluster) -> None:
    evaluator = rjob("evaluator", parallelism=2, after=[("node", "Complete")])
    await cluster.create(t.runtime(trainer(), evaluator, seconds=1), t.trainjob(3))
    await t.complete(cluster)
    assert t.groups_of((await cluster.workloads())[0]) == {"trainer": 3, "evaluator": 2}


async def test_21_a_misplaced_label_is_told(cluster: Cluster) -> None:
    job = rjob("node")
    job["template"]["spec"]["template"]["metadata"] = {"labels": {t.STEP_LABEL: "trainer"}}
    body = t.runtime(job)
    await cluster.create(body, t.trainjob(9))
    (event,) = await t.told(cluster, "RuntimeWarning")
    assert "trainer" in event["message"]
    assert t.groups_of((await cluster.workloads())[0]) == {"node": 1}


async def test_23_jobs_of_a_helper_are_one_gang(cluster: Cluster) -> None:
    await cluster.create(t.runtime(trainer(), rjob("helper", replicas=3, parallelism=2), seconds=1), t.trainjob(2))
    await t.complete(cluster)
    assert t.groups_of((await cluster.workloads())[0]) == {"trainer": 2, "helper": 6}


async def test_25_26_the_whole_job_is_one_gang_unless_it_is_sequenced(cluster: Cluster) -> None:
    whole: dict[str, Any] = {"scheduling": {"schedulingPolicy": {"gang": {}}}}
    await cluster.create(t.runtime(rjob("helper", parallelism=2), trainer(), workload=whole, seconds=1), t.trainjob(5))
    await t.complete(cluster)
    assert t.groups_of((await cluster.workloads())[0]) == {"job": 7}
    waiting = t.runtime(
        rjob("helper", parallelism=2), trainer(after=[("helper", "Complete")]), workload=whole, seconds=1
    )
    waiting["metadata"]["name"] = "waiting"
    await cluster.create(waiting, t.trainjob(5, name="then", runtimeRef={"name": "waiting", "kind": "TrainingRuntime"}))
    await t.complete(cluster, "then")
    second = next(one for one in await cluster.workloads() if one["metadata"]["name"] == "then")
    assert t.groups_of(second) == {"helper": 2, "node": 5}


@pytest.mark.releases("1.36", "1.37")
async def test_37_46_47_groups_name_class_and_owners(cluster: Cluster) -> None:
    name = {"metadata": {"name": "batch-high"}, "value": 7000}
    await cluster.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **name})
    await cluster.create(t.runtime(trainer(priorityClassName="batch-high")), job := t.trainjob(2))
    await cluster.running(2)
    stored = await cluster.get(*t.TRAINJOB, job["metadata"]["name"])
    (workload,), (group,) = await cluster.workloads(), await cluster.pod_groups()
    assert stored is not None
    assert group["spec"]["priorityClassName"] == "batch-high"
    assert workload["spec"]["controllerRef"] == {"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob", "name": "job"}
    owner = {"apiVersion": t.API_VERSION, "kind": "TrainJob", "name": "job", "uid": stored["metadata"]["uid"]}
    owner |= {"controller": True, "blockOwnerDeletion": True}
    assert workload["metadata"]["ownerReferences"] == [owner]
    second = {
        "apiVersion": workload["apiVersion"],
        "kind": "Workload",
        "name": "job",
        "uid": workload["metadata"]["uid"],
    }
    assert group["metadata"]["ownerReferences"] == [owner, second]


async def test_52_groups_before_the_jobset(cluster: Cluster) -> None:
    await cluster.create(t.runtime(), t.trainjob(2))
    await cluster.running(2)
    made = [*await cluster.workloads(), *await cluster.pod_groups(), await cluster.get(*t.JOBSET, "job")]
    uids = [obj["metadata"]["creationTimestamp"] for obj in made if obj]
    assert uids == sorted(uids)


async def test_68_69_other_frameworks(cluster: Cluster) -> None:
    for name, nodes in (("flux", 5), ("jax", 4), ("xgboost", 3)):
        policy: dict[str, Any] = {name: {}}
        body = t.runtime(ml=policy, seconds=1)
        body["metadata"]["name"] = name
        await cluster.create(body, t.trainjob(nodes, name=name, runtimeRef={"name": name, "kind": "TrainingRuntime"}))
        await t.complete(cluster, name)
        found = next(one for one in await cluster.workloads() if one["metadata"]["name"] == name)
        assert t.groups_of(found) == {"trainer": nodes}
    assert await cluster.get(*t.CONFIG_MAP, "flux-flux-entrypoint")
    assert await cluster.get(*t.SECRET, "flux-flux-curve")


async def test_73_one_workload_for_all_three_layers(cluster: Cluster) -> None:
    """Neither the JobSet nor its Jobs make groups of their own, and no Job is told to."""
    await cluster.create(t.runtime(), t.trainjob(3))
    await cluster.running(3)
    await cluster.sleep(5)
    assert len(await cluster.workloads()) == 1
    assert len(await cluster.pod_groups()) <= 1
    (job,) = await cluster.every(*t.JOB)
    jobset = await cluster.get(*t.JOBSET, "job")
    assert "scheduling.k8s.io/group-template-name" not in job["metadata"].get("annotations", {})
    assert jobset is not None
    assert "scheduling" not in jobset["spec"]
