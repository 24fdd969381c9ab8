"""What preemption may take: pods alone, or all scheduled pods below a group that is disrupted as a whole."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Final

from kohort.place.state import AssignedPod, ClusterState

LOWEST: Final = -(2**31)  # of all priorities


class Rank(IntEnum):
    """Kinds of victim sets, the more important ones higher."""

    POD = 1
    GROUP = 2
    COMPOSITE = 3


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """What preemption must know of a group, by its key."""

    parent: str | None = None
    disrupt_all: bool = False  # disruptionMode all
    priority: int | None = 0  # None: it has none of its own, and that of its pods counts
    composite: bool = False
    minimum: int | None = None  # of a gang of pods: members beyond it are surplus


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod on its node."""

    pod: AssignedPod
    row: int


@dataclass(frozen=True, slots=True, eq=False)
class VictimSet:
    """Pods that go together or stay together."""

    name: str
    pods: tuple[Victim, ...]
    priority: int
    rank: Rank
    started: str  # earliest start; empty counts as now
    group: str | None = None  # key of the group that goes as a whole
    breaks: bool = False  # a whole group, or a member that its gang cannot spare
    leaving: bool = False  # all of it is going already: nothing is lost by counting on that
    # Sorts the least important first: leaving, lower priority, surplus, simpler kind, fewer pods, later start.
    importance: tuple[bool, int, bool, int, int, str] = field(init=False)

    def __post_init__(self) -> None:
        key = (not self.leaving, self.priority, self.breaks, int(self.rank), len(self.pods), reverse(self.started))
        object.__setattr__(self, "importance", key)

    @property
    def level(self) -> int:
        """The priority that is touched if it goes."""
        return LOWEST if self.leaving else self.priority


@lru_cache(maxsize=1 << 16)
def reverse(started: str) -> str:
    """Later times sort before earlier ones; a pod that has not started is the latest."""
    return "".join(chr(0x10FFFF - ord(character)) for character in started) if started else ""


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget, matched to pods by whoever builds it."""

    name: str
    pods: frozenset[str]  # uids it covers, those already disrupted left out
    allowed: int


def find_victim_sets(
    state: ClusterState, groups: Mapping[str, GroupInfo], protected: Container[str] = ()
) -> list[VictimSet]:
    """All victim sets of the cluster, in the order of their first pod's row; those of `protected` pods left out."""
    gathered: dict[str, list[Victim]] = {}
    facts: dict[str, tuple[int, Rank, str | None]] = {}
    for row, node in enumerate(state.node_infos):
        for pod in node.pods.values() if node else ():
            name, priority, rank, group = _victim_set_of(pod, groups)
            gathered.setdefault(name, []).append(Victim(pod, row))
            known = facts.get(name)
            facts[name] = (priority if known is None else max(priority, known[0]), rank, group)
    needed = _needed(state, groups)
    found = []
    for name, pods in gathered.items():
        priority, rank, group = facts[name]
        breaks = group is not None or name in needed
        if protected and any(one.pod.uid in protected for one in pods):
            continue
        leaving = all(one.pod.terminating for one in pods)
        found.append(VictimSet(name, tuple(pods), priority, rank, _start(pods), group, breaks, leaving))
    return found


def _start(pods: Iterable[Victim]) -> str:
    return min((one.pod.started for one in pods if one.pod.started), default="")


def _needed(state: ClusterState, groups: Mapping[str, GroupInfo]) -> set[str]:
    """Members that their gang cannot spare: the oldest of it, up to its minimum. Terminating ones are gone already."""
    members: dict[str, list[AssignedPod]] = {}
    for node in state.node_infos:
        for pod in node.pods.values() if node else ():
            group = groups.get(pod.group) if pod.group is not None else None
            if pod.group is not None and group is not None and group.minimum is not None and not pod.terminating:
                members.setdefault(pod.group, []).append(pod)
    needed: set[str] = set()
    for name, pods in members.items():
        oldest = sorted(pods, key=lambda pod: (reverse(pod.started), pod.uid), reverse=True)
        needed.update(pod.uid for pod in oldest[: groups[name].minimum])
    return needed


def _victim_set_of(pod: AssignedPod, groups: Mapping[str, GroupInfo]) -> tuple[str, int, Rank, str | None]:
    """The pod's victim set: the highest group of its tree that is disrupted as a whole, else the pod itself.

    The priority is that of the root, or of the last ancestor that is known.
    """
    if pod.group is None or pod.group not in groups:
        return pod.uid, pod.priority, Rank.POD, None
    rank, whole = Rank.GROUP, None
    seen: set[str] = set()
    current: str | None = pod.group
    priority = pod.priority
    while current is not None and current in groups and current not in seen:
        seen.add(current)
        group = groups[current]
        priority = pod.priority if group.priority is None else group.priority
        if group.disrupt_all:
            whole, rank = current, Rank.COMPOSITE if group.composite else Rank.GROUP
        current = group.parent
    return pod.uid if whole is None else f"group {whole}", priority, rank, whole


def violating(victim_sets: Iterable[VictimSet], budgets: Sequence[Budget]) -> set[str]:
    """Victim sets that would exceed a budget, walking from the most important on as kube-scheduler does."""
    if not budgets:
        return set()
    left = [budget.allowed for budget in budgets]
    over: set[str] = set()
    for victim_set in sorted(victim_sets, key=lambda victim_set: victim_set.importance, reverse=True):
        for victim in victim_set.pods:
            for number, budget in enumerate(budgets):
                if victim.pod.uid in budget.pods:
                    left[number] -= 1
                    if left[number] < 0:
                        over.add(victim_set.name)
    return over


def exceeded(victim_sets: Iterable[VictimSet], budgets: Sequence[Budget]) -> int:
    """By how many pods these victim sets, if they all go, exceed the budgets."""
    gone = [victim.pod.uid for victim_set in victim_sets for victim in victim_set.pods]
    return sum(max(sum(uid in budget.pods for uid in gone) - budget.allowed, 0) for budget in budgets)
