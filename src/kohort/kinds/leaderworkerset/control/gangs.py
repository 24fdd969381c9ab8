"""A set's groups for the scheduler: Workload, branches, PodGroups, each before what names it (spec lws 4.5, 4.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_controlled_by, name_of
from kohort.controllers import groups as kit
from kohort.controllers.groups import ProblemType
from kohort.controllers.reconcile import Event, Part, Refusal, emit
from kohort.gang.compile import CompileContext, Lookup
from kohort.gang.render import pod_links, render
from kohort.gang.tree import Plan
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import Role, is_delegated, shape_of
from kohort.kinds.leaderworkerset.api.scheduling import check_scheduling
from kohort.kinds.leaderworkerset.compile.leaderworkerset import compile_object
from kohort.kinds.leaderworkerset.compile.names import (
    Instance,
    Observed,
    base_name,
    replica_group,
    role_group,
    set_group,
)
from kohort.kinds.leaderworkerset.control.instances import leaf_level, named_by
from kohort.kinds.leaderworkerset.control.pods import ALONE, Membership
from kohort.kinds.leaderworkerset.control.status import LeaderWorkerSetStatus
from kohort.kinds.leaderworkerset.control.writes import is_ending

NOT_AVAILABLE: Final = "APINotAvailable"
UNSUPPORTED: Final = "UnsupportedProviderCapability"
INVALID: Final = "InvalidSchedulingConfiguration"
BLOCKED: Final = "PodGroupCleanupBlocked"
CREATED: Final = "SchedulingObjectsCreated"


@dataclass(slots=True)
class Gangs:
    """`links`: of the groups that pods may join now; `wanted`: names of all objects that belong to the set."""

    links: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    workloads: dict[str, str] = field(default_factory=dict)  # group -> Workload
    wanted: set[tuple[str, str]] = field(default_factory=set)
    reason: str = ""
    problem: str = ""
    grouped: bool = True

    def fail(self, reason: str, problem: str) -> None:
        """The first problem is the one that people read."""
        if not self.reason:
            self.reason, self.problem = reason, problem

    def membership(self, lws: Object, instance: Instance, role: Role) -> Membership | None:
        """None: not yet."""
        if not self.grouped:
            return ALONE
        level = leaf_level(lws)
        name = group_name(lws, level, instance, role)
        if name not in self.links:
            return None
        labels = {constants.INCARNATION: str(instance.incarnation)} if instance.incarnation else {}
        return Membership(
            self.links[name], labels, {constants.AWARE: level, constants.WORKLOAD_NAME: self.workloads[name]}
        )


def group_name(lws: Object, level: str, instance: Instance, role: Role) -> str:
    base = base_name(lws)
    if level == "lws":
        return set_group(base)
    return role_group(base, instance, role) if level == "role" else replica_group(base, instance)


def is_grouped(lws: Object) -> bool:
    return shape_of(lws) is not None or is_delegated(lws)


def ensure(
    lws: Object,
    instances: Mapping[int, Instance],
    newest: int,
    known: Sequence[Object],
    others: Sequence[Object],
    ctx: CompileContext,
) -> Part:
    """-> Gangs. `newest`: the number of the newest Workload; `known`: objects of this set; `others`: of its parents."""
    if not is_grouped(lws):
        return Gangs(grouped=False)
    gangs = Gangs()
    errors = list(check_scheduling(lws, ctx))
    if errors:  # a server that does not ask us at admission lets them in
        gangs.fail(INVALID, "; ".join(map(str, errors)))
        return gangs
    observed = Observed(tuple(instances.values()), newest)
    done = compile_object(lws, replace(ctx, lookup=Lookup([*known, *others])), observed)
    if done.errors:
        gangs.fail(INVALID, "; ".join(map(str, done.errors)))
    elif not done.plans:
        gangs.fail(done.notice.reason if done.notice is not None else INVALID, done.reason)
    yield from emit(*(Event(lws, "Warning", INVALID, str(text)) for text in done.warnings))
    for plan in done.plans:
        yield from _objects(lws, plan, known, ctx, gangs)
    return gangs


class LeaderWorkerSetGroups(kit.GroupPolicy):
    """Minimums and labels follow, any other difference is only told; a group that cannot be made holds up no other."""

    __slots__ = ()

    def refused(self, obj: Object, refusal: Refusal) -> Iterable[Event]:
        if not is_ending(refusal):
            note = f"{kit.described(obj)}: {refusal.message}"
            yield Event(self.owner, "Warning", f"{obj['kind']}CreateFailed", note)


def _objects(lws: Object, plan: Plan, known: Sequence[Object], ctx: CompileContext, gangs: Gangs) -> Part:
    rendered = render(plan, ctx.release)
    if rendered.errors:
        gangs.fail(UNSUPPORTED, "; ".join(map(str, rendered.errors)))
    gangs.wanted |= {("Workload", plan.workload)} if plan.own_workload else set()
    gangs.wanted |= set(map(kit.group_key, rendered.objects))
    policy = LeaderWorkerSetGroups(
        owner=lws,
        use_foreign=True,
        all_or_nothing=False,
        resize=ctx.release.min_count_mutable,
        relabel=True,
        drift="report",
    )
    outcome: kit.GroupsOutcome = yield from kit.reconcile(policy, rendered.objects, known)
    for problem in outcome.problems:
        _tell(gangs, problem)
    if plan.own_workload and ("Workload", plan.workload) not in outcome.stored:
        return
    for name, link in pod_links(plan, ctx.release).items():
        if ("PodGroup", name) in outcome.stored or not ctx.release.has_pod_groups:
            gangs.links[name], gangs.workloads[name] = link, plan.workload


def _tell(gangs: Gangs, problem: kit.GroupProblem) -> None:
    what = kit.described(problem.object)
    if problem.type is ProblemType.TERMINATING:
        gangs.fail(BLOCKED, f"{what} is still being deleted")
    elif problem.type is ProblemType.DRIFT:
        gangs.fail(INVALID, f"{what} is not as this set would make it: {', '.join(problem.places)}")
    elif problem.refusal is not None and problem.type is ProblemType.UPDATE:
        gangs.fail(INVALID, f"{what} could not be changed: {problem.refusal.message}")
    elif problem.refusal is not None and not is_ending(problem.refusal):
        gangs.fail(f"{problem.object['kind']}CreateFailed", str(problem))


def tell_condition(draft: LeaderWorkerSetStatus, gangs: Gangs) -> None:
    if not gangs.grouped:
        return
    if gangs.reason:
        draft.set(constants.SCHEDULING_CREATED, False, gangs.reason, gangs.problem)
    else:
        draft.set(constants.SCHEDULING_CREATED, True, CREATED, "The objects for workload-aware scheduling exist")


def clean(lws: Object, gangs: Gangs, known: Sequence[Object], pods: Sequence[Object]) -> Part:
    """What is neither wanted nor named by a pod goes: leaves, then branches without children, then Workloads."""
    if not gangs.grouped or (gangs.reason and not gangs.wanted):
        return
    named = named_by(pods)
    own = [obj for obj in known if is_controlled_by(obj, lws)]
    keep = gangs.wanted | {kit.group_key(obj) for obj in own if name_of(obj) in named}
    for obj in own:
        keep |= kit.keys_above(obj)
    yield from kit.remove(LeaderWorkerSetGroups(owner=lws), own, keep)
