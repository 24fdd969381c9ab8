"""A TrainJob's groups: made before its JobSet runs, kept while it does, gone while it is suspended (spec 3.5, 3.10)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from kohort.api.kind import Object
from kohort.controllers import groups as kit
from kohort.controllers.objects import is_deleting, uid_of
from kohort.controllers.reconcile import Answer, Event, Step, emit
from kohort.controllers.writes import create
from kohort.gang.compile import CompileContext
from kohort.gang.render import render
from kohort.gang.tree import Plan
from kohort.kinds.trainer.control.errors import BuildError, WaitError

Part = Generator[Step, Sequence[Answer], Any]


def ensure(job: Object, plan: Plan, known: Sequence[Object], ctx: CompileContext) -> Part:
    """Workload, then branches from the root on, then leaves: each exists before it is named. Never changed."""
    uids = {("Workload", obj["metadata"]["name"]): uid_of(obj) for obj in known if obj["kind"] == "Workload"}
    for kind in kit.KINDS:
        wanted = [obj for obj in _rendered(plan, uids, ctx) if obj["kind"] == kind]
        missing = [obj for obj in wanted if not _is_there(obj, known)]
        # Leaves do not depend on each other.
        for batch in [missing] if kind == "PodGroup" else [[obj] for obj in missing]:
            for stored in (yield from _make(job, batch)):
                uids[kind, stored["metadata"]["name"]] = uid_of(stored)


def missing(job: Object, plan: Plan, known: Sequence[Object], ctx: CompileContext) -> list[Event]:
    """What somebody took away from a running job. Its pods exist: it is not made again (D15)."""
    there = {(obj["kind"], obj["metadata"]["name"]) for obj in known}
    gone = [obj for obj in _rendered(plan, {}, ctx) if (obj["kind"], obj["metadata"]["name"]) not in there]
    return [
        Event(
            job,
            "Warning",
            f"{obj['kind']}Missing",
            f"{obj['kind']} {obj['metadata']['name']} was deleted while the job runs; it comes back with a resume",
        )
        for obj in gone
    ]


def remove(job: Object, known: Sequence[Object]) -> Part:
    """Those of this job: what a user has made stays."""
    yield from kit.remove(job, known, lambda done: [_event(job, obj, "Deleted") for obj in done])


def _rendered(plan: Plan, uids: dict[tuple[str, str], str], ctx: CompileContext) -> Sequence[Object]:
    rendered = render(plan, ctx.release, uids=uids)
    if rendered.errors:
        raise BuildError("; ".join(map(str, rendered.errors)))
    return rendered.objects


def _is_there(wanted: Object, known: Sequence[Object]) -> bool:
    named = (wanted["kind"], wanted["metadata"]["name"])
    stored = next((obj for obj in known if (obj["kind"], obj["metadata"]["name"]) == named), None)
    if stored is not None and is_deleting(stored):
        raise WaitError(f"{named[0]} {named[1]} is being deleted; it is made again when it is gone")
    return stored is not None


def _make(job: Object, wanted: Sequence[Object]) -> Part:
    """-> the objects as they are stored"""
    if not wanted:
        return []
    answers = yield Step([create(obj) for obj in wanted])
    problems = [
        f"{obj['kind']} {obj['metadata']['name']}: {answer.refusal.message}"
        for obj, answer in zip(wanted, answers, strict=True)
        if answer.refusal is not None
    ]
    made = [obj for obj, answer in zip(wanted, answers, strict=True) if answer.ok]
    yield from emit(
        *(
            Event(job, "Normal", f"{obj['kind']}Created", f"created {obj['kind']} {obj['metadata']['name']}")
            for obj in made
        )
    )
    if problems:
        raise BuildError("; ".join(problems))
    return [answer.object or obj for obj, answer in zip(wanted, answers, strict=True)]


def _event(job: Object, obj: Object, what: str) -> Event:
    kind, name = obj["kind"], obj["metadata"]["name"]
    return Event(job, "Normal", f"{kind}{what}", f"{what.lower()} {kind} {name}")
