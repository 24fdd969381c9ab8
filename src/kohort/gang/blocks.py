"""Reading the building blocks of KEP-6089 out of a workload's spec."""

from __future__ import annotations

from typing import Any

from kohort.gang.tree import Claim, Disruption


def wants_gang(block: dict[str, Any], default: bool) -> bool:
    """Whether the block's policy is gang; `default` where it names none."""
    policy = block.get("schedulingPolicy") or {}
    if policy.get("gang") is not None:
        return True
    return False if policy.get("basic") is not None else default


def explicit_minimum(block: dict[str, Any], member: str = "minCount") -> int | None:
    """The minimum that the user wrote, if any."""
    gang = (block.get("schedulingPolicy") or {}).get("gang") or {}
    value = gang.get(member)
    return int(value) if value is not None else None


def topology(block: dict[str, Any]) -> str | None:
    constraints = (block.get("schedulingConstraints") or {}).get("topology") or []
    return str(constraints[0]["key"]) if constraints else None


def disruption(block: dict[str, Any]) -> Disruption | None:
    mode = block.get("disruptionMode") or {}
    if mode.get("all") is not None:
        return "all"
    return "single" if mode.get("single") is not None else None


def claims(block: dict[str, Any]) -> tuple[Claim, ...]:
    return tuple(
        Claim(item["name"], item.get("resourceClaimName"), item.get("resourceClaimTemplateName"))
        for item in block.get("resourceClaims") or []
    )
