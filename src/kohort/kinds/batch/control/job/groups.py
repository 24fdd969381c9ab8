"""A Job's Workload and PodGroup: found, made, kept in size, before any pod is made (spec job 2, 3)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kohort.api import formats
from kohort.api.errors import ErrorKind, FieldError
from kohort.api.kind import Object
from kohort.api.releases import SCHEDULING_GROUP, Release
from kohort.controllers.groups import minimum as minimum_of
from kohort.controllers.objects import is_controlled_by, namespace_of
from kohort.controllers.reconcile import Answer, Event, ReconcileError, Step, Write, emit, one
from kohort.gang import blocks
from kohort.gang.compile import Compilation, CompileContext, Lookup
from kohort.gang.render import pod_link, render
from kohort.gang.tree import Plan
from kohort.kinds.batch.compile.job import compile_object
from kohort.kinds.batch.compile.names import template_name, workload_name
from kohort.kinds.batch.control.job.finish import is_decided
from kohort.kinds.batch.control.job.writes import create, event_for
from kohort.kinds.batch.settings import JobSettings

WAIT: Final = 5.0  # seconds until a parent that still owes us something is looked for again


@dataclass(frozen=True, slots=True)
class Grouped:
    """`link`: the member of a pod's spec that names its group (empty: ungrouped); `wait`: no pods yet.

    `problem`: something could not be brought in line; pods go on, and it is tried again.
    """

    link: Mapping[str, Any] = field(default_factory=dict)
    wait: float | None = None
    problem: str = ""


Made = Generator[Step, Sequence[Answer], Any]


def ensure(job: Object, others: Sequence[Object], ctx: CompileContext, *, running: bool) -> Made:
    """`others`: Workloads, PodGroups, pods and owners of the namespace; `running`: the Job has pods. -> Grouped"""
    parity = ctx.settings.of(JobSettings).parity
    done = compile_object(job, replace(ctx, lookup=Lookup(others)))
    if done.errors:
        return (yield from _impossible(job, done, ctx.release, parity))
    if not parity:
        yield from emit(*_warnings(job, done))
    if not done.plans:
        return Grouped()
    (plan,) = done.plans
    plan, problem = yield from _objects(job, plan, others, ctx.release, parity)
    if problem and (parity or not running):
        raise ReconcileError(problem)
    return Grouped(pod_link(plan, plan.groups[0].name, ctx.release), problem=problem)


def _impossible(job: Object, done: Compilation, release: Release, parity: bool) -> Made:
    """What is missing may still come; anything else is told, and tried again."""
    error = done.errors[0]
    reason, _, text = error.detail.partition(": ")
    if not (parity and _silent(reason, release)):
        yield from emit(event_for(job, "Warning", reason, _as_refused(job) if parity else text))
    if error.kind is ErrorKind.NOT_FOUND:
        return Grouped(wait=WAIT)
    raise ReconcileError(str(error))


def _silent(reason: str, release: Release) -> bool:
    """Upstream tells of few of these: in 1.37 that a Workload cannot be created, in 1.36 of nothing."""
    return release.minor == "1.36" or reason != "FailedWorkloadCreate"


def _as_refused(job: Object) -> str:
    """In the words of the server that upstream learns it from: a bad name of the template, one reason after another."""
    name = str(job["metadata"]["name"])
    workload, template = workload_name(name, str(job["metadata"]["uid"])), template_name(name)
    where = f'spec.podGroupTemplates[0].name: Invalid value: "{template}"'
    refusal = f'Workload.{SCHEDULING_GROUP} "{workload}" is invalid: {where}: {formats.label(template)}'
    return f"Failed to create Workload for Job {name}: {refusal}"


def _warnings(job: Object, done: Compilation) -> list[Event]:
    found = []
    for warning in done.warnings:
        text = warning.detail if isinstance(warning, FieldError) else warning
        reason, _, rest = text.partition(": ")
        if reason.isalnum() and reason[:1].isupper():  # the others are about fields: whoever applied the Job was told
            found.append(event_for(job, "Warning", reason, rest))
    least, left = blocks.explicit_minimum(job["spec"].get("scheduling") or {}), _still_to_come(job)
    if done.plans and least is not None and left is not None and 0 < left < least:
        text = f"minCount is {least}, but only {left} more pods will exist: they cannot start together"
        found.append(event_for(job, "Warning", "MinCountUnreachable", text))
    return found


def _still_to_come(job: Object) -> int | None:
    completions = job["spec"].get("completions")
    return None if completions is None else int(completions) - int((job.get("status") or {}).get("succeeded") or 0)


def _objects(job: Object, plan: Plan, others: Sequence[Object], release: Release, parity: bool) -> Made:
    """Workload first, then PodGroup: each exists before it is named. -> (plan, problem)"""
    problems = []
    # Once it is decided how the Job ends, nobody starts any more: what its group asks for does not matter.
    resizable = release.min_count_mutable and (parity or not is_decided(job))
    uids: dict[tuple[str, str], str] = {}
    workload = _find(others, "Workload", plan.workload, plan.namespace)
    if plan.own_workload:
        if workload is None:
            workload = yield from _make(job, plan, uids, release, parity)
        elif resizable:
            problems.append((yield from _resize_workload(job, plan, workload)))
    if workload is not None:
        uids["Workload", plan.workload] = str(workload["metadata"].get("uid") or "")
    group = _find(others, "PodGroup", plan.groups[0].name, plan.namespace)
    if group is None or not is_controlled_by(group, job):
        yield from _make(job, plan, uids, release, parity, kind="PodGroup")
    elif resizable:
        problems.append((yield from _resize_group(job, plan, group)))
    return plan, "; ".join(filter(None, problems))


def _find(others: Sequence[Object], kind: str, name: str, space: str) -> Object | None:
    for obj in others:
        if obj.get("kind") == kind and obj["metadata"]["name"] == name and namespace_of(obj) == space:
            return obj
    return None


def _make(
    job: Object,
    plan: Plan,
    uids: Mapping[tuple[str, str], str],
    release: Release,
    parity: bool,
    *,
    kind: str = "Workload",
) -> Made:
    """-> the object as it was stored"""
    rendered = render(plan, release, uids=uids)
    if rendered.errors:
        raise ReconcileError("; ".join(map(str, rendered.errors)))
    wanted = next(obj for obj in rendered.objects if obj["kind"] == kind)
    write, name = create(job, wanted), str(job["metadata"]["name"])
    answer = yield from one(write)
    old = release.minor == "1.36"
    if answer.refusal is not None:
        if not (parity and (old or kind == "PodGroup")):
            note = f"Failed to create {kind} for Job {name}: {answer.refusal.message}"
            yield from emit(event_for(job, "Warning", f"Failed{kind}Create", note))
        raise ReconcileError(f"{write}: {answer.refusal.message}")
    if not (parity and old and kind == "PodGroup"):
        note = f"Created {kind} {wanted['metadata']['name']} for Job {name}"
        yield from emit(event_for(job, "Normal", f"{kind}Created", note))
    return answer.object or wanted


def _resize_workload(job: Object, plan: Plan, stored: Object) -> Made:
    known = ((stored.get("spec") or {}).get("podGroupTemplates") or [{}])[0]
    minimum = plan.templates[0].minimum
    if minimum is None or minimum_of(known) == minimum:
        return ""
    # The list is replaced as a whole, so everything that is in it is said again.
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    body = {"spec": {"podGroupTemplates": [{**known, **policy}]}}
    return (yield from _patch(job, stored, body))


def _resize_group(job: Object, plan: Plan, stored: Object) -> Made:
    minimum = plan.minimum(plan.groups[0])
    if minimum is None or minimum_of(stored.get("spec") or {}) in (None, minimum):
        return ""
    body = {"spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}}
    return (yield from _patch(job, stored, body))


def _patch(job: Object, stored: Object, body: Object) -> Made:
    write = Write(
        verb="patch",
        api_version=stored["apiVersion"],
        kind=stored["kind"],
        namespace=namespace_of(job),
        name=str(stored["metadata"]["name"]),
        body=body,
        patch="strategic",
    )
    answer = yield from one(write)
    return "" if answer.refusal is None else f"{write}: {answer.refusal.message}"
