"""Decisions through the whole core of the scheduler: objects in, bindings out, told back as a watch would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bench.place_cases import HOST, RACK
from kohort.grouping.owners.jobset import JOBSET
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import GroupObject, Job, Node, Owner, Owning, Pod
from kohort.scheduler.settings import SchedulerSettings

Json = dict[str, Any]


def core(nodes: int, racks: int = 50) -> SchedulerCore:
    made = SchedulerCore(SchedulerSettings(names=frozenset({"kohort"})), lambda: "2026-01-01T00:00:00Z")
    for number in range(nodes):
        meta = {"name": f"n{number}", "labels": {HOST: f"n{number}", RACK: f"r{number * racks // nodes}"}}
        status = {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}}
        made.cache.set_node(msgspec.convert({"metadata": meta, "status": status}, Node))
    return made


def objects(gangs: int, size: int, cpu: str = "100m") -> tuple[list[GroupObject], list[Pod]]:
    groups, pods = [], []
    for number in range(gangs):
        name = f"g{number}"
        spec = {"schedulingPolicy": {"gang": {"minCount": size}}}
        groups.append(msgspec.convert({"metadata": _meta(name), "spec": spec}, GroupObject))
        for place in range(size):
            container = {"resources": {"requests": {"cpu": cpu, "memory": "100Mi"}}}
            body = {"schedulerName": "kohort", "containers": [container], "schedulingGroup": {"podGroupName": name}}
            pods.append(msgspec.convert({"metadata": _meta(f"{name}-{place}"), "spec": body}, Pod))
    return groups, pods


def _meta(name: str) -> Json:
    return {"name": name, "namespace": "default", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}


def schedule(made: SchedulerCore, groups: list[GroupObject], pods: list[Pod]) -> int:
    """Told, decided, bound, and told back; how many pods were bound."""
    for group in groups:
        made.cache.set_group(group)
    for pod in pods:
        made.cache.set_pod(pod)
    bound = 0
    while (step := made.step(0.0)) is not None:
        if step.decision is None:
            continue
        assignments = made.confirm(step.decision)
        made.volumes(assignments, 0.0)
        for uid, node in assignments.items():
            made.bound(uid, node)
            pod = made.cache.members[uid].pod
            made.cache.set_pod(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node)))
            bound += 1
    return bound


def ready(nodes: int, gangs: int, size: int, cpu: str = "100m") -> Callable[[], Callable[[], int]]:
    def make() -> Callable[[], int]:
        made, told = core(nodes), objects(gangs, size, cpu)
        return lambda: schedule(made, *told)

    return make


def grouped(nodes: int, gangs: int, size: int, *, by_rule: bool) -> Callable[[], Callable[[], int]]:
    """Pods of JobSets as their operator makes them: grouped by the rule, or naming PodGroups. All else is the same."""

    def make() -> Callable[[], int]:
        made = core(nodes)
        companion = made.cache.companion
        companion.readable(set(made.cache.settings.grouping.reads))
        groups, pods = objects(gangs, size)
        for number, pod in enumerate(pods):
            _as_of_jobset(pod, number // size, number % size, by_rule=by_rule)
        jobs = [_job(number, size) for number in range(gangs)]
        jobsets = [_jobset(number, size) for number in range(gangs)] if by_rule else []

        def work() -> int:
            for job in jobs:
                made.cache.set_job(job)
            for one in jobsets:
                companion.put(JOBSET, one, "jobset.x-k8s.io/v1alpha2")
            return schedule(made, [] if by_rule else groups, pods)

        return work

    return make


def _as_of_jobset(pod: Pod, number: int, index: int, *, by_rule: bool) -> None:
    name, job = f"g{number}", f"g{number}-w-0"
    pod.metadata.labels = {
        "batch.kubernetes.io/controller-uid": f"j{number}",
        "batch.kubernetes.io/job-completion-index": str(index),
        "batch.kubernetes.io/job-name": job,
        "job-name": job,
        "jobset.sigs.k8s.io/global-replicas": "1",
        "jobset.sigs.k8s.io/job-index": "0",
        "jobset.sigs.k8s.io/job-key": f"{number:040}",
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/jobset-uid": name,
        "jobset.sigs.k8s.io/replicatedjob-name": "w",
        "jobset.sigs.k8s.io/restart-attempt": "0",
    }
    pod.metadata.annotations = {"batch.kubernetes.io/job-completion-index": str(index)}
    pod.metadata.owner_references = [Owner("batch/v1", "Job", job, f"j{number}", True)]
    if by_rule:
        pod.spec.scheduling_group = None


def _job(number: int, size: int) -> Job:
    meta = {**_meta(f"g{number}-w-0"), "uid": f"j{number}"}
    return msgspec.convert({"metadata": meta, "spec": {"parallelism": size, "completions": size}}, Job)


def _jobset(number: int, size: int) -> Owning:
    job = {"spec": {"parallelism": size, "completions": size}}
    spec = {"replicatedJobs": [{"name": "w", "replicas": 1, "template": job}]}
    return msgspec.convert({"metadata": _meta(f"g{number}"), "spec": spec}, Owning)


def backlog(nodes: int, gangs: int) -> Callable[[], Callable[[], int]]:
    """A restart: a full cluster, and gangs of 3 that wait and do not fit."""

    def make() -> Callable[[], int]:
        made = core(nodes)
        groups, pods = objects(nodes, 1, "4")
        for number, pod in enumerate(pods):
            pod.spec.node_name = f"n{number}"
        for one in groups:
            made.cache.set_group(one)
        for one in pods:
            made.cache.set_pod(one)
        waiting = [[_renamed(one, "w") for one in part] for part in objects(gangs, 3, "1")]
        return lambda: schedule(made, *waiting)  # type: ignore[arg-type]

    return make


def _renamed(one: Any, prefix: str) -> Any:
    one.metadata.name = one.metadata.uid = prefix + one.metadata.name
    if isinstance(one, Pod) and one.spec.scheduling_group is not None:
        one.spec.scheduling_group.pod_group_name = f"{prefix}{one.spec.scheduling_group.pod_group_name}"
    return one
