"""One reconcile of a PodGang: its pods, what its scheduler reads, its conditions (spec grove 2.3, 3.6).

The set makes PodGangs and removes them; here each is kept as it should be. Its conditions are what the gates of its
pods wait for: `Initialized` (all pods exist, never taken back) and `BackendReady` (all groups exist and match).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, meta_of, name_of, status_of
from kohort.api.scheduling.constants import COMPOSITE_INITIALLY_SCHEDULED, SCHEDULED_CONDITIONS
from kohort.controllers.conditions import condition, drop_condition, holds, set_condition
from kohort.controllers.reconcile import Event, Part, Reconcile, ReconcileError, Result, emit, one
from kohort.controllers.writes import patch
from kohort.gang.compile import CompileContext
from kohort.kinds.grove.api import backend as validation
from kohort.kinds.grove.api import constants, options
from kohort.kinds.grove.compile.expand import Gang
from kohort.kinds.grove.compile.podgang import podgang as wanted_podgang
from kohort.kinds.grove.compile.topology import Topology
from kohort.kinds.grove.control.backend import Backend
from kohort.kinds.grove.control.sets import CliqueSet
from kohort.kinds.grove.control.workload import Readiness
from kohort.kinds.grove.control.writing import AGAIN, copy_status, difference, done, write_status

_SAYS: Final = "the scheduler says:"
_PLACED: Final = "the scheduler has found nodes"  # and the pods do not show it yet
_VERDICTS: Final = (*SCHEDULED_CONDITIONS, COMPOSITE_INITIALLY_SCHEDULED)


@dataclass(frozen=True, slots=True)
class PodGangView:
    """A PodGang, its set, the PodCliques and pods that carry its label, the group objects of its name."""

    podgang: Object | None
    pcs: CliqueSet | None
    cliques: dict[str, Object]
    pods: Sequence[Object]
    groups: Sequence[Object]
    topology: Topology
    now: datetime


def reconcile(view: PodGangView, side: Backend | None, ctx: CompileContext) -> Reconcile:
    podgang, pcs = view.podgang, view.pcs
    if podgang is None or is_deleting(podgang) or pcs is None or side is None or is_deleting(pcs.obj):
        return Result()
    if pcs.expansion.is_too_large:
        return Result()  # the set says so
    gang = pcs.gang(name_of(podgang))
    if gang is None:
        return Result()
    podgang = yield from _shape(view, pcs, gang, podgang, ctx)
    ready: Readiness | None = yield from side.reconcile(pcs, gang, view.topology, podgang, view.groups)
    status = copy_status(podgang)
    yield from _conditions(view, pcs, gang, podgang, status, ready)
    yield from write_status(podgang, status)
    if ready is not None and not ready.ok and ready.again:
        if ready.reason == "PodGroupTerminating":
            return Result(requeue_after=AGAIN)
        raise ReconcileError(f"{ready.reason}: {ready.message}")
    return Result(requeue_after=None if holds(status, constants.INITIALIZED) else AGAIN)


def _shape(view: PodGangView, pcs: CliqueSet, gang: Gang, podgang: Object, ctx: CompileContext) -> Part:
    """Metadata and groups as the set says, with the pods that there are. -> the PodGang"""
    external = ctx.on(options.GANG) and validation.concerned(pcs.obj) and validation.external(pcs.obj)
    wanted = wanted_podgang(pcs.obj, gang, view.topology, external)
    pods: dict[str, list[str]] = {}
    for pod in view.pods:
        if not is_deleting(pod):
            pods.setdefault(label(pod, constants.PODCLIQUE), []).append(name_of(pod))
    for group in wanted["spec"]["podgroups"]:
        group["podReferences"] = [
            {"namespace": pcs.namespace, "name": name} for name in sorted(pods.get(group["name"], ()))
        ]
    body: dict[str, Any] = {}
    meta = {
        kind: difference(meta_of(podgang).get(kind) or {}, wanted["metadata"].get(kind) or {})
        for kind in ("labels", "annotations")
    }
    if any(meta.values()):
        body["metadata"] = {kind: change for kind, change in meta.items() if change}
    spec = difference(podgang["spec"], wanted["spec"])
    if spec:
        body["spec"] = spec
    if not body:
        return podgang
    write = patch(podgang, body)
    return done(write, (yield from one(write))) or podgang


def _conditions(
    view: PodGangView, pcs: CliqueSet, gang: Gang, podgang: Object, status: dict[str, Any], ready: Readiness | None
) -> Part:
    now = view.now
    status.setdefault("phase", "Pending")
    if not holds(status, constants.INITIALIZED):
        if _is_whole(view, gang):
            text = "PodGang is fully initialized"
            set_condition(status, now, constants.INITIALIZED, True, "PodGangPodsCreated", text)
        else:
            text = "Not all constituent pods have been created yet"
            set_condition(status, now, constants.INITIALIZED, False, "PodGangPodsCreationPending", text)
    if ready is None:
        drop_condition(status, constants.BACKEND_READY)
        return
    before = condition(status_of(podgang), constants.BACKEND_READY) or {}
    changed = set_condition(status, now, constants.BACKEND_READY, ready.ok, ready.reason, ready.message)
    if changed and not ready.ok and (before.get("reason"), before.get("message")) != (ready.reason, ready.message):
        yield from emit(
            Event(podgang, "Warning", ready.reason, ready.message),
            Event(pcs.obj, "Warning", ready.reason, f"PodGang {gang.name}: {ready.message}"),
        )
    _scheduled(view, gang, status)
    yield from _tell_set(pcs, gang, podgang, status)


def _tell_set(pcs: CliqueSet, gang: Gang, podgang: Object, status: dict[str, Any]) -> Part:
    """Whoever looks at the PodCliqueSet sees why one of its gangs waits, and that it no longer does."""
    before = condition(status_of(podgang), constants.GANG_SCHEDULED) or {}
    now = condition(status, constants.GANG_SCHEDULED) or {}
    if _SAYS in now.get("message", "") and before.get("message") != now["message"]:
        yield from emit(Event(pcs.obj, "Warning", "FailedScheduling", f"PodGang {gang.name}: {now['message']}"))
    elif _was_told(before) and now.get("status") == "True":
        yield from emit(Event(pcs.obj, "Normal", "Scheduled", f"PodGang {gang.name}: {now['message']}"))


def _was_told(before: Mapping[str, Any]) -> bool:
    return any(one in before.get("message", "") for one in (_SAYS, _PLACED))


def _verdict(groups: Sequence[Object]) -> str:
    """What the scheduler says of the group at the top, while it waits."""
    for group in groups:
        if not (group.get("spec") or {}).get("parentCompositePodGroupName"):
            for one in status_of(group).get("conditions") or ():
                if one.get("type") in _VERDICTS and one.get("status") == "False" and one.get("message"):
                    return f"; {_SAYS} {one['message']}"
    return ""


def _scheduled(view: PodGangView, gang: Gang, status: dict[str, Any]) -> None:
    """D25: nobody else says it for kube-scheduler."""
    short = [
        f"{clique.name} {found} of {clique.minimum}"
        for clique in gang.cliques
        if (found := _count(view.cliques.get(clique.name), "scheduledReplicas")) < clique.minimum
    ]
    if short:
        text = f"groups below their minimum: {', '.join(short)}{_verdict(view.groups)}"
        if _SAYS not in text and _was_told(condition(status, constants.GANG_SCHEDULED) or {}):
            text += f"; {_PLACED}"
        set_condition(status, view.now, constants.GANG_SCHEDULED, False, "GroupsNotScheduled", text)
    else:
        text = "every group has its minimum of scheduled pods"
        set_condition(status, view.now, constants.GANG_SCHEDULED, True, "GroupsScheduled", text)


def _count(pclq: Object | None, member: str) -> int:
    return int(status_of(pclq or {}).get(member) or 0)


def _is_whole(view: PodGangView, gang: Gang) -> bool:
    """Every member exists and has its pods, each with the label of this gang."""
    pods: dict[str, int] = {}
    for pod in view.pods:
        if not is_deleting(pod):
            owner = label(pod, constants.PODCLIQUE)
            pods[owner] = pods.get(owner, 0) + 1
    for clique in gang.cliques:
        pclq = view.cliques.get(clique.name)
        if pclq is None or is_deleting(pclq) or pods.get(clique.name, 0) < int(pclq["spec"].get("replicas") or 0):
            return False
    return True
