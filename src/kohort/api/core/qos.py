"""The quality of service class of a pod, which the API server writes into a new pod's status."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from kohort.api.core.resources import amount, well_formed

_COUNTED: Final = ("cpu", "memory")


def qos_class(spec: dict[str, Any]) -> str:
    """Nothing asked for: BestEffort. Everything limited to what is asked for: Guaranteed. Else Burstable."""
    requests: dict[str, Decimal] = {}
    limits: dict[str, Decimal] = {}
    all_limited = True
    for resources in _blocks(spec):
        for name, value in _amounts(resources.get("requests")):
            requests[name] = requests.get(name, Decimal(0)) + value
        limited = dict(_amounts(resources.get("limits")))
        for name, value in limited.items():
            limits[name] = limits.get(name, Decimal(0)) + value
        all_limited = all_limited and len(limited) == len(_COUNTED)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def _blocks(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Resources of the pod as a whole stand for those of its containers."""
    if spec.get("resources"):
        yield spec["resources"]
        return
    for member in ("containers", "initContainers"):
        for container in spec.get(member) or []:
            yield container.get("resources") or {}


def _amounts(block: Any) -> Iterator[tuple[str, Decimal]]:
    for name in _COUNTED:
        quantity = (block or {}).get(name)
        if quantity is not None and well_formed(quantity) and amount(quantity) > 0:
            yield name, amount(quantity)
