"""The kinds of the training operators: one gang of all replicas.

An MPI launcher belongs to it where its operator makes it at once: the training operator, and the MPI operator unless
launcherCreationPolicy is WaitForWorkersReady. There it is made once the workers are ready, and the workers start once
there is room for it, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Kind, Later, Level, ObjectLister, Place, Reference, Rule, Subject, Thing
from kohort.grouping.owners.sizes import JOB, owned, whole

NAME: Final = "training.kubeflow.org/job-name"
REPLICA: Final = "training.kubeflow.org/replica-type"
ROLE: Final = "training.kubeflow.org/job-role"
GROUP: Final = "kubeflow.org"
_REPLICAS: Final = {  # kind -> field of its spec
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
}
KINDS: Final = tuple(Kind(GROUP, name) for name in _REPLICAS)
_LAUNCHER: Final = "launcher"


def place(pod: Subject, lister: ObjectLister) -> Place | None:
    owner = _owner(pod, lister)
    found = owned(pod, lister, owner) if owner is not None else None
    if found is None or owner is None or keys.wants(found, pod.annotations) is False:
        return None
    together = {name.lower(): one for name, one in _counts(found).items()}
    later: tuple[Later, ...] = ()
    if _waits_for_workers(found):
        later = tuple(_launcher(found, pod)) if together.pop(_LAUNCHER, 0) else ()
    if _is_launcher(pod) and _LAUNCHER not in together:
        leaf, nodes = f"{found.name}/{_LAUNCHER}", (GroupNode(f"{found.name}/{_LAUNCHER}", None),)
        return Place(RULE.name, Level.OWNER, pod.namespace, leaf, nodes, str(found), found.reference)
    policy: Any = (found.spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    total = sum(together.values())
    minimum = min(whole(policy.get("minAvailable"), _least(found, together)), total)
    node = GroupNode(found.name, minimum or None, later=later)
    made = Place(
        RULE.name, Level.OWNER, pod.namespace, found.name, (node,), str(found), found.reference,
        queue=str(policy.get("queue") or ""),
    )  # fmt: skip
    return keys.adjusted(made, pod.annotations, found.annotations)


def _owner(pod: Subject, lister: ObjectLister) -> Reference | None:
    """Of the kinds above; a launcher is a pod of a Job that belongs to one."""
    owner = pod.owner
    if owner is None or owner.of in KINDS:
        return owner
    if owner.of != JOB or NAME not in pod.labels:
        return None
    job = owned(pod, lister, owner, wait=False)
    above = job.owner if job is not None else None
    return above if above is not None and above.of in KINDS else None


def _launcher(found: Thing, pod: Subject) -> Iterator[Later]:
    """It is made once all workers are ready."""
    if keys.reserves(pod.annotations, found.annotations):
        replicas: Any = found.spec.get(_REPLICAS[found.kind]) or {}
        spec = next((one for name, one in replicas.items() if str(name).lower() == _LAUNCHER), None) or {}
        yield from keys.later(f"{found.name}/{_LAUNCHER}", 1, spec.get("template"))


def _counts(found: Thing) -> dict[str, int]:
    replicas: Any = found.spec.get(_REPLICAS[found.kind]) or {}
    return {str(name): whole((one or {}).get("replicas"), 1) for name, one in replicas.items()}


def _least(found: Thing, together: dict[str, int]) -> int:
    """All replicas; of elastic training, as few workers as it says."""
    elastic: Any = found.spec.get("elasticPolicy") or {}
    workers = together.get("worker", 0)
    return sum(together.values()) - workers + min(whole(elastic.get("minReplicas"), workers), workers)


def _waits_for_workers(found: Thing) -> bool:
    """v1 of the training operator has no policy to ask: its launcher is made with the workers, and waits inside."""
    return found.kind == "MPIJob" and found.spec.get("launcherCreationPolicy", "AtStartup") != "AtStartup"


def _is_launcher(pod: Subject) -> bool:
    return _LAUNCHER in {pod.labels.get(REPLICA, "").lower(), pod.labels.get(ROLE, "").lower()}


RULE = Rule(
    name="kubeflow",
    about="PyTorchJob, TFJob, JAXJob, XGBoostJob, PaddleJob, MPIJob",
    level=Level.OWNER,
    place=place,
    keys=(NAME,),
    also=(REPLICA, ROLE),
    owners=KINDS,
    reads=(*KINDS, JOB),
)
