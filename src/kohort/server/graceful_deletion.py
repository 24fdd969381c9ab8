"""Graceful deletion: whether an object is deleted now, or marked and kept for its grace period and finalizers.

Finalizers keep an object, and the policy of a deletion is a finalizer, too. Only pods have a grace period; it can be
shortened once it runs, and nothing else about the deletion can be changed any more.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from kohort.apimachinery.times import parse
from kohort.server import timestamps

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.options import DeleteOptions
    from kohort.server.resources import Resource

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_ORPHANS: Final = {("", "ReplicationController"), ("batch", "Job")}  # what they made stays unless asked otherwise
_UNCOLLECTED: Final = {("", "Event"), ("events.k8s.io", "Event")}  # nobody belongs to them: policies do not count


class DeletionOutcome(Enum):
    TERMINATING = auto()  # it is terminating already, and nothing changes
    MARKED = auto()  # it stays, with a deletionTimestamp
    MARKED_AND_DELETED = auto()  # it is marked, and nothing keeps it: two writes, as upstream
    DELETED = auto()  # at once, as it was stored


def before_delete(resource: Resource, obj: Object, chosen: DeleteOptions) -> DeletionOutcome:
    """Prepare an object for its deletion, in place."""
    meta = obj["metadata"]
    graceful = False
    if _is(resource, "", "Pod"):
        if meta.get("deletionTimestamp") and meta.get("deletionGracePeriodSeconds"):
            if chosen.grace is None or _seconds(chosen.grace) >= meta["deletionGracePeriodSeconds"]:
                return DeletionOutcome.TERMINATING
            _shorten_grace(meta, _seconds(chosen.grace))
            graceful = True
        elif not meta.get("deletionTimestamp"):
            _set_deletion(meta, _grace(obj, chosen))
            graceful = True
    finalizers = _finalizers(resource, meta.get("finalizers") or [], chosen)
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    kept = bool(finalizers) or _is_kept(resource, obj)
    if graceful:
        return (
            DeletionOutcome.MARKED if kept or meta["deletionGracePeriodSeconds"] else DeletionOutcome.MARKED_AND_DELETED
        )
    if not kept:
        return DeletionOutcome.DELETED
    _set_deletion(meta, 0)
    if _is(resource, "", "Namespace"):
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return DeletionOutcome.MARKED


def _finalizers(resource: Resource, now: list[str], chosen: DeleteOptions) -> list[str]:
    if (resource.group, resource.kind) in _UNCOLLECTED:
        return now
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(chosen.propagation, "")
    if not chosen.propagation:
        if FOREGROUND in now or ORPHAN in now:
            return now
        if (resource.group, resource.kind) in _ORPHANS:
            wanted = ORPHAN
    kept = [name for name in now if name not in {FOREGROUND, ORPHAN} or name == wanted]
    return [*kept, wanted] if wanted and wanted not in kept else kept


def _is(resource: Resource, group: str, kind: str) -> bool:
    return (resource.group, resource.kind) == (group, kind)


def _is_kept(resource: Resource, obj: Object) -> bool:
    """A namespace has finalizers of its own."""
    return _is(resource, "", "Namespace") and bool((obj.get("spec") or {}).get("finalizers"))


def _set_deletion(meta: Object, grace: int) -> None:
    if not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = timestamps.stamp(timestamps.now() + timedelta(seconds=grace))
        if meta.get("generation"):
            meta["generation"] += 1
    meta["deletionGracePeriodSeconds"] = grace


def _shorten_grace(meta: Object, grace: int) -> None:
    """The time counts from when it was asked first, but is not over before now."""
    asked = parse(meta["deletionTimestamp"]) or timestamps.now()
    end = asked + timedelta(seconds=grace - meta["deletionGracePeriodSeconds"])
    if end < timestamps.now():
        end, grace = timestamps.now(), min(grace, 1)
    meta["deletionTimestamp"] = timestamps.stamp(end)
    meta["deletionGracePeriodSeconds"] = grace


def _seconds(given: int) -> int:
    return 1 if given < 0 else given


def _grace(pod: Object, chosen: DeleteOptions) -> int:
    """None where nobody runs it, or nothing runs any more."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return 0
    wanted = chosen.grace if chosen.grace is not None else spec.get("terminationGracePeriodSeconds")
    return _seconds(int(wanted)) if wanted is not None else 0
