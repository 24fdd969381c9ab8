"""The groups of pods as the scheduler knows them: revision, size, how often each was made anew (spec lws 4.5, W2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, name_of, number
from kohort.api.releases import Release
from kohort.gang.render import parse
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import is_delegated, shape_of, size
from kohort.kinds.leaderworkerset.compile.names import Instance, base_name
from kohort.kinds.leaderworkerset.control.reading import group_index, incarnation_of, revision_of, size_of
from kohort.kinds.leaderworkerset.control.revisions import Revisions
from kohort.kinds.leaderworkerset.control.state import Replica


def leaf_level(lws: Object) -> str:
    """Where pods join a group: "lws", "replica" or "role"; empty: nowhere."""
    shape = shape_of(lws)
    if shape is None:
        return "replica" if is_delegated(lws) else ""
    return shape.active[0] if shape.flat else "role"


def named_by(pods: Iterable[Object]) -> set[str]:
    """The groups (on 1.35: Workloads) that pods name, stopping ones too."""
    found = set()
    for pod in pods:
        spec = pod.get("spec") or {}
        found.add((spec.get("schedulingGroup") or {}).get("podGroupName"))
        found.add((spec.get("workloadRef") or {}).get("name"))
    return {name for name in found if name}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Workloads by number, where a Workload cannot follow a new size (1.35, 1.36): each size has its own."""

    sizes: Mapping[int, int | None]  # number -> size; None: any
    frozen: bool

    def of(self, pods: int) -> int:
        if not self.frozen:
            return 0
        fitting = [number for number, known in self.sizes.items() if known in (None, pods)]
        return max(fitting) if fitting else max(self.sizes, default=-1) + 1


def numbers(lws: Object, groups: Sequence[Object], release: Release) -> Numbers:
    base, found = base_name(lws), {}
    for workload in groups:
        name = name_of(workload)
        if workload.get("kind") == "Workload" and (name == base or name.startswith(f"{base}-")):
            found[number(name.removeprefix(base).removeprefix("-"), 0)] = _size(workload)
    return Numbers(found, not release.min_count_mutable and leaf_level(lws) != "lws")


def _size(workload: Object) -> int | None:
    least = {template.name: template.minimum for template in parse([workload]).walk()}
    if least.get("replica") is not None:
        return least["replica"]
    workers = least.get("worker")
    return None if workers is None else workers + 1


def wanted(
    lws: Object,
    indices: Iterable[int],
    found: Mapping[int, Replica],
    kept: Iterable[int],
    revisions: Revisions,
    groups: Sequence[Object],
    pods: Sequence[Object],
    release: Release,
) -> dict[int, Instance]:
    """Of each group in `indices`: as it is, or (not in `kept`) as the next one will be."""
    keep, workloads = set(kept), numbers(lws, groups, release)
    groups_at, pods_at = _by_index(groups), _by_index(pods)
    made = {}
    for index in indices:
        leader = found[index].leader if index in keep else None
        if leader is not None:
            row: dict[str, Any] = {"revision": revision_of(leader), "size": size_of(leader)}
            row["incarnation"] = incarnation_of(leader)
        else:
            key = revisions.target(index)
            row = {"revision": key, "size": size(revisions.spec_at(key))}
            known = groups_at.get(index, ()), pods_at.get(index, ())
            row["incarnation"] = 0 if leaf_level(lws) == "lws" else _next(key, *known)
        made[index] = Instance(index=index, workload=workloads.of(row["size"]), **row)
    return made


def _by_index(objects: Iterable[Object]) -> dict[int, list[Object]]:
    found: dict[int, list[Object]] = {}
    for obj in objects:
        found.setdefault(group_index(obj), []).append(obj)
    return found


def _next(key: str, groups: Sequence[Object], pods: Sequence[Object]) -> int:
    """A group that nobody has used yet is used now; otherwise the number after all that are still known.

    `groups` and `pods`: of one index.
    """
    own = [group for group in groups if label(group, constants.REVISION) == key]
    mates = [pod for pod in pods if label(pod, constants.REVISION) == key]
    used = {incarnation_of(pod) for pod in mates} | {incarnation_of(group) for group in own if is_deleting(group)}
    fresh = [incarnation_of(group) for group in own if incarnation_of(group) not in used]
    if fresh:
        return max(fresh)
    return max(used | {incarnation_of(group) for group in own}, default=-1) + 1
