"""One reconcile of a PodCliqueSet, in the order of spec grove 2.2. Only this module says what is done when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, meta_of, name_of, status_of
from kohort.apimachinery import times
from kohort.controllers.conditions import condition, drop_condition, holds, set_condition
from kohort.controllers.reconcile import (
    CREATES_AT_MOST,
    Event,
    Part,
    Reconcile,
    ReconcileError,
    Result,
    Step,
    Write,
    emit,
    one,
)
from kohort.controllers.writes import create, delete, patch
from kohort.gang.compile import CompileContext
from kohort.kinds.grove.api import backend as backend_rules
from kohort.kinds.grove.api import constants, options, parts
from kohort.kinds.grove.api import topology as topology_rules
from kohort.kinds.grove.compile.podcliqueset import too_large
from kohort.kinds.grove.compile.podgang import podgang
from kohort.kinds.grove.compile.topology import Topology
from kohort.kinds.grove.control import breach, children, claims, faults, rollout
from kohort.kinds.grove.control.group import rewriting
from kohort.kinds.grove.control.rollout import Children, by_name, replica_of
from kohort.kinds.grove.control.sets import CliqueSet, selector
from kohort.kinds.grove.control.writing import (
    AGAIN,
    all_done,
    copy_status,
    done,
    lacking,
    without_finalizer,
    write_status,
)

_REPLACED: Final = ("Service", "HorizontalPodAutoscaler")  # follow the set; the others stay as they were made
_Any = TypeVar("_Any")
_Change = Callable[[Object, Object], Object | None]


@dataclass(frozen=True, slots=True)
class PodCliqueSetView:
    """A set, all PodCliques of it, what it owns, and the topology binding that it speaks of."""

    pcs: CliqueSet | None
    cliques: Sequence[Object]
    groups: Sequence[Object]
    gangs: Sequence[Object]
    owned: Sequence[Object]  # Services, autoscalers, claims and what init containers need
    binding: Object | None
    topology: Topology
    find: claims.Finder
    now: datetime


@dataclass(slots=True)
class _SetPass:
    pcs: CliqueSet
    view: PodCliqueSetView
    ctx: CompileContext
    status: dict[str, Any]
    problems: list[tuple[str, str]] = field(default_factory=list)
    more: bool = False  # there is more to write than one reconcile writes

    def some(self, writes: Sequence[_Any]) -> Sequence[_Any]:
        self.more = self.more or len(writes) > CREATES_AT_MOST
        return writes[:CREATES_AT_MOST]

    @property
    def children(self) -> Children:
        return Children(self.pcs, by_name(self.view.cliques), by_name(self.view.groups))


def reconcile(view: PodCliqueSetView, ctx: CompileContext) -> Reconcile:
    pcs = view.pcs
    if pcs is None:
        return Result()
    if is_deleting(pcs.obj):
        yield from without_finalizer(pcs.obj, constants.SET_FINALIZER)
        return Result()
    expansion = CliqueSet(pcs.obj, list(view.groups)).expansion
    wrong = [too_large(expansion)] if expansion.is_too_large else faults.of(pcs, view.binding, ctx)
    if wrong:
        yield from faults.report(pcs, wrong, view.now)
        return Result()
    obj = yield from _finalizer(pcs.obj)
    obj = yield from _generation(CliqueSet(obj), view.now)
    run = _SetPass(CliqueSet(obj, list(view.groups)), view, ctx, copy_status(obj))
    try:
        yield from _shared_objects(run)
    except ReconcileError as error:
        run.problems.append(("ERR_SYNC_RESOURCES", str(error)))
    after, breached, ended = yield from _terminate(run)
    rollout.advance(run.children, run.status, breached, ended, view.now)
    yield from _gangs(run)
    if not run.problems:
        yield from _cliques(run)
        yield from _groups(run)
    yield from _report(run)
    if run.problems:
        raise ReconcileError("; ".join(text for _, text in run.problems))
    if run.more:
        return Result(requeue_after=0.0)
    waits = [] if after is None else [max(after.total_seconds(), 0.1)]
    return Result(requeue_after=min([*waits, *([] if _is_complete(run) else [AGAIN])], default=None))


def _finalizer(obj: Object) -> Part:
    held = list(meta_of(obj).get("finalizers") or ())
    if constants.SET_FINALIZER in held:
        return obj
    version = meta_of(obj).get("resourceVersion")
    write = patch(obj, {"metadata": {"finalizers": [*held, constants.SET_FINALIZER], "resourceVersion": version}})
    return done(write, (yield from one(write))) or obj


def _generation(pcs: CliqueSet, now: datetime) -> Part:
    """The hash that the children follow; written before any of them is touched. -> the set"""
    if pcs.stored_hash == pcs.generation_hash:
        return pcs.obj
    status = copy_status(pcs.obj)
    if pcs.stored_hash:
        rollout.begin(pcs, status, now)
    status |= {"currentGenerationHash": pcs.generation_hash}
    return (yield from write_status(pcs.obj, status))


# ---- what stands around the pods


def _shared_objects(run: _SetPass) -> Part:
    pcs = run.pcs
    wanted = [*children.access(pcs)]
    for index in range(pcs.replicas):
        wanted += [children.service(pcs, index), *children.autoscalers(pcs, index)]
    wanted += claims.wanted(pcs, claims.of_set(pcs), run.view.find)
    known = {(obj["kind"], name_of(obj)): obj for obj in run.view.owned}
    writes: list[Write] = []
    for obj in wanted:
        stored = known.get((obj["kind"], name_of(obj)))
        change = _lacking(obj, stored) if stored is not None and obj["kind"] in _REPLACED else None
        if stored is None:
            writes.append(create(obj))
        elif change is not None:
            writes.append(patch(stored, change))
    names = {(obj["kind"], name_of(obj)) for obj in wanted}
    writes += [delete(obj) for key, obj in known.items() if key not in names and not is_deleting(obj)]
    yield from all_done(run.some(writes))


def _lacking(wanted: Object, stored: Object) -> Object | None:
    found: Object | None = lacking({"spec": wanted["spec"]}, stored)
    return found


# ---- gang termination


def _terminate(run: _SetPass) -> Part:
    """All PodCliques of a replica go when one of its parts has been below its minimum for too long.

    -> (how long until the next is due, replicas that are breached, replicas that were ended)"""
    pcs, now, below = run.pcs, run.view.now, run.children
    waiting: dict[int, timedelta] = {}
    ended: list[int] = []
    for index in range(pcs.replicas):
        cliques = below.standalone(index)
        if len(cliques) < len(pcs.standalone):
            continue
        left = [
            breach.left_of_cliques(cliques, pcs.delay, now),
            breach.left_of_groups(below.scaling(index), pcs.delay, now),
        ]
        found = [one for one in left if one is not None]
        if found and min(found) <= timedelta():
            yield from _end(run, index)
            ended.append(index)
        elif found:
            waiting[index] = min(found)
    return min(waiting.values(), default=None), set(waiting), set(ended)


def _end(run: _SetPass, index: int) -> Part:
    gone = [one for one in run.view.cliques if replica_of(one) == index and not is_deleting(one)]
    yield from all_done([delete(one) for one in gone])
    yield from emit(
        Event(run.pcs.obj, "Normal", "PodCliqueSetReplicaDeleteSuccessful", f"PodCliqueSet replica {index} deleted")
    )
    writes = []
    for group in run.children.scaling(index):
        status = copy_status(group)
        text = f"PodCliques of this scaling group were deleted with replica {index} of the PodCliqueSet"
        if set_condition(status, run.view.now, constants.TERMINATING, True, "GangTerminationActive", text):
            body = {"conditions": status["conditions"]}
            version = {"resourceVersion": meta_of(group).get("resourceVersion")}
            writes.append(patch(group, {"metadata": version, "status": body}, "status"))
    if writes:
        yield Step(writes)  # a conflict means that somebody has looked already: then it is not needed


# ---- children


def _put(
    run: _SetPass, wanted: Iterable[Object], known: Sequence[Object], change: _Change, kind: str, done: str
) -> Part:
    """Makes what is missing, changes what differs, removes what is not wanted (any more)."""
    stored = by_name(known)
    objects = by_name(wanted)
    writes: list[tuple[Object, Write]] = []
    for name, obj in objects.items():
        if name not in stored:
            writes.append((obj, create(obj)))
            continue
        body = change(obj, stored[name]) if not is_deleting(stored[name]) else None
        if body is not None:
            writes.append((obj, patch(stored[name], body)))
    if writes:
        writes = list(run.some(writes))
        answers = yield Step([write for _, write in writes])
        events = []
        for (obj, write), answer in zip(writes, answers, strict=True):
            what = f"{kind} {run.pcs.namespace}/{name_of(obj)}"
            if answer.refusal is None:
                events.append(Event(run.pcs.obj, "Normal", f"{kind}{done}Successful", _words(what, kind)))
            elif not (write.verb == "patch" and answer.refusal.not_found):
                text = f"{what}: {answer.refusal.message}"
                run.problems.append((f"ERR_CREATE_OR_UPDATE_{kind.upper()}", text))
                events.append(Event(run.pcs.obj, "Warning", f"{kind}{done}Failed", text))
        yield from emit(*events)
    yield from all_done([delete(obj) for name, obj in stored.items() if name not in objects and not is_deleting(obj)])


def _words(what: str, kind: str) -> str:
    if kind == "PodClique":
        return f"{what} created or updated successfully"
    return f"Created/Updated {what}" if kind == "PodGang" else f"Created {what}"


def _gangs(run: _SetPass) -> Part:
    """Made here, kept right by their own controller."""
    pcs = run.pcs
    external = run.ctx.on(options.GANG) and backend_rules.concerned(pcs.obj) and backend_rules.external(pcs.obj)
    wanted = {gang.name: gang for gang in pcs.expansion.gangs}
    known = by_name(run.view.gangs)
    made = [known.get(name) or podgang(pcs.obj, gang, run.view.topology, external) for name, gang in wanted.items()]
    yield from _put(run, made, run.view.gangs, lambda _, __: None, "PodGang", "CreateOrUpdate")
    if not run.ctx.on(options.GANG) or options.is_tree(run.ctx) or external or not backend_rules.concerned(pcs.obj):
        return
    loose = [name for name, gang in wanted.items() if name not in known and len(gang.cliques) > 1]
    if loose and not run.problems:
        text = (
            f"without CompositePodGroups the groups of a gang are placed one by one, maybe not all: {', '.join(loose)}"
        )
        yield from emit(Event(pcs.obj, "Warning", "GangNotAtomic", text))


def _cliques(run: _SetPass) -> Part:
    pcs = run.pcs
    wanted = []
    for index in range(pcs.replicas):
        by_clique = pcs.gangs_of(index)
        wanted += [children.standalone(pcs, *by_clique[name]) for name in pcs.standalone_names(index)]
    known = [obj for obj in run.view.cliques if not label(obj, constants.SCALING_GROUP)]
    yield from _put(run, wanted, known, rewriting, "PodClique", "CreateOrUpdate")


def _groups(run: _SetPass) -> Part:
    pcs = run.pcs
    wanted = [children.scaling_group(pcs, index, group) for index in range(pcs.replicas) for group in pcs.groups]
    yield from _put(run, wanted, run.view.groups, _annotations, "PodCliqueScalingGroup", "Create")


def _annotations(wanted: Object, stored: Object) -> Object | None:
    """The size is the user's; annotations are the template's."""
    new, old = (meta_of(obj).get("annotations") or {} for obj in (wanted, stored))
    if new == old:
        return None
    return {"metadata": {"annotations": {**dict.fromkeys(old), **new}}}


# ---- status


def _is_complete(run: _SetPass) -> bool:
    """All gangs have had all their pods, all PodCliques have them now, and nothing is being rolled."""
    gangs = by_name(run.view.gangs)
    if any(not holds(status_of(gangs.get(gang.name) or {}), constants.INITIALIZED) for gang in run.pcs.expansion.gangs):
        return False
    short = [
        one
        for one in run.view.cliques
        if int(status_of(one).get("replicas") or 0) < int(one["spec"].get("replicas") or 0)
    ]
    return not short and not CliqueSet({**run.pcs.obj, "status": run.status}).is_rolling


def _report(run: _SetPass) -> Part:
    pcs, status = run.pcs, run.status
    rollout.count(run.children, status)
    status["hpaPodSelector"] = selector(pcs.name)
    _topology(run)
    _errors(run)
    if not run.problems and _is_complete(run):
        status["observedGeneration"] = meta_of(pcs.obj).get("generation")
    yield from write_status(pcs.obj, status)


def _errors(run: _SetPass) -> None:
    """What did not work here, and what the gangs' controllers could not do."""
    found = list(run.problems)
    for gang in run.view.gangs:
        ready = condition(status_of(gang), constants.BACKEND_READY)
        if ready is not None and ready["status"] == "False":
            found.append((str(ready["reason"]), f"PodGang {name_of(gang)}: {ready['message']}"))
    known = {(one["code"], one["description"]): one for one in status_of(run.pcs.obj).get("lastErrors") or ()}
    fresh = {"observedAt": times.seconds(run.view.now)}
    errors = [known.get(one) or {"code": one[0], "description": one[1], **fresh} for one in dict.fromkeys(found)]
    if errors:
        run.status["lastErrors"] = errors
    else:
        run.status.pop("lastErrors", None)


def _topology(run: _SetPass) -> None:
    obj, now, status = run.pcs.obj, run.view.now, run.status
    domains = [
        domain
        for _, found, _ in parts.constraints(obj)
        for domain in (parts.required_domain(found), parts.preferred_domain(found))
        if domain
    ]
    kind = constants.LEVELS_UNAVAILABLE
    name = topology_rules.topology_name(obj)
    if not domains and run.ctx.on(options.TOPOLOGY):
        text = "No topology constraints defined"
        set_condition(status, now, kind, False, "AllClusterTopologyLevelsAvailable", text)
    elif not domains:
        drop_condition(status, kind)
    elif not run.ctx.on(options.TOPOLOGY):
        text = "Topology constraints are defined but Topology Aware Scheduling is disabled"
        set_condition(status, now, kind, None, "TopologyAwareSchedulingDisabled", text)
    elif not name:
        set_condition(status, now, kind, None, "TopologyNameMissing", "no topologyName is set or inherited")
    elif run.view.binding is None:
        text = "ClusterTopologyBinding resource not found"
        set_condition(status, now, kind, None, "ClusterTopologyNotFound", text)
    else:
        known = topology_rules.levels(run.view.binding)
        lost = [domain for domain in dict.fromkeys(domains) if domain not in known]
        if lost:
            text = f"Unavailable topology domains: [{' '.join(lost)}]"
            set_condition(status, now, kind, True, "ClusterTopologyLevelsUnavailable", text)
        else:
            text = "All topology levels are available"
            set_condition(status, now, kind, False, "AllClusterTopologyLevelsAvailable", text)
