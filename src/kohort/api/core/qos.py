"""The quality of service class of a pod, which the API server writes into a new pod's status."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from kohort.api.core.resources import well_formed
from kohort.apimachinery.quantity import ZERO, Quantities, Quantity, parse

_COUNTED: Final = ("cpu", "memory")


def qos_class(spec: dict[str, Any]) -> str:
    """Nothing asked for: BestEffort. Everything limited to what is asked for: Guaranteed. Else Burstable."""
    requests: Quantities = {}
    limits: Quantities = {}
    all_limited = True
    for resources in _blocks(spec):
        for name, value in _amounts(resources.get("requests")):
            requests[name] = requests.get(name, ZERO) + value
        limited = dict(_amounts(resources.get("limits")))
        for name, value in limited.items():
            limits[name] = limits.get(name, ZERO) + value
        all_limited = all_limited and len(limited) == len(_COUNTED)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if all_limited and _values(requests) == _values(limits) else "Burstable"


def _values(quantities: Quantities) -> dict[str, Decimal]:
    return {name: one.value for name, one in quantities.items()}


def _blocks(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Resources of the pod as a whole stand for those of its containers."""
    if spec.get("resources"):
        yield spec["resources"]
        return
    for member in ("containers", "initContainers"):
        for container in spec.get(member) or []:
            yield container.get("resources") or {}


def _amounts(block: Any) -> Iterator[tuple[str, Quantity]]:
    for name in _COUNTED:
        quantity = (block or {}).get(name)
        if quantity is not None and well_formed(quantity) and parse(quantity) > ZERO:
            yield name, parse(quantity)
