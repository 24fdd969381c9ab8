"""scheduler-plugins' coscheduling: a PodGroup of scheduling.x-k8s.io, and the older forms of the same idea."""

from __future__ import annotations

from typing import Final

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Kind, Level, ObjectLister, Place, Rule, Subject
from kohort.grouping.schedulers.objects import group_object

LABEL: Final = "scheduling.x-k8s.io/pod-group"
OLDER: Final = "pod-group.scheduling.sigs.k8s.io"
LIGHT: Final = "pod-group.scheduling.sigs.k8s.io/name"
LIGHT_MINIMUM: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
KIND: Final = Kind("scheduling.x-k8s.io", "PodGroup")
OLDER_KIND: Final = Kind("scheduling.sigs.k8s.io", "PodGroup")


def place(pod: Subject, lister: ObjectLister) -> Place | None:
    for label, kind in ((LABEL, KIND), (OLDER, OLDER_KIND)):
        if pod.said(label):
            return group_object(RULE.name, pod, lister, kind, label)
    return None


def light(pod: Subject, _: ObjectLister) -> Place | None:
    name = pod.labels.get(LIGHT)
    if not name:
        return None
    found = pod.labels.get(LIGHT_MINIMUM, "")
    minimum = keys.number(found, f"label {LIGHT_MINIMUM}={found} beside {pod.where(LIGHT)}")
    return Place(
        LIGHT_RULE.name, Level.KEYS, pod.namespace, name, (GroupNode(name, minimum),), pod.where(LIGHT), pod.owner
    )


RULE = Rule(
    name="scheduler-plugins",
    about="PodGroups of scheduling.x-k8s.io, and of scheduling.sigs.k8s.io (Koordinator's too)",
    level=Level.OBJECT,
    place=place,
    keys=(LABEL, OLDER),
    reads=(KIND, OLDER_KIND),
)
LIGHT_RULE = Rule(
    name="lightweight-coscheduling",
    about="labels of the first, lightweight coscheduling",
    level=Level.KEYS,
    place=light,
    keys=(LIGHT,),
    also=(LIGHT_MINIMUM,),
)
