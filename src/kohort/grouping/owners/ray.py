"""RayCluster, also those of RayJobs and RayServices: the head and every worker group that must be there, as one tree.

A worker group that may shrink to nothing (autoscaling with minReplicas 0) stays outside, and so does the submitter of a
RayJob, which is a plain Job.
"""

from __future__ import annotations

from typing import Any, Final

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Kind, Level, ObjectLister, Place, Rule, Subject, Thing
from kohort.grouping.owners.sizes import owned, whole

CLUSTER: Final = "ray.io/cluster"
GROUP: Final = "ray.io/group"
NODE_TYPE: Final = "ray.io/node-type"
ENABLED: Final = "ray.io/gang-scheduling-enabled"
KIND: Final = Kind("ray.io", "RayCluster")
_HEAD: Final = "head"


def place(pod: Subject, lister: ObjectLister) -> Place | None:
    owner = pod.owner
    if owner is None or owner.of != KIND:
        return None
    found = owned(pod, lister, owner)
    if found is None or keys.wants(found, pod.annotations) is False or found.labels.get(ENABLED) == "false":
        return None
    groups = {_HEAD: 1, **_workers(found)}
    head = pod.labels.get(NODE_TYPE) == _HEAD
    own = _HEAD if head else pod.labels.get(GROUP, "")
    leaf = f"{found.name}/{own}"
    nodes: tuple[GroupNode, ...]
    if own not in groups:
        nodes = (GroupNode(leaf, None),)
    elif len(groups) == 1:
        nodes = (GroupNode(leaf, groups[own]),)
    else:
        below = (GroupNode(f"{found.name}/{name}", least, found.name) for name, least in groups.items())
        nodes = (GroupNode(found.name, len(groups), branch=True), *below)
    made = Place(RULE.name, Level.OWNER, pod.namespace, leaf, nodes, str(found), found.reference)
    return keys.adjusted(made, pod.annotations, found.annotations)


def _workers(found: Thing) -> dict[str, int]:
    """The pods that each worker group cannot do without; those that need none are left out."""
    scales = bool(found.spec.get("enableInTreeAutoscaling"))
    needed: dict[str, int] = {}
    one: Any
    for one in found.spec.get("workerGroupSpecs") or ():
        least = whole(one.get("minReplicas"), 0)
        replicas = least if scales else max(whole(one.get("replicas"), least), 0)
        pods = replicas * whole(one.get("numOfHosts"), 1)
        if pods > 0 and not one.get("suspend"):
            needed[str(one.get("groupName") or "")] = pods
    return needed


RULE = Rule(
    name="ray",
    about="RayClusters, and those of RayJobs and RayServices",
    level=Level.OWNER,
    place=place,
    keys=(CLUSTER,),
    also=(GROUP, NODE_TYPE),
    owners=(KIND,),
    reads=(KIND,),
)
