"""Job, StatefulSet and ReplicaSet (a Deployment's): gangs only where they ask, by our own annotations, or by those that
Volcano and KAI read of an owner."""

from __future__ import annotations

from typing import Final

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Level, ObjectLister, Place, Rule, Subject, Thing, WrongError
from kohort.grouping.owners.sizes import JOB, REPLICA_SET, STATEFUL_SET, at_once, controller, whole
from kohort.grouping.schedulers.kai import BATCH_MIN_MEMBER
from kohort.grouping.schedulers.volcano import MIN_MEMBER

_MINIMUMS: Final = (MIN_MEMBER, BATCH_MIN_MEMBER)  # annotations of other schedulers on the owner
JOB_RANK: Final = "batch.kubernetes.io/job-completion-index"


def job(pod: Subject, lister: ObjectLister) -> Place | None:
    found = controller(pod, lister, JOB)
    asked = found and _asked(found, pod)
    if not found or not asked:
        return None
    return _flat(JOB_RULE.name, found, pod, asked, at_once(found.spec))


def replicas(pod: Subject, lister: ObjectLister) -> Place | None:
    found = controller(pod, lister, STATEFUL_SET, REPLICA_SET)
    asked = found and _asked(found, pod)
    if not found or not asked:
        return None
    ordered = found.kind == STATEFUL_SET.name and found.spec.get("podManagementPolicy") != "Parallel"
    if ordered:
        raise WrongError(
            f"{asked} asks for a gang, and spec.podManagementPolicy of {found} is OrderedReady: its pods are made one "
            f"after the other; accepted is Parallel"
        )
    return _flat(REPLICAS_RULE.name, found, pod, asked, whole(found.spec.get("replicas"), 1))


def _asked(found: Thing, pod: Subject) -> str:
    """The key by which a gang is asked for; empty: none."""
    wanted = keys.wants(found, pod.annotations)
    if wanted is False:
        return ""
    for key in (keys.GANG, keys.MIN_COUNT):
        if key in pod.annotations:
            return pod.where(key)
        if key in found.annotations:
            return f"annotation {key}={found.annotations[key]}"
    given = next((one for one in _MINIMUMS if one in found.annotations), None)
    return f"annotation {given}={found.annotations[given]}" if given is not None else ""


def _flat(rule: str, found: Thing, pod: Subject, asked: str, usual: int) -> Place:
    """Never more than the owner makes: the rest would be waited for in vain."""
    minimum = usual
    for key in _MINIMUMS:
        if key in found.annotations:
            given = found.annotations[key]
            minimum = keys.number(given, f"{found}: annotation {key}={given}")
            break
    node = GroupNode(found.name, min(minimum, usual) or None)
    place = Place(rule, Level.OWNER, pod.namespace, found.name, (node,), f"{found}, {asked}", found.reference)
    return keys.adjusted(place, pod.annotations, found.annotations)


JOB_RULE = Rule(
    name="job",
    about="Jobs that ask by kohort.dev/gang, Volcano's group-min-member or KAI's batch-min-member",
    level=Level.OWNER,
    place=job,
    owners=(JOB,),
    reads=(JOB,),
)
REPLICAS_RULE = Rule(
    name="replicas",
    about="StatefulSets and Deployments that ask, as Jobs do",
    level=Level.OWNER,
    place=replicas,
    owners=(STATEFUL_SET, REPLICA_SET),
    reads=(STATEFUL_SET, REPLICA_SET),
)
