"""Kohort's own labels and annotations: gangs and trees on clusters without the Workload API, for pods of anybody.

metadata:
  labels: {kohort.dev/pod-group: trainers}
  annotations: {kohort.dev/min-count: "4", kohort.dev/topology: topology.kubernetes.io/rack}
"""

from __future__ import annotations

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Level, ObjectLister, Place, Rule, Subject, WrongError


def place(pod: Subject, _: ObjectLister) -> Place | None:
    name = pod.said(keys.GROUP)
    if not name:
        return None
    said = pod.said(keys.MIN_COUNT)
    minimum = keys.number(said, pod.where(keys.MIN_COUNT)) if said else None
    parent = _parent(pod)
    leaf = f"{parent.name}/{name}" if parent is not None else name
    node = GroupNode(
        leaf,
        minimum,
        parent.name if parent is not None else None,
        disrupt_all=keys.whole(pod.annotations) if parent is None else False,
    )
    nodes = (parent, node) if parent is not None else (node,)
    return Place(RULE.name, Level.KOHORT, pod.namespace, leaf, nodes, pod.where(keys.GROUP), pod.owner)


def _parent(pod: Subject) -> GroupNode | None:
    name, groups = pod.said(keys.PARENT), pod.said(keys.MIN_GROUPS)
    if not name:
        if groups:
            raise WrongError(f"{pod.where(keys.MIN_GROUPS)}: only together with {keys.PARENT}")
        return None
    minimum = keys.number(groups, pod.where(keys.MIN_GROUPS)) if groups else None
    topology = pod.said(keys.PARENT_TOPOLOGY) or None
    return GroupNode(name, minimum, None, True, topology, keys.whole(pod.annotations))


RULE = Rule(
    name="kohort",
    about="pods that name a group by kohort.dev/pod-group",
    level=Level.KOHORT,
    place=place,
    keys=(keys.GROUP,),
    also=keys.OWN,
)
