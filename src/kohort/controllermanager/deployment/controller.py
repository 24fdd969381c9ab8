"""The Deployment controller as the runtime sees it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kohort.api.kind import Object
from kohort.api.objects import controller_of, controller_uid, uid_of
from kohort.controllermanager.claims import loose, owner_key
from kohort.controllermanager.deployment.reconcile import View, reconcile
from kohort.controllermanager.podcontrol import BASE_DELAY, nothing
from kohort.controllers.controller import (
    Controller,
    Enqueue,
    Key,
    Reader,
    Watch,
    enqueue_itself,
    enqueue_nothing,
    key_of,
)
from kohort.controllers.reconcile import Reconcile
from kohort.controllers.reverse_index import Adopters


def deployment_controller() -> Controller:
    adopters = Adopters()

    def of_deployment(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        adopters.see(old, new)
        return enqueue_itself(old, new)

    def of_set(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        found = {key for rs in (old, new) if rs is not None for key in _deployment_of(rs)}
        if new is not None and controller_of(new) is None:
            found.update(adopters.of(new))
        return [Enqueue(key) for key in sorted(found)]

    watches = (
        Watch("apps/v1", "Deployment", of_deployment),
        Watch("apps/v1", "ReplicaSet", of_set, {"owner": _deployment_of, "loose": loose}),
        # A pod that goes changes its ReplicaSet's status, which is what a Deployment waits for.
        Watch("v1", "Pod", enqueue_nothing, {"owner": _set_of}, controllers=("ReplicaSet",)),
    )
    return Controller(name="deployment", watches=watches, reconcile=_reconcile_key, base_delay=BASE_DELAY)


def _reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
    deployment = reader.get("Deployment", key)
    if deployment is None:
        return nothing()
    sets = [*reader.indexed("ReplicaSet", "owner", key), *reader.indexed("ReplicaSet", "loose", key.namespace)]
    return reconcile(
        View(
            deployment,
            [rs for rs in sets if controller_uid(rs) in ("", uid_of(deployment))],
            lambda name: reader.get("ReplicaSet", Key(key.namespace, name)),
            lambda rs: reader.indexed("Pod", "owner", key_of(rs)),
            now,
        )
    )


def _deployment_of(rs: Object) -> Iterable[Key]:
    return owner_key(rs, "Deployment", "apps")


def _set_of(pod: Object) -> Iterable[Key]:
    return owner_key(pod, "ReplicaSet", "apps")
