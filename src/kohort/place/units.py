"""What preemption may take: pods alone, or all scheduled pods below a group that is disrupted as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from kohort.place.state import ClusterState, PodKey


class Rank(IntEnum):
    """Kinds of units, the more important ones higher."""

    POD = 1
    GROUP = 2
    COMPOSITE = 3


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What preemption must know of a group, by its key."""

    parent: str | None = None
    together: bool = False  # disruptionMode all
    priority: int = 0
    composite: bool = False


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod on its node."""

    pod: PodKey
    row: int


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Pods that go together or stay together."""

    name: str
    pods: tuple[Victim, ...]
    priority: int
    rank: Rank
    started: str  # earliest start; empty counts as now

    @property
    def importance(self) -> tuple[int, int, int, str]:
        """Sorts the least important first: lower priority, simpler kind, fewer pods, later start."""
        return (self.priority, int(self.rank), len(self.pods), _reverse(self.started))


def _reverse(started: str) -> str:
    """Later times sort before earlier ones; a pod that has not started is the latest."""
    return "".join(chr(0x10FFFF - ord(character)) for character in started) if started else ""


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget, matched to pods by whoever builds it."""

    name: str
    pods: frozenset[str]  # uids it covers, those already disrupted left out
    allowed: int


def find_units(state: ClusterState, groups: Mapping[str, GroupFacts]) -> list[Unit]:
    """All units of the cluster, in the order of their first pod's row."""
    gathered: dict[str, list[Victim]] = {}
    facts: dict[str, tuple[int, Rank]] = {}
    for row, node in enumerate(state.facts):
        for pod in node.pods.values() if node else ():
            name, priority, rank = _unit_of(pod, groups)
            gathered.setdefault(name, []).append(Victim(pod, row))
            facts[name] = (priority, rank)
    return [
        Unit(name, tuple(pods), *facts[name], min((one.pod.started for one in pods if one.pod.started), default=""))
        for name, pods in gathered.items()
    ]


def _unit_of(pod: PodKey, groups: Mapping[str, GroupFacts]) -> tuple[str, int, Rank]:
    """The pod's unit: the highest group of its tree that is disrupted as a whole, else the pod itself.

    The priority is that of the root, or of the last ancestor that is known.
    """
    if pod.group is None or pod.group not in groups:
        return pod.uid, pod.priority, Rank.POD
    name, rank = pod.uid, Rank.GROUP
    seen: set[str] = set()
    current: str | None = pod.group
    priority = groups[pod.group].priority
    while current is not None and current in groups and current not in seen:
        seen.add(current)
        group = groups[current]
        priority = group.priority
        if group.together:
            name, rank = f"group {current}", Rank.COMPOSITE if group.composite else Rank.GROUP
        current = group.parent
    return name, priority, rank


def violating(units: Iterable[Unit], budgets: Iterable[Budget]) -> set[str]:
    """Units that would exceed a budget, walking from the most important on as kube-scheduler does."""
    left = {budget.name: budget.allowed for budget in budgets}
    covers = list(budgets)
    over: set[str] = set()
    for unit in sorted(units, key=lambda unit: unit.importance, reverse=True):
        for victim in unit.pods:
            for budget in covers:
                if victim.pod.uid in budget.pods:
                    left[budget.name] -= 1
                    if left[budget.name] < 0:
                        over.add(unit.name)
    return over
