"""A TrainJob's groups: made before its JobSet runs, kept while it does, gone while it is suspended (spec 3.5, 3.10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kohort.api.kind import Object
from kohort.controllers import groups as kit
from kohort.controllers.reconcile import Event, Part
from kohort.gang.compile import CompileContext
from kohort.gang.render import render
from kohort.gang.tree import Plan
from kohort.kinds.trainer.control.view import BuildError, WaitError


class TrainJobGroups(kit.GroupPolicy):
    """Made once, never changed; what a user has made under one of the names is used as it is."""

    __slots__ = ()

    def created(self, objects: Sequence[Object]) -> Iterable[Event]:
        return (self._event(obj, "Created") for obj in objects)

    def deleted(self, objects: Sequence[Object]) -> Iterable[Event]:
        return (self._event(obj, "Deleted") for obj in objects)

    def _event(self, obj: Object, what: str) -> Event:
        return Event(self.owner, "Normal", f"{obj['kind']}{what}", f"{what.lower()} {kit.described(obj)}")


def _policy(job: Object) -> TrainJobGroups:
    return TrainJobGroups(owner=job, use_foreign=True)


def ensure(job: Object, plan: Plan, known: Sequence[Object], ctx: CompileContext) -> Part:
    outcome: kit.GroupsOutcome = yield from kit.reconcile(_policy(job), _rendered(plan, ctx), known)
    for problem in outcome.of(kit.ProblemType.TERMINATING):
        raise WaitError(f"{kit.described(problem.object)} is being deleted; it is made again when it is gone")
    outcome.raise_for(kit.ProblemType.CREATE, error=BuildError)


def missing(job: Object, plan: Plan, known: Sequence[Object], ctx: CompileContext) -> list[Event]:
    """What somebody took away from a running job. Its pods exist: it is not made again (D15)."""
    there = set(map(kit.group_key, known))
    return [
        Event(
            job,
            "Warning",
            f"{obj['kind']}Missing",
            f"{kit.described(obj)} was deleted while the job runs; it comes back with a resume",
        )
        for obj in _rendered(plan, ctx)
        if kit.group_key(obj) not in there
    ]


def remove(job: Object, known: Sequence[Object]) -> Part:
    """Those of this job: what a user has made stays."""
    yield from kit.remove(_policy(job), known)


def _rendered(plan: Plan, ctx: CompileContext) -> Sequence[Object]:
    rendered = render(plan, ctx.release)
    if rendered.errors:
        raise BuildError("; ".join(map(str, rendered.errors)))
    return rendered.objects
