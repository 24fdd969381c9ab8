"""What a pod asks for: the sum over its containers as kube-scheduler, the kubelet and quotas all count it.

Containers run together; init containers run one after the other before them, sidecars from their turn on. What the pod
as a whole states counts instead of its containers (KEP-2837); overhead comes on top.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, Self, TypeVar

from kohort.apimachinery.quantity import Quantities, canonical, parse_all


class Summable(Protocol):
    def __add__(self, other: Self, /) -> Self: ...
    def __lt__(self, other: Self, /) -> bool: ...


S = TypeVar("S", bound=Summable)
Reading = Callable[[Mapping[str, Any]], dict[str, S]]  # of what has `resources`: a container, or the pod's spec

_AMOUNTS: Final = frozenset({"requests", "limits", "overhead"})  # fields that hold quantities by resource
_AMOUNT: Final = frozenset({"sizeLimit", "divisor"})  # fields that are one


def aggregate(spec: Mapping[str, Any], of: Reading[S]) -> dict[str, S]:
    """The most that containers, init containers and sidecars want at one time, by resource."""
    total: dict[str, S] = {}
    for container in spec.get("containers") or ():
        add(total, of(container))
    sidecars: dict[str, S] = {}
    peak: dict[str, S] = {}
    for container in spec.get("initContainers") or ():
        wanted = of(container)
        if container.get("restartPolicy") == "Always":
            add(sidecars, wanted)
            _raise(peak, sidecars)
        else:
            # An ordinary init container runs beside the sidecars that were started before it.
            add(wanted, sidecars)
            _raise(peak, wanted)
    add(total, sidecars)
    _raise(total, peak)
    return total


def add(total: dict[str, S], more: Mapping[str, S]) -> None:
    for name, value in more.items():
        total[name] = total[name] + value if name in total else value


def _raise(total: dict[str, S], least: Mapping[str, S]) -> None:
    for name, value in least.items():
        if name not in total or total[name] < value:
            total[name] = value


def in_canonical_form(value: Any) -> Any:
    """A pod's spec, or whatever holds some, with all amounts in their canonical texts: equal if they are the same.

    For those who compare what a server without webhooks keeps as written. What needs no change is given back as it is.
    """
    if isinstance(value, list):
        items = [in_canonical_form(item) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    if not isinstance(value, dict):
        return value
    members = {name: _member(name, item) for name, item in value.items()}
    return value if all(members[name] is item for name, item in value.items()) else members


def _member(name: str, value: Any) -> Any:
    if name in _AMOUNTS and isinstance(value, dict):
        return {resource: value if value is None else canonical(value) for resource, value in value.items()}
    return canonical(value) if name in _AMOUNT and value is not None else in_canonical_form(value)


def pod_level(name: str) -> bool:
    """Whether a pod as a whole can ask for the resource."""
    return name in {"cpu", "memory"} or name.startswith("hugepages-")


def containers(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    spec = pod.get("spec") or {}
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def of_container(container: Mapping[str, Any]) -> tuple[Quantities, Quantities]:
    """Requests and limits, as written; a pod's spec has them, too."""
    resources = container.get("resources") or {}
    return parse_all(resources.get("requests")), parse_all(resources.get("limits"))


class PodResources:
    """Requests and limits of a pod as written, each container's read once: a pod may have thousands."""

    def __init__(self, pod: Mapping[str, Any]) -> None:
        self._spec: Mapping[str, Any] = pod.get("spec") or {}
        self.own = of_container(self._spec)  # what the pod as a whole states
        self.containers = [(one, of_container(one)) for one in containers(pod)]
        self._known = {id(one): amounts for one, amounts in self.containers}

    def total(self) -> tuple[Quantities, Quantities]:
        requests, limits = (self._sum(member) for member in (0, 1))
        return requests, limits

    def _sum(self, member: int) -> Quantities:
        found = aggregate(self._spec, lambda container: dict(self._known[id(container)][member]))
        found |= {name: one for name, one in self.own[member].items() if pod_level(name)}
        overhead = parse_all(self._spec.get("overhead"))
        add(found, overhead if member == 0 else {name: one for name, one in overhead.items() if name in found})
        return found


def of_pod(pod: Mapping[str, Any]) -> tuple[Quantities, Quantities]:
    """Requests and limits as written: whoever reads a pod that a server has completed needs no more."""
    return PodResources(pod).total()


def of_claim(claim: Mapping[str, Any]) -> Quantities:
    return of_container(claim.get("spec") or {})[0]
