"""The controller of volumes and claims as the runtime sees it. A key without a namespace is a volume's."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime

from kohort.api.core.storageclass import is_default, names_no_class
from kohort.api.kind import Object
from kohort.api.objects import annotation
from kohort.controllermanager.volume import claim as claims
from kohort.controllermanager.volume import volume as volumes
from kohort.controllermanager.volume.binding import BIND_COMPLETED
from kohort.controllermanager.volume.protection import claims_of_pod
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, enqueue_nothing, key_of
from kohort.controllers.reconcile import Reconcile
from kohort.controllers.reverse_index import ReverseIndex
from kohort.place.volumematch import storage_class_of

_ALL = "all"


def volume_controller() -> Controller:
    waiting = ReverseIndex(_waits_for)

    def of_claim(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        waiting.update(old, new)
        for claim in (old, new):
            name = (claim or {}).get("spec", {}).get("volumeName")
            if name:
                yield Enqueue(Key("", str(name)))
        if new is not None:
            yield Enqueue(key_of(new))
        elif old is not None and annotation(old, claims.SELECTED_NODE):
            yield Enqueue(Key("", f"pvc-{old['metadata'].get('uid')}"))  # it may have been made a moment ago

    def of_volume(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        volume = new or old
        if volume is None:
            return
        yield Enqueue(key_of(volume))
        for one in (old, new):
            yield from (Enqueue(key) for key in _claim_of(one))
        if new is not None and _is_free(new) and (old is None or not _is_free(old)):
            yield from waiting.enqueue(storage_class_of(new))

    def of_class(_: Object | None, new: Object | None) -> Iterable[Enqueue]:
        if new is not None:
            yield from waiting.enqueue(str(new["metadata"]["name"]))
            if is_default(new):
                yield from waiting.enqueue(None)

    watches = (
        Watch("v1", "PersistentVolumeClaim", of_claim),
        Watch("v1", "PersistentVolume", of_volume, {"claim": _claim_of, "free": _free}),
        Watch("storage.k8s.io/v1", "StorageClass", of_class, {_ALL: lambda _: (_ALL,)}),
        Watch("v1", "Pod", enqueue_nothing, {"claims": claims_of_pod}),
    )
    return Controller(
        name="persistentvolume-binder",
        watches=watches,
        reconcile=_reconcile,
        subject=_subject,
        conditions=False,
    )


def _reconcile(key: Key, reader: Reader, _: datetime) -> Reconcile:
    if not key.namespace:
        volume = reader.get("PersistentVolume", key)
        found = [reader.get("PersistentVolumeClaim", one) for one in _claim_of(volume)]
        return volumes.reconcile(volume, found[0] if found else None)
    claim = reader.get("PersistentVolumeClaim", key)
    return claims.reconcile(_view(claim, key, reader) if claim is not None else None)


def _view(claim: Object, key: Key, reader: Reader) -> claims.ClaimView:
    name = storage_class_of(claim)
    volume = str(claim["spec"].get("volumeName") or "")
    return claims.ClaimView(
        claim,
        reader.get("StorageClass", Key("", name)) if name else None,
        reader.get("PersistentVolume", Key("", volume)) if volume else None,
        reader.indexed("PersistentVolume", "claim", key),
        reader.indexed("PersistentVolume", "free", name),
        reader.indexed("Pod", "claims", key),
        reader.indexed("StorageClass", _ALL, _ALL),
    )


def _subject(key: Key, reader: Reader) -> Object | None:
    return reader.get("PersistentVolumeClaim" if key.namespace else "PersistentVolume", key)


def _waits_for(claim: Object) -> Iterable[Hashable]:
    """The class whose volumes a claim waits for; None: the default one."""
    if claim["spec"].get("volumeName") or annotation(claim, BIND_COMPLETED) is not None:
        return ()
    if names_no_class(claim):
        return (None, "")
    return (storage_class_of(claim),)


def _claim_of(volume: Object | None) -> list[Key]:
    had = ((volume or {}).get("spec") or {}).get("claimRef") or {}
    return [Key(str(had.get("namespace") or ""), str(had["name"]))] if had.get("name") else []


def _is_free(volume: Object) -> bool:
    return not volume["spec"].get("claimRef") and (volume.get("status") or {}).get("phase") == "Available"


def _free(volume: Object) -> Iterable[Hashable]:
    return (storage_class_of(volume),) if _is_free(volume) else ()
