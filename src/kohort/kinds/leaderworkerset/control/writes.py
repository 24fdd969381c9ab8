"""The requests of this controller, and what is told when one of them is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kohort.api.kind import Object
from kohort.api.objects import name_of
from kohort.controllers.groups import batches
from kohort.controllers.reconcile import Event, Part, ReconcileError, Refusal, Step, Write, emit
from kohort.controllers.writes import create, delete, update

Propagation = Literal["Background", "Foreground"]


def put(obj: Object) -> Write:
    """The whole object. A ControllerRevision has to be written so: a patch is worked out on the server, which then
    writes `data` in its own way, and that counts as a change of what never changes.
    """
    return update(obj)


def put_status(lws: Object, status: Object) -> Write:
    return update({**lws, "status": status}, "status")


def is_ending(refusal: Refusal) -> bool:
    """The whole namespace goes, and the set with it: nothing to tell, nothing to try again."""
    return refusal.namespace_terminating


def make_all(lws: Object, wanted: Sequence[Object]) -> Part:
    """-> (the objects that are there now, what went wrong). After a batch with a refusal no further one is tried."""
    made: list[Object] = []
    problems: list[str] = []
    for batch in batches(wanted):
        answers = yield Step([create(obj) for obj in batch])
        events = []
        for obj, answer in zip(batch, answers, strict=True):
            if answer.refusal is None:
                made.append(answer.object or obj)
            elif not is_ending(answer.refusal):
                note = f"{obj['kind']} {name_of(obj)} could not be created: {answer.refusal.message}"
                problems.append(note)
                events.append(Event(lws, "Warning", "FailedCreate", note))
        yield from emit(*events)
        if problems:
            break
    return made, problems


def remove_all(gone: Sequence[Object], propagation: Propagation = "Background") -> Part:
    for batch in batches(gone):
        answers = yield Step([delete(obj, propagation) for obj in batch])
        for obj, answer in zip(batch, answers, strict=True):
            refusal = answer.refusal
            # A conflict: another object has the name by now.
            if refusal is not None and not refusal.not_found and not refusal.conflict:
                raise ReconcileError(f"{obj['kind']} {name_of(obj)} could not be deleted: {refusal.message}")
