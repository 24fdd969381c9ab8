"""TrainJob: its runtime must be there and fit (spec trainjob 1.4, 1.7); patches wait for the Jobs to stop."""

from __future__ import annotations

from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.gang.admission import NOTHING, Findings
from kohort.gang.compile import CompileContext
from kohort.kinds.trainer.api import check_active, check_fit, fit_warnings, stamp_patches
from kohort.kinds.trainer.api.constants import tidy
from kohort.kinds.trainer.compile.lookup import Found, find_runtime, live_runtime


def complete(new: Object, old: Object | None, now: str) -> None:
    stamp_patches(new, old, now)


def validate(new: Object, old: Object | None, ctx: CompileContext) -> Findings:
    if old is not None and new.get("spec") == old.get("spec"):
        return NOTHING
    job = tidy(new)
    found = _runtime(job, old, ctx)
    if found.runtime is None:
        return Findings(found.errors, found.warnings)
    # What is wrong with the runtime itself is told by the controller: upstream's admission does not look.
    # Every server has classes of its own; where none is known, nothing is known of them.
    classes = [one["metadata"]["name"] for one in ctx.lookup.every("PriorityClass")] or None
    errors = check_fit(job, found.runtime, classes)
    if old is not None:
        errors += check_active(
            job, tidy(old), ctx.lookup.find("JobSet", job["metadata"]["name"], namespace_or_default(job))
        )
    return Findings(tuple(errors), (*found.warnings, *fit_warnings(job, found.runtime)))


def _runtime(job: Object, old: Object | None, ctx: CompileContext) -> Found:
    """A new job has no snapshot yet: one of that name is left from an earlier job, and will be collected."""
    if old is None:
        return live_runtime(job, ctx)
    found = find_runtime(job, ctx)
    return found if found.runtime is not None else live_runtime(job, ctx)
