"""What is there already: a Job's Workload and PodGroups, found by references and never by name (spec job 1.4, 1.5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import controller_of, namespace_or_default
from kohort.apimachinery.labels import matches
from kohort.gang.compile import Lookup
from kohort.gang.render import v1alpha2, v1beta1
from kohort.gang.stand_in import uid_of
from kohort.gang.tree import Template
from kohort.kinds.batch.api.status import SUSPENDED

MAX_CHAIN: Final = 5  # owners that are followed upwards
_READERS: Final = {"v1alpha2": v1alpha2, "v1alpha3": v1beta1, "v1beta1": v1beta1}


def is_controlled(obj: Object, uid: str) -> bool:
    owner = controller_of(obj)
    return owner is not None and owner.get("uid") == uid


def is_new(job: Object, lookup: Lookup, *, parity: bool = False) -> bool:
    """Whether the Job has never started. Only then may anything be made for it."""
    meta, status = job.get("metadata") or {}, job.get("status") or {}
    if any(status.get(member) for member in ("startTime", "active", "terminating", "succeeded", "failed")):
        return False
    if any(condition.get("type") == SUSPENDED for condition in status.get("conditions") or []):
        return False
    if meta.get("deletionTimestamp") and not parity:
        return False
    return not any(_is_pod_of(job, pod) for pod in lookup.every("Pod", namespace_or_default(job)))


def _is_pod_of(job: Object, pod: Object) -> bool:
    """Its own, or one without a controller that the Job will adopt."""
    if controller_of(pod) is not None:
        return is_controlled(pod, uid_of(job))
    return matches((job.get("spec") or {}).get("selector"), (pod.get("metadata") or {}).get("labels"))


def workloads_of(api_version: str, kind: str, name: str, namespace: str, lookup: Lookup) -> list[Object]:
    """Workloads whose controllerRef names the object."""
    wanted = (api_version.rpartition("/")[0], kind, name)
    return [found for found in lookup.every("Workload", namespace) if _controller_ref(found) == wanted]


def _controller_ref(workload: Object) -> tuple[str, str, str]:
    reference = (workload.get("spec") or {}).get("controllerRef") or {}
    return (reference.get("apiGroup") or "", reference.get("kind") or "", reference.get("name") or "")


def groups_of(workload: str, namespace: str, lookup: Lookup) -> list[Object]:
    """PodGroups that name the Workload."""
    return [group for group in lookup.every("PodGroup", namespace) if _workload_of(group) == workload]


def _workload_of(group: Object) -> str | None:
    spec = group.get("spec") or {}
    named = next((found for reader in (v1beta1, v1alpha2) if (found := reader.reference(spec))), None)
    return named[0] if named else None


def controlled(objects: Iterable[Object], uid: str) -> list[Object]:
    return [obj for obj in objects if is_controlled(obj, uid)]


def templates_of(workload: Object) -> tuple[Template, ...]:
    """The templates of a Workload object, whatever its version (none for one that has no groups of its own)."""
    reader = _READERS.get(str(workload.get("apiVersion") or "").rpartition("/")[2])
    return reader.read_templates(workload.get("spec") or {}) if reader is not None else ()


def parent_workload(job: Object, lookup: Lookup, *, parity: bool = False) -> Object | None:
    """The Workload of the object that controls the Job, or of one further up."""
    namespace, child = namespace_or_default(job), job
    for _ in range(1 if parity else MAX_CHAIN):
        owner = controller_of(child)
        if owner is None:
            return None
        version, kind, name = (str(owner.get(part) or "") for part in ("apiVersion", "kind", "name"))
        found = workloads_of(version, kind, name, namespace, lookup)
        if found:
            return found[0]
        above = _owner_object(version, kind, name, namespace, lookup)
        if above is None:
            return None
        child = above
    return None


def _owner_object(api_version: str, kind: str, name: str, namespace: str, lookup: Lookup) -> Object | None:
    group = api_version.rpartition("/")[0]
    for obj in lookup.every(kind, namespace):
        same_group = str(obj.get("apiVersion") or "").rpartition("/")[0] == group
        if same_group and (obj.get("metadata") or {}).get("name") == name:
            return obj
    return None
