"""Topology constraints of a PodCliqueSet: their shape, the names they inherit, and the binding they speak of (1.10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api.errors import FieldError, duplicate, forbidden, invalid, required
from kohort.api.kind import Context, Object
from kohort.kinds.grove.api import options, parts

_LEVELS: Final = (("required", parts.required_domain), ("preferred", parts.preferred_domain))


def check_shape(obj: Object) -> Iterator[FieldError]:
    """What the CRD's own rules say, on create and update."""
    for path, constraint, _ in parts.constraints(obj):
        pack, old = constraint.get("pack") or {}, constraint.get("packDomain")
        if constraint.get("pack") is None and old is None:
            yield required(f"{path}.pack", "topologyConstraint must specify pack or deprecated packDomain")
        elif constraint.get("pack") is not None and not (pack.get("required") or pack.get("preferred")):
            yield required(f"{path}.pack", "pack must specify at least one of required or preferred")
        if old is not None and pack.get("required"):
            yield invalid(
                f"{path}.pack.required", pack["required"], "must not set both pack.required and deprecated packDomain"
            )


def check_new(obj: Object, ctx: Context) -> Iterator[FieldError]:
    """Only on create: later the constraints are frozen, and an operator without topology keeps what it has."""
    for path, constraint, _ in parts.constraints(obj):
        if constraint.get("packDomain") is not None:
            yield forbidden(
                f"{path}.packDomain", "packDomain is deprecated and cannot be used on new workloads; use pack.required"
            )
    if ctx.on(options.TOPOLOGY):
        yield from _names(obj)
        return
    for path, constraint, _ in parts.constraints(obj):
        domains = [domain for _, read in _LEVELS if (domain := read(constraint))]
        yield invalid(path, domains, "topology constraints are not allowed when topology-aware scheduling is disabled")


def _names(obj: Object) -> Iterator[FieldError]:
    """Every constraint has a topology, given or inherited, and all speak of the same one."""
    own = (parts.template(obj).get("topologyConstraint") or {}).get("topologyName") or ""
    by_group = {
        str(group.get("name")): (group.get("topologyConstraint") or {}).get("topologyName") or own
        for _, group in parts.scaling_groups(obj)
    }
    inherited = {
        f"{path}.topologyConstraint": by_group.get(parts.members(obj).get(str(clique.get("name")), ""), own)
        for path, clique in parts.cliques(obj)
    } | {f"{path}.topologyConstraint": own for path, _ in parts.scaling_groups(obj)}
    names = {
        path: constraint.get("topologyName") or inherited.get(path, "")
        for path, constraint, _ in parts.constraints(obj)
    }
    first = next((name for name in names.values() if name), "")
    for path, name in names.items():
        if not name:
            yield required(f"{path}.topologyName", "needed where topologyConstraint is set and none can be inherited")
        elif name != first:
            yield invalid(
                f"{path}.topologyName",
                name,
                f'all topologyName values of a PodCliqueSet must match, another is "{first}"',
            )


def topology_name(obj: Object) -> str:
    """The binding that a valid PodCliqueSet speaks of, "" if it has no constraint."""
    return next((name for _, found, _ in parts.constraints(obj) if (name := found.get("topologyName"))), "")


def levels(binding: Object) -> dict[str, str]:
    """Domain -> node label key, broadest first."""
    return {level["domain"]: level["key"] for level in binding["spec"]["levels"]}


def check_binding(obj: Object, binding: Object | None) -> list[FieldError]:
    """The binding exists, has the domains, and no parent is narrower than its child."""
    name = topology_name(obj)
    if not name:
        return []
    if binding is None:
        path = next(path for path, found, _ in parts.constraints(obj) if found.get("topologyName"))
        return [invalid(f"{path}.topologyName", name, f'ClusterTopologyBinding "{name}" not found')]
    known = list(levels(binding))
    return list(_unknown(obj, known)) or list(_narrower(obj, known))


def _unknown(obj: Object, known: list[str]) -> Iterator[FieldError]:
    for path, constraint, _ in parts.constraints(obj):
        for member, read in _LEVELS:
            domain = read(constraint)
            if domain and domain not in known:
                at = f"{path}.pack.{member}" if constraint.get("pack") else f"{path}.packDomain"
                yield invalid(at, domain, f"not a domain of the topology binding; its domains are {', '.join(known)}")


def _narrower(obj: Object, known: list[str]) -> Iterator[FieldError]:
    for path, owner, child, of_parent, of_child in _pairs(obj):
        for member, read in _LEVELS:
            above, below = read(owner), read(child)
            if above and below and known.index(above) > known.index(below):
                yield invalid(
                    f"{path}.topologyConstraint" + (".pack.preferred" if member == "preferred" else ""),
                    above,
                    f"{of_parent} topology constraint domain '{above}' is narrower than {of_child} domain '{below}'",
                )


def _pairs(obj: Object) -> Iterator[tuple[str, dict[str, Any], dict[str, Any], str, str]]:
    """Every constraint with every one beneath it."""
    whole = parts.template(obj).get("topologyConstraint") or {}
    by_name = {str(clique.get("name")): clique for _, clique in parts.cliques(obj)}
    for _, child, of_child in parts.constraints(obj):
        if child is not whole:
            yield parts.TEMPLATE, whole, child, "PodCliqueSet", of_child
    for path, group in parts.scaling_groups(obj):
        for name in group.get("cliqueNames") or []:
            child = (by_name.get(name) or {}).get("topologyConstraint") or {}
            owner = group.get("topologyConstraint") or {}
            yield path, owner, child, f"PodCliqueScalingGroup '{group.get('name')}'", f"PodClique '{name}'"


def redundant(obj: Object, binding: Object) -> list[str]:
    """Warnings: a preference that is no narrower than what is required anyway says nothing."""
    known = list(levels(binding))
    return [
        f"{path}.pack.preferred is coarser than {path}.pack.required and is redundant"
        for path, found, _ in parts.constraints(obj)
        for must, preferred in [(parts.required_domain(found), parts.preferred_domain(found))]
        if must in known and preferred in known and known.index(preferred) < known.index(must)
    ]


def validate_binding(obj: Object, ctx: Context) -> list[FieldError]:
    found: list[FieldError] = []
    spec = obj.get("spec") or {}
    for member in ("domain", "key"):
        seen: set[str] = set()
        for index, level in enumerate(spec.get("levels") or []):
            value = level.get(member)
            if value in seen:
                found.append(duplicate(f"spec.levels[{index}].{member}", value))
            seen.add(str(value))
    for index, item in enumerate(spec.get("schedulerTopologyBindings") or []):
        name = item.get("schedulerName") or ""
        path = f"spec.schedulerTopologyBindings[{index}].schedulerName"
        if not options.enabled(name, ctx):
            found.append(invalid(path, name, "scheduler backend is not enabled"))
        elif name not in options.TOPOLOGY_AWARE:
            found.append(invalid(path, name, "scheduler backend has no topology object of its own to bind"))
    return found
