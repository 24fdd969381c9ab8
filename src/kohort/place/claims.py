"""Claims: what a pod's volumes and shared resource claims say about where it may go.

The engine does not read PersistentVolumes; whoever does hands in, per claim, what follows from it. A claim nobody
told the engine about is missing, and a pod that needs it fits nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kohort.apimachinery.labels import node_meets_term

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
    why: str = ""  # if it is not usable
    remedy: str = ""  # what has to happen to it then

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


MISSING: Final = Claim(usable=False, why="does not exist", remedy="is created")


class Claims:
    """All claims handed in, by namespace/name; and how many pods on nodes hold each claim for one pod.

    Claims that say the same share one name in signatures: a thousand pods with a volume each in one zone have one
    signature.
    """

    def __init__(self) -> None:
        self._known: dict[str, Claim] = {}
        self._shared: dict[str, str] = {}  # what is said -> the name that stands for it
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

    def that_matter(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Names for a signature: of those that say anything. The others do not tell its pods from others."""
        found = (self._name(key, self.get(key)) for key in keys if not self.get(key).says_nothing)
        return tuple(dict.fromkeys(found))

    def _name(self, key: str, claim: Claim) -> str:
        if claim.once or not claim.usable:
            return key
        said = msgspec.json.encode([claim.terms, claim.zones], order="deterministic").decode()
        name = self._shared.get(said)
        if name is None:
            name = self._shared[said] = f"like {key} ({len(self._shared) + 1})"
            self._known[name] = claim
        return name

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
        return Claim(once=once, usable=False, why="is being deleted", remedy="is gone and created anew")
    name = (claim.get("spec") or {}).get("volumeName")
    if name:
        why = f"is bound to the volume {name}, which does not exist"
        missing = Claim(once=once, usable=False, why=why, remedy=f"has its volume {name} back")
        return missing if volume is None else _bound(volume, once)
    if not waits_for_consumer(storage_class):
        # Somebody else must bind it first.
        return Claim(once=once, usable=False, why="is not bound to a volume yet", remedy=_binding(claim, storage_class))
    return Claim(terms=provisioned_terms(storage_class or {}), once=once)


def _binding(claim: Json, storage_class: Json | None) -> str:
    """Who has to bind a claim whose class does not wait for its pod."""
    name = (claim.get("spec") or {}).get("storageClassName") or ""
    if not name:
        return "is bound: it names no storage class, so a PersistentVolume must be made for it"
    if storage_class is None:
        return f"is bound: its storage class {name} does not exist"
    return f"is bound: by {storage_class.get('provisioner')}, the provisioner of its storage class {name}"


def waits_for_consumer(storage_class: Json | None) -> bool:
    """Whether volumes of a class are bound once a pod has a node."""
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


def provisioned_terms(storage_class: Json) -> Sequence[Json] | None:
    """Where volumes of a class can be made; None: anywhere."""
    allowed = storage_class.get("allowedTopologies")
    return None if not allowed else [{"matchExpressions": _rules(item)} for item in allowed]


def volume_terms(volume: Json) -> Sequence[Json] | None:
    """Where a volume can be reached; None: anywhere."""
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    return None if required is None else tuple(required.get("nodeSelectorTerms") or ())


def any_of(parts: Sequence[Sequence[Json] | None]) -> Sequence[Json] | None:
    """Node selector terms that are met where one of the parts is; terms that name values of one label become one."""
    if any(part is None for part in parts):
        return None
    values: dict[str, dict[str, None]] = {}
    others: list[Json] = []
    for term in (term for part in parts for term in part or ()):
        rules: Sequence[Json] = term.get("matchExpressions") or []
        if len(rules) == 1 and not term.get("matchFields") and rules[0]["operator"] == "In":
            values.setdefault(rules[0]["key"], {}).update(dict.fromkeys(rules[0].get("values") or ()))
        else:
            others.append(term)
    one = [{"matchExpressions": [{"key": k, "operator": "In", "values": frozenset(v)}]} for k, v in values.items()]
    return [*one, *others]


def _bound(volume: Json, once: bool) -> Claim:
    labels = volume["metadata"].get("labels") or {}
    zones = {key: tuple(labels[key].split("__")) for key in _ZONES if key in labels}
    return Claim(terms=volume_terms(volume), zones=zones or None, once=once)


def _rules(topology: Json) -> list[Json]:
    return [
        {"key": rule["key"], "operator": "In", "values": rule.get("values") or []}
        for rule in topology.get("matchLabelExpressions") or ()
    ]


def resource_claim(claim: Json) -> Claim:
    """What follows from a ResourceClaim: the nodes where its devices can be used, once somebody has allocated them."""
    allocation = (claim.get("status") or {}).get("allocation")
    if allocation is None:
        why = "has no devices allocated, and Kohort does not allocate devices"
        return Claim(usable=False, why=why, remedy="has devices allocated")
    selector = allocation.get("nodeSelector")
    return Claim() if selector is None else Claim(terms=tuple(selector.get("nodeSelectorTerms") or ()))
