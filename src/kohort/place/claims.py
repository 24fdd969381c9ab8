"""Claims: what a pod's volumes and shared resource claims say about where it may go.

The engine does not read PersistentVolumes; whoever does hands in, per claim, what follows from it. A claim nobody
told the engine about is missing, and a pod that needs it fits nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kohort.place.selectors import node_meets_term

Json = Mapping[str, Any]
_ZONES: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


@dataclass(frozen=True, slots=True)
class Claim:
    """Where pods that use a claim may go. No field set: anywhere."""

    terms: Sequence[Json] | None = None  # node selector terms, any of them
    zones: Mapping[str, tuple[str, ...]] | None = None  # label -> values; for nodes that have such labels
    once: bool = False  # ReadWriteOncePod: one pod in the whole cluster
    usable: bool = True  # False: it waits for something that no node can give

    @property
    def says_nothing(self) -> bool:
        return self.usable and self.terms is None and not self.zones and not self.once

    def suits(self, labels: Mapping[str, str], name: str) -> bool:
        if not self.usable:
            return False
        if self.terms is not None and not any(node_meets_term(term, labels, name) for term in self.terms):
            return False
        # kube-scheduler's VolumeZone lets a node pass that carries no zone label at all.
        if not self.zones or not any(key in labels for key in _ZONES):
            return True
        return all(labels.get(key) in values for key, values in self.zones.items())


MISSING: Final = Claim(usable=False)


class Claims:
    """All claims handed in, by namespace/name; and how many pods on nodes hold each claim for one pod."""

    def __init__(self) -> None:
        self._known: dict[str, Claim] = {}
        self.holders: dict[str, int] = {}
        self.version = 0

    def put(self, key: str, claim: Claim) -> None:
        if self._known.get(key) != claim:
            self._known[key] = claim
            self.version += 1

    def remove(self, key: str) -> None:
        if self._known.pop(key, None) is not None:
            self.version += 1

    def get(self, key: str) -> Claim:
        return self._known.get(key, MISSING)

    def items(self) -> list[tuple[str, Claim]]:
        return list(self._known.items())

    def of_pod(self, obj: Json) -> tuple[str, ...]:
        """The claims of a pod that say anything: the others do not tell its shape from another's."""
        return tuple(key for key in pod_claims(obj) if not self.get(key).says_nothing)

    def free(self, keys: Sequence[str]) -> bool:
        """Whether no claim for one pod is held already."""
        return not any(self.holders.get(key) and self.get(key).once for key in keys)

    def hold(self, keys: Sequence[str], count: int) -> None:
        for key in keys:
            left = self.holders.get(key, 0) + count
            if left:
                self.holders[key] = left
            else:
                self.holders.pop(key, None)


def pod_claims(obj: Json) -> list[str]:
    """Keys of the volume claims that a pod uses; an ephemeral volume's claim is called after pod and volume."""
    meta = obj["metadata"]
    namespace = meta.get("namespace") or "default"
    keys = []
    for volume in (obj.get("spec") or {}).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            keys.append(f"{namespace}/{volume['persistentVolumeClaim']['claimName']}")
        elif volume.get("ephemeral"):
            keys.append(f"{namespace}/{meta['name']}-{volume['name']}")
    return keys


def volume_claim(claim: Json, volume: Json | None = None, storage_class: Json | None = None) -> Claim:
    """What follows from a PersistentVolumeClaim, the volume it is bound to, and its storage class."""
    once = "ReadWriteOncePod" in ((claim.get("spec") or {}).get("accessModes") or ())
    if (claim["metadata"]).get("deletionTimestamp") is not None:
        return Claim(once=once, usable=False)
    if (claim.get("spec") or {}).get("volumeName"):
        return MISSING if volume is None else _bound(volume, once)
    if storage_class is None or storage_class.get("volumeBindingMode") != "WaitForFirstConsumer":
        return Claim(once=once, usable=False)  # somebody else must bind it first
    allowed = storage_class.get("allowedTopologies")
    terms = None if not allowed else [{"matchExpressions": _rules(item)} for item in allowed]
    return Claim(terms=terms, once=once)


def _bound(volume: Json, once: bool) -> Claim:
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    labels = volume["metadata"].get("labels") or {}
    zones = {key: tuple(labels[key].split("__")) for key in _ZONES if key in labels}
    terms = None if required is None else tuple(required.get("nodeSelectorTerms") or ())
    return Claim(terms=terms, zones=zones or None, once=once)


def _rules(topology: Json) -> list[Json]:
    return [
        {"key": rule["key"], "operator": "In", "values": rule.get("values") or []}
        for rule in topology.get("matchLabelExpressions") or ()
    ]


def resource_claim(claim: Json) -> Claim:
    """What follows from a ResourceClaim: nothing until it is allocated, then the nodes where it can be used."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    selector = allocation.get("nodeSelector")
    return Claim() if selector is None else Claim(terms=tuple(selector.get("nodeSelectorTerms") or ()))
