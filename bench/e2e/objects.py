"""The bodies that a case posts, as bytes: nodes, groups and pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from bench.e2e.cases import Case

NAMESPACE: Final = "bench"
RACK: Final = "topology.example/rack"
LOW, HIGH = "bench-low", "bench-high"
GROUPS: Final = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACE}/podgroups"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
SCHEDULER: Final = "default-scheduler"
_PORT: Final = 8080
Call = tuple[str, str, bytes]


def _post(path: str, version: str, kind: str, name: str, **body: Any) -> Call:
    meta = {"name": name, **body.pop("meta", {})}
    return "POST", path, json.dumps({"apiVersion": version, "kind": kind, "metadata": meta, **body}).encode()


def ground() -> Iterator[Call]:
    """What is there before any node."""
    yield _post("/api/v1/namespaces", "v1", "Namespace", NAMESPACE)
    for name, value in ((LOW, 10), (HIGH, 100)):
        yield _post(
            "/apis/scheduling.k8s.io/v1/priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", name, value=value
        )


def nodes(case: Case) -> Iterator[Call]:
    for number in range(case.nodes):
        yield node(number, case.racks, case.nodes)


def node_name(number: int) -> str:
    return f"node-{number:05}"


def node(number: int, racks: int, count: int) -> Call:
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": node_name(number)}
    if racks:
        labels[RACK] = f"rack-{number * racks // count:03}"
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return _post("/api/v1/nodes", "v1", "Node", node_name(number), meta={"labels": labels}, status=status)


def group(name: str, minimum: int, *, rack: bool = False, gang: bool = True, priority: str = "") -> Call:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": minimum}} if gang else {"basic": {}}}
    if rack:
        spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    if priority:
        spec["priorityClassName"] = priority
    return _post(GROUPS, "scheduling.k8s.io/v1beta1", "PodGroup", name, spec=spec)


def pod(
    name: str,
    cpu: str,
    memory: str = "100Mi",
    *,
    group: str = "",
    node: str = "",
    priority: str = "",
    scheduler: str = SCHEDULER,
    port: bool = False,
    anchor: bool = False,
    anchored: bool = False,
) -> Call:
    ports = [{"containerPort": _PORT, "hostPort": _PORT}] if port else []
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    container = {"name": "main", "image": "registry.example/train:1", "resources": requests, "ports": ports}
    spec: dict[str, Any] = {"containers": [container], "schedulerName": scheduler, "terminationGracePeriodSeconds": 0}
    spec["automountServiceAccountToken"] = False
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    if node:
        spec["nodeName"] = node
    if priority:
        spec["priorityClassName"] = priority
    if anchored:
        term = {"labelSelector": {"matchLabels": {"app": "anchor"}}, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    labels = {"app": "anchor" if anchor else "bench"}
    return _post(PODS, "v1", "Pod", name, meta={"labels": labels}, spec=spec)


def before(case: Case) -> Iterator[Call]:
    """Pods that have nodes already, with their groups first; and the anchors of those that want to be beside one."""
    if case.anchored:
        for number in range(case.nodes):
            yield pod(f"anchor-{number}", "10m", node=node_name(number), priority=HIGH, anchor=True)
    known = case.before
    if known is None:
        return
    count = known.per_node * case.nodes
    if known.group:
        for number in range(count // known.group):
            yield group(f"old-{number}", known.group, priority=LOW)
    for number in range(count):
        at, owner = node_name(number % case.nodes), f"old-{number // known.group}" if known.group else ""
        port = known.port and number < case.nodes
        yield pod(f"old-{number}", known.cpu, group=owner, node=at, priority=LOW, port=port)


def measured_groups(case: Case) -> Iterator[Call]:
    for number in range(case.groups if _grouped(case) else 0):
        yield gang(case, number)
    if case.never:
        yield group("never", case.never)


def gang(case: Case, number: int) -> Call:
    priority = HIGH if case.before else ""
    return group(f"g{number}", case.size, rack=bool(case.racks), gang=case.gang, priority=priority)


def measured_pods(case: Case) -> Iterator[Call]:
    for number in range(case.never):
        yield pod(f"never-{number}", "64", group="never")
    for number in range(case.groups):
        yield from members(case, number)


def members(case: Case, number: int) -> Iterator[Call]:
    port = bool(case.before and case.before.port)
    owner, priority = f"g{number}" if _grouped(case) else "", HIGH if case.before else ""
    for place in range(case.size):
        yield pod(
            f"g{number}-{place}",
            case.cpu,
            case.memory,
            group=owner,
            priority=priority,
            port=port,
            anchored=case.anchored,
        )


def _grouped(case: Case) -> bool:
    """Single pods beside a gang that never fits are pods without a group, as upstream has them."""
    return not (case.never and not case.gang)
