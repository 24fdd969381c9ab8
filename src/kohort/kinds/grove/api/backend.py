"""What the Workload API cannot carry, refused when a PodCliqueSet is submitted (GREP-531, spec grove 3.7).

All rules but the first hold only where Kohort or kube-scheduler schedules the pods and option GroveGangScheduling is
on. A set whose templates name their group themselves (the escape hatch, 3.10) has handed the groups to somebody else:
nothing about them is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kohort.api.errors import ErrorKind, FieldError, duplicate, forbidden, invalid
from kohort.api.kind import Context, Object
from kohort.api.releases import Gate
from kohort.kinds.grove.api import options, parts, podspec

MAX_LIST: Final = 8  # entries of one template list
_ABOVE_GROUPS: Final = ("system-cluster-critical", "system-node-critical")
_WORKLOAD_KEP: Final = "KEP-4671"
_TOPOLOGY_KEP: Final = "KEP-5732"


def concerned(obj: Object) -> bool:
    """Whether the set's pods belong to a scheduler that reads Workloads."""
    return all(
        options.scheduler_name(parts.pod_spec(clique)) in options.GANG_BACKENDS for _, clique in parts.cliques(obj)
    )


def external(obj: Object) -> bool:
    """The escape hatch: every template names its group."""
    named = [podspec.membership(parts.pod_spec(clique)) is not None for _, clique in parts.cliques(obj)]
    return bool(named) and all(named)


def check(obj: Object, ctx: Context) -> list[FieldError]:
    if not concerned(obj):
        return []
    if not ctx.on(options.GANG):
        return list(_hatch_without_gang(obj, ctx))
    if external(obj):
        return []
    return [
        *_half_open_hatch(obj, ctx),
        *_kinds(ctx),
        *_topology(obj, ctx),
        *_names(obj),
        *_priorities(obj, ctx),
        *(_tree_width(obj) if options.is_tree(ctx) else _flat_width(obj, ctx)),
    ]


def check_templates(obj: Object, ctx: Context) -> list[FieldError]:
    """Of these, what pod templates say against each other or the set: pods that no group could ever hold together."""
    if not concerned(obj) or not ctx.on(options.GANG) or external(obj):
        return []
    return [*_half_open_hatch(obj, ctx), *_priorities(obj, ctx)]


def _hatch_without_gang(obj: Object, ctx: Context) -> Iterator[FieldError]:
    for path, clique in parts.cliques(obj):
        if podspec.membership(parts.pod_spec(clique)) is not None:
            yield forbidden(
                f"{path}.spec.podSpec.{ctx.release.pod_field}",
                f"a template may name its group only while option {options.GANG} is on",
            )


def _half_open_hatch(obj: Object, ctx: Context) -> Iterator[FieldError]:
    found = [
        (path, podspec.membership(parts.pod_spec(clique)) is not None, clique.get("name"))
        for path, clique in parts.cliques(obj)
    ]
    others = [str(name) for _, named, name in found if not named]
    for path, named, _ in found:
        if named:
            yield forbidden(
                f"{path}.spec.podSpec.{ctx.release.pod_field}",
                f"either all cliques name their group or none does; these do not: {', '.join(others)}",
            )


def _kinds(ctx: Context) -> Iterator[FieldError]:
    if not ctx.on(Gate.GENERIC_WORKLOAD):
        groups = " and PodGroup" if ctx.release.has_pod_groups else ""
        yield forbidden(
            parts.TEMPLATE,
            f"kind Workload{groups} of {ctx.release.api_version} ({_WORKLOAD_KEP}) is not served: "
            f"feature gate {Gate.GENERIC_WORKLOAD} is off",
        )


def _topology(obj: Object, ctx: Context) -> Iterator[FieldError]:
    tree = options.is_tree(ctx)
    for path, constraint, _ in parts.constraints(obj):
        if not tree:
            yield forbidden(
                path,
                f"a PodCliqueSet needs a tree of groups for it ({_TOPOLOGY_KEP}): "
                f"Kubernetes 1.37 with feature gate {Gate.COMPOSITE}, without option {options.FLAT}",
            )
        elif parts.preferred_domain(constraint) and not _by_kohort(obj):
            yield forbidden(
                f"{path}.pack.preferred",
                f"the Workload API knows only required topology ({_TOPOLOGY_KEP}); use pack.required, leave it out, or "
                f"set schedulerName {options.KOHORT}, which keeps preferred topology by annotations of groups",
            )


def _by_kohort(obj: Object) -> bool:
    return all(options.scheduler_name(parts.pod_spec(clique)) == options.KOHORT for _, clique in parts.cliques(obj))


def has_priorities(ctx: Context) -> bool:
    """Whether a group has a priority of its own, which its pods must share: from 1.37 on, on 1.36 behind a gate."""
    return ctx.release.min_count_mutable or ctx.on(Gate.PREEMPTION)


def _priorities(obj: Object, ctx: Context) -> Iterator[FieldError]:
    if not has_priorities(ctx):
        return
    wanted = parts.template(obj).get("priorityClassName") or ""
    if wanted in _ABOVE_GROUPS:
        yield invalid(
            f"{parts.TEMPLATE}.priorityClassName", wanted, "its priority is above 1000000000, the most a group may have"
        )
    for path, clique in parts.cliques(obj):
        found = parts.pod_spec(clique).get("priorityClassName") or ""
        if found and found != wanted:
            yield invalid(
                f"{path}.spec.podSpec.priorityClassName",
                found,
                "all pods of a gang have the priority of the gang: leave it out, "
                f'or make it equal to spec.template.priorityClassName ("{wanted}")',
            )


# ---- sizes


def groups_of_base(obj: Object) -> int:
    """How many groups the base gang of one replica has."""
    scaled = sum(
        int(group.get("minAvailable") or 0) * len(group.get("cliqueNames") or [])
        for _, group in parts.scaling_groups(obj)
    )
    return len(parts.standalone(obj)) + scaled


def _flat_width(obj: Object, ctx: Context) -> Iterator[FieldError]:
    found = groups_of_base(obj)
    if found > MAX_LIST:
        yield _too_many(
            parts.CLIQUES,
            found,
            f"the base gang has {found} groups (standalone cliques, and minAvailable x cliques of each scaling group), "
            f"a Workload of Kubernetes {ctx.release.minor} holds at most {MAX_LIST}",
        )


def _tree_width(obj: Object) -> Iterator[FieldError]:
    alone = len(parts.standalone(obj))
    if alone > MAX_LIST:
        yield _too_many(parts.CLIQUES, alone, f"at most {MAX_LIST} cliques outside scaling groups")
    filled = [group for _, group in parts.scaling_groups(obj) if group.get("cliqueNames")]
    if len(filled) > MAX_LIST:
        yield _too_many(parts.GROUPS, len(filled), f"at most {MAX_LIST} scaling groups")
    for path, group in parts.scaling_groups(obj):
        size = len(group.get("cliqueNames") or [])
        if size > MAX_LIST:
            yield _too_many(f"{path}.cliqueNames", size, f"at most {MAX_LIST} cliques in a scaling group")


def _too_many(field: str, found: int, detail: str) -> FieldError:
    return FieldError(ErrorKind.TOO_MANY, field, detail, found)


# ---- names


def _names(obj: Object) -> Iterator[FieldError]:
    """Group names are DNS labels: no dots, and room for the indices."""
    places: list[tuple[str, Any]] = [("metadata.name", (obj.get("metadata") or {}).get("name"))]
    places += [(f"{path}.name", entry.get("name")) for path, entry in (*parts.cliques(obj), *parts.scaling_groups(obj))]
    for path, name in places:
        if isinstance(name, str) and "." in name:
            yield invalid(path, name, "must not contain a dot: names of groups are DNS labels")
    yield from _ambiguous(obj)


def _ambiguous(obj: Object) -> Iterator[FieldError]:
    """A standalone clique whose PodClique would be called like that of a scaling group's member."""
    taken = [
        (str(group.get("name")), str(member), str(path))
        for path, group in parts.scaling_groups(obj)
        for member in group.get("cliqueNames") or []
    ]
    for path, clique in parts.standalone(obj):
        name = str(clique.get("name"))
        if any(re.fullmatch(rf"{re.escape(group)}-\d+-{re.escape(member)}", name) for group, member, _ in taken):
            yield duplicate(f"{path}.name", name)
