"""Room kept for a root that was promised it: freed by preemption, or nominated, until it lands or gives up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kohort.place.columns import Amounts, Rows
from kohort.place.demand import Demand, Pod, renewed_pod
from kohort.place.pairs import PairClass

if TYPE_CHECKING:
    from kohort.place.state import ClusterState


@dataclass(frozen=True, slots=True)
class Reservation:
    """Pods that are to come, and the names of their nodes: a row may have another node by the time it counts."""

    owner: str  # name of the root
    priority: int
    pods: tuple[tuple[Pod, str], ...]

    def counts_for(self, owner: str, priority: int) -> bool:
        """Whether a decision for a root must respect it: not the owner's own, and not for those more important."""
        return owner != self.owner and self.priority >= priority

    def nodes(self) -> dict[str, str]:
        """Pod -> node: what `nominatedNodeName` says."""
        return {pod.key: node for pod, node in self.pods}

    def seats(self, state: ClusterState) -> Iterator[tuple[PairClass, Rows, Amounts]]:
        """What it takes on the nodes that are there, per class."""
        taken: dict[PairClass, dict[int, int]] = {}
        for pod, name in self.pods:
            row = state.row(name)
            if row is not None:
                rows = taken.setdefault(renewed_pod(pod, state.pairs).kind, {})
                rows[row] = rows.get(row, 0) + 1
        for kind, rows in taken.items():
            yield kind, np.array(list(rows), np.intp), np.array(list(rows.values()), np.int64)

    @classmethod
    def of(cls, root: Demand, priority: int, placed: Mapping[str, int], state: ClusterState) -> Reservation:
        """For the pods of a root that were placed, by row."""
        pods = (pod for leaf in root.leaves() for pod in leaf.pods if pod.key in placed)
        return cls(root.name, priority, tuple((pod, state.node(placed[pod.key]).name) for pod in pods))
