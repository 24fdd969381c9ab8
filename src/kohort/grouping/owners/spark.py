"""Spark: the executors of an application. The driver makes them, so it starts before them and is no part of the gang.

Executors are asked for in batches (spark.kubernetes.allocation.batch.size): no more than one batch is waited for. An
application that was submitted without the operator has no object to read; its executors are a gang if they say so,
by spark.kubernetes.executor.annotation.kohort.dev/min-count.
"""

from __future__ import annotations

from typing import Any, Final

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Kind, Level, ObjectLister, Place, Rule, Subject, Thing
from kohort.grouping.owners.sizes import whole

APPLICATION: Final = "spark-app-selector"
ROLE: Final = "spark-role"
OPERATOR_NAME: Final = "sparkoperator.k8s.io/app-name"
KIND: Final = Kind("sparkoperator.k8s.io", "SparkApplication")
_BATCH: Final = "spark.kubernetes.allocation.batch.size"
_USUAL_BATCH: Final = 10


def place(pod: Subject, lister: ObjectLister) -> Place | None:
    application = pod.labels.get(APPLICATION)
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
