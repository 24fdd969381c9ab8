"""What a pod asks of a node: the sums that kube-scheduler computes from containers, init containers and overhead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kohort.apimachinery.podresources import add, aggregate, pod_level
from kohort.apimachinery.quantity import parse
from kohort.place.columns import amount

Amounts = dict[str, int]
PODS: Final = "pods"


def pod_requests(spec: Mapping[str, Any]) -> Amounts:
    """Requests by resource, `pods: 1` included."""
    total = aggregate(spec, _of)
    for name, value in _pod_level(spec, total).items():
        if pod_level(name):
            total[name] = value
    add(total, {name: amount(name, value) for name, value in (spec.get("overhead") or {}).items()})
    total[PODS] = 1
    return {name: value for name, value in total.items() if value}


def running_spec(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec of a pod on a node, each container asking for the most of what it wants and what it was given.

    While a resize is under way (KEP-1287) the two differ.
    """
    spec: Mapping[str, Any] = obj["spec"]
    status = obj.get("status") or {}
    given = {
        one["name"]: {**((one.get("resources") or {}).get("requests") or {}), **(one.get("allocatedResources") or {})}
        for one in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    }
    if not any(given.values()):
        return spec
    parts = {
        part: [_most(container, given.get(container.get("name", ""), {})) for container in spec.get(part) or ()]
        for part in ("containers", "initContainers")
    }
    resized = any(one is not was for part in parts for one, was in zip(parts[part], spec.get(part) or (), strict=True))
    return {**spec, **parts} if resized else spec


def _most(container: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    if not given:
        return container
    resources = container.get("resources") or {}
    wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    if all(wanted.get(name) == value for name, value in given.items()):  # no resize is under way
        return container
    most = {name: max(wanted.get(name, 0), given.get(name, 0), key=parse) for name in wanted.keys() | given.keys()}
    return {**container, "resources": {**resources, "requests": most}}


def _of(holder: Mapping[str, Any]) -> Amounts:
    """Requests of a container; a limit without a request is one."""
    resources = holder.get("resources") or {}
    wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: amount(name, value) for name, value in wanted.items()}


def _pod_level(spec: Mapping[str, Any], containers: Amounts) -> Amounts:
    """Requests of the pod as a whole. A limit alone is a request only where no container asked (KEP-2837)."""
    resources = spec.get("resources") or {}
    wanted = {name: amount(name, value) for name, value in (resources.get("requests") or {}).items()}
    for name, value in (resources.get("limits") or {}).items():
        if name not in wanted and not containers.get(name):
            wanted[name] = amount(name, value)
    return wanted


def allocatable(node_status: Mapping[str, Any]) -> Amounts:
    """What a node offers."""
    offered = node_status.get("allocatable") or node_status.get("capacity") or {}
    return {name: amount(name, value) for name, value in offered.items()}
