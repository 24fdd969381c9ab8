"""Claims of pods' ephemeral volumes: made from the template in the pod, owned by it, and so gone with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import is_controlled_by, is_deleting, name_of, namespace_of, owner_reference
from kohort.controllermanager.pods import is_terminal
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, enqueue_nothing, key_of
from kohort.controllers.reconcile import Event, Reconcile, ReconcileError, Result, emit, one
from kohort.controllers.writes import create


def ephemeral_volume_controller() -> Controller:
    def reconcile_key(key: Key, reader: Reader, _: datetime) -> Reconcile:
        pod = reader.get("Pod", key)
        wanted = list(claims(pod)) if pod is not None else []
        there = {name_of(one): reader.get("PersistentVolumeClaim", key_of(one)) for one in wanted}
        return reconcile(pod, wanted, there)

    watches = (Watch("v1", "Pod", _of_pod), Watch("v1", "PersistentVolumeClaim", enqueue_nothing))
    return Controller(name="ephemeral-volume", watches=watches, reconcile=reconcile_key, conditions=False)


def _of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """What volumes a pod has does not change."""
    if old is None and new is not None and any(True for _ in _ephemeral(new)):
        yield Enqueue(key_of(new))


def _ephemeral(pod: Object) -> Iterator[dict[str, Any]]:
    return (one for one in (pod.get("spec") or {}).get("volumes") or () if one.get("ephemeral"))


def claims(pod: Object) -> Iterator[Object]:
    for volume in _ephemeral(pod):
        template = volume["ephemeral"].get("volumeClaimTemplate") or {}
        given = template.get("metadata") or {}
        meta = {name: copied(given[name]) for name in ("labels", "annotations") if given.get(name)}
        meta |= {"name": f"{name_of(pod)}-{volume['name']}", "namespace": namespace_of(pod)}
        meta["ownerReferences"] = [owner_reference(pod)]
        spec = copied(template.get("spec") or {})
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def reconcile(pod: Object | None, wanted: Iterable[Object], there: dict[str, Object | None]) -> Reconcile:
    if pod is None or is_deleting(pod) or is_terminal(pod):
        return Result()
    for claim in wanted:
        name = name_of(claim)
        found = there.get(name)
        if found is None:
            answer = yield from one(create(claim))
            if answer.refusal is None:
                continue
            raise ReconcileError(f"claim {namespace_of(claim)}/{name}: {answer.refusal.message}")
        if not is_controlled_by(found, pod):
            note = (
                f"PVC {name} was not created for the pod; an ephemeral volume needs a claim of its own under this name"
            )
            yield from emit(Event(pod, "Warning", "FailedBinding", note))
    return Result()
