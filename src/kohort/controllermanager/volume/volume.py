"""One reconcile of a PersistentVolume: its phase, and what becomes of it when its claim is gone."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, is_deleting, name_of, uid_of
from kohort.controllermanager.volume.binding import BOUND_BY_CONTROLLER, change, to_phase
from kohort.controllermanager.volume.provision import PROVISIONED_BY, PROVISIONER
from kohort.controllers.reconcile import Answer, Event, Reconcile, ReconcileError, Result, Step, Write, emit, one
from kohort.controllers.writes import delete

_TEMPORARY: Final = re.compile("/tmp/.+")
Part = Generator[Step, Sequence[Answer], Any]


def reconcile(volume: Object | None, claim: Object | None) -> Reconcile:
    """`claim`: the one that the volume names, as far as watches know."""
    if volume is None or is_deleting(volume):
        return Result()
    had = volume["spec"].get("claimRef") or {}
    if not had or not had.get("uid"):  # free, or kept for a claim that is still to come
        yield from to_phase(volume, "Available")
        return Result()
    if claim is None or uid_of(claim) != had["uid"]:
        claim = yield from _asked(had)
    if claim is None:
        yield from _release(volume)
    elif claim["spec"].get("volumeName") == name_of(volume):
        yield from to_phase(volume, "Bound")
    elif claim["spec"].get("volumeName"):
        yield from _not_wanted(volume)
    return Result()


def _asked(had: dict[str, Any]) -> Generator[Step, Sequence[Answer], Object | None]:
    """A volume may be seen before its claim is. Nothing is thrown away before the server has said that it is gone."""
    get = Write(
        verb="get", api_version="v1", kind="PersistentVolumeClaim", namespace=str(had.get("namespace") or ""),
        name=str(had.get("name")),
    )  # fmt: skip
    answer = yield from one(get)
    if answer.refusal is not None and not answer.refusal.not_found:
        raise ReconcileError(f"{get}: {answer.refusal.message}")
    found = answer.object if answer.ok else None
    return found if found is not None and uid_of(found) == had["uid"] else None


def _release(volume: Object) -> Part:
    if (volume.get("status") or {}).get("phase") != "Failed":
        volume = yield from to_phase(volume, "Released")
    policy = volume["spec"].get("persistentVolumeReclaimPolicy") or "Retain"
    if policy == "Retain":
        return
    made_by = annotation(volume, PROVISIONED_BY)
    if policy == "Delete" and (made_by == PROVISIONER or _TEMPORARY.match(_path(volume))):
        write = delete(volume)
        answer = yield from one(write)
        if answer.refusal is not None and not answer.refusal.not_found:
            raise ReconcileError(f"{write}: {answer.refusal.message}")
    elif policy == "Recycle" or made_by is None:  # a volume that somebody else made, somebody else deletes
        yield from _failed(volume, policy)


def _failed(volume: Object, policy: str) -> Part:
    if (volume.get("status") or {}).get("phase") == "Failed":
        return
    reason = "VolumeFailedRecycle" if policy == "Recycle" else "VolumeFailedDelete"
    note = f'error getting deleter volume plugin for volume "{name_of(volume)}": no deletable volume plugin matched'
    if policy == "Recycle":
        note = "No recycler plugin found for the volume!"
    elif _path(volume):
        note = f"host_path deleter only supports /tmp/.+ but received provided {_path(volume)}"
    yield from emit(Event(volume, "Warning", reason, note))
    yield from to_phase(volume, "Failed", message=note)


def _path(volume: Object) -> str:
    """On its node, where it is a folder there."""
    return str((volume["spec"].get("hostPath") or {}).get("path") or "")


def _not_wanted(volume: Object) -> Part:
    """Its claim has another one."""
    if (
        annotation(volume, PROVISIONED_BY) is not None
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
    ):
        yield from _release(volume)
    elif annotation(volume, BOUND_BY_CONTROLLER) is not None:
        body = {"metadata": {"annotations": {BOUND_BY_CONTROLLER: None}}, "spec": {"claimRef": None}}
        volume = yield from change(volume, body)
        yield from to_phase(volume, "Available")
    elif (volume["spec"]["claimRef"]).get("uid"):
        body = {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}}  # it was kept for that name by somebody
        volume = yield from change(volume, body)
        yield from to_phase(volume, "Available")
