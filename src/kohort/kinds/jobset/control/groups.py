"""A JobSet's gangs: Workload, then branches, then PodGroups, before any Job runs (spec jobset 4.4, 4.5, 4.9)."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kohort.api.kind import Object
from kohort.controllers import faults
from kohort.controllers import groups as kit
from kohort.controllers.objects import is_controlled_by
from kohort.controllers.reconcile import Answer, Event, ReconcileError, Step, emit, one
from kohort.controllers.writes import create, patch
from kohort.gang.compile import CompileContext
from kohort.gang.render import pod_links, render
from kohort.gang.tree import Plan
from kohort.kinds.jobset.api.gang_validation import is_external
from kohort.kinds.jobset.api.gangs import active
from kohort.kinds.jobset.api.reading import is_suspended
from kohort.kinds.jobset.compile.jobset import compile_object
from kohort.kinds.jobset.control import drift, quorum
from kohort.kinds.jobset.control.state import Jobs
from kohort.kinds.jobset.control.view import JobSetView
from kohort.kinds.jobset.settings import JobSetSettings

Part = Generator[Step, Sequence[Answer], Any]


@dataclass(frozen=True, slots=True)
class Gangs:
    """What Jobs need to know: their links, by name the member of their pods' spec that names the group, and templates.

    `wait`: why no Job may start yet.
    """

    links: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)
    wait: str = ""


def _compiled(jobset: Object, ctx: CompileContext) -> Plan | None:
    done = compile_object(jobset, ctx)
    if done.errors:
        raise ReconcileError("; ".join(map(str, done.errors)))
    return done.plans[0] if done.plans else None


def _for_jobs(plan: Plan, ctx: CompileContext, wait: str = "") -> Gangs:
    links = pod_links(plan, ctx.release)
    template_of = {group.name: group.template for group in plan.groups}
    named = {member.job: member.group for member in plan.members if member.group is not None}
    return Gangs(
        {job: links[group] for job, group in named.items()},
        {job: template_of[group] for job, group in named.items()},
        wait,
    )


def ensure(jobset: Object, jobs: Jobs, view: JobSetView, ctx: CompileContext, *, served: bool) -> Part:
    """-> Gangs. While suspended no group is made, but Jobs name theirs already. `served`: the server has groups."""
    plan = _compiled(jobset, ctx)
    if plan is None:
        yield from _external(jobset)
        return Gangs()
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
    def holds(group: Object) -> bool:
        conditions = (group.get("status") or {}).get("conditions") or ()
        return any(c.get("type") == quorum.INITIALLY_SCHEDULED and c.get("status") == "True" for c in conditions)

    return [str(group["metadata"]["name"]) for group in groups if holds(group)]


def _watch_quorum(jobset: Object, plan: Plan, jobs: Jobs, view: JobSetView, ctx: CompileContext) -> Part:
    if not quorum.has_begun_to_end(jobs):
        return
    stored = {str(group["metadata"]["name"]): group for group in view.groups if group["kind"] == "PodGroup"}
    least = {name: found for name, group in stored.items() if (found := kit.minimum(group["spec"])) is not None}
    pods = view.pods()
    for lost in quorum.unreachable(plan, ctx.release, jobs, pods, least):
        yield from emit(Event(jobset, "Warning", "GangQuorumUnreachable", str(lost)))


# ---- objects


def _objects(jobset: Object, wanted: Sequence[Object], view: JobSetView, ctx: CompileContext) -> Part:
    """-> why to wait, if so. Nothing is made while a name is somebody else's or on its way out."""
    pairs = [(obj, view.find(obj["kind"], obj["metadata"]["name"])) for obj in wanted]
    stored = [found for _, found in pairs if found is not None]
    foreign = [
        _named(found) for found in stored if not is_controlled_by(found, jobset) and not _of_predecessor(found, jobset)
    ]
    if foreign:
        note = f"{', '.join(foreign)}: not controlled by this JobSet; no Job starts until it is gone"
        yield from emit(Event(jobset, "Warning", "GangNameConflict", note))
        return note
    going = [
        _named(found)
        for found in stored
        if found["metadata"].get("deletionTimestamp") or not is_controlled_by(found, jobset)
    ]
    if going:
        note = f"{', '.join(going)}: being deleted; made again once gone"
        if any(not (job.get("spec") or {}).get("suspend") for job in view.jobs):
            yield from emit(Event(jobset, "Warning", "GangDrift", note))
        return note
    yield from _make([obj for obj, found in pairs if found is None], jobset)
    for obj, found in pairs:
        if found is not None:
            again = yield from _keep(jobset, obj, found, view, ctx)
            if again:
                return again
    return ""


def _named(obj: Object) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"


def _of_predecessor(obj: Object, jobset: Object) -> bool:
    """Of a JobSet of this name that was deleted: it goes with it."""
    owners = obj["metadata"].get("ownerReferences") or ()
    name = jobset["metadata"]["name"]
    return any(
        found.get("controller") and (found.get("kind"), found.get("name")) == ("JobSet", name) for found in owners
    )


def _make(wanted: Sequence[Object], jobset: Object) -> Part:
    """The Workload and each branch before what refers to them; leaves refer to nothing among themselves."""
    for batch in kit.stages(wanted):
        yield from _create(jobset, batch)


def _create(jobset: Object, batch: Sequence[Object]) -> Part:
    answers = yield Step([create(obj) for obj in batch])
    done = [obj for obj, answer in zip(batch, answers, strict=True) if answer.refusal is None]
    yield from emit(*_events(jobset, done, "Created"))
    problems = []
    for obj, answer in zip(batch, answers, strict=True):
        if answer.refusal is None:
            continue
        problems.append(f"{_named(obj)} creation failed with error: {answer.refusal.message}")
        if not answer.refusal.already_exists:  # whose it is, the next reconcile sees
            yield from emit(Event(jobset, "Warning", f"{obj['kind']}CreationFailed", problems[-1]))
    if problems:
        raise ReconcileError("; ".join(problems))


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


# ---- drift


def _keep(jobset: Object, wanted: Object, stored: Object, view: JobSetView, ctx: CompileContext) -> Part:
    """-> why to wait, if so. Minimums follow where they may; all else is left alone while there are Jobs."""
    mutable = ctx.release.min_count_mutable and stored["kind"] != "CompositePodGroup"
    if mutable:
        yield from _resize(jobset, wanted, stored)
    places = drift.differences(wanted, stored, minimums=not mutable)
    if not places:
        return ""
    note = f"{_named(stored)} is not what this JobSet asks for: {'; '.join(places)}"
    if view.jobs:
        yield from emit(Event(jobset, "Warning", "GangDrift", f"{note}; it is left alone, as there are Jobs"))
        return ""
    yield from emit(Event(jobset, "Warning", "GangDrift", f"{note}; all groups are made again"))
    yield from remove(jobset, view.groups)
    return note


def _resize(jobset: Object, wanted: Object, stored: Object) -> Part:
    resize = drift.resized(wanted, stored)
    if resize is None:
        return
    write = patch(stored, {"spec": resize.body})
    answer = yield from one(write)
    if answer.refusal is not None:
        raise ReconcileError(f"{write}: {answer.refusal.message}")
    note = f"minCount of {_named(stored)}: {resize.old} → {resize.new}"
    yield from emit(Event(jobset, "Normal", f"{stored['kind']}Updated", note))


# ---- the end


def release(jobset: Object, view: JobSetView, ctx: CompileContext) -> Part:
    """When the JobSet is suspended: what its pods would hold is free for others."""
    if ctx.settings.of(JobSetSettings).on_suspend == "Delete":
        yield from remove(jobset, view.groups)


def remove(jobset: Object, known: Sequence[Object]) -> Part:
    """When the JobSet has ended or is suspended: leaves first, the Workload last."""
    yield from kit.remove(jobset, known, lambda done: _events(jobset, done, "Deleted"))
