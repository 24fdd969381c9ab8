"""The shell: real informers, queues and events on the embedded API in process, in virtual time."""

from __future__ import annotations

from tests.controllers.cluster import Cluster, cluster, job_of

GANG = {"schedulingPolicy": {"gang": {}}}


async def started(found: Cluster, name: str, count: int) -> bool:
    job = await found.job(name)
    return (job.get("status") or {}).get("active") == count


async def test_a_gang_job_gets_its_objects_and_pods() -> None:
    async with cluster() as found, found.runtime() as runtime:
        await runtime.ready()
        body = job_of("solver", parallelism=3, completions=3, completionMode="Indexed", scheduling=GANG)
        await found.client.of(body).create(body)
        await found.until(lambda: started(found, "solver", 3))
        pods = await found.pods()
        (group,) = await found.every("PodGroup", "scheduling.k8s.io/v1beta1")
        assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {group["metadata"]["name"]}
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
        assert [pod["metadata"]["finalizers"] for pod in pods] == [["batch.kubernetes.io/job-tracking"]] * 3
