"""One reconcile of a PodClique: pods, their gates, their replacement, the status (spec grove 2.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, meta_of, name_of, status_of
from kohort.apimachinery import times
from kohort.controllers.conditions import holds, set_condition
from kohort.controllers.reconcile import CREATES_AT_MOST, Event, Part, Reconcile, ReconcileError, Result, Step, emit
from kohort.controllers.writes import create, delete, patch
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.compile.membership import MissingLabelError
from kohort.kinds.grove.control import backend, children, claims, clique_update, podstate
from kohort.kinds.grove.control.sets import CliqueSet, selector
from kohort.kinds.grove.control.workload import TERMINATING as GROUP_TERMINATING
from kohort.kinds.grove.control.workload import Groups, is_leftover
from kohort.kinds.grove.control.writing import AGAIN, all_done, copy_status, without_finalizer, write_status

DROPPED: Final = "MembershipDropped"


@dataclass(frozen=True, slots=True)
class PodCliqueView:
    """A PodClique, its set with the scaling groups, its pods, its gang, the gang that comes first, its group object.

    `first`: the PodCliques of the gang that comes first, by name; empty for pods of a base gang.
    """

    pclq: Object | None
    pcs: CliqueSet | None
    pods: Sequence[Object]
    podgang: Object | None
    base: Object | None
    first: dict[str, Object]
    group: Object | None
    own_claims: Sequence[Object]
    find: claims.Finder
    now: datetime


@dataclass(slots=True)
class _CliquePass:
    """What a reconcile has come to. `problems`: (code, text) of what did not work; `again`: it is not complete yet."""

    pclq: Object
    pcs: CliqueSet
    backend: backend.Backend
    view: PodCliqueView
    waiter: str
    expected: str
    status: dict[str, Any]
    pods: list[Object]
    problems: list[tuple[str, str]] = field(default_factory=list)
    again: bool = False
    more: bool = False  # there are more pods to make than one reconcile makes

    @property
    def replicas(self) -> int:
        return int(self.pclq["spec"].get("replicas") or 0)


def reconcile(view: PodCliqueView, side: backend.Backend | None, waiter: str) -> Reconcile:
    pclq, pcs = view.pclq, view.pcs
    if pclq is None:
        return Result()
    if is_deleting(pclq):
        yield from without_finalizer(pclq, constants.CLIQUE_FINALIZER)
        return Result()
    clique = pcs.clique_of(pclq) if pcs is not None else ""
    if pcs is None or side is None or not clique:
        return Result()
    run = _CliquePass(pclq, pcs, side, view, waiter, pcs.template_hash(clique), copy_status(pclq), list(view.pods))
    yield from _finalizer(run)
    clique_update.begin(pcs, pclq, run.expected, run.status, view.now)
    yield from _claims(run)
    yield from _size(run)
    yield from _update(run)
    yield from _ungate(run)
    yield from _report(run)
    if run.problems:
        raise ReconcileError("; ".join(text for _, text in run.problems))
    if run.more and not run.again:
        return Result(requeue_after=0.0)
    return Result(requeue_after=AGAIN if run.again else None)


def _finalizer(run: _CliquePass) -> Part:
    held = list(meta_of(run.pclq).get("finalizers") or ())
    if constants.CLIQUE_FINALIZER not in held:
        yield from all_done([patch(run.pclq, {"metadata": {"finalizers": [*held, constants.CLIQUE_FINALIZER]}})])


def _claims(run: _CliquePass) -> Part:
    level = claims.of_clique(run.pcs, run.pclq, podstate.reach(run.pods, run.replicas, CREATES_AT_MOST))
    wanted = {name_of(one): one for one in claims.wanted(run.pcs, level, run.view.find)}
    known = {name_of(one) for one in run.view.own_claims}
    yield from all_done([create(one) for name, one in wanted.items() if name not in known])
    yield from all_done(
        [delete(one) for one in run.view.own_claims if name_of(one) not in wanted and not is_deleting(one)]
    )


# ---- how many


def _size(run: _CliquePass) -> Part:
    gone = podstate.surplus(run.pods, run.replicas, run.expected)
    if gone:
        yield from _remove(run, gone)
        return
    indices = podstate.missing(run.pods, run.replicas, CREATES_AT_MOST)
    run.more = len(indices) >= CREATES_AT_MOST
    if not indices or (yield from _must_wait(run)):
        return
    batch = 1
    while indices and not run.problems:
        now, indices = indices[:batch], indices[batch:]
        yield from _make(run, now)
        batch *= 2


def _must_wait(run: _CliquePass) -> Part:
    """Whether the group that the pods would name is still that of an earlier gang: they would keep it alive (3.9)."""
    group = run.view.group
    if run.backend.groups is None or group is None or not is_leftover(group, run.view.podgang):
        return False
    run.again = True
    text = f"{group['kind']} {name_of(group)} is of an earlier gang and is being deleted; pods are made when it is gone"
    yield from _warn(run, GROUP_TERMINATING, text)
    return True


def _warn(run: _CliquePass, reason: str, text: str) -> Part:
    """Event once, and kept in the status as long as it holds."""
    known = {(one.get("code"), one.get("description")) for one in status_of(run.pclq).get("lastErrors") or ()}
    run.status["lastErrors"] = [
        {"code": reason, "description": text, "observedAt": times.seconds(run.view.now)},
    ]
    if (reason, text) not in known:
        yield from emit(Event(run.pclq, "Warning", reason, text))
    else:
        run.status["lastErrors"] = status_of(run.pclq)["lastErrors"]


def _make(run: _CliquePass, indices: Sequence[int]) -> Part:
    pods = []
    for index in indices:
        pod = children.pod(run.pcs, run.pclq, index, run.waiter)
        try:
            run.backend.prepare(pod, run.pcs)
        except MissingLabelError as error:
            run.problems.append(("ERR_BUILD_POD_RESOURCE", str(error)))
            yield from emit(Event(run.pclq, "Warning", "PodCreateFailed", str(error)))
            return
        pods.append(pod)
    answers = yield Step([create(pod) for pod in pods])
    events = []
    for pod, answer in zip(pods, answers, strict=True):
        if answer.refusal is not None:
            text = _nameless(answer.refusal.message, pod)
            run.problems.append(("ERR_CREATE_POD", text))
            events.append(Event(run.pclq, "Warning", "PodCreateFailed", f"Error creating pod: {text}"))
        elif answer.object is not None:
            run.pods.append(answer.object)
            events.append(Event(run.pclq, "Normal", "PodCreateSuccessful", f"Created Pod: {name_of(answer.object)}"))
            events += _dropped(run, answer.object)
    yield from emit(*events)


def _nameless(text: str, pod: Object) -> str:
    """Without the name that the server drew: what is wrong again is the same, and no change of the status."""
    prefix = str(meta_of(pod)["generateName"])
    return re.sub(re.escape(prefix) + r"[a-z0-9]{5}\b", prefix, text)


def _dropped(run: _CliquePass, pod: Object) -> list[Event]:
    groups = run.backend.groups
    if groups is None or groups.is_member(pod):
        return []
    text = (
        f"Pod {name_of(pod)} was stored without its group: feature gate GenericWorkload of the API server is off; "
        "the pod stays gated"
    )
    return [Event(run.pclq, "Warning", DROPPED, text)]


def _remove(run: _CliquePass, pods: Sequence[Object]) -> Part:
    answers = yield Step([delete(pod) for pod in pods])
    events, gone = [], set()
    for pod, answer in zip(pods, answers, strict=True):
        if answer.refusal is None or answer.refusal.not_found:
            gone.add(name_of(pod))
            events.append(Event(run.pclq, "Normal", "PodDeleteSuccessful", f"Deleted Pod: {name_of(pod)}"))
        else:
            run.problems.append(("ERR_DELETE_POD", answer.refusal.message))
            note = f"Error deleting pod {name_of(pod)}: {answer.refusal.message}"
            events.append(Event(run.pclq, "Warning", "PodDeleteFailed", note))
    run.pods = [pod for pod in run.pods if name_of(pod) not in gone]
    yield from emit(*events)


# ---- updates


def _update(run: _CliquePass) -> Part:
    """Which pod is replaced is written before it is deleted."""
    gone = clique_update.step(run.pclq, run.pods, run.status, run.view.now)
    if gone:
        before = {**status_of(run.pclq), "updateProgress": run.status["updateProgress"]}
        run.pclq = yield from write_status(run.pclq, before)
        yield from _remove(run, gone)


# ---- gates


def _ungate(run: _CliquePass) -> Part:
    """Only pods that their gang lists, when all its pods and groups are there, and after the gang that comes first."""
    gated = [pod for pod in run.pods if podstate.is_gated(pod) and not is_deleting(pod)]
    if not gated:
        return
    open_now = [pod for pod in gated if _may_go(run, pod)] if _is_open(run) else []
    run.again = run.again or len(open_now) < len(gated)
    yield from all_done([patch(pod, {"spec": {"schedulingGates": _other_gates(pod)}}) for pod in open_now])


def _is_open(run: _CliquePass) -> bool:
    gang = run.view.podgang
    if gang is None or is_deleting(gang) or not holds(status_of(gang), constants.INITIALIZED):
        return False
    if run.backend.groups is not None and not holds(status_of(gang), constants.BACKEND_READY):
        return False
    if not label(run.pclq, constants.BASE_PODGANG):
        return True
    return run.view.base is not None and all(
        _scheduled(run.view.first.get(str(group["name"]))) >= int(group.get("minReplicas") or 0)
        for group in run.view.base["spec"]["podgroups"]
    )


def _scheduled(pclq: Object | None) -> int:
    return int(status_of(pclq or {}).get("scheduledReplicas") or 0)


def _may_go(run: _CliquePass, pod: Object) -> bool:
    groups: Groups | None = run.backend.groups
    listed = (run.view.podgang or {})["spec"]["podgroups"]
    mine = next((group for group in listed if group["name"] == name_of(run.pclq)), None)
    if mine is None or all(one.get("name") != name_of(pod) for one in mine.get("podReferences") or ()):
        return False
    return groups is None or groups.is_member(pod)


def _other_gates(pod: Object) -> list[dict[str, Any]] | None:
    kept = [gate for gate in pod["spec"].get("schedulingGates") or () if gate.get("name") != constants.GATE]
    return kept or None


# ---- status


def _report(run: _CliquePass) -> Part:
    status, pclq, now = run.status, run.pclq, run.view.now
    found = podstate.counts(run.pods)
    had = int(status_of(pclq).get("scheduledReplicas") or 0)
    progress = status.get("updateProgress")
    target = progress["podTemplateHash"] if progress else label(pclq, constants.TEMPLATE_HASH)
    status |= {
        "replicas": found.total,
        "readyReplicas": found.ready,
        "scheduledReplicas": found.scheduled,
        "scheduleGatedReplicas": found.gated,
        "updatedReplicas": sum(
            1 for pod in run.pods if not is_deleting(pod) and label(pod, constants.TEMPLATE_HASH) == target
        ),
    }
    clique_update.settle(run.pcs, pclq, run.expected, status)
    if not label(pclq, constants.SCALING_GROUP):
        status["hpaPodSelector"] = selector(run.pcs.name, (constants.PODCLIQUE, name_of(pclq)))
    if run.problems:
        _errors(run)
    else:
        if not clique_update.is_updating(status):
            status["observedGeneration"] = meta_of(pclq).get("generation")
        if not run.again:
            status.pop("lastErrors", None)
    if status.get("observedGeneration") is not None:
        _conditions(status, found, int(pclq["spec"].get("minAvailable") or 0), now)
        if had > 0 and found.scheduled == 0:
            yield from emit(_lost(pclq, had))
    yield from write_status(pclq, status)


def _errors(run: _CliquePass) -> None:
    known = {(one["code"], one["description"]): one for one in status_of(run.pclq).get("lastErrors") or ()}
    fresh = {"observedAt": times.seconds(run.view.now)}
    run.status["lastErrors"] = [
        known.get(problem) or {"code": problem[0], "description": problem[1], **fresh}
        for problem in dict.fromkeys(run.problems)
    ]


def _conditions(status: dict[str, Any], found: podstate.Counts, least: int, now: datetime) -> None:
    enough = found.scheduled >= least
    text = f"expected at least: {least}, found: {found.scheduled}"
    if enough:
        set_condition(
            status,
            now,
            constants.SCHEDULED,
            True,
            "SufficientScheduledPods",
            f"Sufficient scheduled pods found. {text}",
        )
    else:
        set_condition(
            status, now, constants.SCHEDULED, False, "InsufficientScheduledPods", f"Insufficient scheduled pods. {text}"
        )
    value, reason, message = _breach(status, found, least)
    set_condition(status, now, constants.BREACHED, value, reason, message)


def _breach(status: dict[str, Any], found: podstate.Counts, least: int) -> tuple[bool | None, str, str]:
    """Pods that are still starting count as available."""
    if clique_update.is_updating(status):
        return None, "UpdateInProgress", "Update is in progress"
    if found.scheduled < least:
        text = f"Scheduled replicas ({found.scheduled}) below MinAvailable ({least})"
        return True, "ScheduledReplicasBelowMinAvailable", text
    healthy = found.scheduled - found.failing - found.waiting
    text = f"expected at least: {least}, found: {healthy}"
    if healthy < least:
        return True, "InsufficientReadyPods", f"Insufficient ready or starting pods. {text}"
    return False, "SufficientReadyPods", f"Either sufficient ready or starting pods found. {text}"


def _lost(pclq: Object, had: int) -> Event:
    note = (
        f"All scheduled pods lost (was {had}). Gang termination will fire after TerminationDelay if the PodClique "
        "stays below MinAvailable; investigate node availability or capacity."
    )
    return Event(pclq, "Warning", "AllScheduledReplicasLost", note)
