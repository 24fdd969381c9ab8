"""The four writes that bind a claim and a volume, in the order in which a crash between any two of them is mended."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, meta_of, name_of, status_of, uid_of
from kohort.controllermanager.volume.provision import reference
from kohort.controllers.reconcile import Answer, ReconcileError, Step, one
from kohort.controllers.writes import patch

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"

Change = Generator[Step, Sequence[Answer], Object]


def bind(volume: Object, claim: Object) -> Generator[Step, Sequence[Answer], None]:
    volume = yield from _claimed(volume, claim)
    yield from to_phase(volume, "Bound")
    claim = yield from _named(claim, volume)
    status = {
        "phase": "Bound",
        "accessModes": list(volume["spec"].get("accessModes") or ()),
        "capacity": {"storage": (volume["spec"].get("capacity") or {}).get("storage")},
    }
    known = status_of(claim)
    if {name: known.get(name) for name in status} != status:
        yield from change(claim, {"status": status}, "status")


def _claimed(volume: Object, claim: Object) -> Change:
    had = volume["spec"].get("claimRef") or {}
    if had.get("uid") == uid_of(claim):
        return volume
    body: dict[str, Any] = {"spec": {"claimRef": reference(claim)}}
    if not had:  # our choice, so it may be taken back
        body["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return (yield from change(volume, body))


def _named(claim: Object, volume: Object) -> Change:
    body: dict[str, Any] = {}
    annotations = {BIND_COMPLETED: "yes"} if annotation(claim, BIND_COMPLETED) is None else {}
    if not claim["spec"].get("volumeName"):
        body["spec"] = {"volumeName": name_of(volume)}
        annotations[BOUND_BY_CONTROLLER] = "yes"
    if annotations:
        body["metadata"] = {"annotations": annotations}
    return (yield from change(claim, body)) if body else claim


def to_phase(obj: Object, phase: str, **more: Any) -> Change:
    """Of a claim or a volume."""
    if status_of(obj).get("phase") == phase:
        return obj
    return (yield from change(obj, {"status": {"phase": phase, **more}}, "status"))


def change(obj: Object, body: dict[str, Any], subresource: str = "") -> Change:
    """A merge patch of the very version that was looked at."""
    guard = {name: meta_of(obj)[name] for name in ("uid", "resourceVersion") if meta_of(obj).get(name)}
    write = patch(obj, {**body, "metadata": {**body.get("metadata", {}), **guard}}, subresource)
    answer = yield from one(write)
    if answer.refusal is not None:
        raise ReconcileError(f"{write}: {answer.refusal.message}")
    return answer.object or obj
