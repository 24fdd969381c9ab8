"""Counting devices: GPUs or CPUs of a node of the training, as the ML policies read them (spec trainjob 2.3)."""

from __future__ import annotations

from typing import Any

from kohort.api.core.resources import well_formed
from kohort.apimachinery.quantity import parse


def whole(quantity: Any) -> int:
    """A quantity rounded up to an integer; 0 for what is none (a rule of its own reports that)."""
    return parse(quantity).ceil() if well_formed(quantity) else 0


def gpus(resources: dict[str, Any] | None) -> int:
    """GPUs of whatever maker; requests before limits."""
    for member in ("requests", "limits"):
        for name, value in ((resources or {}).get(member) or {}).items():
            if "gpu" in name.lower() and whole(value) > 0:
                return whole(value)
    return 0


def cpus(resources: dict[str, Any] | None) -> int:
    """CPUs rounded up, requests before limits; at least 1."""
    for member in ("requests", "limits"):
        value = ((resources or {}).get(member) or {}).get("cpu")
        if value is not None:
            return max(1, whole(value))
    return 1
