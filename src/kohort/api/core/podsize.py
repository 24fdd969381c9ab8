"""What pods and claims ask for, as LimitRanges and quotas count it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kohort.api.core import quantities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kohort.api.core.quantities import Amounts
    from kohort.api.kind import Object


def containers(pod: Object) -> list[dict[str, Any]]:
    spec = pod.get("spec") or {}
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def of_container(container: Mapping[str, Any]) -> tuple[Amounts, Amounts]:
    resources = container.get("resources") or {}
    return quantities.read_all(resources.get("requests")), quantities.read_all(resources.get("limits"))


def of_pod(pod: Object) -> tuple[Amounts, Amounts]:
    """Requests and limits."""
    spec = pod.get("spec") or {}
    return _sum(spec, "requests"), _sum(spec, "limits")


def of_claim(claim: Object) -> Amounts:
    resources = (claim.get("spec") or {}).get("resources") or {}
    return quantities.read_all(resources.get("requests"))


def _sum(spec: Mapping[str, Any], member: str) -> Amounts:
    """Containers run together; init containers one after the other before them, sidecars from their turn on.

    What the pod as a whole states counts instead of its containers; overhead comes on top.
    """
    running = [_of(container, member) for container in spec.get("containers") or ()]
    sidecars: list[Amounts] = []
    peaks: list[Amounts] = []
    for container in spec.get("initContainers") or ():
        own = _of(container, member)
        if container.get("restartPolicy") == "Always":
            sidecars.append(own)
            peaks.append(quantities.total(sidecars))
        else:
            peaks.append(quantities.total([own, *sidecars]))
    found = quantities.largest([quantities.total([*running, *sidecars]), *peaks])
    found |= _of(spec, member)
    overhead = quantities.read_all(spec.get("overhead"))
    if overhead:
        wanted = overhead if member == "requests" else {key: one for key, one in overhead.items() if key in found}
        found = quantities.total([found, wanted])
    return found


def _of(holder: Mapping[str, Any], member: str) -> Amounts:
    return quantities.read_all((holder.get("resources") or {}).get(member))
