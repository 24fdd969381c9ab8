"""Pod failure policy and success policy of a Job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kohort.api.core.containers import container_names
from kohort.api.errors import OMITTED, FieldError, at, duplicate, invalid, not_supported, required
from kohort.kinds.batch.api import indexes

Spec = Mapping[str, Any]
_STATUSES: Final = ("False", "True", "Unknown")


def check_failure_policy(spec: Spec, path: str) -> Iterator[FieldError]:
    template = (spec.get("template") or {}).get("spec") or {}
    names = container_names(template)
    for index, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or []):
        place = f"{at(path, 'podFailurePolicy.rules')}[{index}]"
        yield from _requirement(rule, place)
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            yield invalid(at(place, "action"), "FailIndex", "requires the backoffLimitPerIndex to be set")
        if rule.get("onExitCodes") is not None:
            yield from _exit_codes(rule["onExitCodes"], at(place, "onExitCodes"), names)
        for number, pattern in enumerate(rule.get("onPodConditions") or []):
            yield from _condition(pattern, f"{at(place, 'onPodConditions')}[{number}]")


def _requirement(rule: Spec, path: str) -> Iterator[FieldError]:
    codes, conditions = rule.get("onExitCodes") is not None, bool(rule.get("onPodConditions"))
    if codes and conditions:
        yield invalid(path, OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported")
    elif not codes and not conditions:
        yield invalid(path, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required")


def _exit_codes(block: Spec, path: str, names: set[str]) -> Iterator[FieldError]:
    name, values = block.get("containerName"), block.get("values") or []
    if name is not None and name not in names:
        text = "must be one of the container or initContainer names in the pod template"
        yield invalid(at(path, "containerName"), name, text)
    place = at(path, "values")
    if not values:
        yield invalid(place, values, "at least one value is required")
    seen: set[int] = set()
    for index, value in enumerate(values):
        if value == 0 and block.get("operator") == "In":
            yield invalid(f"{place}[{index}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield duplicate(f"{place}[{index}]", value)
        seen.add(value)
    if values != sorted(values):
        yield invalid(place, values, "must be ordered")


def _condition(pattern: Spec, path: str) -> Iterator[FieldError]:
    status = pattern.get("status")
    if status not in (None, *_STATUSES):  # absent: True
        yield not_supported(at(path, "status"), status, _STATUSES)


def check_success_policy(spec: Spec, path: str) -> Iterator[FieldError]:
    policy, completions = spec.get("successPolicy"), spec.get("completions")
    if policy is None:
        return
    if not policy.get("rules"):
        yield required(
            at(path, "successPolicy.rules"), "at least one rules must be specified when the successPolicy is specified"
        )
    for index, rule in enumerate(policy.get("rules") or []):
        place = f"{at(path, 'successPolicy.rules')}[{index}]"
        if rule.get("succeededCount") is None and rule.get("succeededIndexes") is None:
            yield required(place, "at least one of succeededCount or succeededIndexes must be specified")
        yield from _success_rule(rule, place, completions)


def _success_rule(rule: Spec, path: str, completions: int | None) -> Iterator[FieldError]:
    listed, wanted = rule.get("succeededIndexes"), rule.get("succeededCount")
    most: int | None = None
    if listed is not None and completions is not None:
        try:
            most = indexes.count(indexes.parse(listed, completions))
        except indexes.BadIndexesError as wrong:
            most = 0  # what cannot be read has no indexes, and no count is small enough
            yield invalid(at(path, "succeededIndexes"), listed, f"error parsing succeededIndexes: {wrong}")
    if wanted is None:
        return
    if completions is not None and wanted > completions:
        text = f"must be less than or equal to {completions} (the number of specified completions)"
        yield invalid(at(path, "succeededCount"), wanted, text)
    if most is not None and wanted > most:
        text = f"must be less than or equal to {most} (the number of indexes in the specified succeededIndexes field)"
        yield invalid(at(path, "succeededCount"), wanted, text)
