"""Volumes and devices: what claims say about nodes, and which free volume a claim gets once its pod has a node.

Claims of classes that wait for their first consumer are bound by the scheduler's choice (as kube-scheduler's
VolumeBinding): a free volume that fits on the node, or else a node for the provisioner to make one on. Devices are not
allocated here; a ResourceClaim that somebody has allocated restricts its pods to the nodes of its devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kohort.apimachinery.labels import node_meets_term
from kohort.place.claims import (
    Claim,
    Claims,
    any_of,
    pod_claims,
    provisioned_terms,
    resource_claim,
    volume_claim,
    volume_terms,
    waits_for_consumer,
)
from kohort.place.volumematch import asked, capacity, fits, storage_class_of
from kohort.scheduler.model import GroupSpec, Pod, claim_source

Json = dict[str, Any]
PodOnNode = tuple[Json, str, Mapping[str, str]]  # a pod, its node's name and labels

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
DEVICES: Final = "ResourceClaim "  # before the key of one, to tell it from a volume's
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class VolumeBinding:
    """What a claim is to get: a volume that is there, or one to be made for a node."""

    claim: str
    volume: str | None
    node: str


class VolumeCache:
    """Claims, volumes and classes as they are; what follows from them is handed to the engine by `flush`."""

    def __init__(self, claims: Claims) -> None:
        self._engine_claims = claims
        self._claims: dict[str, Json] = {}
        self._volumes: dict[str, Json] = {}
        self._classes: dict[str, Json] = {}
        self._devices: dict[str, Json] = {}
        self._unbound: dict[str, set[str]] = {}  # class -> claims without a volume
        self._offered: dict[str, set[str]] = {}  # class -> volumes
        self._bound: dict[str, str] = {}  # volume -> claim that names it
        self._assumed: dict[str, VolumeBinding] = {}  # by claim
        self._dirty: set[str] = set()  # claims to be looked at again
        self.version = 0  # counts changes that may help somebody

    # ---- what is there

    def set_claim(self, key: str, claim: Json | None) -> None:
        before = self._claims.get(key)
        if before is not None:
            self._unbound.get(storage_class_of(before), set()).discard(key)
            self._bound.pop(_spec(before).get("volumeName") or "", None)
        _put(self._claims, key, claim)
        if claim is not None and _spec(claim).get("volumeName"):
            self._bound[_spec(claim)["volumeName"]] = key
        elif claim is not None:
            self._unbound.setdefault(storage_class_of(claim), set()).add(key)
        self._changed([key])

    def set_volume(self, name: str, volume: Json | None) -> None:
        before = self._volumes.get(name)
        changed: set[str] = {self._bound[name]} if name in self._bound else set()
        for one in (before, volume):
            if one is not None:
                changed |= self._unbound.get(storage_class_of(one), set())
        if before is not None:
            self._offered[storage_class_of(before)].discard(name)
        _put(self._volumes, name, volume)
        if volume is not None:
            self._offered.setdefault(storage_class_of(volume), set()).add(name)
        self._changed(changed)

    def set_class(self, name: str, storage_class: Json | None) -> None:
        _put(self._classes, name, storage_class)
        self._changed(self._unbound.get(name, ()))

    def set_devices(self, key: str, claim: Json | None) -> None:
        """A ResourceClaim."""
        _put(self._devices, key, claim)
        if claim is None:
            self._engine_claims.remove(DEVICES + key)
        else:
            self._engine_claims.put(DEVICES + key, resource_claim(claim))
        self.version += 1

    def _changed(self, claims: Iterable[str]) -> None:
        self._dirty.update(claims)
        self.version += 1

    def flush(self) -> None:
        """The engine learns what changed."""
        while self._dirty:
            key = self._dirty.pop()
            claim = self._claims.get(key)
            if claim is None:
                self._engine_claims.remove(key)
            else:
                self._engine_claims.put(key, self._means(key, claim))

    def _means(self, key: str, claim: Json) -> Claim:
        volume = self._volumes.get(_spec(claim).get("volumeName") or "")
        storage_class = self._classes.get(storage_class_of(claim))
        found = volume_claim(claim, volume, storage_class)
        if not found.usable or volume is not None or _spec(claim).get("volumeName"):
            return found
        node = _selected(claim)
        if node:
            return Claim(terms=[{"matchFields": [_named(node)]}], once=found.once)
        parts = [volume_terms(self._volumes[name]) for name in self._candidates(key, claim)]
        if _provisions(storage_class):
            parts.append(provisioned_terms(storage_class or {}))
        if not parts:
            why = f"finds no free volume of class {storage_class_of(claim)!r} that fits, and nobody provisions one"
            return Claim(once=found.once, usable=False, why=why, remedy="has a free volume of its class that fits")
        return Claim(terms=any_of(parts), once=found.once)

    def _candidates(self, key: str, claim: Json) -> list[str]:
        """Free volumes that a claim may have: the one meant for it alone, or the smallest first."""
        taken = {one.volume for one in self._assumed.values() if one.claim != key}
        found = [
            name
            for name in self._offered.get(storage_class_of(claim), ())
            if name not in taken and name not in self._bound and fits(key, claim, self._volumes[name])
        ]
        meant = [name for name in found if _spec(self._volumes[name]).get("claimRef")]
        return meant or sorted(found, key=lambda name: (capacity(self._volumes[name]), name))

    # ---- what a decision needs

    def unbound(self, pod: Json) -> list[str]:
        """Claims of a pod whose volumes wait for its node, the largest first."""
        keys = [key for key in pod_claims(pod) if key in self._claims and self._waits(self._claims[key])]
        return sorted(keys, key=lambda key: (-asked(self._claims[key]), key))

    def _waits(self, claim: Json) -> bool:
        return not _spec(claim).get("volumeName") and waits_for_consumer(self._classes.get(storage_class_of(claim)))

    def under_way(self, pod: Json) -> Iterator[tuple[str, str, str]]:
        """Claims of a pod for which a volume has been asked for: the claim, who makes it, for which node."""
        for key in self.unbound(pod):
            node = _selected(self._claims[key])
            if node:
                storage_class = self._classes.get(storage_class_of(self._claims[key])) or {}
                yield key, str(storage_class.get("provisioner") or "its provisioner"), node

    def choose(self, assignments: Mapping[str, PodOnNode]) -> tuple[list[VolumeBinding], list[str]]:
        """Volumes for pods that have been given nodes, and the pods that get none there. Nothing is promised yet."""
        chosen: dict[str, VolumeBinding] = {}
        taken: set[str] = set()
        short: list[str] = []
        for uid, (pod, node, labels) in assignments.items():
            for key in self.unbound(pod):
                known = chosen.get(key) or self._assumed.get(key)
                found = known or self._choice(key, node, labels, taken)
                if found is None or not self._reaches(found, node, labels):
                    short.append(uid)
                    break
                chosen[key] = found
                taken |= {found.volume} if found.volume else set()
        return list(chosen.values()), short

    def _choice(self, key: str, node: str, labels: Mapping[str, str], taken: set[str]) -> VolumeBinding | None:
        claim = self._claims[key]
        if not _selected(claim):
            for name in self._candidates(key, claim):
                if name not in taken and _meets(volume_terms(self._volumes[name]), labels, node):
                    return VolumeBinding(key, name, node)
        storage_class = self._classes.get(storage_class_of(claim))
        possible = _provisions(storage_class) and _meets(provisioned_terms(storage_class or {}), labels, node)
        return VolumeBinding(key, None, node) if possible and _selected(claim) in {"", node} else None

    def _reaches(self, assume: VolumeBinding, node: str, labels: Mapping[str, str]) -> bool:
        """Where a volume that is still to be made can be reached, nobody knows: that is looked at once it is there."""
        return assume.volume is None or _meets(volume_terms(self._volumes[assume.volume]), labels, node)

    # ---- promises under way

    def assume(self, bindings: Sequence[VolumeBinding]) -> None:
        self._assumed |= {one.claim: one for one in bindings}
        self._look_again(bindings)

    def forget(self, bindings: Sequence[VolumeBinding]) -> None:
        """They came true, or will not."""
        for one in bindings:
            self._assumed.pop(one.claim, None)
        self._look_again(bindings)

    def _look_again(self, bindings: Sequence[VolumeBinding]) -> None:
        for one in bindings:
            if one.claim in self._claims:
                self._changed(self._unbound.get(storage_class_of(self._claims[one.claim]), ()))

    def claim(self, key: str) -> Json | None:
        return self._claims.get(key)

    def volume(self, name: str) -> Json | None:
        return self._volumes.get(name)

    def completed(self, assume: VolumeBinding) -> bool | None:
        """Whether a promise came true; None: not yet, False: it was taken back."""
        claim = self._claims.get(assume.claim)
        if claim is None:
            return False
        if _spec(claim).get("volumeName"):
            return True
        return None if assume.volume is not None or _selected(claim) in {"", assume.node} else False

    def usable(self, pod: Json, node: str, labels: Mapping[str, str]) -> bool:
        """Whether all its claims can be used on a node, as they are now."""
        self.flush()
        return all(self._engine_claims.get(key).suits(labels, node) for key in pod_claims(pod))


def device_claims(pod: Pod, group: GroupSpec | None) -> Iterator[str]:
    """The ResourceClaims of a pod. One that its PodGroup has under the same name is the group's (KEP-5729)."""
    shared = dict(group.claims) if group is not None else {}
    own = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses or ()}
    for one in pod.spec.resource_claims or ():
        source = claim_source(one)
        made, name = source in shared, one["name"]
        found = one.get("resourceClaimName") or (shared[source] if made else own.get(name))
        if found is None and not made and name in own:
            continue  # the controller says that no claim is needed
        yield f"{DEVICES}{pod.metadata.namespace or 'default'}/{found or name + ' (not made yet)'}"


# ---- volumes and claims


def _spec(obj: Json) -> Json:
    return obj.get("spec") or {}


def _selected(claim: Json) -> str:
    return str((claim["metadata"].get("annotations") or {}).get(SELECTED_NODE) or "")


def _provisions(storage_class: Json | None) -> bool:
    return storage_class is not None and storage_class.get("provisioner") not in {None, "", _NO_PROVISIONER}


def _meets(terms: Sequence[Mapping[str, Any]] | None, labels: Mapping[str, str], node: str) -> bool:
    return terms is None or any(node_meets_term(term, labels, node) for term in terms)


def _named(node: str) -> Json:
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def _put(where: dict[str, Json], key: str, value: Json | None) -> None:
    if value is None:
        where.pop(key, None)
    else:
        where[key] = value
