"""One reconcile of a StatefulSet: revisions, then members in order, then those that are too many, then the update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, meta_of, name_of, status_of, uid_of
from kohort.apimachinery.intstr import scaled
from kohort.controllermanager import history
from kohort.controllermanager import pods as pods_
from kohort.controllermanager.claims import claim
from kohort.controllermanager.podtemplate import fnv1, json_text, safe
from kohort.controllermanager.statefulset import members, volumes
from kohort.controllermanager.statefulset.volumes import Claims
from kohort.controllers.reconcile import (
    CREATES_AT_MOST,
    Event,
    Part,
    Reconcile,
    ReconcileError,
    Result,
    Step,
    emit,
    must,
    one,
)
from kohort.controllers.writes import create, delete, patch, update

HASH: Final = "controller.kubernetes.io/hash"  # the label of revisions


@dataclass(frozen=True, slots=True)
class View:
    """`pods`, `revisions`: those that it controls or might adopt."""

    sts: Object
    pods: Sequence[Object]
    revisions: Sequence[Object]
    revision_named: Callable[[str], Object | None]
    claims: Claims
    now: datetime


@dataclass(slots=True)
class Turn:
    """`replicas`: those that are there, by ordinal, the lowest first; what is missing is never written down, since it
    may be two billion. `condemned`: beyond, the highest first."""

    view: View
    pods: list[Object]
    current: Object
    update: Object
    collisions: int
    replicas: dict[int, Object] = field(default_factory=dict)
    condemned: list[Object] = field(default_factory=list)
    problem: str = ""
    again: bool = False

    @property
    def sts(self) -> Object:
        return self.view.sts

    @property
    def least(self) -> int:
        return int(self.sts["spec"].get("minReadySeconds") or 0)

    @property
    def ordered(self) -> bool:
        return not members.is_parallel(self.sts)

    def is_unavailable(self, pod: Object | None) -> bool:
        return members.is_unavailable(pod, self.least, self.view.now)


def reconcile(view: View) -> Reconcile:
    sts, selector = view.sts, view.sts["spec"].get("selector")
    revisions = yield from claim(sts, view.revisions, selector)
    found = yield from claim(sts, [pod for pod in view.pods if members.is_member(sts, pod)], selector)
    turn: Turn = yield from _revisions(view, history.in_order(revisions), found)
    wanted = members.ordinals(sts)
    for pod in sorted(turn.pods, key=members.ordinal):
        if members.ordinal(pod) in wanted:
            turn.replicas[members.ordinal(pod)] = pod
        else:
            turn.condemned.append(pod)
    turn.condemned.reverse()
    if not is_deleting(sts):
        try:
            yield from _act(turn)
        except ReconcileError as error:  # the status is written all the same
            turn.problem = str(error)
    yield from _write_status(turn)
    yield from _trim(turn, history.in_order(revisions))
    if turn.problem:
        raise ReconcileError(turn.problem)
    after = pods_.next_available(turn.pods, turn.least, view.now)
    return Result(requeue_after=0.0 if turn.again else after)


# ---- revisions


def _revisions(view: View, known: list[Object], pods: list[Object]) -> Part:
    """-> Turn. The newest revision is that of today's template: found, brought back, or made."""
    sts, data = view.sts, history.data_of(view.sts)
    collisions = int(status_of(sts).get("collisionCount") or 0)
    same = [revision for revision in known if history.equal(data, revision)]
    newest = history.number(known[-1]) if known else 0
    if same and uid_of(same[-1]) == uid_of(known[-1]):
        update_ = known[-1]
    elif same:
        update_ = yield from history.renumber(same[-1], newest + 1)
    else:
        text = json_text(data).encode()

        def wanted(count: int) -> Object:
            return history.new_revision(sts, data, newest + 1, safe(str(fnv1(str(count).encode(), fnv1(text)))), HASH)

        update_, collisions = yield from history.make(view.revision_named, wanted, collisions)
    name = status_of(sts).get("currentRevision")
    current = next((revision for revision in known if name_of(revision) == name), update_)
    return Turn(view, pods, current, update_, collisions)


def _trim(turn: Turn, known: list[Object]) -> Part:
    live = {name_of(turn.current), name_of(turn.update), *map(members.revision_of, turn.pods)}
    old = [revision for revision in known if name_of(revision) not in live]
    limit = turn.sts["spec"].get("revisionHistoryLimit")
    yield from history.trim(old, 10 if limit is None else int(limit))


# ---- members


def _act(turn: Turn) -> Part:
    ready: bool = yield from (_in_order(turn) if turn.ordered else _at_once(turn))
    if not ready:
        return
    yield from volumes.follow_policy(turn.sts, turn.condemned, turn.view.claims)
    if turn.condemned:
        done: bool = yield from _remove_condemned(turn)
        if not done:
            return
    if members.is_rolling(turn.sts):
        yield from _roll(turn)


def _in_order(turn: Turn) -> Part:
    """-> whether all are there and available. Each waits for those before it."""
    for index in members.ordinals(turn.sts):
        pod = turn.replicas.get(index)
        if pod is None:
            yield from _make(turn, [index])
            return False
        if pods_.is_terminal(pod):
            yield from _delete(turn, [pod])
            return False
        yield from _repair(turn, [pod])
        if turn.is_unavailable(pod) or not members.is_running_and_ready(pod):
            return False
    return True


def _at_once(turn: Turn) -> Part:
    """-> True: nothing waits for anything, unless something went wrong."""
    there = turn.replicas.values()
    yield from _delete(turn, [pod for pod in there if pods_.is_terminal(pod)])
    yield from _repair(turn, [pod for pod in there if not pods_.is_terminal(pod)])
    absent = (index for index in members.ordinals(turn.sts) if index not in turn.replicas)
    missing = list(islice(absent, CREATES_AT_MOST + 1))
    turn.again = len(missing) > CREATES_AT_MOST
    yield from _make(turn, missing[:CREATES_AT_MOST])
    return True


def _make(turn: Turn, indexes: list[int]) -> Part:
    """In batches that double: if pods are refused, not all of thousands are tried."""
    wanted = [_member(turn, index) for index in indexes]
    wanted = [pod for pod in wanted if not volumes.is_stale(turn.sts, pod, turn.view.claims)]
    size = 1
    while wanted:
        batch, wanted = wanted[:size], wanted[size:]
        yield from volumes.ensure(turn.sts, batch, turn.view.claims)
        answers = yield Step([create(pod) for pod in batch])
        events, problem = [], ""
        for pod, answer in zip(batch, answers, strict=True):
            what = f"create Pod {name_of(pod)} in StatefulSet {name_of(turn.sts)}"
            if answer.refusal is None:
                events.append(Event(turn.sts, "Normal", "SuccessfulCreate", f"{what} successful"))
            else:
                problem = f"{what} failed error: {answer.refusal.message}"
                events.append(Event(turn.sts, "Warning", "FailedCreate", problem))
        yield from emit(*events)
        if problem:
            raise ReconcileError(problem)
        size *= 2


def _member(turn: Turn, index: int) -> Object:
    """Below the partition, of the current revision; else of the newest."""
    rolling, below = members.rolling(turn.sts), index - members.start(turn.sts)
    count = int(status_of(turn.sts).get("currentReplicas") or 0) if rolling is None else members.partition(turn.sts)
    revision = turn.current if members.is_rolling(turn.sts) and below < count else turn.update
    return members.new_member(turn.sts, history.template_of(revision), name_of(revision), index)


def _repair(turn: Turn, pods: Sequence[Object]) -> Part:
    """Claims that a waiting pod misses, owners of claims, and the labels by which a member is known."""
    yield from volumes.ensure(turn.sts, [pod for pod in pods if pods_.phase(pod) == "Pending"], turn.view.claims)
    staying = [pod for pod in pods if not is_deleting(pod)]
    changed: list[Object] = yield from volumes.follow_policy(turn.sts, staying, turn.view.claims)
    for pod in staying:
        if label(pod, members.POD_NAME) != name_of(pod):
            known = {members.POD_NAME: name_of(pod), members.POD_INDEX: str(members.ordinal(pod))}
            write = patch(pod, {"metadata": {"uid": uid_of(pod), "labels": known}})
            must(write, (yield from one(write)))
            changed.append(pod)
    for name in dict.fromkeys(map(name_of, changed)):
        note = f"update Pod {name} in StatefulSet {name_of(turn.sts)} successful"
        yield from emit(Event(turn.sts, "Normal", "SuccessfulUpdate", note))


def _delete(turn: Turn, pods: Sequence[Object]) -> Part:
    going = [pod for pod in pods if not is_deleting(pod)]
    if not going:
        return
    answers = yield Step([delete(pod) for pod in going])
    events, problem = [], ""
    for pod, answer in zip(going, answers, strict=True):
        what = f"delete Pod {name_of(pod)} in StatefulSet {name_of(turn.sts)}"
        if answer.refusal is None:
            events.append(Event(turn.sts, "Normal", "SuccessfulDelete", f"{what} successful"))
        elif not answer.refusal.not_found and not answer.refusal.conflict:
            problem = f"{what} failed error: {answer.refusal.message}"
            events.append(Event(turn.sts, "Warning", "FailedDelete", problem))
    yield from emit(*events)
    if problem:
        raise ReconcileError(problem)


def _remove_condemned(turn: Turn) -> Part:
    """-> whether the update may go on. In order, one goes at a time, and an unhealthy one stops those above it."""
    if not turn.ordered:
        yield from _delete(turn, turn.condemned[:CREATES_AT_MOST])
        return True
    first = next((pod for pod in reversed(turn.condemned) if turn.is_unavailable(pod)), None)
    pod = turn.condemned[0]
    if not is_deleting(pod) and (not turn.is_unavailable(pod) or pod is first):
        yield from _delete(turn, [pod])
    return False


def _roll(turn: Turn) -> Part:
    """The highest ordinals of an old revision go, as many as may be unavailable; what is unavailable costs nothing."""
    count, first = members.replicas(turn.sts), members.start(turn.sts) + members.partition(turn.sts)
    given = (members.rolling(turn.sts) or {}).get("maxUnavailable", 1)
    missing = count - len(turn.replicas)
    left = max(1, scaled(given, count)) - missing - sum(map(turn.is_unavailable, turn.replicas.values()))
    going: list[Object] = []
    for index, pod in reversed(turn.replicas.items()):
        if index < first or members.revision_of(pod) == name_of(turn.update) or is_deleting(pod):
            continue
        if turn.is_unavailable(pod):
            going.append(pod)
        elif left > 0:
            going.append(pod)
            left -= 1
    yield from _delete(turn, going)


# ---- status


def _write_status(turn: Turn) -> Part:
    status = _status(turn)
    if status != status_of(turn.sts):
        write = update({**turn.sts, "status": status}, "status")
        must(write, (yield from one(write)))


def _status(turn: Turn) -> dict[str, Any]:
    sts, now = turn.sts, turn.view.now
    staying = [members.revision_of(pod) for pod in turn.pods if not is_deleting(pod)]
    ready = [pod for pod in turn.pods if members.is_running_and_ready(pod)]
    counts = {
        "readyReplicas": len(ready),
        "currentReplicas": staying.count(name_of(turn.current)),
        "updatedReplicas": staying.count(name_of(turn.update)),
        "observedGeneration": int(meta_of(sts).get("generation") or 0),
    }
    current, wanted = name_of(turn.current), members.replicas(sts)
    if members.is_rolling(sts) and wanted == counts["updatedReplicas"] == counts["readyReplicas"] == len(turn.pods):
        current, counts["currentReplicas"] = name_of(turn.update), counts["updatedReplicas"]
    status: dict[str, Any] = {
        "replicas": len(turn.pods),
        "availableReplicas": sum(members.is_running_and_available(pod, turn.least, now) for pod in ready),
        "collisionCount": turn.collisions,
        "currentRevision": current,
        "updateRevision": name_of(turn.update),
        **{name: value for name, value in counts.items() if value},
    }
    kept = status_of(sts).get("conditions")
    return {**status, **({"conditions": copied(kept)} if kept else {})}
