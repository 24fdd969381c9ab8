"""PodGangs: the scheduling contract that Grove's own schedulers read, one for each gang (spec grove 1.4, 1.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.gang.stand_in import uid_of
from kohort.kinds.grove.api import constants, options
from kohort.kinds.grove.compile import names
from kohort.kinds.grove.compile.expand import Clique, Gang
from kohort.kinds.grove.compile.topology import Pack, Topology


def podgang(obj: Object, gang: Gang, topology: Topology, external: bool) -> Object:
    """Pods are listed by the controller, which knows them; here the lists are empty."""
    spec = _spec(obj, gang, topology)
    return {
        "apiVersion": constants.SCHEDULER_API_VERSION,
        "kind": "PodGang",
        "metadata": _metadata(obj, gang, topology.name if _translated(spec) else "", external),
        "spec": spec,
    }


def _metadata(obj: Object, gang: Gang, topology_name: str, external: bool) -> Object:
    meta = obj["metadata"]
    annotations = mirrored(meta.get("annotations"))
    if topology_name:
        annotations[constants.TOPOLOGY_NAME] = topology_name
    found: Object = {
        "name": gang.name,
        "namespace": namespace_or_default(obj),
        "labels": {
            **mirrored(meta.get("labels")),
            **part_of(obj, "podgang"),
            constants.SCHEDULER_NAME: options.scheduler_of(obj),
            **({constants.EXTERNAL: "true"} if external else {}),
        },
    }
    if annotations:
        found["annotations"] = annotations
    found["ownerReferences"] = [
        {
            "apiVersion": constants.API_VERSION,
            "kind": "PodCliqueSet",
            "name": meta["name"],
            "uid": uid_of(obj),
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return found


def mirrored(entries: Mapping[str, str] | None) -> dict[str, str]:
    """What a PodGang takes over from its set: all but the operator's own keys."""
    return {key: value for key, value in (entries or {}).items() if not key.startswith(constants.OWN_PREFIX)}


def part_of(obj: Object, component: str) -> dict[str, str]:
    return {
        constants.MANAGED_BY: constants.OPERATOR,
        constants.PART_OF: obj["metadata"]["name"],
        constants.COMPONENT: component,
    }


def _spec(obj: Object, gang: Gang, topology: Topology) -> Object:
    spec: Object = {"podgroups": [_group(clique, topology) for clique in gang.cliques]}
    spec |= _constraint(topology.of_gang(gang))
    configs = _group_configs(gang, topology)
    if configs:
        spec["topologyConstraintGroupConfigs"] = configs
    if obj["spec"]["template"].get("priorityClassName"):
        spec["priorityClassName"] = obj["spec"]["template"]["priorityClassName"]
    return spec


def _group(clique: Clique, topology: Topology) -> Object:
    group: Object = {"name": clique.name, "podReferences": [], "minReplicas": clique.minimum}
    return group | _constraint(topology.pack(clique.template.get("topologyConstraint")))


def _group_configs(gang: Gang, topology: Topology) -> list[Object]:
    """One for each replica of a constrained scaling group inside a base gang."""
    members: dict[tuple[str, str], list[str]] = {}
    for clique in gang.cliques if gang.base is None else ():
        if topology.constrains(clique.group):
            key = (clique.group, names.replica(clique.group_name, clique.group_index))
            members.setdefault(key, []).append(clique.name)
    return [
        {"name": name, "podGroupNames": cliques} | _constraint(topology.of_group(group))
        for (group, name), cliques in members.items()
    ]


def _constraint(pack: Pack) -> Object:
    keys = {member: key for member, key in (("required", pack.required), ("preferred", pack.preferred)) if key}
    return {"topologyConstraint": {"packConstraint": keys}} if keys else {}


def _translated(spec: Object) -> bool:
    places: list[Any] = [spec, *spec["podgroups"], *spec.get("topologyConstraintGroupConfigs", ())]
    return any("topologyConstraint" in place for place in places)
