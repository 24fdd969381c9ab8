"""The nodes and the scheduler beside which upstream's JobSet manager was recorded, as far as pods could tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.controllers.simapi import Key, SimApi

from kohort.api.kind import Object
from kohort.kinds.jobset.api import placement

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass
class Place:
    """A node; `taint`: the key of its NoSchedule taint; `room`: of pods that ask for a CPU."""

    name: str
    labels: dict[str, str]
    taint: str = ""
    room: int = 100


def places() -> list[Place]:
    racks = [Place(f"rack-{rack}-{n}", {"rack": rack}, "rackonly") for rack in "abc" for n in (0, 1)]
    plain = [Place(f"plain-{n}", {"kubernetes.io/hostname": f"plain-{n}"}) for n in (0, 1)]
    special = [
        Place("zone-x", {"zone": "x"}, "violate"),
        Place("g0", {"pool": "gang"}, "gangonly", 15),
        Place("s0", {"pool": "slices"}, "slicesonly", 8),
    ]
    found = [*plain, *racks, *special]
    for place in found:
        place.labels["kubernetes.io/os"] = "linux"
    return found


class Lab:
    """Binds pods as kube-scheduler did: gates, claims, selectors, taints, room, company, whole gangs."""

    def __init__(self, api: SimApi, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.places = places()

    def labels_of(self, node: str) -> dict[str, str] | None:
        return next((place.labels for place in self.places if place.name == node), None)

    def pods(self) -> list[Object]:
        return [obj for key, obj in self.api.objects.items() if key[0] == "Pod"]

    def bind(self, key: Key) -> bool:
        """Whether the pod is bound now."""
        pod = self.api.objects[key]
        if pod["spec"].get("nodeName"):
            return True
        link = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if link is None:
            return self._bind_all([pod], 1)
        group = self.api.objects.get(("PodGroup", self.namespace, link))
        if group is None:
            return False
        mine = [one for one in self.pods() if (one["spec"].get("schedulingGroup") or {}).get("podGroupName") == link]
        live = [one for one in mine if one["status"].get("phase") not in {"Succeeded", "Failed"}]
        least = int((group["spec"]["schedulingPolicy"].get("gang") or {}).get("minCount") or 1)
        waiting = [one for one in live if not one["spec"].get("nodeName")]
        if len(live) < least:
            return False
        return self._bind_all(waiting, least - (len(live) - len(waiting))) and bool(
            self.api.objects[key]["spec"].get("nodeName")
        )

    def _bind_all(self, pods: Sequence[Object], least: int) -> bool:
        taken: dict[str, int] = {}
        chosen: list[tuple[Object, str]] = []
        for pod in pods:
            node = self._choose(pod, taken)
            if node is not None:
                taken[node] = taken.get(node, 0) + 1
                chosen.append((pod, node))
        if len(chosen) < max(least, 1):
            return False
        for pod, node in chosen:
            key = ("Pod", self.namespace, pod["metadata"]["name"])
            self.api.set_status(key, lambda found, node=node: found["spec"].update(nodeName=node))  # type: ignore[misc]
        return True

    def _choose(self, pod: Object, taken: dict[str, int]) -> str | None:
        spec = pod["spec"]
        claims = [one for one in spec.get("volumes") or () if "persistentVolumeClaim" in one]
        if spec.get("schedulingGates") or claims:  # no volume is ever provisioned
            return None
        fits = [place for place in self.places if self._fits(pod, place, taken)]
        return fits[0].name if fits else None

    def _fits(self, pod: Object, place: Place, taken: dict[str, int]) -> bool:
        spec = pod["spec"]
        if any(place.labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
            return False
        tolerated = {one.get("key") for one in spec.get("tolerations") or ()}
        if place.taint and place.taint not in tolerated:
            return False
        here = sum(1 for one in self.pods() if one["spec"].get("nodeName") == place.name and _lives(one))
        if here + taken.get(place.name, 0) >= place.room:
            return False
        return all(self._apart(pod, place, term) for term in _terms(spec, "podAntiAffinity"))

    def _apart(self, pod: Object, place: Place, term: dict[str, Any]) -> bool:
        """Only what exclusive placement writes: another Job's key in the domain. Nodes without the label are out."""
        key, own = term["topologyKey"], pod["metadata"]["labels"].get(placement.JOB_KEY)
        if key not in place.labels:
            return False
        for other in self.pods():
            labels = self.labels_of(other["spec"].get("nodeName") or "") or {}
            job = other["metadata"].get("labels", {}).get(placement.JOB_KEY)
            if _lives(other) and labels.get(key) == place.labels[key] and job not in (None, own):
                return False
        return True


def _terms(spec: dict[str, Any], member: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ((spec.get("affinity") or {}).get(member) or {}).get(_REQUIRED) or []
    return found


def _lives(pod: Object) -> bool:
    return pod["status"].get("phase") not in {"Succeeded", "Failed"}
