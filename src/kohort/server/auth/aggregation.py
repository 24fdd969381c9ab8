"""Cluster roles that are put together from others by label: `view`, `edit`, `admin`, and whatever operators add."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from kohort.apimachinery.labels import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kohort.api.kind import Object

Rules = list[dict[str, Any]]


def effective(cluster_roles: Sequence[Object]) -> dict[str, Rules]:
    """Name -> rules. An aggregated role has the rules of all it selects, whatever is written in itself.

    Roles may select roles that are aggregated themselves, also in a circle: repeated until nothing is added.
    """
    ordered = sorted(cluster_roles, key=_name)
    found: dict[str, Rules] = {_name(role): [] if _selectors(role) else role.get("rules") or [] for role in ordered}
    sources = {_name(role): [_name(one) for one in _selected(role, ordered)] for role in ordered if _selectors(role)}
    changed = bool(sources)
    while changed:
        changed = False
        for name, parts in sources.items():
            united = _united(rule for part in parts for rule in found[part])
            changed = changed or len(united) != len(found[name])
            found[name] = united
    return found


def outdated(cluster_roles: Sequence[Object]) -> list[Object]:
    """Copies of the aggregated roles whose stored rules are not what they should be, with those that should."""
    wanted = effective(cluster_roles)
    return [
        {**deepcopy(role), "rules": deepcopy(wanted[_name(role)])}
        for role in cluster_roles
        if _selectors(role) and (role.get("rules") or []) != wanted[_name(role)]
    ]


def _name(role: Object) -> str:
    return str(role["metadata"]["name"])


def _selectors(role: Object) -> list[dict[str, Any]]:
    return (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []


def _selected(role: Object, ordered: Sequence[Object]) -> Iterable[Object]:
    for selector in _selectors(role):
        for other in ordered:
            if other is not role and matches(selector, other["metadata"].get("labels")):
                yield other


def _united(rules: Iterable[dict[str, Any]]) -> Rules:
    """Each once, in order."""
    united: Rules = []
    for rule in rules:
        if rule not in united:
            united.append(rule)
    return united
