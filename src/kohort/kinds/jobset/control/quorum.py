"""Gangs that can no longer come together: so many pods are done that the rest is fewer than the minimum (4.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.releases import Release
from kohort.gang.render import pod_links
from kohort.gang.tree import Group, Plan
from kohort.kinds.batch.api.status import COMPLETE, FAILED, holds
from kohort.kinds.jobset.control.state import Jobs

INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A pod that waits in a group whose minimum its Jobs cannot reach any more."""

    group: str
    pod: str
    minimum: int
    left: int

    def __str__(self) -> str:
        return (
            f"pod {self.pod} of group {self.group} may wait for ever: the gang needs {self.minimum} pods, "
            f"but no more than {self.left} are left to run"
        )


def has_begun_to_end(jobs: Jobs) -> bool:
    """Whether it is worth looking: before a pod has succeeded, every minimum can be reached."""
    done = any(int((job.get("status") or {}).get("succeeded") or 0) for job in jobs.active)
    return done or bool(jobs.successful)


def left_to_run(plan: Plan, jobs: Jobs) -> Mapping[str, int]:
    """By group: how many pods can run at once from now on."""
    known = {str(job["metadata"]["name"]): job for job in jobs.current}
    found: dict[str, int] = {}
    for member in plan.members:
        if member.group is not None:
            job = known.get(member.job)
            found[member.group] = found.get(member.group, 0) + (member.count if job is None else _left(job))
    return found


def _left(job: Object) -> int:
    spec, status = job.get("spec") or {}, job.get("status") or {}
    if holds(status, COMPLETE) or holds(status, FAILED):
        return 0
    parallelism = 1 if spec.get("parallelism") is None else int(spec["parallelism"])
    if spec.get("completions") is None:
        return parallelism
    return max(0, min(parallelism, int(spec["completions"]) - int(status.get("succeeded") or 0)))


def unreachable(
    plan: Plan, release: Release, jobs: Jobs, pods: Sequence[Object], minimums: Mapping[str, int]
) -> Iterator[Unreachable]:
    """`minimums`: as stored, where that is known; else the template's."""
    left, links = left_to_run(plan, jobs), pod_links(plan, release)
    for name, declared in _gangs(plan):
        least = minimums.get(name, declared)
        if left.get(name, 0) >= least:
            continue
        live = [pod for pod in pods if _is_in(pod, links[name]) and _lives(pod)]
        waiting = [pod for pod in live if not (pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"))]
        if waiting and len(live) < least:
            yield Unreachable(name, str(waiting[0]["metadata"]["name"]), least, left.get(name, 0))


def _is_in(pod: Object, link: Mapping[str, Any]) -> bool:
    return all((pod.get("spec") or {}).get(member) == value for member, value in link.items())


def _lives(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}


def _gangs(plan: Plan) -> Iterator[tuple[str, int]]:
    templates = {template.name: template for template in plan.walk()}
    for group in plan.groups:
        template = templates[group.template]
        if template.is_leaf and template.minimum is not None:
            yield group.name, template.minimum


def shrunk(plan: Plan, jobs: Jobs, scheduled: Sequence[str]) -> Plan:
    """With the option GangQuorumShrink: groups that were scheduled once wait for no more than can still come."""
    left, gangs = left_to_run(plan, jobs), dict(_gangs(plan))

    def fitted(group: Group) -> Group:
        least = gangs.get(group.name)
        if least is None or group.name not in scheduled:
            return group
        return replace(group, minimum=min(least, max(1, left.get(group.name, 0))))

    return replace(plan, groups=tuple(map(fitted, plan.groups)))
