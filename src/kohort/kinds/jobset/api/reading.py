"""A ReplicatedJob as rules and compilers need it: numbers filled in, places known. Nothing here changes the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import meta_of
from kohort.kinds.jobset.api import constants


def spec_of(obj: Object) -> Object:
    return obj.get("spec") or {}


def entries(value: Any) -> list[Object]:
    """The items of a list of objects; null stands for an empty one, as it does for a server."""
    return [item or {} for item in value or ()]


def future_name(obj: Object) -> str:
    """The JobSet's name; with generateName one of the length that a server will give."""
    meta = meta_of(obj)
    return str(meta.get("name") or (f"{meta['generateName']}xxxxx" if meta.get("generateName") else ""))


@dataclass(frozen=True, slots=True)
class ReplicatedJob:
    """One entry of spec.replicatedJobs, read with the meaning of absent members."""

    index: int
    raw: Object

    @property
    def path(self) -> str:
        return f"spec.replicatedJobs[{self.index}]"

    @property
    def name(self) -> str:
        return str(self.raw.get("name") or "")

    @property
    def replicas(self) -> int:
        value = self.raw.get("replicas")
        return 1 if value is None else max(int(value), 0)

    @property
    def job_meta(self) -> Object:
        return (self.raw.get("template") or {}).get("metadata") or {}

    @property
    def job(self) -> Object:
        """The spec of its Jobs."""
        return (self.raw.get("template") or {}).get("spec") or {}

    @property
    def pod(self) -> Object:
        """The spec of its pods."""
        return (self.job.get("template") or {}).get("spec") or {}

    @property
    def pod_path(self) -> str:
        return f"{self.path}.template.spec.template.spec"

    @property
    def parallelism(self) -> int:
        value = self.job.get("parallelism")
        return 1 if value is None else int(value)

    @property
    def completions(self) -> int | None:
        value = self.job.get("completions")
        return None if value is None else int(value)

    @property
    def indexed(self) -> bool:
        return self.job.get("completionMode") != "NonIndexed"

    @property
    def pods_per_job(self) -> int:
        """How many pods of one Job run at a time: never more than its completions (spec jobset 3.3)."""
        at_once = self.parallelism if self.completions is None else min(self.parallelism, self.completions)
        return max(at_once, 0)

    @property
    def pods(self) -> int:
        return self.replicas * self.pods_per_job

    @property
    def depends_on(self) -> tuple[str, ...]:
        return tuple(str(item.get("name") or "") for item in entries(self.raw.get("dependsOn")))

    @property
    def group_reference(self) -> tuple[str, Any] | None:
        """The pod field that already names a group, and its value."""
        for member in ("schedulingGroup", "workloadRef"):
            if self.pod.get(member) is not None:
                return member, self.pod[member]
        return None


def replicated_jobs(obj: Object) -> tuple[ReplicatedJob, ...]:
    return tuple(ReplicatedJob(index, raw) for index, raw in enumerate(entries(spec_of(obj).get("replicatedJobs"))))


def in_order(obj: Object) -> bool:
    return (spec_of(obj).get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"


def subdomain_of(obj: Object) -> str:
    """The effective subdomain: the JobSet's name where none is set."""
    return str((spec_of(obj).get("network") or {}).get("subdomain") or future_name(obj))


def is_suspended(obj: Object) -> bool:
    return bool(spec_of(obj).get("suspend"))


def is_finished(obj: Object) -> bool:
    conditions = entries((obj.get("status") or {}).get("conditions"))
    return any(
        found.get("type") in {constants.COMPLETED, constants.FAILED} and found.get("status") == "True"
        for found in conditions
    )


def is_managed_elsewhere(obj: Object) -> bool:
    return (spec_of(obj).get("managedBy") or constants.CONTROLLER) != constants.CONTROLLER


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Exclusive placement of a ReplicatedJob's Jobs: one topology domain for each (spec jobset 2.4)."""

    path: str  # of the annotations that ask for it
    by_node_selector: bool  # the strategy without leader and followers


def exclusive_placement(obj: Object, job: ReplicatedJob) -> Exclusive | None:
    """Asked for by the ReplicatedJob's own template or by the JobSet."""
    inherited, own = meta_of(obj).get("annotations") or {}, job.job_meta.get("annotations") or {}
    asks = [found for found in (own, inherited) if constants.EXCLUSIVE_TOPOLOGY in found]
    if not asks:
        return None
    path = f"{job.path}.template.metadata.annotations" if asks[0] is own else "metadata.annotations"
    # The JobSet's strategy counts only together with its own exclusive-topology.
    strategies = (own, inherited) if constants.EXCLUSIVE_TOPOLOGY in inherited else (own,)
    return Exclusive(path, any(constants.NODE_SELECTOR_STRATEGY in found for found in strategies))


def job_name(jobset: str, replicated_job: str, index: int) -> str:
    return f"{jobset}-{replicated_job}-{index}"


def pod_name(jobset: str, replicated_job: str, index: int, pod: int) -> str:
    """A pod of an Indexed Job, without its random end: also its hostname."""
    return f"{job_name(jobset, replicated_job, index)}-{pod}"


def coordinator_endpoint(jobset: str, coordinator: dict[str, object], subdomain: str) -> str:
    job, pod = coordinator.get("jobIndex") or 0, coordinator.get("podIndex") or 0
    return f"{jobset}-{coordinator.get('replicatedJob') or ''}-{job}-{pod}.{subdomain}"
