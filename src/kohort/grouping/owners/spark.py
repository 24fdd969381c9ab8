"""Spark: the executors of an application. The driver makes them, so it starts before them and is no part of the gang;
but it starts once there is room for them, too, or drivers would fill a cluster in which no executor has a place.

Executors are asked for in batches (spark.kubernetes.allocation.batch.size): no more than one batch is waited for. An
application that was submitted without the operator has no object to read; its executors are a gang if they say so,
by spark.kubernetes.executor.annotation.kohort.dev/min-count.
"""

from __future__ import annotations

from typing import Any, Final

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Kind, Level, ObjectLister, Place, Rule, Subject, Thing
from kohort.grouping.owners import sparkpods
from kohort.grouping.owners.sizes import whole

APPLICATION: Final = "spark-app-selector"
ROLE: Final = "spark-role"
OPERATOR_NAME: Final = "sparkoperator.k8s.io/app-name"
KIND: Final = Kind("sparkoperator.k8s.io", "SparkApplication")
_BATCH: Final = "spark.kubernetes.allocation.batch.size"
_USUAL_BATCH: Final = 10


def place(pod: Subject, lister: ObjectLister) -> Place | None:
    application = pod.labels.get(APPLICATION)
    if application and pod.labels.get(ROLE) == "driver":
        return _driver(pod, lister)
    if not application or pod.labels.get(ROLE) != "executor":
        return None
    name = pod.labels.get(OPERATOR_NAME)
    found = lister.find(KIND, pod.namespace, name) if name else None
    given = pod.annotations.get(keys.MIN_COUNT)
    if found is not None and keys.wants(found, pod.annotations) is False:
        return None
    if found is None and given is None:
        return None
    leaf = f"{found.name if found is not None else application}/executors"
    minimum = _executors(found) if found is not None else None
    said = str(found) if found is not None else pod.where(APPLICATION)
    owner = found.reference if found is not None else pod.owner
    made = Place(
        RULE.name, Level.OWNER, pod.namespace, leaf, (GroupNode(leaf, minimum or None),), said, owner,
    )  # fmt: skip
    return keys.adjusted(made, pod.annotations, found.annotations if found is not None else {})


def _driver(pod: Subject, lister: ObjectLister) -> Place | None:
    name = pod.labels.get(OPERATOR_NAME)
    found = lister.find(KIND, pod.namespace, name, wait=False) if name else None
    if found is None or keys.wants(found, pod.annotations) is False:
        return None
    if not keys.reserves(pod.annotations, found.annotations):
        return None
    later = tuple(keys.later(f"{found.name}/executors", _executors(found), sparkpods.executor(found.spec)))
    node = GroupNode(f"{found.name}/driver", 1, later=later)
    if not later:
        return None
    return Place(RULE.name, Level.OWNER, pod.namespace, node.name, (node,), str(found), found.reference)


def _executors(found: Thing) -> int:
    dynamic: Any = found.spec.get("dynamicAllocation") or {}
    instances = whole((found.spec.get("executor") or {}).get("instances"), 1)
    if dynamic.get("enabled"):
        instances = whole(dynamic.get("minExecutors"), 0)
    batch = str((found.spec.get("sparkConf") or {}).get(_BATCH) or _USUAL_BATCH)
    return min(instances, int(batch) if batch.isdecimal() else _USUAL_BATCH)


RULE = Rule(
    name="spark",
    about="executors of Spark applications",
    level=Level.OWNER,
    place=place,
    keys=(APPLICATION,),
    also=(ROLE, OPERATOR_NAME),
    reads=(KIND,),
)
