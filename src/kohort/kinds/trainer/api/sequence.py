"""Which ReplicatedJobs wait for which: `dependsOn`, and startup in the listed order (spec trainjob 3.4).

A gang is not even queued before as many pods exist as its minimum says. So whatever is created only after another
member is up cannot count towards the minimum of the gang they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kohort.api.kind import Object
from kohort.kinds.trainer.api.constants import replicated_jobs, spec_of

Job = dict[str, Any]


def in_order(runtime: Object) -> bool:
    template = (spec_of(runtime).get("template") or {}).get("spec") or {}
    return (template.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"


def is_sequenced(runtime: Object) -> bool:
    """Whether anything waits for anything."""
    return in_order(runtime) or any(job.get("dependsOn") for job in replicated_jobs(runtime))


def waits_for(jobs: Sequence[Job], start: str) -> dict[str, bool]:
    """Everything that a ReplicatedJob waits for, on any way; True where a completion is on the way."""
    edges = {
        str(job.get("name")): [(str(edge.get("name")), edge.get("status") == "Complete") for edge in job["dependsOn"]]
        for job in jobs
        if job.get("dependsOn")
    }
    found: dict[str, bool] = {}
    todo = [(name, complete) for name, complete in edges.get(start, ())]
    while todo:
        name, complete = todo.pop()
        if found.get(name) or (name in found and not complete):
            continue
        found[name] = complete
        todo += [(further, complete or later) for further, later in edges.get(name, ())]
    return found


def first_wave(runtime: Object, members: Sequence[int]) -> list[int]:
    """The members (indices) of a group that are created without waiting for another member of it."""
    if in_order(runtime):
        return sorted(members)[:1]
    jobs = replicated_jobs(runtime)
    names = {str(jobs[index].get("name")) for index in members}
    return [index for index in members if not names & waits_for(jobs, str(jobs[index].get("name"))).keys()]


def waits_for_completion(runtime: Object, members: Sequence[int]) -> list[tuple[int, str]]:
    """Members that wait until another member has completed: (index, the other's name)."""
    jobs = replicated_jobs(runtime)
    names = {str(jobs[index].get("name")) for index in members}
    return [
        (index, other)
        for index in members
        for other, complete in waits_for(jobs, str(jobs[index].get("name"))).items()
        if complete and other in names
    ]


def are_linked(runtime: Object, one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether a ReplicatedJob of one set waits for one of the other set."""
    if in_order(runtime):
        return bool(one) and bool(other)
    jobs = replicated_jobs(runtime)
    names = [str(job.get("name")) for job in jobs]
    ahead = any(names[late] in waits_for(jobs, names[early]) for early in one for late in other)
    return ahead or any(names[early] in waits_for(jobs, names[late]) for early in one for late in other)
