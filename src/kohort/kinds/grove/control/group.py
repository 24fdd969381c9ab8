"""One look at a PodCliqueScalingGroup: its member PodCliques, replica by replica (spec grove 1.3, 1.9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kohort.api.kind import Object
from kohort.controllers import moments
from kohort.controllers.script import Outcome, Script, Step, SyncError, Told, tell
from kohort.controllers.writes import create, delete, name_of, patch
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.compile import names
from kohort.kinds.grove.control import breach, children, claims
from kohort.kinds.grove.control.clique_update import is_current, is_updating
from kohort.kinds.grove.control.sets import CliqueSet, selector
from kohort.kinds.grove.control.writing import (
    Part,
    all_done,
    copy_status,
    difference,
    drop_condition,
    holds,
    is_going,
    label,
    meta_of,
    number,
    set_condition,
    status_of,
    without_finalizer,
    write_status,
)

Replicas = dict[int, list[Object]]


@dataclass(frozen=True, slots=True)
class View:
    """A scaling group, its set, its member PodCliques, the claims that it owns."""

    group: Object | None
    pcs: CliqueSet | None
    members: Sequence[Object]
    own_claims: Sequence[Object]
    find: claims.Finder
    now: datetime


@dataclass(slots=True)
class _Look:
    group: Object
    pcs: CliqueSet
    view: View
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
        return len([one for one in self.replicas.get(index, ()) if not is_going(one)]) == len(self.cliques)


def sync(view: View) -> Script:
    group, pcs = view.group, view.pcs
    if group is None:
        return Outcome()
    if is_going(group):
        yield from without_finalizer(group, constants.SCALING_GROUP_FINALIZER)
        return Outcome()
    if pcs is None or not pcs.group_of(group) or not pcs.stored_hash:
        return Outcome()
    look = _Look(group, pcs, view, copy_status(group), _by_replica(view.members))
    _begin(look)
    yield from _claims(look)
    yield from _shrink(look)
    yield from _grow(look)
    after: timedelta | None = None
    if is_updating(look.status):
        yield from _roll(look)
    else:
        after = yield from _heal(look)
    yield from _report(look)
    return Outcome(after=None if after is None else max(after.total_seconds(), 0.1))


def _by_replica(members: Iterable[Object]) -> Replicas:
    found: Replicas = {}
    for one in members:
        found.setdefault(number(one, constants.SCALING_GROUP_INDEX), []).append(one)
    return found


def _begin(look: _Look) -> None:
    """An update starts when it is the turn of this replica of the set; with OnDelete it has ended at once."""
    pcs, progress = look.pcs, look.status.get("updateProgress")
    mine = number(look.group, constants.SET_INDEX)
    if not pcs.on_delete and (not pcs.is_rolling or pcs.rolling_replica != mine):
        return
    known = progress["podCliqueSetGenerationHash"] if progress else look.status.get("currentPodCliqueSetGenerationHash")
    if known == pcs.stored_hash and (progress or not pcs.on_delete):
        return
    started = moments.write(look.view.now)
    look.status["updateProgress"] = {
        "updateStartedAt": started,
        "podCliqueSetGenerationHash": pcs.stored_hash,
        **({"updateEndedAt": started} if pcs.on_delete else {}),
    }


def _claims(look: _Look) -> Part:
    wanted = {
        name_of(one): one for one in claims.wanted(look.pcs, claims.of_group(look.pcs, look.group), look.view.find)
    }
    known = {name_of(one) for one in look.view.own_claims}
    yield from all_done([create(one) for name, one in wanted.items() if name not in known])
    gone = [one for one in look.view.own_claims if name_of(one) not in wanted and not is_going(one)]
    yield from all_done([delete(one) for one in gone])


# ---- members


def _shrink(look: _Look) -> Part:
    """From the highest index down."""
    yield from _remove(look, sorted(index for index in look.replicas if index >= look.size))


def _remove(look: _Look, indices: Iterable[int]) -> Part:
    for index in indices:
        gone = [one for one in look.replicas.get(index, ()) if not is_going(one)]
        if not gone:
            continue
        yield from all_done([delete(one) for one in gone])
        look.replicas[index] = []
        note = f"Deleted PodCliqueScalingGroup {name_of(look.group)} replicaIndex: {index}"
        yield from tell(Told(look.pcs.obj, "Normal", "PodCliqueScalingGroupReplicaDeleteSuccessful", note))


def _grow(look: _Look) -> Part:
    """What is missing is made; a PodClique on its way out still has its name."""
    known = {name_of(one): one for one in look.view.members}
    wanted = _wanted(look, known)
    missing = [one for name, one in wanted.items() if name not in known]
    if missing:
        answers = yield Step([create(one) for one in missing])
        events, problems = [], []
        for one, answer in zip(missing, answers, strict=True):
            what = f"PodClique {look.pcs.namespace}/{name_of(one)}"
            if answer.refusal is None:
                look.replicas.setdefault(number(one, constants.SCALING_GROUP_INDEX), []).append(answer.object or one)
                events.append(_made(look, what))
            elif not answer.refusal.already_exists:
                problems.append(f"{what}: {answer.refusal.message}")
                events.append(Told(look.group, "Warning", "PodCliqueCreateFailed", problems[-1]))
        yield from tell(*events)
        if problems:
            raise SyncError("; ".join(problems))
    if look.pcs.on_delete:
        yield from _rewrite(look, wanted, known)


def _made(look: _Look, what: str) -> Told:
    if look.pcs.on_delete:
        note = f"{what} created or updated successfully"
        return Told(look.group, "Normal", "PodCliqueCreateOrUpdateSuccessful", note)
    return Told(look.group, "Normal", "PodCliqueCreateSuccessful", f"{what} created successfully")


def _wanted(look: _Look, known: dict[str, Object]) -> dict[str, Object]:
    """All members with OnDelete, whose templates change in place; otherwise those that are missing."""
    by_name = look.pcs.gangs_of(number(look.group, constants.SET_INDEX))
    found: dict[str, Object] = {}
    for index in range(look.size):
        for clique in look.cliques:
            name = names.clique(name_of(look.group), index, clique)
            if name in by_name and (look.pcs.on_delete or name not in known):
                found[name] = children.member(look.pcs, look.group, *by_name[name])
    return found


def _rewrite(look: _Look, wanted: dict[str, Object], known: dict[str, Object]) -> Part:
    """With OnDelete the templates change in place, and pods when the user deletes them."""
    writes = []
    for name, one in wanted.items():
        body = rewriting(one, known[name]) if name in known and not is_going(known[name]) else None
        if body is not None:
            writes.append(patch(known[name], body))
    yield from all_done(writes)
    yield from tell(*(_made(look, f"PodClique {write.namespace}/{write.name}") for write in writes))


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


def _heal(look: _Look) -> Part:
    """As long as enough replicas are well, the ill are made again one by one; otherwise the set decides.

    -> how long until the next one is due."""
    due: list[tuple[timedelta, int]] = []
    waiting: list[tuple[timedelta, int]] = []
    for index in range(look.size):
        members = [one for one in look.replicas.get(index, ()) if not is_going(one)]
        left = breach.left_of_cliques(members, look.pcs.delay, look.view.now)
        if left is not None:
            (due if left <= timedelta() else waiting).append((left, index))
    if look.size - len(due) - len(waiting) < look.least:
        return None
    yield from _remove(look, [index for _, index in due])
    return min(waiting)[0] if waiting else None


# ---- rolling update


def _roll(look: _Look) -> Part:
    progress: dict[str, Any] = look.status["updateProgress"]
    chosen = progress.get("readyReplicaIndicesSelectedToUpdate")
    old = [index for index in range(look.size) if _is_old(look, index)]
    ill = [index for index in old if not _is_ready(look, index)]
    ready = [index for index in old if index not in ill]
    if chosen is not None and not _is_renewed(look, int(chosen["current"])):
        yield from _remove(look, sorted({*ill, *({int(chosen["current"])} & set(old))}))
        return
    if not ready:
        yield from _remove(look, ill)
        if not old:
            progress.pop("readyReplicaIndicesSelectedToUpdate", None)
            progress["updateEndedAt"] = moments.write(look.view.now)
        return
    if sum(_is_available(look, index) for index in range(look.size)) >= look.least:
        done = [*(chosen.get("completed") or ()), int(chosen["current"])] if chosen is not None else []
        new = {"current": ready[0], **({"completed": done} if done else {})}
        progress["readyReplicaIndicesSelectedToUpdate"] = new
        # Which replica is replaced is written before it is deleted.
        look.group = yield from write_status(look.group, {**status_of(look.group), "updateProgress": progress})
        ill = [*ill, ready[0]]
    yield from _remove(look, sorted(ill))


def _is_old(look: _Look, index: int) -> bool:
    members = [one for one in look.replicas.get(index, ()) if not is_going(one)]
    return any(
        label(one, constants.TEMPLATE_HASH) != look.pcs.template_hash(look.pcs.clique_of(one)) for one in members
    )


def _is_ready(look: _Look, index: int) -> bool:
    return all(
        int(status_of(one).get(count) or 0) >= int(one["spec"].get("minAvailable") or 0)
        for one in look.replicas.get(index, ())
        for count in ("scheduledReplicas", "readyReplicas")
    )


def _is_renewed(look: _Look, index: int) -> bool:
    return look.is_complete(index) and all(is_current(look.pcs, one) for one in look.replicas[index])


# ---- status


def _is_scheduled(look: _Look, index: int) -> bool:
    return look.is_complete(index) and all(holds(one, constants.SCHEDULED) for one in look.replicas[index])


def _is_available(look: _Look, index: int) -> bool:
    return _is_scheduled(look, index) and all(
        int(status_of(one).get("readyReplicas") or 0) >= int(one["spec"].get("minAvailable") or 0)
        for one in look.replicas[index]
        if not is_going(one)
    )


def _report(look: _Look) -> Part:
    status, group, pcs = look.status, look.group, look.pcs
    indices = range(look.size)
    had = int(status_of(group).get("scheduledReplicas") or 0)
    current = {index: [is_current(pcs, one) for one in look.replicas.get(index, ())] for index in indices}
    scheduled = sum(_is_scheduled(look, index) for index in indices)
    status |= {
        "replicas": look.size,
        "scheduledReplicas": scheduled,
        "availableReplicas": sum(_is_available(look, index) for index in indices),
        "updatedReplicas": sum(_is_available(look, index) and all(current[index]) for index in indices),
        "selector": selector(pcs.name, (constants.SCALING_GROUP, name_of(group))),
        "observedGeneration": meta_of(group).get("generation"),
    }
    if status.get("updateProgress"):
        counts = {
            "updatedPodCliquesCount": sum(map(sum, current.values())),
            "totalPodCliquesCount": look.size * len(look.cliques),
        }
        status["updateProgress"] = {**status["updateProgress"], **counts}
    if not is_updating(status) and all(_has_converged(look, index) for index in indices):
        status["currentPodCliqueSetGenerationHash"] = pcs.stored_hash
    _breached(look)
    if had > 0 and scheduled == 0:
        note = (
            f"All scheduled replicas lost (was {had}). Gang termination will fire after TerminationDelay if the PCSG "
            "stays below MinAvailable; investigate node availability or capacity."
        )
        yield from tell(Told(group, "Warning", "AllScheduledReplicasLost", note))
    yield from write_status(group, status)


def _has_converged(look: _Look, index: int) -> bool:
    """All its PodCliques have come to the template and generation of today, whether they run or not."""
    pcs = look.pcs
    for one in look.replicas.get(index, ()):
        expected, status = pcs.template_hash(pcs.clique_of(one)), status_of(one)
        if label(one, constants.TEMPLATE_HASH) != expected or status.get("currentPodTemplateHash") != expected:
            return False
        if status.get("currentPodCliqueSetGenerationHash") != pcs.stored_hash:
            return False
    return look.is_complete(index)


def _breached(look: _Look) -> None:
    status, now = look.status, look.view.now
    if is_updating(status):
        set_condition(status, now, constants.BREACHED, None, "UpdateInProgress", "Update is in progress")
        return
    well = sum(
        look.is_complete(index) and not any(holds(one, constants.BREACHED) for one in look.replicas[index])
        for index in range(look.size)
    )
    what = f"PCSG replicas not in breach ({well})"
    if well < look.least:
        reason = "InsufficientAvailablePodCliqueScalingGroupReplicas"
        set_condition(status, now, constants.BREACHED, True, reason, f"{what} below MinAvailable ({look.least})")
        return
    reason = "SufficientAvailablePodCliqueScalingGroupReplicas"
    set_condition(status, now, constants.BREACHED, False, reason, f"{what} meets MinAvailable ({look.least})")
    drop_condition(status, constants.TERMINATING)
