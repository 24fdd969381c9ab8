"""Parts of a plan that every Job has, whoever describes its group."""

from __future__ import annotations

from typing import Final

from kohort.api.kind import Object
from kohort.gang.compile import Compilation, Notice
from kohort.gang.stand_in import uid_of
from kohort.gang.tree import Member, Owner

FAILED_CREATE: Final = "FailedWorkloadCreate"
GROUP_TEMPLATE: Final = "scheduling.k8s.io/group-template-name"  # the template of the parent's Workload
# The instance of a branch that a delegated group belongs to; KEP-6089 spells it in the second way.
PARENT_INSTANCE: Final = ("scheduling.k8s.io/parent-compositepodgroup", "scheduling.k8s.io/parent-composite-podgroup")


def ungrouped(why: Notice) -> Compilation:
    return Compilation(reason=f"{why}; its pods stay ungrouped", warnings=(str(why),), notice=why)


def job_owner(job: Object) -> Owner:
    return Owner(
        api_version="batch/v1",
        kind="Job",
        name=str(job["metadata"]["name"]),
        uid=uid_of(job),
        controller=True,
        block_deletion=True,
    )


def named_group(job: Object) -> str:
    """The group that the pod template names, if any."""
    pod = ((job.get("spec") or {}).get("template") or {}).get("spec") or {}
    reference = pod.get("workloadRef") or {}
    named = (pod.get("schedulingGroup") or {}).get("podGroupName")
    return str(named or "/".join(filter(None, (reference.get("name"), reference.get("podGroup")))))


def pods_at_once(job: Object) -> int:
    """How many pods the Job has at the same time."""
    spec = job.get("spec") or {}
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    most = 1 if parallelism is None else int(parallelism)
    return most if completions is None else min(most, int(completions))


def own_pods(job: Object, group: str) -> tuple[Member, ...]:
    return (
        Member(
            source=f"Job {job['metadata']['name']}",
            count=pods_at_once(job),
            group=group,
            path=("spec", "template"),
            job=str(job["metadata"]["name"]),
        ),
    )
