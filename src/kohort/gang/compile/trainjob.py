"""TrainJob to plan and JobSet (spec trainjob 2.1): runtime, sizes, ML policy, groups, JobSet, in this order always."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kohort.api.errors import invalid
from kohort.api.kind import Object
from kohort.api.trainer import GATE, check_fit, fit_warnings
from kohort.api.trainer.fitting import ml_policy
from kohort.api.trainer.groups import resolve, wants_groups
from kohort.api.trainer.trainjob_rules import is_suspended
from kohort.api.trainer.words import MANAGED_HERE, spec_of, tidy
from kohort.gang import render
from kohort.gang.compile import Compilation, CompileContext
from kohort.gang.compile.trainer import frameworks, jobset, others
from kohort.gang.compile.trainer.draft import Draft, draft
from kohort.gang.compile.trainer.existing import meet
from kohort.gang.compile.trainer.flux import DEFAULT_VIEW, flux
from kohort.gang.compile.trainer.lookup import find_runtime
from kohort.gang.compile.trainer.mpi import has_known_implementation, mpi
from kohort.gang.compile.trainer.planning import group_of_job, plan_of

_POLICIES: Final[dict[str, Callable[[Draft], None]]] = {
    "torch": frameworks.torch,
    "jax": frameworks.jax,
    "xgboost": frameworks.xgboost,
    "mpi": mpi,
}


def compile_object(obj: Object, ctx: CompileContext) -> Compilation:
    """Settings: `onSuspend` ("Delete" or "Preserve"), `fluxViewImage`."""
    obj = tidy(obj)
    manager = spec_of(obj).get("managedBy", MANAGED_HERE)
    if manager != MANAGED_HERE:
        return Compilation(reason=f"managed by {manager}, not here")
    found = find_runtime(obj, ctx)
    if found.runtime is None or found.errors:
        return Compilation(errors=found.errors, warnings=found.warnings)
    misfits = check_fit(obj, found.runtime)
    if misfits:
        return Compilation(errors=tuple(misfits), warnings=found.warnings)
    warnings = (*found.warnings, *fit_warnings(obj, found.runtime))
    made = draft(obj, found.runtime)
    if not has_known_implementation(made):
        detail = "mlPolicy.mpi.mpiImplementation is empty; accepted is OpenMPI"
        return Compilation(errors=(invalid("spec.runtimeRef", obj["spec"]["runtimeRef"]["name"], detail),))
    long = jobset.too_long(made)
    if long:
        return Compilation(errors=tuple(long), warnings=warnings)
    _run_policy(made, ctx)
    jobset.fill(made)
    others.mark(made)
    return _grouped(made, ctx, (*warnings, *made.warnings))


def _run_policy(made: Draft, ctx: CompileContext) -> None:
    policy = ml_policy(made.runtime)
    for name, run in _POLICIES.items():
        if policy.get(name) is not None:
            run(made)
    if policy.get("flux") is not None:
        flux(made, str(ctx.settings.get("fluxViewImage", DEFAULT_VIEW)))


def _grouped(made: Draft, ctx: CompileContext, warnings: tuple[str, ...]) -> Compilation:
    """The groups, if the runtime wants some and somebody may make them; in any case the JobSet."""
    why = _no_groups(made, ctx)
    if why:
        return Compilation(warnings=warnings, reason=why, objects=(*made.objects, jobset.build(made, {})))
    grouping = resolve(made.runtime, ctx)
    met = meet(plan_of(made, grouping, ctx), made.job, ctx)
    if met.errors:
        return Compilation(errors=met.errors, warnings=warnings)
    links = {index: render.pod_link(met.plan, group, ctx.generation) for index, group in group_of_job(met.plan).items()}
    objects = (*made.objects, jobset.build(made, links))
    warnings = (*warnings, *grouping.warnings)
    if is_suspended(made.job) and ctx.settings.get("onSuspend", "Delete") != "Preserve":
        # The links are written all the same: they cannot be added to the JobSet later (3.10).
        return Compilation(warnings=warnings, reason="suspended: groups are made when it is resumed", objects=objects)
    return Compilation(plans=(met.plan,), warnings=warnings, objects=objects)


def _no_groups(made: Draft, ctx: CompileContext) -> str:
    ref = made.job["spec"]["runtimeRef"]
    if not wants_groups(made.runtime):
        return f'runtime "{ref["name"]}" has no podGroupPolicy.workload'
    off = [gate for gate in (GATE, "GenericWorkload") if not ctx.on(gate)]
    return f"gate {off[0]} is off" if off else ""
