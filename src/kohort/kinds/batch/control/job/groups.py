"""A Job's Workload and PodGroup: found, made, kept in size, before any pod is made (spec job 2, 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kohort.api import formats
from kohort.api.errors import ErrorKind
from kohort.api.kind import Object
from kohort.api.objects import is_controlled_by, name_of, namespace_of
from kohort.api.releases import SCHEDULING_GROUP, Release
from kohort.controllers import groups as kit
from kohort.controllers.reconcile import Event, Part, ReconcileError, Refusal, emit
from kohort.gang import blocks
from kohort.gang.compile import Compilation, CompileContext, Lookup, Notice
from kohort.gang.render import pod_link, render
from kohort.gang.tree import Plan
from kohort.kinds.batch.compile.job import compile_object
from kohort.kinds.batch.compile.names import template_name, workload_name
from kohort.kinds.batch.compile.parts import FAILED_CREATE
from kohort.kinds.batch.control.job.finish import is_decided
from kohort.kinds.batch.settings import JobSettings

WAIT: Final = 5.0  # seconds until a parent that still owes us something is looked for again


@dataclass(frozen=True, slots=True)
class Grouped:
    """`link`: the member of a pod's spec that names its group (empty: ungrouped); `wait`: no pods yet.

    `problem`: something could not be brought in line; pods go on, and it is tried again. `least`: of a gang.
    """

    link: Mapping[str, Any] = field(default_factory=dict)
    wait: float | None = None
    problem: str = ""
    least: int | None = None


def ensure(job: Object, others: Sequence[Object], ctx: CompileContext, *, running: bool) -> Part:
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
    problem: str = yield from _objects(job, plan, others, ctx.release, parity)
    if problem and (parity or not running):
        raise ReconcileError(problem)
    group = plan.groups[0]
    return Grouped(pod_link(plan, group.name, ctx.release), problem=problem, least=plan.minimum(group))


def _impossible(job: Object, done: Compilation, release: Release, parity: bool) -> Part:
    """What is missing may still come; anything else is told, and tried again."""
    error = done.errors[0]
    notice = done.notice
    if notice is not None and not (parity and _silent(notice, release)):
        yield from emit(Event(job, "Warning", notice.reason, _as_refused(job) if parity else notice.note))
    if error.kind is ErrorKind.NOT_FOUND:
        return Grouped(wait=WAIT)
    raise ReconcileError(str(error))


def _silent(notice: Notice, release: Release) -> bool:
    """Upstream tells of few of these: in 1.37 that a Workload cannot be created, in 1.36 of nothing."""
    return release.minor == "1.36" or notice.reason != FAILED_CREATE


def _as_refused(job: Object) -> str:
    """In the words of the server that upstream learns it from: a bad name of the template, one reason after another."""
    name = str(job["metadata"]["name"])
    workload, template = workload_name(name, str(job["metadata"]["uid"])), template_name(name)
    where = f'spec.podGroupTemplates[0].name: Invalid value: "{template}"'
    refusal = f'Workload.{SCHEDULING_GROUP} "{workload}" is invalid: {where}: {formats.label(template)}'
    return f"Failed to create Workload for Job {name}: {refusal}"


def _warnings(job: Object, done: Compilation) -> list[Event]:
    # Warnings are about fields: whoever applied the Job was told.
    found = [Event(job, "Warning", done.notice.reason, done.notice.note)] if done.notice is not None else []
    least, left = blocks.explicit_minimum(job["spec"].get("scheduling") or {}), _still_to_come(job)
    if done.plans and least is not None and left is not None and 0 < left < least:
        text = f"minCount is {least}, but only {left} more pods will exist: they cannot start together"
        found.append(Event(job, "Warning", "MinCountUnreachable", text))
    return found


def _still_to_come(job: Object) -> int | None:
    completions = job["spec"].get("completions")
    return None if completions is None else int(completions) - int((job.get("status") or {}).get("succeeded") or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGroups(kit.GroupPolicy):
    """Whoever made the Workload, it is used, even while it goes: upstream does so.

    `silent`: kinds whose creation upstream tells nobody about, in parity; `silent_failures`: whose refusal.
    """

    silent: frozenset[str] = frozenset()
    silent_failures: frozenset[str] = frozenset()

    def created(self, objects: Sequence[Object]) -> Iterable[Event]:
        return (
            Event(self.owner, "Normal", f"{obj['kind']}Created", f"Created {kit.described(obj)} for Job {self._name}")
            for obj in objects
            if obj["kind"] not in self.silent
        )

    def refused(self, obj: Object, refusal: Refusal) -> Iterable[Event]:
        if obj["kind"] not in self.silent_failures:
            note = f"Failed to create {obj['kind']} for Job {self._name}: {refusal.message}"
            yield Event(self.owner, "Warning", f"Failed{obj['kind']}Create", note)

    @property
    def _name(self) -> str:
        return name_of(self.owner)


def _policy(job: Object, release: Release, parity: bool) -> JobGroups:
    old = release.minor == "1.36"
    return JobGroups(
        owner=job,
        use_foreign=True,
        use_terminating=True,
        # Once it is decided how the Job ends, nobody starts any more: what its group asks for does not matter.
        resize=release.min_count_mutable and (parity or not is_decided(job)),
        silent=frozenset({"PodGroup"} if parity and old else ()),
        silent_failures=frozenset({"PodGroup", *({"Workload"} if old else ())} if parity else ()),
    )


def _objects(job: Object, plan: Plan, others: Sequence[Object], release: Release, parity: bool) -> Part:
    """-> what could not be brought in line, for people"""
    rendered = render(plan, release)
    if rendered.errors:
        raise ReconcileError("; ".join(map(str, rendered.errors)))
    outcome: kit.GroupsOutcome = yield from kit.reconcile(
        _policy(job, release, parity), rendered.objects, _known(job, others, plan.namespace)
    )
    outcome.raise_for(kit.ProblemType.CREATE)
    return "; ".join(map(str, outcome.problems))


def _known(job: Object, others: Sequence[Object], space: str) -> list[Object]:
    """A PodGroup of somebody else does not count: the server refuses a second one of its name."""
    return [
        obj
        for obj in others
        if namespace_of(obj) == space
        and (obj.get("kind") == "Workload" or (obj.get("kind") == "PodGroup" and is_controlled_by(obj, job)))
    ]
