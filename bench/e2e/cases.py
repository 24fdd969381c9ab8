"""What is measured: upstream's scheduler_perf list for groups, and the cases of public comparisons.

Sizes are upstream's (docs/spec/scheduler.md, 9.1): nodes of 4 cpu, 32 GiB and 110 pods, pods of 100m and 100 MiB.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Before:
    """Pods of low priority that have nodes when the measured ones come: so many to a node, in groups or not."""

    per_node: int
    cpu: str
    group: int = 0  # pods of a group; 0: none
    port: bool = False  # each takes a host port, so that no two of a gang share a node


@dataclass(frozen=True, slots=True)
class Case:
    """So many groups of so many pods; all of them must have nodes at the end, or those that can."""

    name: str
    nodes: int
    groups: int
    size: int
    gang: bool = True
    racks: int = 0  # that the nodes are in; each group is required to be in one
    running: bool = False  # the scheduler runs when they are created; otherwise it is started with all of them waiting
    cpu: str = "100m"
    memory: str = "100Mi"
    before: Before | None = None
    anchored: bool = False  # each pod must be on the node of an anchor pod, by required affinity
    never: int = 0  # pods of one more gang, which never fits
    restart: float = 0.0  # the share of the pods after which the scheduler is killed and started again
    per_second: float = 0.0  # arrival, as a share of the pods that the API server can create and bind; 0: at once
    seconds: float = 100.0  # so long it is watched

    @property
    def pods(self) -> int:
        return self.groups * self.size


def _ladder(name: str, *, gang: bool) -> list[Case]:
    small = [Case(f"{name} 5000Nodes_{count}Groups", 5000, count, 3, gang) for count in (1000, 2000, 3000)]
    large = [Case(f"{name} 5000Nodes_{count}Groups", 5000, count, 1000, gang) for count in (3, 6, 9)]
    return small + large


def _topology(racks: int) -> list[Case]:
    counts = (750, 1500, 2250)
    name = f"TopologyAwareScheduling {racks} racks"
    return [Case(f"{name} 5000Nodes_{count}Gangs", 5000, count, 4, racks=racks) for count in counts]


_ONE_GANG: Final = Case("GangPreemptionBasic 100Nodes 1 gang", 100, 1, 100, cpu="3970m", before=Before(10, "300m"))
_MANY: Final = replace(_ONE_GANG, groups=10, size=10)

CASES: Final = (
    Case("1000Nodes 100 gangs of 10", 1000, 100, 10),
    *_ladder("GangScheduling", gang=True),
    Case("GangScheduling 5000Nodes_3Groups, created while it runs", 5000, 3, 1000, running=True),
    *_ladder("BasicScheduling", gang=False),
    *_topology(50),
    *_topology(312),
    _ONE_GANG,
    replace(_MANY, name="GangPreemptionBasic 100Nodes 10 gangs"),
    replace(
        _ONE_GANG, name="GangPreemptionPodGroups 100Nodes 1 gang", cpu="3500m", before=Before(5, "600m", 100, True)
    ),
    replace(_MANY, name="GangPreemptionPodGroups 100Nodes 10 gangs", cpu="3500m", before=Before(5, "600m", 10, True)),
    replace(_ONE_GANG, name="GangPreemptionAffinity 100Nodes 1 gang", cpu="3600m", anchored=True),
    replace(_MANY, name="GangPreemptionAffinity 100Nodes 10 gangs", cpu="3600m", anchored=True),
    Case("PreemptionPodGroupScaledCandidates 1000Nodes", 1000, 100, 1, cpu="3970m", before=Before(10, "300m", 10)),
    Case("StarvationPodGroup 10000Nodes", 10_000, 500, 1, gang=False, never=10_000),
    Case("Unschedulable 5000Nodes", 5000, 2000, 3, never=200),
    Case("1000Nodes 10000 x 1", 1000, 10_000, 1),
    Case("1000Nodes 500 x 20", 1000, 500, 20),
    Case("1000Nodes 20 x 500", 1000, 20, 500),
    Case("1000Nodes 1 x 10000", 1000, 1, 10_000),
    Case("Restart 5000Nodes_9Groups, killed at a third", 5000, 9, 1000, restart=1 / 3),
    Case("Memory 5000Nodes with 50000 running pods, 100 gangs of 10", 5000, 100, 10, before=Before(10, "300m")),
    Case("5000Nodes gangs of 3 at half of the limit", 5000, 0, 3, running=True, per_second=0.5, seconds=60.0),
)
