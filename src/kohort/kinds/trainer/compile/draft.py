"""The JobSet in the making: the runtime's template with the counts that the job sets (spec trainjob 2.2, 2.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kohort.api.bundle import Listener
from kohort.api.copying import copied
from kohort.api.errors import FieldError
from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.gang.stand_in import uid_of
from kohort.gang.tree import Owner, Plan
from kohort.kinds.trainer.api.constants import LAUNCHER, NODE, TRAINER, container_of, role_of
from kohort.kinds.trainer.compile.patches import apply_patches
from kohort.kinds.trainer.settings import TrainJobSettings

Job = dict[str, Any]


@dataclass(slots=True)
class Draft:
    """`counts[i]` is the number of pods in one Job of `jobs[i]`. Policies change both in place."""

    job: Object
    runtime: Object
    template: dict[str, Any]  # metadata and spec of the JobSet
    counts: list[int] = field(default_factory=list)
    links: dict[int, Object] = field(default_factory=dict)  # what puts the pods of `jobs[i]` into their group
    plan: Plan | None = None  # the groups, if there are some
    reason: str = ""  # why there are none
    warnings: list[str] = field(default_factory=list)
    errors: list[FieldError] = field(default_factory=list)
    settings: TrainJobSettings = field(default_factory=TrainJobSettings)
    listener: Listener | None = None

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])

    @property
    def jobs(self) -> list[Job]:
        found: list[Job] = self.template["spec"]["replicatedJobs"]
        return found

    @property
    def trainer(self) -> dict[str, Any] | None:
        """`spec.trainer`, if the TrainJob has one."""
        found: dict[str, Any] | None = self.job["spec"].get("trainer")
        return found

    @property
    def subdomain(self) -> str:
        return str((self.template["spec"].get("network") or {}).get("subdomain") or self.name)

    @property
    def first(self) -> int | None:
        """The ReplicatedJob that numNodes and the framework's variables go to."""
        return next((index for index, job in enumerate(self.jobs) if role_of(job) == TRAINER), None)

    @property
    def main(self) -> dict[str, Any] | None:
        """Its container `node`."""
        return None if self.first is None else container_of(self.jobs[self.first], NODE)

    def replicas(self, index: int) -> int:
        """Jobs of a ReplicatedJob; one with a role has exactly one."""
        job = self.jobs[index]
        value = job.get("replicas")
        return 1 if role_of(job) is not None or value is None else max(0, int(value))

    def host(self, job: str, replica: int, pod: int) -> str:
        return f"{self.name}-{job}-{replica}-{pod}.{self.subdomain}"

    @property
    def leader(self) -> str:
        """The address that torch, jax and xgboost meet at. Upstream looks neither at names nor at the subdomain."""
        return f"{self.name}-{NODE}-0-0.{self.name}"

    def metadata(self, name: str) -> Object:
        meta: Object = {"name": name}
        if self.job["metadata"].get("namespace"):
            meta["namespace"] = namespace_or_default(self.job)
        reference = {"apiVersion": self.job["apiVersion"], "kind": "TrainJob", "name": self.name}
        reference |= {"uid": uid_of(self.job), "controller": True, "blockOwnerDeletion": True}
        return {**meta, "ownerReferences": [reference]}

    @property
    def owner(self) -> Owner:
        return Owner(
            api_version=self.job["apiVersion"],
            kind="TrainJob",
            name=self.name,
            uid=uid_of(self.job),
            controller=True,
            block_deletion=True,
        )


def draft(job: Object, runtime: Object, settings: TrainJobSettings, listener: Listener | None = None) -> Draft:
    """The runtime's template with the patches of the job, and the counts before any ML policy."""
    template = copied((runtime.get("spec") or {}).get("template") or {})
    template.setdefault("spec", {}).setdefault("replicatedJobs", [])
    made = Draft(job, runtime, copied(apply_patches(template, job)), settings=settings, listener=listener)
    made.counts = [_initial(found, runtime) for found in made.jobs]
    return made


def _initial(job: Job, runtime: Object) -> int:
    policy = (runtime.get("spec") or {}).get("mlPolicy")
    if role_of(job) == TRAINER and policy is not None:
        # The launcher of MPI stays one; the nodes are sized instead (D11).
        keep = policy.get("mpi") is not None and job.get("name") != NODE
        return 1 if keep else max(1, policy.get("numNodes") or 1)
    value = ((job.get("template") or {}).get("spec") or {}).get("parallelism")
    return max(1, 1 if value is None else int(value))


def size(made: Draft) -> None:
    """numNodes of the job goes to the first trainer."""
    asked = (made.trainer or {}).get("numNodes")
    if made.first is not None and asked is not None:
        made.counts[made.first] = asked


def set_variables(container: dict[str, Any], variables: Iterable[dict[str, Any]]) -> None:
    """Environment variables by name: the whole entry is replaced, new ones go to the end."""
    put(container, "env", variables, "name")


def put(owner: dict[str, Any], member: str, items: Iterable[dict[str, Any]], key: str) -> None:
    """Items of a list by key, in place."""
    found = owner.get(member) or []
    for item in items:
        place = next((index for index, one in enumerate(found) if one.get(key) == item[key]), None)
        kept = (found, []) if place is None else (found[:place], found[place + 1 :])
        found = [*kept[0], copied(item), *kept[1]]
    if found:
        owner[member] = found


def is_mpi_job(job: Job) -> bool:
    return job.get("name") in (LAUNCHER, NODE)
