"""Counters and conditions of a set (spec lws 3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import datetime
from typing import Any

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import meta_of, name_of
from kohort.controllers.conditions import StatusBuilder, set_condition
from kohort.controllers.reconcile import Event
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import replicas
from kohort.kinds.leaderworkerset.control.reading import rolling
from kohort.kinds.leaderworkerset.control.rollout import Seen
from kohort.kinds.leaderworkerset.control.state import Replica

Kind = tuple[str, str, str]  # type, reason, message


class LeaderWorkerSetStatus(StatusBuilder):
    @classmethod
    def of(cls, lws: Object, now: datetime) -> LeaderWorkerSetStatus:
        return cls(lws, now, copied(lws.get("status") or {}))

    @property
    def conditions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.status.setdefault("conditions", [])
        return found

    def set(self, kind: str, value: bool, reason: str, message: str) -> None:
        """A condition; the moment is kept while it says the same."""
        generation = meta_of(self.obj).get("generation") or 0
        set_condition(self.status, self.now, kind, value, reason, message, observedGeneration=generation)


def fill(draft: LeaderWorkerSetStatus, found: Mapping[int, Replica], seen: Seen) -> bool:
    """-> whether everything is of the newest revision and ready, so that older revisions are not needed any more."""
    lws = draft.obj
    counters = {
        "replicas": sum(1 for one in found.values() if one.leader is not None),
        "readyReplicas": len(seen.ready),
        "updatedReplicas": len(seen.updated),
    }
    for name, value in counters.items():
        if value:
            draft.status[name] = value
        else:
            draft.status.pop(name, None)
    draft.status["hpaPodSelector"] = f"{constants.NAME}={name_of(lws)},{constants.WORKER_INDEX}=0"
    draft.status["observedGeneration"] = meta_of(lws).get("generation") or 0
    wanted, least = replicas(lws), int(rolling(lws).get("partition") or 0)
    rolled = [index for index, one in found.items() if least <= index < wanted and one.has_workers]
    all_ready = _all_in(seen.ready, wanted)
    if any(index not in seen.updated for index in rolled):
        _turn(draft, [constants.UPDATING, constants.PROGRESSING], len(seen.ready))
    elif all_ready and all(seen.done(index) for index in rolled):
        _turn(draft, [constants.AVAILABLE], len(seen.ready))
    else:
        _turn(draft, [constants.PROGRESSING], len(seen.ready))
    return all_ready and least == 0 and _all_in(seen.updated, wanted)


def _all_in(some: Set[int], wanted: int) -> bool:
    return sum(1 for index in some if index < wanted) >= wanted


def _turn(draft: LeaderWorkerSetStatus, wanted: list[Kind], ready: int) -> None:
    """Of several conditions the second follows a pass after the first, as upstream's do."""
    before = _said(draft)
    for kind in wanted:
        _set_true(draft, kind)
        if _said(draft) != before:
            break
    for one in draft.conditions:
        one["observedGeneration"] = meta_of(draft.obj).get("generation") or 0
    stale = any(one.get("observedGeneration") != (meta_of(draft.obj).get("generation") or 0) for one in _stored(draft))
    if _said(draft) != before or stale:
        _, reason, message = wanted[0]
        note = f"{message}, with {ready} groups ready of total {replicas(draft.obj)} groups"
        draft.events.append(Event(draft.obj, "Normal", reason, note))


def _stored(draft: LeaderWorkerSetStatus) -> list[dict[str, Any]]:
    ours = {constants.PROGRESSING[0], constants.AVAILABLE[0], constants.UPDATING[0]}
    return [one for one in (draft.obj.get("status") or {}).get("conditions") or () if one.get("type") in ours]


def _said(draft: LeaderWorkerSetStatus) -> list[tuple[str, str]]:
    return [(str(one.get("type")), str(one.get("status"))) for one in draft.conditions]


def _set_true(draft: LeaderWorkerSetStatus, kind: Kind) -> None:
    """Available on one side, Progressing and UpdateInProgress on the other: never both."""
    draft.set(kind[0], True, kind[1], kind[2])
    against = [constants.PROGRESSING, constants.UPDATING] if kind is constants.AVAILABLE else [constants.AVAILABLE]
    for other in against:
        if draft.holds(other[0]):
            draft.set(other[0], False, other[1], other[2])
