"""What the tests of TrainJobs write and ask: runtimes and jobs in a few words, and what has become of them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tests.kinds.trainer.compile.build import runtime as built

from kohort.api.kind import Object
from kohort.kinds.jobset.api import constants
from kohort.kinds.trainer.api.constants import API_VERSION, STEP_LABEL, replicated_jobs
from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster, condition

__all__ = ["API_VERSION", "STEP_LABEL"]

TRAINJOB = (API_VERSION, "TrainJob")
JOBSET = (constants.API_VERSION, "JobSet")
JOB = ("batch/v1", "Job")
CONFIG_MAP, SECRET = ("v1", "ConfigMap"), ("v1", "Secret")
FOR_EVER = 100_000


def runtime(*jobs: Object, seconds: float = FOR_EVER, **options: Any) -> Object:
    """A TrainingRuntime "rt" whose pods run so long; small enough for any node."""
    body = built(*deepcopy(jobs), kind="TrainingRuntime", **options)
    body["metadata"].pop("namespace")
    for job in replicated_jobs(body):
        pods = job["template"]["spec"]["template"]
        notes = {"sim.kohort.dev/run-seconds": str(seconds), "sim.kohort.dev/start-seconds": "0.1"}
        pods["metadata"] = {"annotations": {**notes, **pods.get("metadata", {}).get("annotations", {})}}
        pods["spec"].setdefault("restartPolicy", "Never")
    return body


def lasting(job: Object, seconds: float, **notes: str) -> Object:
    """A ReplicatedJob whose pods run so long; `notes` are further wishes to the virtual nodes."""
    made = deepcopy(job)
    pods = made["template"]["spec"]["template"]
    wishes = {"run-seconds": str(seconds), **{name.replace("_", "-"): value for name, value in notes.items()}}
    pods["metadata"] = {"annotations": {f"sim.kohort.dev/{name}": value for name, value in wishes.items()}}
    return made


def trainjob(nodes: int | None = None, *, name: str = "job", of: str = "rt", **spec: Any) -> Object:
    body: Object = {"runtimeRef": {"name": of, "kind": "TrainingRuntime"}, **spec}
    if of != "rt":
        body["runtimeRef"].pop("kind")
    if nodes is not None:
        body["trainer"] = {**body.get("trainer", {}), "numNodes": nodes}
    return {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": {"name": name}, "spec": body}


async def put(cluster: Cluster, *objects: Object) -> None:
    """As `kubectl apply` does: what is there already, cluster-wide, from another test, is no obstacle."""
    for obj in objects:
        await cluster.client.of(obj).apply(obj, cluster.namespace, force=True)


async def suspend(cluster: Cluster, value: bool = True, name: str = "job") -> None:
    await cluster.patch(*TRAINJOB, name, {"spec": {"suspend": value}})


async def complete(cluster: Cluster, name: str = "job") -> Object:
    return await cluster.until(lambda: cluster.condition(*TRAINJOB, name, "Complete"), what=f"TrainJob {name} Complete")


async def refused(cluster: Cluster, body: Object, *, made: bool = False) -> None:
    """A runtime that is refused; a server without rules in front takes it, and then a job of it tells why it waits.

    `made`: what is taken serves jobs all the same.
    """
    try:
        await cluster.create(body)
    except ApiError as error:
        if error.code not in (403, 422):
            raise
        return
    if not made:
        job = await cluster.create(trainjob(2, name="no"))

        async def answered() -> bool:
            events = await cluster.events("TrainJobResourcesCreationFailed")
            return any(one["involvedObject"]["uid"] == job["metadata"]["uid"] for one in events)

        await cluster.until(answered, what="a job of it telling why it waits")
        assert await cluster.get(*JOBSET, "no") is None
        assert await uids(cluster) == []
        await cluster.delete(*TRAINJOB, "no")
        await cluster.gone(*TRAINJOB)
    await cluster.delete(API_VERSION, "TrainingRuntime", "rt")


async def told(cluster: Cluster, reason: str) -> list[Object]:
    return await cluster.until(lambda: cluster.events(reason), what=f"an event {reason}")


async def idle(cluster: Cluster, name: str = "job") -> None:
    """Suspended, and none of its pods runs any more."""

    async def look() -> bool:
        jobset = await cluster.get(*JOBSET, name)
        found = condition(jobset, "Suspended")
        left = [pod for pod in await cluster.pods() if pod["status"].get("phase") not in {"Succeeded", "Failed"}]
        return bool(found and found["status"] == "True") and not left

    await cluster.until(look, what="the JobSet standing still")


async def no_groups(cluster: Cluster) -> None:
    async def look() -> bool:
        return not (await cluster.workloads() or await cluster.pod_groups() or await cluster.composites())

    await cluster.until(look, what="the groups going")


async def uids(cluster: Cluster) -> list[str]:
    found = [*await cluster.workloads(), *await cluster.composites(), *await cluster.pod_groups()]
    return [obj["metadata"]["uid"] for obj in found]


def groups_of(workload: Object) -> dict[str, int | None]:
    """Name and minimum of each template, in order, in whatever version."""
    spec = workload["spec"]
    found = spec.get("podGroupTemplates") or spec.get("podGroups") or []
    return {one["name"]: _minimum(one) for one in found}


def _minimum(block: Object) -> int | None:
    policy = block.get("schedulingPolicy") or block.get("policy") or {}
    least: int | None = (policy.get("gang") or {}).get("minCount")
    return least


def minimum(group: Object) -> int | None:
    return _minimum(group["spec"])


def group_of(pod: Object) -> str:
    """What a pod's spec says of its group: a PodGroup, or a Workload's group."""
    spec = pod["spec"]
    ref = spec.get("workloadRef")
    return f"{ref['name']}/{ref['podGroup']}" if ref else str((spec.get("schedulingGroup") or {}).get("podGroupName"))


def pod_template(jobset: Object, index: int = 0) -> Object:
    found: Object = jobset["spec"]["replicatedJobs"][index]["template"]["spec"]["template"]["spec"]
    return found
