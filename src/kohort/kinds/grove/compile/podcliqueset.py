"""PodCliqueSet: one plan for each PodGang (GREP-531, spec grove 3).

Phase 1 (1.35) and 2 (1.36, and 1.37 without CompositePodGroup) are flat; phase 3 (1.37) is a tree.
"""

from __future__ import annotations

from kohort.api.errors import ErrorKind, FieldError, invalid
from kohort.api.kind import Object
from kohort.gang.compile import Compilation, CompileContext
from kohort.gang.stand_in import has_uid
from kohort.gang.tree import Plan
from kohort.kinds.grove.api import backend, options, parts
from kohort.kinds.grove.compile import clash, groups
from kohort.kinds.grove.compile.expand import MAX_CLIQUES, Expansion
from kohort.kinds.grove.compile.podgang import podgang
from kohort.kinds.grove.compile.topology import resolve


def compile_object(obj: Object, ctx: CompileContext) -> Compilation:
    """A set with a uid is one that a server has stored: it stays, whatever its topology binding has lost since."""
    expansion = Expansion(obj, ctx.lookup)
    if expansion.is_too_large:
        return Compilation(errors=(too_large(expansion),))
    topology, errors, warnings = resolve(obj, ctx, existing=has_uid(obj))
    reason = _reason(obj, ctx)
    if not reason:
        errors += [*backend.check(obj, ctx), *_no_minimum(obj)]
    errors += clash.between(obj, clash.podgangs(expansion), ctx)
    if errors:
        return Compilation(errors=tuple(errors), warnings=tuple(warnings))
    plans = () if reason else groups.plans(expansion, topology, ctx)
    names = clash.names_of(plans)
    errors = [*clash.within(names), *clash.between(obj, names, ctx)]
    if errors:
        return Compilation(errors=tuple(errors), warnings=tuple(warnings))
    if not options.is_tree(ctx):
        warnings += _not_atomic(plans)
    external = ctx.on(options.GANG) and backend.concerned(obj) and backend.external(obj)
    podgangs = tuple(podgang(obj, gang, topology, external) for gang in expansion.gangs)
    return Compilation(plans, warnings=tuple(warnings), reason=reason, objects=podgangs)


def too_large(expansion: Expansion) -> FieldError:
    """Of a set, or of a set whose scaling groups have been scaled."""
    detail = f"the set would have {expansion.size} PodCliques, a set has at most {MAX_CLIQUES}"
    return FieldError(ErrorKind.TOO_MANY, "spec.replicas", detail, expansion.size)


def _reason(obj: Object, ctx: CompileContext) -> str:
    """Why there are no groups to make, if so."""
    scheduler = options.scheduler_of(obj)
    if not obj["spec"].get("replicas"):
        return "spec.replicas is 0: the set has no gangs"
    if scheduler not in options.GANG_BACKENDS:
        return f"{scheduler} schedules these pods; it reads PodGangs, not Workloads"
    if not ctx.on(options.GANG):
        return f"option {options.GANG} is off: pods only get their schedulerName"
    if backend.external(obj):
        return "the pod templates name their groups, which somebody else owns"
    return ""


def _no_minimum(obj: Object) -> list[FieldError]:
    """A group of minimum 0 cannot be made (D12). Validation refuses it; an object may have come another way."""
    return [
        invalid(f"{path}.spec.minAvailable", parts.spec_of(clique).get("minAvailable"), "a group needs at least 1")
        for path, clique in parts.cliques(obj)
        if int(parts.spec_of(clique).get("minAvailable") or 0) < 1
    ]


def _not_atomic(plans: tuple[Plan, ...]) -> list[str]:
    """Flat groups do not know each other: a PodGang of several can be placed in part (D3)."""
    loose = [plan.workload for plan in plans if len(plan.groups) > 1]
    if not loose:
        return []
    text = "GangNotAtomic: without CompositePodGroups the groups of a gang are placed one by one, maybe not all of them"
    return [f"{text}: {', '.join(loose)}"]
