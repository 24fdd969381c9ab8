"""TrainJob to plan and JobSet: the runtime is found, then each plugin has its say in turn (spec trainjob 2.1)."""

from __future__ import annotations

from kohort.api.bundle import Listener
from kohort.api.kind import Object
from kohort.gang.compile import Compilation, CompileContext
from kohort.kinds.trainer.api import check_fit, fit_warnings
from kohort.kinds.trainer.api.constants import MANAGED_HERE, spec_of, tidy
from kohort.kinds.trainer.api.validation import is_suspended
from kohort.kinds.trainer.compile import jobset, plugins
from kohort.kinds.trainer.compile.draft import Draft, draft
from kohort.kinds.trainer.compile.lookup import find_runtime
from kohort.kinds.trainer.settings import TrainJobSettings


def compile_object(obj: Object, ctx: CompileContext, listener: Listener | None = None) -> Compilation:
    """`listener`: who takes the reports of progress (gate TrainJobStatus), where somebody does."""
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
    made = draft(obj, found.runtime, ctx.settings.of(TrainJobSettings), listener)
    made.warnings += [*found.warnings, *fit_warnings(obj, found.runtime)]
    return _built(made, ctx)


def _built(made: Draft, ctx: CompileContext) -> Compilation:
    serving = plugins.of(made.runtime)
    for plugin in serving:
        if plugin.framework is not None:
            plugin.framework(made)
    made.errors += jobset.too_long(made)
    for plugin in serving:
        if plugin.groups is not None and not made.errors:
            plugin.groups(made, ctx)
    if made.errors:
        return Compilation(errors=tuple(made.errors), warnings=tuple(made.warnings))
    objects = tuple(obj for plugin in serving if plugin.build is not None for obj in plugin.build(made))
    warnings = tuple(made.warnings)
    if made.plan is None:
        reason = made.reason or f'runtime "{made.job["spec"]["runtimeRef"]["name"]}" has no podGroupPolicy.workload'
        return Compilation(warnings=warnings, reason=reason, objects=objects)
    if is_suspended(made.job) and not preserves(ctx):
        # The links are written all the same: they cannot be added to the JobSet later (3.10).
        return Compilation(warnings=warnings, reason="suspended: groups are made when it is resumed", objects=objects)
    return Compilation(plans=(made.plan,), warnings=warnings, objects=objects)


def preserves(ctx: CompileContext) -> bool:
    """Whether groups are kept over a suspension, and made for jobs that are born suspended."""
    return ctx.settings.of(TrainJobSettings).on_suspend == "Preserve"
