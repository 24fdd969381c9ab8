"""Jobs for the end-to-end tests, in a few words, and what tests ask of them."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api.kind import Object
from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster

JOB = ("batch/v1", "Job")
CRONJOB = ("batch/v1", "CronJob")
OWNER = ("apps/v1", "Deployment")  # some controller that the Job controller knows nothing about
WORKLOADS = "scheduling.k8s.io/v1beta1"
TEMPLATE = "scheduling.k8s.io/group-template-name"
INDEX = "batch.kubernetes.io/job-completion-index"
LONG = "100000"


def pod_template(*, run: str = LONG, codes: str = "", stop: str = "0", **spec: Any) -> Object:
    notes = {"run-seconds": run, "start-seconds": "0", "stop-seconds": stop, **({"exit-codes": codes} if codes else {})}
    containers = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}]
    return {
        "metadata": {"annotations": {f"sim.kohort.dev/{name}": value for name, value in notes.items()}},
        "spec": {"restartPolicy": "Never", "containers": containers, **spec},
    }


def policy(least: int | None = None) -> Object:
    return {"schedulingPolicy": {"gang": {} if least is None else {"minCount": least}}}


BASIC: Object = {"schedulingPolicy": {"basic": {}}}


def job(
    name: str,
    pods: int,
    *,
    mode: str = "Indexed",
    run: str = LONG,
    meta: Object | None = None,
    completions: int | None = -1,
    **spec: Any,
) -> Object:
    """`completions`: as many as pods unless said; None: a work queue."""
    whole = {"parallelism": pods, "completionMode": mode, "template": pod_template(run=run), **spec}
    if completions is not None:
        whole["completions"] = pods if completions == -1 else completions
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **(meta or {})}, "spec": whole}


def gang(name: str, pods: int, least: int | None = None, **more: Any) -> Object:
    return job(name, pods, scheduling=policy(least), **more)


def cronjob(name: str, schedule: str, spec: Object) -> Object:
    body = {"schedule": schedule, "jobTemplate": {"spec": spec}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": body}


# ---- owners and Workloads that somebody else made


async def owner(cluster: Cluster, name: str = "f1", *, controller: bool = True) -> Object:
    selector = {"matchLabels": {"app": name}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    spec = {"replicas": 0, "selector": selector, "template": template}
    made = await cluster.create({"apiVersion": OWNER[0], "kind": OWNER[1], "metadata": {"name": name}, "spec": spec})
    reference = {"apiVersion": OWNER[0], "kind": OWNER[1], "name": name, "uid": made["metadata"]["uid"]}
    return {**reference, "controller": controller}


def workload(name: str, of: tuple[str, str, str], *templates: Object, owners: list[Object] | None = None) -> Object:
    meta = {"name": name, **({"ownerReferences": owners} if owners else {})}
    spec = {
        "controllerRef": {"apiGroup": of[0], "kind": of[1], "name": of[2]},
        "podGroupTemplates": list(templates),
    }
    return {"apiVersion": WORKLOADS, "kind": "Workload", "metadata": meta, "spec": spec}


def template(name: str, least: int | None = None) -> Object:
    return {"name": name, "schedulingPolicy": {"basic": {}} if least is None else {"gang": {"minCount": least}}}


def controlled_by(found: Object) -> Object:
    """The owner reference that makes a Job the controller of something."""
    meta = found["metadata"]
    name, uid = meta["name"], meta["uid"]
    return {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}


# ---- looking


async def status(cluster: Cluster, name: str) -> Object:
    found = await cluster.get(*JOB, name)
    return dict((found or {}).get("status") or {})


async def active(cluster: Cluster, name: str, count: int) -> None:
    """Waits until the Job says that so many pods are active, and they exist."""

    async def look() -> bool:
        found = (await status(cluster, name)).get("active", 0)
        return bool(found == count and len(await live(cluster, name)) == count)

    await cluster.until(look, what=f"{count} active pods of {name}")


async def live(cluster: Cluster, name: str) -> list[Object]:
    pods = await cluster.pods(f"batch.kubernetes.io/job-name={name}")
    return [
        pod
        for pod in pods
        if pod["status"].get("phase") in {"Pending", "Running"} and not pod["metadata"].get("deletionTimestamp")
    ]


async def complete(cluster: Cluster, name: str) -> Object:
    found: Object = await cluster.until(
        lambda: cluster.condition(*JOB, name, "Complete"), what=f"Job {name} being complete"
    )
    return found


def group_of(pod: Object) -> str | None:
    found: str | None = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return found


def least(found: Object) -> int | None:
    """minCount of a PodGroup, or of a Workload's only template; None: basic."""
    block = found["spec"] if found["kind"] == "PodGroup" else found["spec"]["podGroupTemplates"][0]
    number: int | None = (block["schedulingPolicy"].get("gang") or {}).get("minCount")
    return number


async def one_group(cluster: Cluster) -> tuple[Object, Object]:
    """The Workload and the PodGroup of the namespace."""
    (workload_,) = await cluster.workloads()
    (group,) = await cluster.pod_groups()
    return workload_, group


async def in_group(cluster: Cluster, name: str, count: int) -> tuple[Object, Object]:
    """Waits for a Job's pods, and sees that they are all in the one group."""
    await active(cluster, name, count)
    found = await one_group(cluster)
    assert {group_of(pod) for pod in await live(cluster, name)} == {found[1]["metadata"]["name"]}
    return found


async def ungrouped(cluster: Cluster, name: str, count: int, group: str | None = None) -> None:
    """Waits for a Job's pods, and sees that nothing was made for them."""
    await active(cluster, name, count)
    assert await cluster.workloads() == []
    assert await cluster.pod_groups() == []
    assert {group_of(pod) for pod in await live(cluster, name)} <= {group}


async def reasons(cluster: Cluster) -> list[str]:
    await cluster.sleep(0.5)  # events are written after the fact
    return [str(event["reason"]) for event in await cluster.events()]


async def told(cluster: Cluster, reason: str) -> Object:
    """Waits for an event."""

    async def look() -> Any:
        return await cluster.events(reason)

    found = await cluster.until(look, what=f"an event {reason}")
    return dict(found[0])


async def refused(cluster: Cluster, body: Object) -> ApiError:
    with pytest.raises(ApiError) as found:
        await cluster.create(body)
    return found.value


async def change(cluster: Cluster, name: str, spec: Object) -> Object:
    return await cluster.patch(*JOB, name, {"spec": spec})


async def refused_change(cluster: Cluster, name: str, spec: Object, kind: tuple[str, str] = JOB) -> ApiError:
    with pytest.raises(ApiError) as found:
        await cluster.patch(*kind, name, {"spec": spec})
    return found.value


def fields(error: ApiError) -> set[str]:
    causes = (error.details or {}).get("causes") or ()
    return {str(one.get("field")) for one in causes}
