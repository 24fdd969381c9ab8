"""Reading a PodCliqueSet that may be incomplete: validation must not trip over what it is about to report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api.kind import Object

TEMPLATE: Final = "spec.template"
CLIQUES: Final = f"{TEMPLATE}.cliques"
GROUPS: Final = f"{TEMPLATE}.podCliqueScalingGroups"


def template(obj: Object) -> dict[str, Any]:
    return (obj.get("spec") or {}).get("template") or {}


def cliques(obj: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and entry of every clique template."""
    for index, clique in enumerate(template(obj).get("cliques") or []):
        yield f"{CLIQUES}[{index}]", clique or {}


def scaling_groups(obj: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and entry of every PodCliqueScalingGroup config."""
    for index, group in enumerate(template(obj).get("podCliqueScalingGroups") or []):
        yield f"{GROUPS}[{index}]", group or {}


def spec_of(clique: dict[str, Any]) -> dict[str, Any]:
    return clique.get("spec") or {}


def pod_spec(clique: dict[str, Any]) -> dict[str, Any]:
    return spec_of(clique).get("podSpec") or {}


def members(obj: Object) -> dict[str, str]:
    """Clique name -> name of the scaling group that it belongs to."""
    return {
        str(name): str(group.get("name") or "")
        for _, group in scaling_groups(obj)
        for name in group.get("cliqueNames") or []
    }


def standalone(obj: Object) -> list[tuple[str, dict[str, Any]]]:
    belongs = members(obj)
    return [(path, clique) for path, clique in cliques(obj) if clique.get("name") not in belongs]


def constraints(obj: Object) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Path, value and owner's description of every topologyConstraint: set, groups, cliques."""
    places = [
        (TEMPLATE, template(obj), "PodCliqueSet"),
        *((path, group, f"PodCliqueScalingGroup '{group.get('name')}'") for path, group in scaling_groups(obj)),
        *((path, clique, f"PodClique '{clique.get('name')}'") for path, clique in cliques(obj)),
    ]
    for path, owner, description in places:
        if owner.get("topologyConstraint") is not None:
            yield f"{path}.topologyConstraint", owner["topologyConstraint"], description


def required_domain(constraint: dict[str, Any] | None) -> str:
    """What must hold; objects of old say it as packDomain."""
    found = constraint or {}
    return str((found.get("pack") or {}).get("required") or found.get("packDomain") or "")


def preferred_domain(constraint: dict[str, Any] | None) -> str:
    return str(((constraint or {}).get("pack") or {}).get("preferred") or "")
