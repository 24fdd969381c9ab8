"""Job: on Kubernetes 1.36 the parallelism of a gang is frozen (spec job 3.3)."""

from __future__ import annotations

from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.gang.admission import NOTHING, Findings
from kohort.gang.compile import CompileContext
from kohort.kinds.batch.api.freeze import check_parallelism


def validate(new: Object, old: Object | None, ctx: CompileContext) -> Findings:
    if old is None:
        return NOTHING
    groups = ctx.lookup.every("PodGroup", namespace_or_default(new)) if ctx.release.minor == "1.36" else ()
    return Findings(tuple(check_parallelism(new, old, groups, ctx)))
