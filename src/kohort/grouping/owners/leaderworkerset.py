"""LeaderWorkerSet: each replica, a leader and its workers, is a gang.

startupPolicy LeaderReady, and exclusive-topology: the workers are made once their leader is ready, or has a node. Then
the leader starts alone, once there is room for the workers, too, and the workers together after it. Where the
LeaderWorkerSet cannot be read, it is the same without that room.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Kind, Later, Level, ObjectLister, Place, Rule, Subject, Thing
from kohort.grouping.owners.sizes import whole

_PREFIX: Final = "leaderworkerset.sigs.k8s.io/"
NAME: Final = f"{_PREFIX}name"
GROUP: Final = f"{_PREFIX}group-index"
WORKER: Final = f"{_PREFIX}worker-index"
SIZE: Final = f"{_PREFIX}size"
EXCLUSIVE: Final = f"{_PREFIX}exclusive-topology"
KIND: Final = Kind("leaderworkerset.x-k8s.io", "LeaderWorkerSet")


def place(pod: Subject, lister: ObjectLister) -> Place | None:
    name, group = pod.labels.get(NAME), pod.labels.get(GROUP)
    if not name or group is None:
        return None
    found = lister.find(KIND, pod.namespace, name)
    if found is not None and keys.wants(found, pod.annotations) is False:
        return None
    size = _size(pod, found)
    own = f"{name}/{group}"
    node = GroupNode(own, size)
    if _leader_first(found) and size > 1:
        leader = pod.labels.get(WORKER) == "0"
        workers = f"{own}/workers"
        later = tuple(_later(workers, size - 1, pod, found)) if leader else ()
        node = GroupNode(f"{own}/leader", 1, later=later) if leader else GroupNode(workers, size - 1)
    said = str(found) if found is not None else pod.where(NAME)
    owner = found.reference if found is not None else pod.owner
    made = Place(RULE.name, Level.OWNER, pod.namespace, node.name, (node,), said, owner)
    return keys.adjusted(made, pod.annotations, found.annotations if found is not None else {})


def _later(workers: str, count: int, pod: Subject, found: Thing | None) -> Iterator[Later]:
    if found is not None and keys.reserves(pod.annotations, found.annotations):
        template = (found.spec.get("leaderWorkerTemplate") or {}).get("workerTemplate")
        yield from keys.later(workers, count, template, found.annotations.get(EXCLUSIVE, ""))


def _size(pod: Subject, found: Thing | None) -> int:
    if SIZE in pod.annotations:
        return keys.number(pod.annotations[SIZE], pod.where(SIZE))
    template = found.spec.get("leaderWorkerTemplate") if found is not None else None
    return whole((template or {}).get("size"), 1)


def _leader_first(found: Thing | None) -> bool:
    return found is None or found.spec.get("startupPolicy") == "LeaderReady" or EXCLUSIVE in found.annotations


RULE = Rule(
    name="leaderworkerset",
    about="LeaderWorkerSets: each leader with its workers",
    level=Level.OWNER,
    place=place,
    keys=(NAME,),
    also=(GROUP, SIZE),
    zero_keys={WORKER: ""},
    reads=(KIND,),
    controller="leaderworkerset",
)
