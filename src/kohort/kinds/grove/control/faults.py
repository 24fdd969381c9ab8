"""Sets that Grove's webhook would refuse, on servers that do not ask it: told, and nothing is made of them.

Only before anything is made: what runs goes on. What the scheduler's side cannot express is told on the PodGang.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kohort.api.errors import FieldError
from kohort.api.kind import Object
from kohort.api.objects import status_of
from kohort.apimachinery import times
from kohort.controllers.reconcile import Event, Part, emit
from kohort.gang.compile import CompileContext
from kohort.kinds.grove.api import backend, options, topology, validation
from kohort.kinds.grove.control.sets import CliqueSet
from kohort.kinds.grove.control.writing import copy_status, write_status

INVALID: Final = "InvalidPodCliqueSet"


def of(pcs: CliqueSet, binding: Object | None, ctx: CompileContext) -> list[FieldError]:
    """All of them; none of a set that has begun."""
    if pcs.stored_hash:
        return []
    # Minimums are told where they count: by the gang (spec grove 6, 41), or by the definitions of its parts.
    found = [one for one in validation.check_form(pcs.obj, ctx) if not one.field.endswith(".minAvailable")]
    found += backend.check_templates(pcs.obj, ctx)
    return found or (topology.check_binding(pcs.obj, binding) if ctx.on(options.TOPOLOGY) else [])


def report(pcs: CliqueSet, faults: list[FieldError], now: datetime) -> Part:
    text = "; ".join(map(str, faults))
    known = status_of(pcs.obj).get("lastErrors") or [{}]
    if (known[0].get("code"), known[0].get("description")) == (INVALID, text):
        return
    yield from emit(Event(pcs.obj, "Warning", INVALID, text))
    status = copy_status(pcs.obj)
    status["lastErrors"] = [{"code": INVALID, "description": text, "observedAt": times.seconds(now)}]
    yield from write_status(pcs.obj, status)
