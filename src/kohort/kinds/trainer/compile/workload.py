"""podGroupPolicy.workload: the groups of the Workload API (spec trainjob 3)."""

from __future__ import annotations

from kohort.api.errors import invalid
from kohort.gang import render
from kohort.gang.compile import CompileContext
from kohort.kinds.jobset.compile.jobset import MAX_JOBS
from kohort.kinds.trainer.api.constants import GATE
from kohort.kinds.trainer.api.groups import resolve
from kohort.kinds.trainer.compile.draft import Draft
from kohort.kinds.trainer.compile.existing import meet
from kohort.kinds.trainer.compile.groups import group_of_job, plan_of


def enforce(draft: Draft, ctx: CompileContext) -> None:
    """The plan, and for each ReplicatedJob what puts its pods into their group."""
    off = [gate for gate in (GATE, "GenericWorkload") if not ctx.on(gate)]
    if off:
        draft.reason = f"gate {off[0]} is off"
        return
    jobs = sum(map(draft.replicas, range(len(draft.jobs))))
    if jobs > MAX_JOBS:
        name = draft.job["spec"]["runtimeRef"]["name"]
        draft.errors.append(invalid("spec.runtimeRef", name, f"it has {jobs} Jobs, a plan has at most {MAX_JOBS}"))
        return
    grouping = resolve(draft.runtime, ctx)
    draft.warnings += grouping.warnings
    met = meet(plan_of(draft, grouping, ctx), draft.job, ctx)
    draft.errors += met.errors
    if met.errors:
        return
    draft.plan = met.plan
    links = render.pod_links(met.plan, ctx.release)
    draft.links = {index: links[group] for index, group in group_of_job(met.plan).items()}
