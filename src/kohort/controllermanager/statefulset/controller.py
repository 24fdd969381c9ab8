"""The StatefulSet controller as the runtime sees it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kohort.api.kind import Object
from kohort.api.objects import controller_of, controller_uid, uid_of
from kohort.controllermanager.claims import loose, owner_key
from kohort.controllermanager.podcontrol import BASE_DELAY, BATCH, nothing
from kohort.controllermanager.statefulset.reconcile import View, reconcile
from kohort.controllers.controller import (
    Controller,
    Enqueue,
    Key,
    Reader,
    Watch,
    enqueue_itself,
    enqueue_nothing,
)
from kohort.controllers.reconcile import Reconcile
from kohort.controllers.reverse_index import Adopters


def statefulset_controller() -> Controller:
    adopters = Adopters()

    def of_set(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        adopters.see(old, new)
        return enqueue_itself(old, new)

    def of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        found = {key for pod in (old, new) if pod is not None for key in _set_of(pod)}
        if new is not None and controller_of(new) is None:
            found.update(adopters.of(new))
        return [Enqueue(key, BATCH) for key in sorted(found)]

    def of_claim(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        """A pod may wait for a former claim to go; claims have the labels that their set selects."""
        return [Enqueue(key, BATCH) for key in adopters.of(old)] if old is not None and new is None else []

    watches = (
        Watch("apps/v1", "StatefulSet", of_set),
        Watch("v1", "Pod", of_pod, {"owner": _set_of, "loose": loose}, controllers=("StatefulSet", "")),
        Watch("apps/v1", "ControllerRevision", enqueue_nothing, {"owner": _set_of, "loose": loose}),
        Watch("v1", "PersistentVolumeClaim", of_claim),
    )
    return Controller(name="statefulset", watches=watches, reconcile=_reconcile_key, base_delay=BASE_DELAY)


def _reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
    sts = reader.get("StatefulSet", key)
    if sts is None:
        return nothing()

    def own(kind: str) -> list[Object]:
        found = [*reader.indexed(kind, "owner", key), *reader.indexed(kind, "loose", key.namespace)]
        return [obj for obj in found if controller_uid(obj) in ("", uid_of(sts))]

    return reconcile(
        View(
            sts,
            own("Pod"),
            own("ControllerRevision"),
            lambda name: reader.get("ControllerRevision", Key(key.namespace, name)),
            lambda name: reader.get("PersistentVolumeClaim", Key(key.namespace, name)),
            now,
        )
    )


def _set_of(obj: Object) -> Iterable[Key]:
    return owner_key(obj, "StatefulSet", "apps")
