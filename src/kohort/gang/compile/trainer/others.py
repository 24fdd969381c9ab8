"""Marks for the gang schedulers that Trainer knew before: coscheduling and Volcano (spec trainjob 2.3).

Their PodGroups are objects of other projects and are not made here.
"""

from __future__ import annotations

from kohort.api.trainer.words import spec_of
from kohort.gang.compile.trainer.draft import Draft


def mark(draft: Draft) -> None:
    """On the pods of all ReplicatedJobs, initializers included."""
    policy = spec_of(draft.runtime).get("podGroupPolicy") or {}
    marks = []
    if policy.get("coscheduling") is not None:
        marks.append(("labels", "scheduling.x-k8s.io/pod-group"))
    if policy.get("volcano") is not None:
        marks.append(("annotations", "scheduling.k8s.io/group-name"))
    for member, key in marks:
        for job in draft.jobs:
            pods = job.setdefault("template", {}).setdefault("spec", {}).setdefault("template", {})
            meta = pods.setdefault("metadata", {})
            meta[member] = {**(meta.get(member) or {}), key: draft.name}
    if marks:
        names = " and ".join(name for name in ("coscheduling", "volcano") if policy.get(name) is not None)
        draft.warnings.append(f"podGroupPolicy.{names}: the PodGroup of that scheduler is not made by Kohort")
