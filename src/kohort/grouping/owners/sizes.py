"""How many pods Kubernetes' own kinds make at a time."""

from __future__ import annotations

from typing import Any, Final

from kohort.grouping.model import Kind, ObjectLister, Reference, Subject, Thing

JOB: Final = Kind("batch", "Job")
STATEFUL_SET: Final = Kind("apps", "StatefulSet")
REPLICA_SET: Final = Kind("apps", "ReplicaSet")


def at_once(spec: dict[str, Any]) -> int:
    """Of a Job: min(parallelism, completions)."""
    parallelism = whole(spec.get("parallelism"), 1)
    return min(parallelism, whole(spec.get("completions"), parallelism))


def whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def controller(pod: Subject, lister: ObjectLister, *kinds: Kind) -> Thing | None:
    """The controller of a pod, if it is of one of these kinds."""
    owner = pod.owner
    return owned(pod, lister, owner, wait=False) if owner is not None and owner.of in kinds else None


def owned(pod: Subject, lister: ObjectLister, owner: Reference, *, wait: bool = True) -> Thing | None:
    """The object that an owner reference means; None also for another of the same name, made after it was deleted."""
    found = lister.find(owner.of, pod.namespace, owner.name, wait=wait)
    return found if found is not None and found.uid in {owner.uid, ""} else None


def most_pods(pod: Subject, lister: ObjectLister) -> int | None:
    """That a Job makes at a time; None where the owner is something else."""
    job = controller(pod, lister, JOB)
    return at_once(job.spec) if job is not None else None
