"""Resource claims that replicas share: of the set, of a scaling group, of a clique (spec grove 1.1).

A claim is made before the pods that name it. Its name says whose it is: `<owner>-all-<template>` for all replicas of
the owner, `<owner>-<index>-<template>` for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import label, name_of, namespace_of, owner_reference
from kohort.controllers.controller import Key
from kohort.controllers.reconcile import ReconcileError
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.compile.podgang import part_of
from kohort.kinds.grove.control.sets import CliqueSet
from kohort.kinds.grove.control.writing import number

ALL = "AllReplicas"
Finder = Callable[[str, str], Object | None]  # namespace and name of a ResourceClaimTemplate


@dataclass(frozen=True, slots=True)
class Level:
    """One owner of shared claims: how many replicas it has, and the label that tells them apart."""

    owner: Object
    sharing: Iterable[Mapping[str, Any]]
    replicas: int
    index: str
    marks: Mapping[str, str]


def of_set(pcs: CliqueSet) -> Level:
    return Level(pcs.obj, pcs.template.get("resourceSharing") or (), pcs.replicas, constants.SET_INDEX, {})


def of_group(pcs: CliqueSet, group: Object) -> Level:
    config = pcs.groups.get(pcs.group_of(group)) or {}
    marks = {constants.SCALING_GROUP: name_of(group)}
    replicas = int(group["spec"].get("replicas") or 0)
    return Level(group, config.get("resourceSharing") or (), replicas, constants.SCALING_GROUP_INDEX, marks)


def of_clique(pcs: CliqueSet, pclq: Object, replicas: int) -> Level:
    """`replicas`: as far as pods are made by now."""
    template = pcs.cliques.get(pcs.clique_of(pclq)) or {}
    marks = {constants.PODCLIQUE: name_of(pclq)}
    return Level(pclq, template.get("resourceSharing") or (), replicas, constants.POD_INDEX, marks)


def templates(pcs: Object) -> Iterator[Key]:
    """Objects of the cluster that shared claims of a set, or of anything below it, are made from."""
    template = pcs["spec"].get("template") or {}
    own = {one["name"] for one in template.get("resourceClaimTemplates") or ()}
    owners = [template, *(template.get("podCliqueScalingGroups") or ()), *(template.get("cliques") or ())]
    for above in owners:
        for share in above.get("resourceSharing") or ():
            if share.get("namespace") or share["name"] not in own:
                yield Key(str(share.get("namespace") or namespace_of(pcs)), str(share["name"]))


def wanted(pcs: CliqueSet, level: Level, find: Finder) -> list[Object]:
    """The claims of one owner, as they are made. Their specs never change."""
    found = []
    for share in level.sharing:
        spec = _template(pcs, share, find)
        indices: list[int | None] = [None] if share["scope"] == ALL else list(range(level.replicas))
        for index in indices:
            marks = {**part_of(pcs.obj, "resource-claim"), **level.marks}
            if index is not None:
                marks[level.index] = str(index)
            found.append(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaim",
                    "metadata": {
                        "name": _name(name_of(level.owner), share, index),
                        "namespace": pcs.namespace,
                        "labels": marks,
                        "ownerReferences": [owner_reference(level.owner)],
                    },
                    "spec": copied(spec.get("spec") or {}),
                }
            )
    return found


def _name(owner_name: str, share: Mapping[str, Any], index: int | None) -> str:
    return f"{owner_name}-{'all' if index is None else index}-{share['name']}"


def _template(pcs: CliqueSet, share: Mapping[str, Any], find: Finder) -> Mapping[str, Any]:
    """One of the set's own, or an object of the cluster."""
    if not share.get("namespace"):
        for one in pcs.template.get("resourceClaimTemplates") or ():
            if one["name"] == share["name"]:
                inner: Mapping[str, Any] = one["templateSpec"]
                return inner
    namespace = str(share.get("namespace") or pcs.namespace)
    other = find(namespace, str(share["name"]))
    if other is None:
        raise ReconcileError(f"ResourceClaimTemplate {namespace}/{share['name']}: not found; resourceSharing names it")
    return other.get("spec") or {}


def put(spec: dict[str, Any], pcs: CliqueSet, pclq: Object, index: int) -> None:
    """Names the shared claims of a pod in its spec and in all of its containers."""
    for name in _names(pcs, pclq, index):
        spec["resourceClaims"] = [*(spec.get("resourceClaims") or ()), {"name": name, "resourceClaimName": name}]
        for kind in ("containers", "initContainers"):
            for container in spec.get(kind) or ():
                resources = container.setdefault("resources", {})
                resources["claims"] = [*(resources.get("claims") or ()), {"name": name}]


def _names(pcs: CliqueSet, pclq: Object, index: int) -> Iterator[str]:
    clique, group = pcs.clique_of(pclq), label(pclq, constants.SCALING_GROUP)
    set_index = number(pclq, constants.SET_INDEX)
    config_name = group.removeprefix(f"{pcs.name}-{set_index}-") if group else ""
    levels: list[tuple[str, Any, int, set[str]]] = [
        (pcs.name, pcs.template.get("resourceSharing"), set_index, {clique, config_name}),
    ]
    if group:
        config = pcs.groups.get(config_name) or {}
        levels.append((group, config.get("resourceSharing"), number(pclq, constants.SCALING_GROUP_INDEX), {clique}))
    template = pcs.cliques.get(clique) or {}
    levels.append((name_of(pclq), template.get("resourceSharing"), index, set()))
    for above, sharing, at, mine in levels:
        for share in sharing or ():
            if _enqueue(share.get("filter"), mine):
                yield _name(above, share, None if share["scope"] == ALL else at)


def _enqueue(chosen: Mapping[str, Any] | None, mine: set[str]) -> bool:
    if not chosen:
        return True
    return bool(mine & {*(chosen.get("childCliqueNames") or ()), *(chosen.get("childScalingGroupNames") or ())})
