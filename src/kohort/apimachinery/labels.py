"""Label selectors, node selector terms, taints: the matching rules of Kubernetes on plain dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

Labels = Mapping[str, str]


def matches(selector: Mapping[str, Any] | None, labels: Labels | None) -> bool:
    """A label selector against labels. None matches nothing, an empty selector everything."""
    if selector is None:
        return False
    found = labels or {}
    wanted = selector.get("matchLabels") or {}
    if any(found.get(key) != value for key, value in wanted.items()):
        return False
    return all(meets(rule, found) for rule in selector.get("matchExpressions") or ())


def meets(rule: Mapping[str, Any], labels: Labels) -> bool:
    """One requirement of a selector. One that no server would accept holds for nothing."""
    return holds(rule.get("operator") or "", labels.get(rule.get("key") or ""), rule.get("values") or ())


def holds(operator: str, value: str | None, wanted: Collection[str]) -> bool:
    """In, NotIn, Exists, DoesNotExist, Gt, Lt of a label's value; None: there is no such label."""
    if operator == "In":
        return value is not None and value in wanted  # a label that is not there need not be looked for
    if operator == "NotIn":
        return value is None or value not in wanted
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    return value is not None and _compares(operator, value, next(iter(wanted), ""))


def _compares(operator: str, value: str, bound: str) -> bool:
    try:
        left, right = int(value), int(bound)
    except ValueError:
        return False
    return left > right if operator == "Gt" else operator == "Lt" and left < right


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
    return bool(toleration.get("key")) and _compares(operator, left, right)
