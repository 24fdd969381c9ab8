"""A JobSet's gangs: Workload, then branches, then PodGroups, before any Job runs (spec jobset 4.4, 4.5, 4.9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kohort.api.kind import Object
from kohort.api.objects import name_of, status_of
from kohort.controllers import faults
from kohort.controllers import groups as kit
from kohort.controllers.conditions import holds
from kohort.controllers.drift import Resize, minimum
from kohort.controllers.groups import ProblemType
from kohort.controllers.reconcile import Event, Part, ReconcileError, Refusal, emit
from kohort.gang.compile import CompileContext
from kohort.gang.render import pod_links, render
from kohort.gang.tree import Plan
from kohort.kinds.jobset.api.gang_validation import is_external
from kohort.kinds.jobset.api.gangs import active
from kohort.kinds.jobset.api.reading import is_suspended
from kohort.kinds.jobset.compile.jobset import compile_object
from kohort.kinds.jobset.control import quorum
from kohort.kinds.jobset.control.state import Jobs
from kohort.kinds.jobset.control.view import JobSetView
from kohort.kinds.jobset.settings import JobSetSettings


@dataclass(frozen=True, slots=True)
class GangLinks:
    """What Jobs need to know: their links, by name the member of their pods' spec that names the group, and templates.

    `wait`: why no Job may start yet.
    """

    links: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)
    wait: str = ""


def _compiled(jobset: Object, ctx: CompileContext) -> Part:
    """-> Plan | None"""
    done = compile_object(jobset, ctx)
    if done.errors:
        note = "; ".join(map(str, done.errors))
        yield from emit(Event(jobset, "Warning", "WorkloadCreationFailed", note))
        raise ReconcileError(note)
    return done.plans[0] if done.plans else None


def _for_jobs(plan: Plan, ctx: CompileContext, wait: str = "") -> GangLinks:
    links = pod_links(plan, ctx.release)
    template_of = {group.name: group.template for group in plan.groups}
    named = {member.job: member.group for member in plan.members if member.group is not None}
    return GangLinks(
        {job: links[group] for job, group in named.items()},
        {job: template_of[group] for job, group in named.items()},
        wait,
    )


def ensure(jobset: Object, jobs: Jobs, view: JobSetView, ctx: CompileContext, *, served: bool) -> Part:
    """-> GangLinks. While suspended no group is made, but Jobs name theirs already. `served`: the server has groups."""
    plan: Plan | None = yield from _compiled(jobset, ctx)
    if plan is None:
        yield from _external(jobset)
        return GangLinks()
    if is_suspended(jobset):
        return _for_jobs(plan, ctx)
    if not served:
        note = f"the server does not serve Workloads as {ctx.release.api_version}: no Job of this gang is started"
        yield from emit(Event(jobset, "Warning", "WorkloadAPIUnavailable", note))
        return _for_jobs(plan, ctx, note)
    if ctx.on("GangQuorumShrink"):
        plan = quorum.shrunk(plan, jobs, _scheduled(view.groups))
    rendered = render(plan, ctx.release)
    if rendered.errors:
        note = "; ".join(map(str, rendered.errors))
        yield from emit(Event(jobset, "Warning", "WorkloadCreationFailed", note))
        return _for_jobs(plan, ctx, note)
    wait = yield from _objects(jobset, rendered.objects, view, ctx)
    yield from _watch_quorum(jobset, plan, jobs, view, ctx)
    return _for_jobs(plan, ctx, wait)


def _external(jobset: Object) -> Part:
    """Recorded when the JobSet is new: later reconciles find a status."""
    if active(jobset) and is_external(jobset) and not faults.has_begun(jobset):
        note = "every pod template names a group of its own: Workload and groups are the user's, none is made"
        yield from emit(Event(jobset, "Normal", "UserProvidedWorkload", note))


def _scheduled(groups: Iterable[Object]) -> list[str]:
    return [name_of(group) for group in groups if holds(status_of(group), quorum.INITIALLY_SCHEDULED)]


def _watch_quorum(jobset: Object, plan: Plan, jobs: Jobs, view: JobSetView, ctx: CompileContext) -> Part:
    if not quorum.has_begun_to_end(jobs):
        return
    stored = {str(group["metadata"]["name"]): group for group in view.groups if group["kind"] == "PodGroup"}
    least = {name: found for name, group in stored.items() if (found := minimum(group["spec"])) is not None}
    pods = view.pods()
    for lost in quorum.unreachable(plan, ctx.release, jobs, pods, least):
        yield from emit(Event(jobset, "Warning", "GangQuorumUnreachable", str(lost)))


# ---- objects


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetGroups(kit.GroupPolicy):
    """Nothing is made while a name is somebody else's or on its way out.

    Minimums follow where they may; all else is left alone while there are Jobs.
    """

    def created(self, objects: Sequence[Object]) -> Iterable[Event]:
        return _events(self.owner, objects, "Created")

    def deleted(self, objects: Sequence[Object]) -> Iterable[Event]:
        return _events(self.owner, objects, "Deleted")

    def refused(self, obj: Object, refusal: Refusal) -> Iterable[Event]:
        if not refusal.already_exists:  # whose it is, the next reconcile sees
            note = f"{kit.described(obj)} creation failed with error: {refusal.message}"
            yield self._event("Warning", f"{obj['kind']}CreationFailed", note)

    def resized(self, obj: Object, change: Resize) -> Iterable[Event]:
        note = f"minCount of {kit.described(obj)}: {change.old} → {change.new}"
        yield self._event("Normal", f"{obj['kind']}Updated", note)

    def drifted(self, obj: Object, places: Sequence[str]) -> Iterable[Event]:
        then = "it is left alone, as there are Jobs" if self.drift == "report" else "all groups are made again"
        yield self._event("Warning", "GangDrift", f"{_drift(obj, places)}; {then}")

    def _event(self, kind: Literal["Normal", "Warning"], reason: str, note: str) -> Event:
        return Event(self.owner, kind, reason, note)


def _drift(obj: Object, places: Sequence[str]) -> str:
    return f"{kit.described(obj)} is not what this JobSet asks for: {'; '.join(places)}"


def _events(jobset: Object, objects: Sequence[Object], what: str) -> list[Event]:
    """One event for each object, but one for all groups of one template: replica gangs may be hundreds."""
    found: dict[tuple[str, str], list[str]] = {}
    for obj in objects:
        spec = obj["spec"]
        reference = spec.get("workloadRef") or (spec.get("podGroupTemplateRef") or {}).get("workload") or {}
        template = reference.get("templateName") or reference.get("podGroupTemplateName") or ""
        found.setdefault((obj["kind"], template), []).append(obj["metadata"]["name"])
    return [Event(jobset, "Normal", f"{kind}{what}", _note(what, kind, names)) for (kind, _), names in found.items()]


def _note(what: str, kind: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{what.lower()} {kind} {names[0]}"
    return f"{what.lower()} {len(names)} {kind}s, {names[0]} to {names[-1]}"


def _objects(jobset: Object, wanted: Sequence[Object], view: JobSetView, ctx: CompileContext) -> Part:
    """-> why to wait, if so."""
    policy = JobSetGroups(
        owner=jobset, resize=ctx.release.min_count_mutable, drift="report" if view.jobs else "recreate"
    )
    named = [found for obj in wanted if (found := view.find(*kit.group_key(obj))) is not None]
    outcome: kit.GroupsOutcome = yield from kit.reconcile(policy, wanted, [*view.groups, *named])
    wait = yield from _unusable(jobset, outcome, view)
    outcome.raise_for(ProblemType.CREATE, ProblemType.UPDATE)
    drifts = [_drift(one.object, one.places) for one in outcome.of(ProblemType.DRIFT)]
    return wait or ("; ".join(drifts) if policy.drift == "recreate" else "")


def _unusable(jobset: Object, outcome: kit.GroupsOutcome, view: JobSetView) -> Part:
    """-> why to wait, if names are taken."""
    foreign = ", ".join(kit.described(one.object) for one in outcome.of(ProblemType.FOREIGN))
    if foreign:
        note = f"{foreign}: not controlled by this JobSet; no Job starts until it is gone"
        yield from emit(Event(jobset, "Warning", "GangNameConflict", note))
        return note
    going = ", ".join(kit.described(one.object) for one in outcome.of(ProblemType.TERMINATING))
    if not going:
        return ""
    note = f"{going}: being deleted; made again once gone"
    if any(not (job.get("spec") or {}).get("suspend") for job in view.jobs):
        yield from emit(Event(jobset, "Warning", "GangDrift", note))
    return note


# ---- the end


def release(jobset: Object, view: JobSetView, ctx: CompileContext) -> Part:
    """When the JobSet is suspended: what its pods would hold is free for others."""
    if ctx.settings.of(JobSetSettings).on_suspend == "Delete":
        yield from remove(jobset, view.groups)


def remove(jobset: Object, known: Sequence[Object]) -> Part:
    """When the JobSet has ended or is suspended: leaves first, the Workload last."""
    yield from kit.remove(JobSetGroups(owner=jobset), known)
