"""KAI: its PodGroup, made by its pod grouper, with subgroups as the leaves of a tree."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from kohort.grouping.model import GroupNode, Kind, Level, ObjectLister, Place, Rule, Subject, Thing
from kohort.grouping.schedulers.objects import minimum, said

NAME: Final = "pod-group-name"
SUBGROUP: Final = "kai.scheduler/subgroup-name"
QUEUE: Final = "kai.scheduler/queue"
BATCH_MIN_MEMBER: Final = "kai.scheduler/batch-min-member"  # on an owner
KIND: Final = Kind("scheduling.run.ai", "PodGroup")


def place(pod: Subject, lister: ObjectLister) -> Place | None:
    name = pod.annotations.get(NAME)
    found = lister.find(KIND, pod.namespace, name, wait=False) if name else None
    if found is None:
        return None
    queue = str(found.spec.get("queue") or pod.labels.get(QUEUE, ""))
    node = GroupNode(found.name, minimum(found), topology=_topology(found.spec), asks=_prefers(found.spec))
    made = Place(
        RULE.name, Level.OBJECT, pod.namespace, found.name, (node,), said(pod, NAME, found), found.reference,
        queue=queue,
    )  # fmt: skip
    subgroups = [one for one in found.spec.get("subGroups") or () if isinstance(one, dict) and one.get("name")]
    return _tree(made, pod, found, subgroups) if subgroups else made


def _tree(made: Place, pod: Subject, found: Thing, subgroups: list[dict[str, Any]]) -> Place:
    """Subgroups may lie below others; a pod is of one that has none below it."""
    names = {str(one["name"]) for one in subgroups}
    above = {str(one["parent"]) for one in subgroups if one.get("parent")}
    own = pod.said(SUBGROUP)
    if own not in names - above:
        leaf = f"{found.name}/{own or 'others'}"
        return replace(made, leaf=leaf, nodes=(GroupNode(leaf, None),))
    top = [one for one in subgroups if str(one.get("parent") or "") not in names]
    least = _count(found.spec, "minSubGroup") or len(top)
    root = GroupNode(found.name, least, branch=True, topology=_topology(found.spec), asks=_prefers(found.spec))
    below = tuple(_node(one, found.name, names, subgroups) for one in subgroups)
    return replace(made, leaf=f"{found.name}/{own}", nodes=(root, *below))


def _node(one: dict[str, Any], root: str, names: set[str], subgroups: list[dict[str, Any]]) -> GroupNode:
    name, parent = str(one["name"]), str(one.get("parent") or "")
    children = [other for other in subgroups if other.get("parent") == name]
    return GroupNode(
        f"{root}/{name}",
        (_count(one, "minSubGroup") or len(children)) if children else _count(one, "minMember") or None,
        f"{root}/{parent}" if parent in names else root,
        bool(children),
        _topology(one),
        asks=_prefers(one),
    )


def _count(spec: dict[str, Any], member: str) -> int:
    value = spec.get(member)
    return value if isinstance(value, int) else 0


def _topology(spec: dict[str, Any]) -> str | None:
    return _level(spec, "requiredTopologyLevel") or None


def _prefers(spec: dict[str, Any]) -> str:
    level = _level(spec, "preferredTopologyLevel")
    return f"{level}=preferred" if level else ""


def _level(spec: dict[str, Any], member: str) -> str:
    found = spec.get("topologyConstraint")
    return str(found.get(member) or "") if isinstance(found, dict) else ""


RULE = Rule(
    name="kai",
    about="PodGroups of scheduling.run.ai",
    level=Level.OBJECT,
    place=place,
    keys=(NAME,),
    also=(SUBGROUP, QUEUE),
    reads=(KIND,),
)
