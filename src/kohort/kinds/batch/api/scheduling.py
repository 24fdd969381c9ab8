"""The rules of a Job's scheduling block that its schema cannot say (KEP-5547, KEP-6089)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kohort.api.errors import FieldError, at, invalid

Spec = Mapping[str, Any]


def check_scheduling(spec: Spec, path: str) -> Iterator[FieldError]:
    """A minimum that the Job can reach, and a mode that fits the policy."""
    block = spec.get("scheduling")
    if block is None:
        return
    policy, mode = block.get("schedulingPolicy") or {}, block.get("disruptionMode") or {}
    least = (policy.get("gang") or {}).get("minCount")
    parallelism = spec.get("parallelism")
    pods = 1 if parallelism is None else parallelism
    if least is not None and least > pods:
        place = at(path, "scheduling.schedulingPolicy.gang.minCount")
        yield invalid(place, least, f"must not be greater than parallelism ({pods})")
    # Basic where no policy is named, and wherever basic is, even beside gang (which is the union's error, too).
    basic = policy.get("gang") is None or policy.get("basic") is not None
    if basic and mode.get("all") is not None and mode.get("single") is None:
        text = "the disruptionMode `all` is not supported with the Basic scheduling policy"
        yield invalid(at(path, "scheduling.disruptionMode"), "", text)


def check_variant(spec: Spec, old: Spec, path: str) -> Iterator[FieldError]:
    """A Job keeps its sort of policy for life. (Coming and going of the whole is the schema's matter.)"""
    after = (spec.get("scheduling") or {}).get("schedulingPolicy")
    before = (old.get("scheduling") or {}).get("schedulingPolicy")
    if after is not None and before is not None and _variant(after) != _variant(before):
        text = (
            "the basic/gang policy variant is immutable after creation; "
            "only schedulingPolicy.gang.minCount may be updated"
        )
        yield invalid(at(path, "scheduling.schedulingPolicy"), None, text)


def _variant(policy: Spec) -> list[str]:
    return [name for name in ("basic", "gang") if policy.get(name) is not None]
