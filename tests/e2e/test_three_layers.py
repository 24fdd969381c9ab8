"""TrainJob, JobSet, Job: whoever is on top compiles, the layers below carry; there is one Workload, never two."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e import training as t
from tests.kinds.trainer.compile.build import rjob, trainer

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

NOTES = {"sim.kohort.dev/run-seconds": "100000", "sim.kohort.dev/start-seconds": "0.1"}
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}


def job_spec(pods: int) -> Object:
    """Of the one shape that 1.36 takes for a gang by itself: whoever is above must still be asked first."""
    container = {"name": "main", "image": "busybox"}
    template = {"metadata": {"annotations": NOTES}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template}


def jobset(**spec: Any) -> Object:
    jobs = [{"name": "w", "replicas": 2, "template": {"spec": job_spec(2)}}]
    body = {"apiVersion": t.JOBSET[0], "kind": "JobSet", "metadata": {"name": "top"}}
    return {**body, "spec": {"replicatedJobs": jobs, **spec}}


async def one_workload(cluster: Cluster, pods: int, kind: str) -> Object:
    """All pods run, in groups of one Workload, which is of the object on top."""
    running = await cluster.running(pods)
    await cluster.sleep(2)
    (workload,) = await cluster.workloads()
    assert workload["spec"]["controllerRef"]["kind"] == kind
    name, groups = workload["metadata"]["name"], await cluster.pod_groups()
    refs = [one["spec"].get("workloadRef") or one["spec"]["podGroupTemplateRef"]["workload"] for one in groups]
    assert {ref["workloadName"] for ref in refs} <= {name}
    if groups:
        assert {t.group_of(pod) for pod in running} == {one["metadata"]["name"] for one in groups}
    else:
        assert {t.group_of(pod).partition("/")[0] for pod in running} == {name}
    return workload


@pytest.mark.parametrize(
    "jobs",
    [(trainer(),), (trainer("launcher"), rjob("node")), (trainer(), rjob("helper", replicas=2, parallelism=2))],
    ids=["one", "two", "several"],
)
async def test_trainjob_on_top(cluster: Cluster, jobs: tuple[Object, ...]) -> None:
    ml: dict[str, Any] = {"mpi": {}} if len(jobs) == 2 and jobs[0]["name"] == "launcher" else {"torch": {}}
    await cluster.create(t.runtime(*jobs, ml=ml), t.trainjob(2))
    await one_workload(
        cluster, {"one": 2, "node": 3, "helper": 6}[jobs[1]["name"] if len(jobs) > 1 else "one"], "TrainJob"
    )


@pytest.mark.releases("1.36", "1.37")
@pytest.mark.parametrize(
    "wish", [{"gangConfig": {"gangMode": "Gang"}}, {"scheduling": GANG}], ids=["gangConfig", "scheduling"]
)
async def test_jobset_on_top(cluster: Cluster, wish: Object) -> None:
    await cluster.create(jobset(**wish))
    await one_workload(cluster, 4, "JobSet")


@pytest.mark.releases("1.37")
async def test_job_on_top(cluster: Cluster) -> None:
    spec = {**job_spec(3), "scheduling": GANG}
    await cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "top"}, "spec": spec})
    await one_workload(cluster, 3, "Job")


@pytest.mark.releases("1.37")
async def test_wishes_of_the_layers_below_do_not_count(cluster: Cluster) -> None:
    """A runtime's JobSet asks for a gang, the runtime does not: a TrainJob's groups come from its policy alone."""
    body = t.runtime(groups=False, template={"gangConfig": {"gangMode": "Gang"}})
    await cluster.create(body, t.trainjob(2))
    await cluster.running(2)
    await cluster.sleep(2)
    assert await t.uids(cluster) == []


@pytest.mark.releases("1.37")
async def test_the_layer_below_is_remade_and_stays_in_the_groups(cluster: Cluster) -> None:
    """JobSet and Jobs come and go; Workload and groups are those of the TrainJob."""
    await cluster.create(t.runtime(), t.trainjob(3))
    await cluster.running(3)
    before = await t.uids(cluster)
    jobset = await cluster.get(*t.JOBSET, "job")
    assert jobset is not None
    await cluster.delete(*t.JOBSET, "job", propagation="Foreground")

    async def again() -> bool:
        found = await cluster.get(*t.JOBSET, "job")
        return found is not None and found["metadata"]["uid"] != jobset["metadata"]["uid"]

    await cluster.until(again)
    await one_workload(cluster, 3, "TrainJob")
    assert await t.uids(cluster) == before
