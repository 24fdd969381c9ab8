"""A set's groups for the scheduler: Workload, branches, PodGroups, each before what names it (spec lws 4.5, 4.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kohort.api.kind import Object
from kohort.controllers.groups import covers
from kohort.controllers.objects import controller_uid, is_deleting, meta_of, name_of, uid_of
from kohort.controllers.reconcile import Event, Step, emit, one
from kohort.controllers.writes import create, patch
from kohort.gang.compile import CompileContext, Lookup
from kohort.gang.render import pod_links, render
from kohort.gang.render.common import Uids
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
from kohort.kinds.leaderworkerset.control.writes import Part, batches, is_ending, remove_all

NOT_AVAILABLE: Final = "APINotAvailable"
UNSUPPORTED: Final = "UnsupportedProviderCapability"
INVALID: Final = "InvalidSchedulingConfiguration"
BLOCKED: Final = "PodGroupCleanupBlocked"
PARENT: Final = "ParentWorkloadNotReady"
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
        gangs.fail(PARENT if done.reason.startswith(PARENT) else INVALID, done.reason)
    yield from emit(*(Event(lws, "Warning", INVALID, str(text)) for text in done.warnings))
    for plan in done.plans:
        yield from _objects(lws, plan, known, ctx, gangs)
    return gangs


def _objects(lws: Object, plan: Plan, known: Sequence[Object], ctx: CompileContext, gangs: Gangs) -> Part:
    uids: dict[tuple[str, str], str] = {}
    if plan.own_workload:
        gangs.wanted.add(("Workload", plan.workload))
        found = yield from _level(lws, _rendered(plan, ctx, uids, gangs, "Workload"), known, ctx, gangs)
        if not found or found[0] is None:
            return
        uids["Workload", plan.workload] = uid_of(found[0])
    there: set[str] = set()
    for branch in (True, False):
        wanted = [
            obj
            for kind in ("CompositePodGroup", "PodGroup")
            for obj in _rendered(plan, ctx, uids, gangs, kind)
            if branch is (kind == "CompositePodGroup")
        ]
        gangs.wanted |= {(str(obj["kind"]), name_of(obj)) for obj in wanted}
        while wanted:  # roots first
            above = {name_of(obj) for obj in wanted}
            now = [obj for obj in wanted if _parent(obj) not in above]
            wanted = [obj for obj in wanted if _parent(obj) in above]
            there |= {name_of(obj) for obj in (yield from _level(lws, now, known, ctx, gangs)) if obj is not None}
    for name, link in pod_links(plan, ctx.release).items():
        if name in there or not ctx.release.has_pod_groups:
            gangs.links[name], gangs.workloads[name] = link, plan.workload


def _rendered(plan: Plan, ctx: CompileContext, uids: Uids, gangs: Gangs, kind: str) -> list[Object]:
    found = render(plan, ctx.release, uids=uids)
    if found.errors:
        gangs.fail(UNSUPPORTED, "; ".join(map(str, found.errors)))
    return [obj for obj in found.objects if obj["kind"] == kind]


def _parent(group: Object) -> str:
    return str(group["spec"].get("parentCompositePodGroupName") or "")


def _level(lws: Object, wanted: Sequence[Object], known: Sequence[Object], ctx: CompileContext, gangs: Gangs) -> Part:
    """Objects that do not need each other. -> as they are on the server, None for each that is not there or going."""
    stored = {(obj.get("kind"), name_of(obj)): obj for obj in known}
    found: list[Object | None] = []
    missing = []
    for obj in wanted:
        there = stored.get((obj["kind"], name_of(obj)))
        if there is None:
            missing.append(obj)
        elif is_deleting(there):
            gangs.fail(BLOCKED, f"{obj['kind']} {name_of(obj)} is still being deleted")
            found.append(None)
        else:
            yield from _follow(obj, there, ctx, gangs)
            found.append(there)
    for batch in batches(missing):
        answers = yield Step([create(obj) for obj in batch])
        for obj, answer in zip(batch, answers, strict=True):
            if answer.refusal is not None and not is_ending(answer.refusal):
                reason = f"{obj['kind']}CreateFailed"
                gangs.fail(reason, f"{obj['kind']} {name_of(obj)}: {answer.refusal.message}")
                yield from emit(
                    Event(lws, "Warning", reason, f"{obj['kind']} {name_of(obj)}: {answer.refusal.message}")
                )
            found.append(None if answer.refusal is not None else answer.object or obj)
    return found


def _follow(wanted: Object, stored: Object, ctx: CompileContext, gangs: Gangs) -> Part:
    """Minimums and labels follow; any other difference is somebody's hand, and is only told."""
    body: Object = {}
    labels = {
        key: value
        for key, value in (meta_of(wanted).get("labels") or {}).items()
        if (meta_of(stored).get("labels") or {}).get(key) != value
    }
    if labels:
        body["metadata"] = {"labels": labels}
    spec = _with_minimums(stored["spec"], wanted["spec"])
    if spec != stored["spec"] and ctx.release.min_count_mutable and stored["kind"] != "CompositePodGroup":
        body["spec"] = {name: value for name, value in spec.items() if stored["spec"].get(name) != value}
    what = f"{stored['kind']} {name_of(stored)}"
    if not covers(spec, wanted["spec"]):
        gangs.fail(INVALID, f"{what} is not as this set would make it; nothing is changed")
    elif body:
        answer = yield from one(patch(stored, body))
        if answer.refusal is not None:
            gangs.fail(INVALID, f"{what} could not be changed: {answer.refusal.message}")


def _with_minimums(stored: Any, wanted: Any) -> Any:
    """What is stored, with the minimums that are wanted."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        return {
            name: wanted[name] if name == "minCount" and name in wanted else _with_minimums(value, wanted.get(name))
            for name, value in stored.items()
        }
    if isinstance(stored, list) and isinstance(wanted, list):
        named = {one.get("name"): one for one in wanted if isinstance(one, dict)}
        return [_with_minimums(one, named.get(one.get("name"))) if isinstance(one, dict) else one for one in stored]
    return stored


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
    left = [obj for obj in known if controller_uid(obj) == uid_of(lws)]
    for kind in ("PodGroup", "CompositePodGroup", "Workload"):
        used = named | {name for obj in left if obj["kind"] != kind for name in _names(obj)}
        used |= {_parent(obj) for obj in left if obj["kind"] == kind == "CompositePodGroup"}
        gone = [
            obj
            for obj in left
            if obj["kind"] == kind
            and (kind, name_of(obj)) not in gangs.wanted
            and name_of(obj) not in used
            and not is_deleting(obj)
        ]
        yield from remove_all(gone)


def _names(group: Object) -> set[str]:
    """The objects above that a group names."""
    spec = group.get("spec") or {}
    workload = (spec.get("workloadRef") or {}).get("workloadName")
    old = ((spec.get("podGroupTemplateRef") or {}).get("workload") or {}).get("workloadName")
    return {name for name in (_parent(group), workload, old) if name}
