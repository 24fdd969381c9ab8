"""One reconcile of a PodCliqueScalingGroup: its member PodCliques, replica by replica (spec grove 1.3, 1.9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, meta_of, name_of, status_of
from kohort.apimachinery import times
from kohort.controllers.conditions import drop_condition, holds, set_condition
from kohort.controllers.reconcile import CREATES_AT_MOST, Event, Part, Reconcile, ReconcileError, Result, Step, emit
from kohort.controllers.writes import create, delete, patch
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.compile import names
from kohort.kinds.grove.control import breach, children, claims
from kohort.kinds.grove.control.clique_update import is_current, is_updating
from kohort.kinds.grove.control.sets import CliqueSet, selector
from kohort.kinds.grove.control.writing import (
    all_done,
    copy_status,
    difference,
    number,
    without_finalizer,
    write_status,
)

Replicas = dict[int, list[Object]]


@dataclass(frozen=True, slots=True)
class ScalingGroupView:
    """A scaling group, its set, its member PodCliques, the claims that it owns."""

    group: Object | None
    pcs: CliqueSet | None
    members: Sequence[Object]
    own_claims: Sequence[Object]
    find: claims.Finder
    now: datetime


@dataclass(slots=True)
class _ScalingGroupPass:
    group: Object
    pcs: CliqueSet
    view: ScalingGroupView
    status: dict[str, Any]
    replicas: Replicas

    @property
    def size(self) -> int:
        return int(self.group["spec"].get("replicas") or 0)

    @property
    def least(self) -> int:
        return int(self.group["spec"].get("minAvailable") or 1)

    @property
    def cliques(self) -> list[str]:
        return list(self.group["spec"]["cliqueNames"])

    def is_complete(self, index: int) -> bool:
        """All its PodCliques are there to stay."""
        return len([one for one in self.replicas.get(index, ()) if not is_deleting(one)]) == len(self.cliques)


def reconcile(view: ScalingGroupView) -> Reconcile:
    group, pcs = view.group, view.pcs
    if group is None:
        return Result()
    if is_deleting(group):
        yield from without_finalizer(group, constants.SCALING_GROUP_FINALIZER)
        return Result()
    if pcs is None or not pcs.group_of(group) or not pcs.stored_hash or pcs.expansion.is_too_large:
        return Result()  # a set that is too large says so itself
    run = _ScalingGroupPass(group, pcs, view, copy_status(group), _by_replica(view.members))
    _begin(run)
    yield from _claims(run)
    yield from _shrink(run)
    more = yield from _grow(run)
    after: timedelta | None = None
    if is_updating(run.status):
        yield from _roll(run)
    else:
        after = yield from _heal(run)
    yield from _report(run)
    if more:
        return Result(requeue_after=0.0)
    return Result(requeue_after=None if after is None else max(after.total_seconds(), 0.1))


def _by_replica(members: Iterable[Object]) -> Replicas:
    found: Replicas = {}
    for one in members:
        found.setdefault(number(one, constants.SCALING_GROUP_INDEX), []).append(one)
    return found


def _begin(run: _ScalingGroupPass) -> None:
    """An update starts when it is the turn of this replica of the set; with OnDelete it has ended at once."""
    pcs, progress = run.pcs, run.status.get("updateProgress")
    mine = number(run.group, constants.SET_INDEX)
    if not pcs.on_delete and (not pcs.is_rolling or pcs.rolling_replica != mine):
        return
    known = progress["podCliqueSetGenerationHash"] if progress else run.status.get("currentPodCliqueSetGenerationHash")
    if known == pcs.stored_hash and (progress or not pcs.on_delete):
        return
    started = times.seconds(run.view.now)
    run.status["updateProgress"] = {
        "updateStartedAt": started,
        "podCliqueSetGenerationHash": pcs.stored_hash,
        **({"updateEndedAt": started} if pcs.on_delete else {}),
    }


def _claims(run: _ScalingGroupPass) -> Part:
    wanted = {name_of(one): one for one in claims.wanted(run.pcs, claims.of_group(run.pcs, run.group), run.view.find)}
    known = {name_of(one) for one in run.view.own_claims}
    yield from all_done([create(one) for name, one in wanted.items() if name not in known])
    gone = [one for one in run.view.own_claims if name_of(one) not in wanted and not is_deleting(one)]
    yield from all_done([delete(one) for one in gone])


# ---- members


def _shrink(run: _ScalingGroupPass) -> Part:
    """From the highest index down."""
    yield from _remove(run, sorted(index for index in run.replicas if index >= run.size))


def _remove(run: _ScalingGroupPass, indices: Iterable[int]) -> Part:
    for index in indices:
        gone = [one for one in run.replicas.get(index, ()) if not is_deleting(one)]
        if not gone:
            continue
        yield from all_done([delete(one) for one in gone])
        run.replicas[index] = []
        note = f"Deleted PodCliqueScalingGroup {name_of(run.group)} replicaIndex: {index}"
        yield from emit(Event(run.pcs.obj, "Normal", "PodCliqueScalingGroupReplicaDeleteSuccessful", note))


def _grow(run: _ScalingGroupPass) -> Part:
    """What is missing is made; a PodClique on its way out still has its name. -> whether some are left for later"""
    known = {name_of(one): one for one in run.view.members}
    wanted = _wanted(run, known)
    absent = [one for name, one in wanted.items() if name not in known]
    missing = absent[:CREATES_AT_MOST]
    if missing:
        answers = yield Step([create(one) for one in missing])
        events, problems = [], []
        for one, answer in zip(missing, answers, strict=True):
            what = f"PodClique {run.pcs.namespace}/{name_of(one)}"
            if answer.refusal is None:
                run.replicas.setdefault(number(one, constants.SCALING_GROUP_INDEX), []).append(answer.object or one)
                events.append(_made(run, what))
            elif not answer.refusal.already_exists:
                problems.append(f"{what}: {answer.refusal.message}")
                events.append(Event(run.group, "Warning", "PodCliqueCreateFailed", problems[-1]))
        yield from emit(*events)
        if problems:
            raise ReconcileError("; ".join(problems))
    if run.pcs.on_delete:
        yield from _rewrite(run, wanted, known)
    return len(missing) < len(absent)


def _made(run: _ScalingGroupPass, what: str) -> Event:
    if run.pcs.on_delete:
        note = f"{what} created or updated successfully"
        return Event(run.group, "Normal", "PodCliqueCreateOrUpdateSuccessful", note)
    return Event(run.group, "Normal", "PodCliqueCreateSuccessful", f"{what} created successfully")


def _wanted(run: _ScalingGroupPass, known: dict[str, Object]) -> dict[str, Object]:
    """All members with OnDelete, whose templates change in place; otherwise those that are missing."""
    by_name = run.pcs.gangs_of(number(run.group, constants.SET_INDEX))
    found: dict[str, Object] = {}
    for index in range(run.size):
        for clique in run.cliques:
            name = names.clique(name_of(run.group), index, clique)
            if name in by_name and (run.pcs.on_delete or name not in known):
                found[name] = children.member(run.pcs, run.group, *by_name[name])
    return found


def _rewrite(run: _ScalingGroupPass, wanted: dict[str, Object], known: dict[str, Object]) -> Part:
    """With OnDelete the templates change in place, and pods when the user deletes them."""
    writes = []
    for name, one in wanted.items():
        body = rewriting(one, known[name]) if name in known and not is_deleting(known[name]) else None
        if body is not None:
            writes.append(patch(known[name], body))
    yield from all_done(writes)
    yield from emit(*(_made(run, f"PodClique {write.namespace}/{write.name}") for write in writes))


def rewriting(wanted: Object, stored: Object) -> Object | None:
    """The patch that brings a PodClique to its template, its size excepted."""
    found: Object = {}
    meta = {
        kind: difference(stored["metadata"].get(kind) or {}, wanted["metadata"].get(kind) or {})
        for kind in ("labels", "annotations")
    }
    if any(meta.values()):
        found["metadata"] = {kind: change for kind, change in meta.items() if change}
    wanted_spec = {**wanted["spec"], "replicas": stored["spec"].get("replicas")}
    spec = difference(stored["spec"], wanted_spec)
    if spec:
        found["spec"] = spec
    return found or None


# ---- gang termination of one replica


def _heal(run: _ScalingGroupPass) -> Part:
    """As long as enough replicas are well, the ill are made again one by one; otherwise the set decides.

    -> how long until the next one is due."""
    due: list[tuple[timedelta, int]] = []
    waiting: list[tuple[timedelta, int]] = []
    for index in range(run.size):
        members = [one for one in run.replicas.get(index, ()) if not is_deleting(one)]
        left = breach.left_of_cliques(members, run.pcs.delay, run.view.now)
        if left is not None:
            (due if left <= timedelta() else waiting).append((left, index))
    if run.size - len(due) - len(waiting) < run.least:
        return None
    yield from _remove(run, [index for _, index in due])
    return min(waiting)[0] if waiting else None


# ---- rolling update


def _roll(run: _ScalingGroupPass) -> Part:
    progress: dict[str, Any] = run.status["updateProgress"]
    chosen = progress.get("readyReplicaIndicesSelectedToUpdate")
    old = [index for index in range(run.size) if _is_old(run, index)]
    ill = [index for index in old if not _is_ready(run, index)]
    ready = [index for index in old if index not in ill]
    if chosen is not None and not _is_renewed(run, int(chosen["current"])):
        yield from _remove(run, sorted({*ill, *({int(chosen["current"])} & set(old))}))
        return
    if not ready:
        yield from _remove(run, ill)
        if not old:
            progress.pop("readyReplicaIndicesSelectedToUpdate", None)
            progress["updateEndedAt"] = times.seconds(run.view.now)
        return
    if sum(_is_available(run, index) for index in range(run.size)) >= run.least:
        done = [*(chosen.get("completed") or ()), int(chosen["current"])] if chosen is not None else []
        new = {"current": ready[0], **({"completed": done} if done else {})}
        progress["readyReplicaIndicesSelectedToUpdate"] = new
        # Which replica is replaced is written before it is deleted.
        run.group = yield from write_status(run.group, {**status_of(run.group), "updateProgress": progress})
        ill = [*ill, ready[0]]
    yield from _remove(run, sorted(ill))


def _is_old(run: _ScalingGroupPass, index: int) -> bool:
    members = [one for one in run.replicas.get(index, ()) if not is_deleting(one)]
    return any(label(one, constants.TEMPLATE_HASH) != run.pcs.template_hash(run.pcs.clique_of(one)) for one in members)


def _is_ready(run: _ScalingGroupPass, index: int) -> bool:
    return all(
        int(status_of(one).get(count) or 0) >= int(one["spec"].get("minAvailable") or 0)
        for one in run.replicas.get(index, ())
        for count in ("scheduledReplicas", "readyReplicas")
    )


def _is_renewed(run: _ScalingGroupPass, index: int) -> bool:
    return run.is_complete(index) and all(is_current(run.pcs, one) for one in run.replicas[index])


# ---- status


def _is_scheduled(run: _ScalingGroupPass, index: int) -> bool:
    return run.is_complete(index) and all(holds(status_of(one), constants.SCHEDULED) for one in run.replicas[index])


def _is_available(run: _ScalingGroupPass, index: int) -> bool:
    return _is_scheduled(run, index) and all(
        int(status_of(one).get("readyReplicas") or 0) >= int(one["spec"].get("minAvailable") or 0)
        for one in run.replicas[index]
        if not is_deleting(one)
    )


def _report(run: _ScalingGroupPass) -> Part:
    status, group, pcs = run.status, run.group, run.pcs
    indices = range(run.size)
    had = int(status_of(group).get("scheduledReplicas") or 0)
    current = {index: [is_current(pcs, one) for one in run.replicas.get(index, ())] for index in indices}
    scheduled = sum(_is_scheduled(run, index) for index in indices)
    status |= {
        "replicas": run.size,
        "scheduledReplicas": scheduled,
        "availableReplicas": sum(_is_available(run, index) for index in indices),
        "updatedReplicas": sum(_is_available(run, index) and all(current[index]) for index in indices),
        "selector": selector(pcs.name, (constants.SCALING_GROUP, name_of(group))),
        "observedGeneration": meta_of(group).get("generation"),
    }
    if status.get("updateProgress"):
        counts = {
            "updatedPodCliquesCount": sum(map(sum, current.values())),
            "totalPodCliquesCount": run.size * len(run.cliques),
        }
        status["updateProgress"] = {**status["updateProgress"], **counts}
    if not is_updating(status) and all(_has_converged(run, index) for index in indices):
        status["currentPodCliqueSetGenerationHash"] = pcs.stored_hash
    _breached(run)
    if had > 0 and scheduled == 0:
        note = (
            f"All scheduled replicas lost (was {had}). Gang termination will fire after TerminationDelay if the PCSG "
            "stays below MinAvailable; investigate node availability or capacity."
        )
        yield from emit(Event(group, "Warning", "AllScheduledReplicasLost", note))
    yield from write_status(group, status)


def _has_converged(run: _ScalingGroupPass, index: int) -> bool:
    """All its PodCliques have come to the template and generation of today, whether they run or not."""
    pcs = run.pcs
    for one in run.replicas.get(index, ()):
        expected, status = pcs.template_hash(pcs.clique_of(one)), status_of(one)
        if label(one, constants.TEMPLATE_HASH) != expected or status.get("currentPodTemplateHash") != expected:
            return False
        if status.get("currentPodCliqueSetGenerationHash") != pcs.stored_hash:
            return False
    return run.is_complete(index)


def _breached(run: _ScalingGroupPass) -> None:
    status, now = run.status, run.view.now
    if is_updating(status):
        set_condition(status, now, constants.BREACHED, None, "UpdateInProgress", "Update is in progress")
        return
    well = sum(
        run.is_complete(index) and not any(holds(status_of(one), constants.BREACHED) for one in run.replicas[index])
        for index in range(run.size)
    )
    what = f"PCSG replicas not in breach ({well})"
    if well < run.least:
        reason = "InsufficientAvailablePodCliqueScalingGroupReplicas"
        set_condition(status, now, constants.BREACHED, True, reason, f"{what} below MinAvailable ({run.least})")
        return
    reason = "SufficientAvailablePodCliqueScalingGroupReplicas"
    set_condition(status, now, constants.BREACHED, False, reason, f"{what} meets MinAvailable ({run.least})")
    drop_condition(status, constants.TERMINATING)
