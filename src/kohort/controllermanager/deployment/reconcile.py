"""One reconcile of a Deployment: find or make the new ReplicaSet, move pods to it, write the status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import is_controlled_by, is_deleting, meta_of, name_of, status_of, uid_of
from kohort.controllermanager import pods as pods_
from kohort.controllermanager.claims import claim
from kohort.controllermanager.deployment import constants, numbers, revisions, status
from kohort.controllermanager.deployment.numbers import Sizes, replicas
from kohort.controllers.conditions import condition
from kohort.controllers.reconcile import Event, Part, Reconcile, ReconcileError, Result, Step, emit, must, one
from kohort.controllers.writes import create, delete, update


@dataclass(frozen=True, slots=True)
class View:
    """`sets`: ReplicaSets that it controls or might adopt. `set_named`: any of the namespace. `pods`: of a set."""

    deployment: Object
    sets: Sequence[Object]
    set_named: Callable[[str], Object | None]
    pods: Callable[[Object], Sequence[Object]]
    now: datetime


@dataclass(slots=True)
class Turn:
    """What is known, and the status and annotations that are being written."""

    view: View
    new: Object | None
    old: list[Object]
    status: dict[str, Any]
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def deployment(self) -> Object:
        return self.view.deployment

    @property
    def sets(self) -> list[Object]:
        return [*self.old, *([self.new] if self.new is not None else [])]

    def put(self, rs: Object) -> None:
        """As the server has it now."""
        if self.new is not None and uid_of(self.new) == uid_of(rs):
            self.new = rs
        self.old = [rs if uid_of(known) == uid_of(rs) else known for known in self.old]

    def progress(self, value: str, reason: str, message: str) -> None:
        if status.deadline(self.deployment) is not None:
            status.set_condition(self.status, self.view.now, constants.PROGRESSING, value, reason, message)

    def event(self, reason: str, note: str) -> Event:
        return Event(self.deployment, "Normal", reason, note)


def reconcile(view: View) -> Reconcile:
    deployment = view.deployment
    sets = yield from claim(deployment, view.sets, deployment["spec"].get("selector"))
    new, old = revisions.split(deployment, sets)
    turn = Turn(view, new, old, copied(status_of(deployment)))
    if is_deleting(deployment):
        return (yield from _end(turn, rollout=False))
    _check_paused(turn)
    yield from _follow_new(turn)
    if deployment["spec"].get("paused") or numbers.is_scaled(deployment, turn.sets):
        yield from _resize(turn, numbers.spread(deployment, turn.new, turn.old))
        if deployment["spec"].get("paused"):
            yield from _clean(turn)
        return (yield from _end(turn, rollout=False))
    yield from _roll(turn) if numbers.is_rolling(deployment) else _recreate(turn)
    return (yield from _end(turn, rollout=True))


def _end(turn: Turn, *, rollout: bool) -> Reconcile:
    """The status, written once."""
    deployment, now = turn.deployment, turn.view.now
    turn.status = status.counts(deployment, turn.status, turn.sets, turn.new, now)
    if rollout:
        status.follow_rollout(deployment, turn.status, turn.sets, turn.new, now)
    yield from _write(turn)
    left = status.deadline_in(deployment, turn.status, now)
    return Result(requeue_after=None if left is None else max(0.0, left) + 1.0)


def _write(turn: Turn) -> Part:
    deployment = turn.deployment
    known = meta_of(deployment).get("annotations") or {}
    if turn.status == status_of(deployment) and turn.annotations.items() <= known.items():
        return
    meta = {**meta_of(deployment)}
    if turn.annotations:
        meta["annotations"] = {**known, **turn.annotations}
    write = update({**deployment, "metadata": meta, "status": turn.status}, "status")
    must(write, (yield from one(write)))


def _check_paused(turn: Turn) -> None:
    known = condition(turn.status, constants.PROGRESSING) or {}
    if known.get("reason") == constants.TIMED_OUT:
        return
    was, paused = known.get("reason") == constants.PAUSED, bool(turn.deployment["spec"].get("paused"))
    if paused and not was:
        turn.progress("Unknown", constants.PAUSED, "Deployment is paused")
    elif was and not paused:
        turn.progress("Unknown", constants.RESUMED, "Deployment is resumed")


# ---- the new ReplicaSet


def _follow_new(turn: Turn) -> Part:
    """The new ReplicaSet has the Deployment's annotations and minReadySeconds, the Deployment its revision."""
    rs, deployment = turn.new, turn.deployment
    if rs is None:
        return
    wanted = revisions.new_annotations(deployment, rs, turn.old)
    least = int(deployment["spec"].get("minReadySeconds") or 0)
    if wanted != (meta_of(rs).get("annotations") or {}) or int(rs["spec"].get("minReadySeconds") or 0) != least:
        spec = {name: value for name, value in rs["spec"].items() if name != "minReadySeconds"}
        spec |= {"minReadySeconds": least} if least else {}
        write = update({**rs, "metadata": {**meta_of(rs), "annotations": wanted}, "spec": spec})
        turn.put(must(write, (yield from one(write))))
    turn.annotations[constants.REVISION] = wanted[constants.REVISION]
    if condition(turn.status, constants.PROGRESSING) is None:
        turn.progress("True", constants.FOUND_SET, f'Found new replica set "{name_of(rs)}"')


def _make_new(turn: Turn) -> Part:
    deployment = turn.deployment
    rs = revisions.new_set({**deployment, "status": turn.status})
    size = numbers.new_size(deployment, [*turn.old, rs], rs)
    rs["spec"]["replicas"] = size
    given = revisions.new_annotations(deployment, rs, turn.old)
    rs["metadata"]["annotations"] = {**given, **revisions.size_annotations(deployment)}
    answer = yield from one(create(rs))
    if answer.refusal is None:
        turn.new = answer.object or rs
        turn.progress("True", constants.NEW_SET, f'Created new replica set "{name_of(rs)}"')
        if size:
            note = f"Scaled up replica set {name_of(rs)} from 0 to {size}"
            yield from emit(turn.event(constants.SCALING, note))
    elif answer.refusal.already_exists:
        turn.new = yield from _meet(turn, name_of(rs))
    else:
        text = f'Failed to create new replica set "{name_of(rs)}": {answer.refusal.message}'
        turn.progress("False", constants.SET_ERROR, text)
        yield from emit(Event(deployment, "Warning", constants.SET_ERROR, text))
        yield from _write(turn)
        raise ReconcileError(text)
    turn.annotations[constants.REVISION] = given[constants.REVISION]


def _meet(turn: Turn, name: str) -> Part:
    """-> the ReplicaSet that has the name: ours, if the watch was late; else the next name is another."""
    there = turn.view.set_named(name)
    if there is not None and is_controlled_by(there, turn.deployment) and revisions.is_same(turn.deployment, there):
        return there
    if there is not None:
        turn.status["collisionCount"] = int(turn.status.get("collisionCount") or 0) + 1
        yield from _write(turn)
    raise ReconcileError(f"ReplicaSet {name} is there already, and another's or not seen yet")


# ---- pods move


def _roll(turn: Turn) -> Part:
    if turn.new is None:
        yield from _make_new(turn)
    assert turn.new is not None
    size = numbers.new_size(turn.deployment, turn.sets, turn.new)
    if size != replicas(turn.new):
        yield from _resize(turn, [(turn.new, size)])
        return
    shrunk = numbers.shrunk(turn.deployment, numbers.active(turn.old), turn.new)
    if shrunk:
        yield from _resize(turn, shrunk)
    elif status.is_complete(turn.deployment, status_of(turn.deployment)):
        yield from _clean(turn)


def _recreate(turn: Turn) -> Part:
    """All old pods go, and have gone, before a new one comes."""
    running = numbers.active(turn.old)
    if running:
        yield from _resize(turn, [(rs, 0) for rs in running])
        return
    if numbers.counted(turn.old, "replicas") or any(_has_pods(turn.view, rs) for rs in turn.old):
        return
    if turn.new is None:
        yield from _make_new(turn)
    assert turn.new is not None
    if replicas(turn.new) != replicas(turn.deployment):
        yield from _resize(turn, [(turn.new, replicas(turn.deployment))])
    elif status.is_complete(turn.deployment, status_of(turn.deployment)):
        yield from _clean(turn)


def _has_pods(view: View, rs: Object) -> bool:
    return any(not pods_.is_terminal(pod) for pod in view.pods(rs))


def _resize(turn: Turn, sizes: Sizes) -> Part:
    """One after the other: the status tells how far it came."""
    noted = revisions.size_annotations(turn.deployment)
    for rs, size in sizes:
        known, now = meta_of(rs).get("annotations") or {}, replicas(rs)
        if size == now and noted.items() <= known.items():
            continue
        meta = {**meta_of(rs), "annotations": {**known, **noted}}
        write = update({**rs, "metadata": meta, "spec": {**rs["spec"], "replicas": size}})
        turn.put(must(write, (yield from one(write))))
        if size != now:
            which = "up" if size > now else "down"
            note = f"Scaled {which} replica set {name_of(rs)} from {now} to {size}"
            yield from emit(turn.event(constants.SCALING, note))


def _clean(turn: Turn) -> Part:
    surplus = numbers.to_clean(turn.deployment, turn.old)
    if not surplus:
        return
    answers = yield Step([delete(rs) for rs in surplus])
    gone = {uid_of(rs) for rs, answer in zip(surplus, answers, strict=True) if answer.ok}
    turn.old = [rs for rs in turn.old if uid_of(rs) not in gone]
    for rs, answer in zip(surplus, answers, strict=True):
        if answer.refusal is not None and not answer.refusal.not_found:
            raise ReconcileError(f"ReplicaSet {name_of(rs)}: {answer.refusal.message}")
