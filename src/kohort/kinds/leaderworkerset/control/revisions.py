"""ControllerRevisions: the contents that a set has had, the newest of which its groups follow (spec lws 2.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import controller_uid, is_deleting, label, meta_of, name_of, owner_reference, uid_of
from kohort.controllers.reconcile import Event, Part, ReconcileError, emit, one
from kohort.controllers.writes import create
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.revision import revision_data, revision_key
from kohort.kinds.leaderworkerset.control import children, rollout
from kohort.kinds.leaderworkerset.control.rollout import Rollout
from kohort.kinds.leaderworkerset.control.writes import is_ending, put, remove_all


@dataclass(frozen=True, slots=True)
class Revisions:
    """`key`: of the newest; `is_new`: it was made in this pass."""

    lws: Object
    every: Sequence[Object]
    newest: Object
    key: str
    rollout: Rollout
    is_new: bool = False

    def spec_at(self, key: str) -> Object:
        """The set as it was at a revision: its templates, sizes and network of then."""
        if key == self.key:
            return self.lws
        found = _latest([one for one in self.every if label(one, constants.REVISION) == key])
        if found is None:
            return self.lws
        kept = {
            name: {member: item for member, item in (value or {}).items() if member != "$patch"}
            for name, value in ((found.get("data") or {}).get("spec") or {}).items()
        }
        return {**self.lws, "spec": {**self.lws["spec"], **kept}}

    def target(self, index: int) -> str:
        """The revision of a group that is made now."""
        known = {label(one, constants.REVISION) for one in self.every}
        return self.key if self.rollout.is_new(index) or self.rollout.base not in known else self.rollout.base


def _latest(some: Sequence[Object]) -> Object | None:
    return max(some, key=lambda one: (int(one.get("revision") or 0), name_of(one)), default=None)


def ensure(lws: Object, known: Sequence[Object]) -> Part:
    """-> Revisions. One without an owner is adopted; the same content again is a new object with the old key."""
    every = []
    for found in known:
        if controller_uid(found) == uid_of(lws):
            every.append(found)
        elif not controller_uid(found) and not is_deleting(found):
            every.append((yield from _adopt(lws, found)))
    key, newest = revision_key(revision_data(lws)), _latest(every)
    if newest is not None and key in {label(newest, constants.REVISION), revision_key(revision_data(newest["data"]))}:
        key = label(newest, constants.REVISION)  # of the same content, if perhaps in other words
        return Revisions(lws, every, newest, key, rollout.read(newest, lws, key))
    if newest is None:
        state, why = rollout.first(lws, key), "for a newly created LeaderWorkerSet"
    else:
        old = label(newest, constants.REVISION)
        before = rollout.read(newest, lws, old)
        state, why = rollout.begin(lws, before, old), "for updated LWS"
    number = int(newest.get("revision") or 0) + 1 if newest is not None else 1
    wanted = children.revision(lws, key, number, {rollout.ANNOTATION: state.text()})
    made = yield from _make(lws, wanted, f"Creating revision with key {key} {why}")
    if newest is not None:
        yield from emit(*_shrunk(lws, before.groups, state.groups))
    return Revisions(lws, [*every, made], made, key, state, is_new=newest is not None)


def _make(lws: Object, wanted: Object, note: str) -> Part:
    answer = yield from one(create(wanted))
    if answer.refusal is not None and is_ending(answer.refusal):
        raise ReconcileError("its namespace is going")
    if answer.refusal is not None:
        text = f"ControllerRevision {name_of(wanted)} could not be created: {answer.refusal.message}"
        yield from emit(Event(lws, "Warning", "FailedCreate", text))
        raise ReconcileError(text)
    yield from emit(Event(lws, "Normal", "CreatingRevision", note))
    return answer.object or wanted


def _adopt(lws: Object, found: Object) -> Part:
    others = meta_of(found).get("ownerReferences") or []
    answer = yield from one(put(_with(found, ownerReferences=[*others, owner_reference(lws)])))
    if answer.refusal is not None:
        raise ReconcileError(f"ControllerRevision {name_of(found)} could not be adopted: {answer.refusal.message}")
    return answer.object or found


def _with(revision: Object, **meta: Any) -> Object:
    return {**revision, "metadata": {**meta_of(revision), **meta}}


def move(found: Revisions, state: Rollout) -> Part:
    """Write down how far the rollout is. -> Revisions"""
    if state == found.rollout:
        return found
    notes = {**(meta_of(found.newest).get("annotations") or {}), rollout.ANNOTATION: state.text()}
    answer = yield from one(put(_with(found.newest, annotations=notes)))
    if answer.refusal is not None:
        raise ReconcileError(f"ControllerRevision {name_of(found.newest)}: {answer.refusal.message}")
    yield from emit(*_told(found.lws, found.rollout, state))
    return Revisions(found.lws, found.every, answer.object or found.newest, found.key, state, found.is_new)


def _told(lws: Object, old: Rollout, new: Rollout) -> list[Event]:
    found = []
    last = min(old.partition, new.groups) - 1
    if new.partition <= last:
        which = f"replica {last}" if new.partition == last else f"replicas {new.partition} to {last} (inclusive)"
        found.append(Event(lws, "Normal", "GroupsUpdating", f"Updating {which}"))
    early = [index for index in new.ahead if index not in old.ahead]
    found += [Event(lws, "Normal", "GroupsUpdating", f"Updating replica {index}") for index in early]
    return [*found, *_shrunk(lws, old.groups, new.groups)]


def _shrunk(lws: Object, old: int, new: int) -> list[Event]:
    """Upstream says "surge" whatever they were."""
    if new >= old:
        return []
    first, last = (f"{name_of(lws)}-{index}" for index in (new, old - 1))
    which = f"replica {first}" if first == last else f"replicas from {first} to {last}"
    return [Event(lws, "Normal", "GroupsProgressing", f"deleting surge {which}")]


def trim(found: Revisions) -> Part:
    """When nothing is of an older one any more."""
    old = [one for one in found.every if uid_of(one) != uid_of(found.newest) and not is_deleting(one)]
    yield from remove_all(old)
