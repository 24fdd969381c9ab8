"""Rolling a set to new templates, one replica of it at a time (spec grove 1.9)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, name_of, status_of
from kohort.apimachinery import times
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.control.clique_update import is_current
from kohort.kinds.grove.control.sets import CliqueSet
from kohort.kinds.grove.control.writing import number


@dataclass(frozen=True, slots=True)
class Children:
    """The standalone PodCliques and the scaling groups of a set, by name."""

    pcs: CliqueSet
    cliques: dict[str, Object]
    groups: dict[str, Object]

    def standalone(self, index: int) -> list[Object]:
        return [self.cliques[name] for name in self.pcs.standalone_names(index) if name in self.cliques]

    def scaling(self, index: int) -> list[Object]:
        return [self.groups[name] for name in self.pcs.group_names(index) if name in self.groups]

    def is_whole(self, index: int) -> bool:
        pcs, there = self.pcs, [*self.standalone(index), *self.scaling(index)]
        return len(there) == len(pcs.standalone) + len(pcs.groups) and not any(map(is_deleting, there))

    def is_available(self, index: int) -> bool:
        return self.is_whole(index) and all(
            int(status_of(one).get(count) or 0) >= int(one["spec"].get("minAvailable") or 0)
            for some, count in ((self.standalone(index), "readyReplicas"), (self.scaling(index), "availableReplicas"))
            for one in some
        )

    def is_updated(self, index: int) -> bool:
        """All have come to the generation of today."""
        return self.is_whole(index) and self.updated(index) == (len(self.pcs.standalone), len(self.pcs.groups))

    def updated(self, index: int) -> tuple[int, int]:
        """How many PodCliques and how many scaling groups have."""
        cliques = sum(is_current(self.pcs, one) for one in self.standalone(index))
        return cliques, sum(self._is_current_group(one) for one in self.scaling(index))

    def _is_current_group(self, group: Object) -> bool:
        current = status_of(group).get("currentPodCliqueSetGenerationHash")
        return not is_deleting(group) and bool(current) and current == self.pcs.stored_hash

    def scheduled(self, index: int) -> int:
        pods = sum(int(status_of(one).get("scheduledReplicas") or 0) for one in self.standalone(index))
        for group in self.scaling(index):
            per = sum(
                int(self.pcs.cliques[name]["spec"].get("minAvailable") or 0) for name in group["spec"]["cliqueNames"]
            )
            pods += int(status_of(group).get("scheduledReplicas") or 0) * per
        return pods


def by_name(objects: Iterable[Object]) -> dict[str, Object]:
    return {name_of(one): one for one in objects}


def begin(pcs: CliqueSet, status: dict[str, Any], now: datetime) -> None:
    """The templates have changed. With OnDelete it has ended at once: nobody knows when the user deletes pods."""
    started = times.seconds(now)
    status["updateProgress"] = {
        "updateStartedAt": started,
        **({"updateEndedAt": started} if pcs.on_delete else {}),
    }
    status["updatedReplicas"] = 0


def advance(
    children: Children, status: dict[str, Any], breached: Collection[int], ended: Collection[int], now: datetime
) -> None:
    """The next replica, when the last one is done. `breached`: below their minimum; `ended`: just deleted."""
    pcs = children.pcs
    if not pcs.is_rolling:
        return
    progress: dict[str, Any] = dict(status["updateProgress"])
    current = progress.get("currentlyUpdating")
    if current:
        index = int(current[0]["replicaIndex"])
        if index < pcs.replicas and not children.is_updated(index):
            return
    pending = [index for index in range(pcs.replicas) if index not in ended and not children.is_updated(index)]
    if pending:
        first = min(pending, key=lambda index: (children.scheduled(index) > 0, index not in breached, index))
        progress["currentlyUpdating"] = [{"replicaIndex": first, "updateStartedAt": times.seconds(now)}]
    else:
        progress.pop("currentlyUpdating", None)
        progress["updateEndedAt"] = times.seconds(now)
    status["updateProgress"] = progress


def count(children: Children, status: dict[str, Any]) -> None:
    pcs, indices = children.pcs, range(children.pcs.replicas)
    available = [index for index in indices if children.is_available(index)]
    status |= {
        "replicas": pcs.replicas,
        "availableReplicas": len(available),
        "updatedReplicas": sum(children.is_updated(index) for index in available),
    }
    if status.get("updateProgress"):
        done = [children.updated(index) for index in indices]
        status["updateProgress"] = {
            **status["updateProgress"],
            "updatedPodCliquesCount": sum(cliques for cliques, _ in done),
            "totalPodCliquesCount": pcs.replicas * len(pcs.standalone),
            "updatedPodCliqueScalingGroupsCount": sum(groups for _, groups in done),
            "totalPodCliqueScalingGroupsCount": pcs.replicas * len(pcs.groups),
        }


def replica_of(obj: Object) -> int:
    return number(obj, constants.SET_INDEX)
