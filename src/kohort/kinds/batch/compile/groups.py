"""What a Job's own group is like: its policy, its minimum, and what is lost on the way (spec job 2.3, 3.4, 3.5)."""

from __future__ import annotations

from typing import Any

from kohort.api.kind import Object
from kohort.api.releases import Gate
from kohort.gang import blocks
from kohort.gang.compile import CompileContext
from kohort.gang.compile.builder import Config, Item, compile_item
from kohort.gang.tree import Plan, Template
from kohort.kinds.batch.settings import EffectiveSettings


def item_of(job: Object, template: str, ctx: CompileContext, settings: EffectiveSettings) -> Item:
    spec = job.get("spec") or {}
    if not settings.declared:
        gang = Config(gang=True, minimum=int(spec.get("parallelism") or 1))
        return Item(name=template, default=gang)
    pod = (spec.get("template") or {}).get("spec") or {}

    def fill(config: Config) -> None:
        if config.gang and config.minimum is None:
            config.minimum = default_minimum(job, shrink=settings.shrink)
        # A server without these gates erases the fields from Workloads and PodGroups, though not from the Job.
        config.topology = config.topology if ctx.on(Gate.TOPOLOGY) else None
        config.claims = config.claims if ctx.on(Gate.CLAIMS) else ()

    return Item(
        name=template,
        path="spec.scheduling",
        default=Config(priority_class=pod.get("priorityClassName") or None),
        leaf=spec.get("scheduling") or {},
        callbacks=(fill,),
    )


def template_of(job: Object, name: str, ctx: CompileContext, settings: EffectiveSettings) -> Template:
    return compile_item(item_of(job, name, ctx, settings))


def default_minimum(job: Object, *, shrink: bool) -> int:
    """How many pods must start together where the user left it open: all that run at once."""
    spec, status = job.get("spec") or {}, job.get("status") or {}
    parallelism = 1 if spec.get("parallelism") is None else int(spec["parallelism"])
    if shrink:
        return shrink_min_count(parallelism, spec.get("completions"), int(status.get("succeeded") or 0))
    return max(1, parallelism)


def shrink_min_count(parallelism: int, completions: int | None, succeeded: int) -> int:
    """Never more than can still exist, so that the retry of the last index does not wait for the finished ones.

    Upstream asks for parallelism throughout, and such a retry never starts (spec job 3.5, T-59, T-60).
    """
    most = parallelism if completions is None else min(parallelism, completions - succeeded)
    return max(1, most)


def warnings_of(job: Object, plan: Plan, ctx: CompileContext, settings: EffectiveSettings) -> list[str]:
    spec = job.get("spec") or {}
    block, pod = spec.get("scheduling") or {}, (spec.get("template") or {}).get("spec") or {}
    found = []
    if settings.declared:
        for gate, member, asked in (
            (Gate.TOPOLOGY, "schedulingConstraints", blocks.topology(block)),
            (Gate.CLAIMS, "resourceClaims", blocks.claims(block)),
        ):
            if asked and not ctx.on(gate):
                found.append(f"spec.scheduling.{member}: without feature gate {gate} it has no effect")
        found += _unreachable(spec, block, plan)
    elif block:
        found.append("spec.scheduling: the policy is inferred from the Job's shape, so this has no effect")
    if pod.get("evictionResponders") and ctx.on(Gate.EVICTION_REQUEST):
        found.append(
            "spec.template.spec.evictionResponders: a pod with a group may not have them, so no pod can be created"
        )
    return found


def _unreachable(spec: dict[str, Any], block: dict[str, Any], plan: Plan) -> list[str]:
    """A defaulted minimum that the Job can never reach (an explicit one is already a warning about the Job itself)."""
    least, completions = plan.templates[0].minimum, spec.get("completions")
    explicit = blocks.explicit_minimum(block) is not None
    if least is None or completions is None or explicit or least <= max(1, completions):
        return []
    why = f"with {completions} completions so many never exist: the Job cannot start"
    return [f"spec.scheduling.schedulingPolicy.gang: {least} pods must start together, but {why}"]
