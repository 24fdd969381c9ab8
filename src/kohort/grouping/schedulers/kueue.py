"""Kueue's plain pod groups: all pods of a group together. Its gates are respected whoever groups (a gated pod is never
placed); its queues keep admitting.

Pods of StatefulSets and LeaderWorkerSets carry the same keys, written by Kueue's own integration. Those are made one
after the other, and a gang of all of them would wait for ever: fast admission is their mark, and the rule for their
owner counts instead.
"""

from __future__ import annotations

from typing import Final

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Level, ObjectLister, Place, Rule, Subject

_PREFIX: Final = "kueue.x-k8s.io/"
NAME: Final = f"{_PREFIX}pod-group-name"
TOTAL: Final = f"{_PREFIX}pod-group-total-count"
FAST: Final = f"{_PREFIX}pod-group-fast-admission"
QUEUE: Final = f"{_PREFIX}queue-name"
_LWS: Final = "leaderworkerset.sigs.k8s.io/name"


def place(pod: Subject, _: ObjectLister) -> Place | None:
    name = pod.said(NAME)
    if not name or pod.said(FAST).lower() == "true" or _LWS in pod.labels:
        return None
    found = pod.annotations.get(TOTAL, "")
    total = keys.number(found, f"annotation {TOTAL}={found} beside {pod.where(NAME)}")
    node = GroupNode(name, total)
    return Place(
        RULE.name, Level.KEYS, pod.namespace, name, (node,), pod.where(NAME), pod.owner, pod.labels.get(QUEUE, "")
    )


RULE = Rule(
    name="kueue",
    about="plain pod groups of Kueue",
    level=Level.KEYS,
    place=place,
    keys=(NAME,),
    also=(TOTAL, FAST, QUEUE, _LWS),
)
