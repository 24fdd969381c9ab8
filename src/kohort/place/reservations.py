"""Room that belongs to a root that is not there yet: freed for it by preemption, nominated, kept after a refused
binding, or held for a gang that waited long. Nobody of equal or lower priority takes it until the owner lands or gives
up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kohort.place.columns import Amounts, Rows
from kohort.place.demand import Demand, PendingPod, renewed_pod
from kohort.place.interpod import EquivalenceClass

if TYPE_CHECKING:
    from kohort.place.state import ClusterState


Assignment = tuple[EquivalenceClass, Rows, Amounts]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Pods that are to come, and the names of their nodes: a row may have another node by the time it counts."""

    owner: str  # name of the root
    priority: int
    pods: Mapping[str, tuple[PendingPod, str]]  # by the pod's key
    backfill: bool = False  # by waiting long: free room, not room that was made for it

    def counts_for(self, owner: str, priority: int) -> bool:
        """Whether a decision for a root must respect it: not the owner's own, and not for those more important."""
        return owner != self.owner and self.priority >= priority

    def nodes(self) -> dict[str, str]:
        """Pod -> node: what `nominatedNodeName` says."""
        return {key: node for key, (_, node) in self.pods.items()}

    def assignments(self, state: ClusterState) -> Iterator[Assignment]:
        """What it takes on the nodes that are there, per class."""
        taken: dict[EquivalenceClass, dict[int, int]] = {}
        for pod, name in self.pods.values():
            row = state.row(name)
            if row is not None:
                rows = taken.setdefault(renewed_pod(pod, state.interpod).eq_class, {})
                rows[row] = rows.get(row, 0) + 1
        for eq_class, rows in taken.items():
            yield eq_class, np.array(list(rows), np.intp), np.array(list(rows.values()), np.int64)

    @classmethod
    def of(cls, root: Demand, priority: int, placed: Mapping[str, int], state: ClusterState) -> Reservation:
        """For the pods of a root that were placed, by row."""
        pods = (pod for leaf in root.leaves() for pod in leaf.pods if pod.key in placed)
        return cls(root.name, priority, {pod.key: (pod, state.node(placed[pod.key]).name) for pod in pods})


class Reservations:
    """One per root at the most. None of them is in the state but inside `Engine.respecting_nominations`."""

    def __init__(self) -> None:
        self._of: dict[str, Reservation] = {}
        self._rows: dict[str, tuple[Reservation, tuple[int, int], list[Assignment]]] = {}  # of those, when last asked
        self.version = 0  # another one: room is kept elsewhere, or by others

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Reservation]:
        return iter(self._of.values())

    def get(self, owner: str) -> Reservation | None:
        return self._of.get(owner)

    def put(self, reservation: Reservation) -> None:
        """In place of the one that its owner had; one for no pods is none."""
        known = self._of.get(reservation.owner)
        if known is None or known.priority != reservation.priority or known.nodes() != reservation.nodes():
            self.version += 1
        if reservation.pods:
            self._of[reservation.owner] = reservation
        else:
            self._of.pop(reservation.owner, None)
            self._rows.pop(reservation.owner, None)

    def add(self, owner: str, priority: int, pod: PendingPod, node: str) -> None:
        """One more pod of the owner is to come."""
        known = self._of.get(owner)
        self.put(Reservation(owner, priority, {**(known.pods if known else {}), pod.key: (pod, node)}))

    def drop(self, owner: str) -> bool:
        """Its owner landed or gave up; whether there was one."""
        if self._of.pop(owner, None) is None:
            return False
        self._rows.pop(owner, None)
        self.version += 1
        return True

    def drop_pod(self, owner: str, pod: str) -> None:
        """One of its pods landed or went away."""
        known = self._of.get(owner)
        if known is not None and pod in known.pods:
            self.put(replace(known, pods={key: seat for key, seat in known.pods.items() if key != pod}))

    def against(self, owner: str, priority: int) -> list[Reservation]:
        """Those that a root has to respect."""
        return [one for one in self._of.values() if one.counts_for(owner, priority)] if self._of else []

    def assignments(self, one: Reservation, state: ClusterState) -> list[Assignment]:
        """What it takes, per class; found anew if nodes or rules between pods have changed since it was last asked."""
        versions, known = (state.nodes.end, state.interpod.renewals), self._rows.get(one.owner)
        if known is not None and known[0] is one and known[1] == versions:
            return known[2]
        found = list(one.assignments(state))
        if self._of.get(one.owner) is one:
            self._rows[one.owner] = (one, (state.nodes.end, state.interpod.renewals), found)
        return found
