"""One reconcile of a PersistentVolumeClaim: it finds a volume, has one made, or waits and says for what."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kohort.api.core.storageclass import default_class, names_no_class
from kohort.api.kind import Object
from kohort.api.objects import annotation, is_deleting, name_of, namespace_of, uid_of
from kohort.controllermanager.volume.binding import BIND_COMPLETED, BOUND_BY_CONTROLLER, bind, change, to_phase
from kohort.controllermanager.volume.provision import PROVISIONER, volume_for, volume_name
from kohort.controllers.reconcile import Answer, Event, Reconcile, ReconcileError, Result, Step, emit, one
from kohort.controllers.writes import create
from kohort.place.claims import waits_for_consumer
from kohort.place.volumematch import capacity, fits, mismatch, storage_class_of

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONERS: Final = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
_EXTERNAL: Final = (
    "Waiting for a volume to be created either by the external provisioner '{name}' or manually by the system "
    "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
    "registered."
)
Part = Generator[Step, Sequence[Answer], Any]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """What a claim is looked at with. `named`: the volume of its volumeName. `meant`: volumes whose claimRef names it.

    `free`: those of its class that nobody has. `users`: pods that name it.
    """

    claim: Object
    storage_class: Object | None
    named: Object | None
    meant: Sequence[Object]
    free: Sequence[Object]
    users: Sequence[Object]
    defaults: Sequence[Object]


def reconcile(view: ClaimView | None) -> Reconcile:
    """`view` None: the claim is gone."""
    if view is None:
        return Result()
    claim = view.claim
    if annotation(claim, BIND_COMPLETED) is not None:
        yield from _bound(view)
    elif is_deleting(claim):
        return Result()
    elif claim["spec"].get("volumeName"):
        yield from _asks_for_one(view)
    else:
        yield from _unbound(view)
    return Result()


# ---- bound


def _bound(view: ClaimView) -> Part:
    claim, volume = view.claim, view.named
    if not claim["spec"].get("volumeName"):
        return (yield from _lost(claim, "ClaimLost", "Bound claim has lost reference to PersistentVolume."))
    if volume is None:
        return (yield from _lost(claim, "ClaimLost", "Bound claim has lost its PersistentVolume."))
    had = volume["spec"].get("claimRef") or {}
    if not had or had.get("uid") == uid_of(claim):
        return (yield from bind(volume, claim))
    note = "Two claims are bound to the same volume, this one is bound incorrectly"
    return (yield from _lost(claim, "ClaimMisbound", note, loss=""))


def _lost(claim: Object, reason: str, note: str, loss: str = " Data on the volume is lost!") -> Part:
    if (claim.get("status") or {}).get("phase") != "Lost":
        yield from to_phase(claim, "Lost", accessModes=None, capacity=None)
        yield from emit(Event(claim, "Warning", reason, note + loss))


# ---- with a volume that was named


def _asks_for_one(view: ClaimView) -> Part:
    claim, volume = view.claim, view.named
    if volume is None:
        return (yield from _pending(claim))
    had = volume["spec"].get("claimRef") or {}
    if not had:
        why = mismatch(claim, volume)
        if why:
            name = name_of(volume)
            note = f'Cannot bind to requested volume "{name}": {why}'
            yield from emit(Event(claim, "Warning", "VolumeMismatch", note))
            return (yield from _pending(claim))
        return (yield from bind(volume, claim))
    if _is_for(had, claim):
        return (yield from bind(volume, claim))
    if annotation(claim, BOUND_BY_CONTROLLER) is None:
        note = f'volume "{name_of(volume)}" already bound to a different claim.'
        yield from emit(Event(claim, "Warning", "FailedBinding", note))
        return (yield from _pending(claim))
    raise ReconcileError(f"claim {namespace_of(claim)}/{name_of(claim)} names a volume that is another claim's")


def _is_for(had: dict[str, Any], claim: Object) -> bool:
    same = (had.get("namespace"), had.get("name")) == (namespace_of(claim), name_of(claim))
    return same and had.get("uid") in {None, "", uid_of(claim)}


# ---- without one


def _unbound(view: ClaimView) -> Part:
    claim = view.claim
    found = default_class(view.defaults) if names_no_class(claim) else None
    if found is not None:  # it was made before there was a default; the change brings it back
        return (yield from change(claim, {"spec": {"storageClassName": name_of(found)}}))
    chosen = annotation(claim, SELECTED_NODE)
    delayed = waits_for_consumer(view.storage_class)
    volume = _smallest(claim, view.meant if delayed else [*view.meant, *view.free])
    if volume is not None:
        return (yield from bind(volume, claim))
    if delayed and not chosen:
        yield from emit(_waits(claim, view.users))
    elif storage_class_of(claim):
        return (yield from _provision(claim, view.storage_class))
    else:
        note = "no persistent volumes available for this claim and no storage class is set"
        yield from emit(Event(claim, "Normal", "FailedBinding", note))
    return (yield from _pending(claim))


def _smallest(claim: Object, volumes: Iterable[Object]) -> Object | None:
    key = f"{namespace_of(claim)}/{name_of(claim)}"
    found = [one for one in volumes if storage_class_of(one) == storage_class_of(claim) and fits(key, claim, one)]
    meant = [one for one in found if one["spec"].get("claimRef")]
    return min(meant or found, key=lambda one: (capacity(one), name_of(one)), default=None)


def _waits(claim: Object, users: Sequence[Object]) -> Event:
    waiting = [name_of(pod) for pod in users if not (pod.get("spec") or {}).get("nodeName") and not is_deleting(pod)]
    if waiting:
        note = f"waiting for pod {waiting[0]} to be scheduled"
        return Event(claim, "Normal", "WaitForPodScheduled", note)
    return Event(claim, "Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding")


def _pending(claim: Object) -> Part:
    yield from to_phase(claim, "Pending")


# ---- provisioning


def _provision(claim: Object, storage_class: Object | None) -> Part:
    if storage_class is None:
        note = f'storageclass.storage.k8s.io "{storage_class_of(claim)}" not found'
        yield from emit(Event(claim, "Warning", "ProvisioningFailed", note))
        return (yield from _pending(claim))
    provisioner = str(storage_class.get("provisioner") or "")
    if provisioner == "kubernetes.io/no-provisioner":
        note = f"storage class {name_of(storage_class)} has no provisioner, and no free volume fits"
        yield from emit(Event(claim, "Warning", "ProvisioningFailed", note))
        return (yield from _pending(claim))
    if any(annotation(claim, name) != provisioner for name in STORAGE_PROVISIONERS):
        claim = yield from change(
            claim, {"metadata": {"annotations": dict.fromkeys(STORAGE_PROVISIONERS, provisioner)}}
        )
    if provisioner != PROVISIONER:
        yield from emit(Event(claim, "Normal", "ExternalProvisioning", _EXTERNAL.format(name=provisioner)))
        return (yield from _pending(claim))
    yield from _made(claim, storage_class)


def _made(claim: Object, storage_class: Object) -> Part:
    write = create(volume_for(claim, storage_class))
    answer = yield from one(write)
    if answer.refusal is not None:
        if not answer.refusal.already_exists:
            yield from emit(Event(claim, "Warning", "ProvisioningFailed", answer.refusal.message))
        raise ReconcileError(f"{write}: {answer.refusal.message}")
    note = f"Successfully provisioned volume {volume_name(claim)}"
    yield from emit(Event(claim, "Normal", "ProvisioningSucceeded", note))
    yield from bind(answer.object or write.body, claim)
