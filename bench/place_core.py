"""Decisions through the whole core of the scheduler: objects in, bindings out, told back as a watch would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bench.place_cases import HOST, RACK
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import GroupObject, Node, Pod
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
