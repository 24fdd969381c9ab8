"""Label selectors, node selector terms, taints: the matching rules of Kubernetes on plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Labels = Mapping[str, str]


def matches(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """A label selector against labels. None matches nothing, an empty selector everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(meets(rule, labels) for rule in selector.get("matchExpressions") or ())


def meets(rule: Mapping[str, Any], labels: Labels) -> bool:
    """One requirement: In, NotIn, Exists, DoesNotExist, Gt, Lt."""
    value = labels.get(rule["key"])
    operator, wanted = rule["operator"], rule.get("values") or []
    if operator == "In":
        return value in wanted
    if operator == "NotIn":
        return value not in wanted
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    return value is not None and _compares(operator, value, wanted)


def _compares(operator: str, value: str, wanted: Sequence[str]) -> bool:
    try:
        left, right = int(value), int(wanted[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


def node_meets_term(term: Mapping[str, Any], labels: Labels, name: str) -> bool:
    """A node selector term: all its expressions over labels and fields; an empty term matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(meets(rule, labels) for rule in expressions) and all(
        meets(rule, {"metadata.name": name}) for rule in fields
    )


def tolerates(tolerations: Sequence[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    if operator == "Equal":
        return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")
    left, right = taint.get("value") or "", toleration.get("value") or ""
    return bool(toleration.get("key")) and _compares(operator, left, [right])
