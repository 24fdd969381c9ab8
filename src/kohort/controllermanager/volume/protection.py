"""Claims that pods use, and volumes that claims have, are not deleted under them: a finalizer holds them until then.

A claim counts as used while a pod that names it has a node; without one it will not start with a claim that is going.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, meta_of, namespace_of, status_of
from kohort.controllermanager.pods import node_of
from kohort.controllermanager.volume.binding import change
from kohort.controllers.controller import Controller, Enqueue, EventHandler, Key, Reader, Watch, key_of
from kohort.controllers.reconcile import Reconcile, Result
from kohort.place.claims import pod_claims

CLAIM: Final = "kubernetes.io/pvc-protection"
VOLUME: Final = "kubernetes.io/pv-protection"


def claim_protection_controller() -> Controller:
    def reconcile_key(key: Key, reader: Reader, _: datetime) -> Reconcile:
        claim = reader.get("PersistentVolumeClaim", key)
        return protect(claim, CLAIM, used=any(node_of(pod) for pod in reader.indexed("Pod", "claims", key)))

    watches = (
        Watch("v1", "PersistentVolumeClaim", _unless_settled(CLAIM)),
        Watch("v1", "Pod", _of_pod, {"claims": claims_of_pod}),
    )
    return Controller(name="pvc-protection", watches=watches, reconcile=reconcile_key, conditions=False)


def volume_protection_controller() -> Controller:
    def reconcile_key(key: Key, reader: Reader, _: datetime) -> Reconcile:
        volume = reader.get("PersistentVolume", key)
        return protect(volume, VOLUME, used=status_of(volume or {}).get("phase") == "Bound")

    watches = (Watch("v1", "PersistentVolume", _unless_settled(VOLUME)),)
    return Controller(name="pv-protection", watches=watches, reconcile=reconcile_key, conditions=False)


def protect(obj: Object | None, finalizer: str, *, used: bool) -> Reconcile:
    if obj is None:
        return Result()
    had = list(meta_of(obj).get("finalizers") or ())
    if is_deleting(obj) and finalizer in had and not used:
        yield from change(obj, {"metadata": {"finalizers": [one for one in had if one != finalizer] or None}})
    elif not is_deleting(obj) and finalizer not in had:
        yield from change(obj, {"metadata": {"finalizers": [*had, finalizer]}})
    return Result()


def _unless_settled(finalizer: str) -> EventHandler:
    """While it is not going, it is looked at once."""

    def handler(_: Object | None, new: Object | None) -> Iterable[Enqueue]:
        if new is not None and is_deleting(new) == (finalizer in (meta_of(new).get("finalizers") or ())):
            yield Enqueue(key_of(new))

    return handler


def _of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    if old is not None and new is None:
        yield from (Enqueue(key) for key in claims_of_pod(old))


def claims_of_pod(pod: Object) -> tuple[Key, ...]:
    namespace = namespace_of(pod)
    return tuple(Key(namespace, key.partition("/")[2]) for key in pod_claims(pod))
