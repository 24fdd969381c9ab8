"""Job: on Kubernetes 1.36 the parallelism of a gang is frozen (job 3.3)."""

from __future__ import annotations

from kohort.api.batch.freeze import check_parallelism
from kohort.api.kind import Object
from kohort.gang.admission import NOTHING, Findings
from kohort.gang.compile import CompileContext, namespace_of


def judge(new: Object, old: Object | None, ctx: CompileContext) -> Findings:
    if old is None:
        return NOTHING
    groups = ctx.lookup.every("PodGroup", namespace_of(new)) if ctx.generation.minor == "1.36" else ()
    return Findings(tuple(check_parallelism(new, old, groups, ctx)))
