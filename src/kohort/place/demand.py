"""What is to be placed, and what became of it: a tree of groups with pods at its leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from kohort.place.interpod import EquivalenceClass, InterPodTerms

Rank = tuple[int, ...]


@dataclass(slots=True, unsafe_hash=True)  # never changed, nor are those below; frozen=True makes them slow to make
class PendingPod:
    """A pending pod: who it is, and what the engine sees of it."""

    key: str
    eq_class: EquivalenceClass
    labels: Mapping[str, str] = field(default_factory=dict)
    nominated: int | None = None  # row of the node it was nominated for: tried first, alone
    rank: Rank | None = None  # pods of neighbouring ranks are placed near each other


@dataclass(slots=True, eq=False)
class Leaf:
    """A group of pods. `minimum` None: basic, one pod is enough. `running`: rows of members that have a node; `lost`:
    how many more run on nodes that are not known. `topology`: one domain of that label; `preferred`: of these labels as
    few domains as can be."""

    name: str
    pods: Sequence[PendingPod]
    minimum: int | None = None
    topology: str | None = None
    running: Sequence[int] = ()
    lost: int = 0
    preferred: Sequence[str] = ()
    running_ranks: Sequence[Rank | None] = ()  # of those that run, in the same order; empty: nobody has one
    eq_classes: Mapping[EquivalenceClass, int] = field(init=False, default_factory=dict)  # how many pods of each class
    ranked: bool = field(init=False, default=False)  # its pods have an order; one without a rank stands aside
    missing: int = field(init=False, default=0)  # how many pods must still find a place for the minimum

    def __post_init__(self) -> None:
        counts: dict[EquivalenceClass, int] = {}
        ranked = False
        for pod in self.pods:
            counts[pod.eq_class] = counts.get(pod.eq_class, 0) + 1
            ranked = ranked or pod.rank is not None
        self.eq_classes, self.ranked = counts, ranked
        self.missing = max(self.need - self.members, 0)

    @property
    def need(self) -> int:
        return 1 if self.minimum is None else self.minimum

    @property
    def members(self) -> int:
        """How many have a node."""
        return len(self.running) + self.lost

    def leaves(self) -> Iterator[Leaf]:
        yield self


@dataclass(slots=True, eq=False)
class Branch:
    """A group of groups. `minimum` None: basic, one child is enough. `slices`: the children are one group's pods in
    slices, whose ranks go on from one to the next."""

    name: str
    children: Sequence[Leaf | Branch]
    minimum: int | None = None
    topology: str | None = None
    preferred: Sequence[str] = ()
    slices: bool = False
    eq_classes: Mapping[EquivalenceClass, int] = field(init=False, default_factory=dict)
    ranked: bool = field(init=False, default=False)  # some leaf is

    def __post_init__(self) -> None:
        counts: dict[EquivalenceClass, int] = {}
        for child in self.children:
            for eq_class, count in child.eq_classes.items():
                counts[eq_class] = counts.get(eq_class, 0) + count
        self.eq_classes, self.ranked = counts, any(child.ranked for child in self.children)

    @property
    def need(self) -> int:
        return 1 if self.minimum is None else self.minimum

    def leaves(self) -> Iterator[Leaf]:
        for child in self.children:
            yield from child.leaves()

    @property
    def running(self) -> list[int]:
        return [row for leaf in self.leaves() for row in leaf.running]

    @property
    def lost(self) -> int:
        return sum(leaf.lost for leaf in self.leaves())


Demand = Leaf | Branch


def groups(root: Demand) -> Iterator[Demand]:
    """The root and every group below it, parents first."""
    yield root
    for child in root.children if isinstance(root, Branch) else ():
        yield from groups(child)


def renewed(root: Demand, interpod: InterPodTerms) -> Demand:
    """The same tree with classes that know every term: one registered for a later pod may speak of an earlier one."""
    if not any(eq_class.stale for eq_class in root.eq_classes):
        return root
    if isinstance(root, Branch):
        return replace(root, children=[renewed(child, interpod) for child in root.children])
    return replace(root, pods=[renewed_pod(pod, interpod) for pod in root.pods])


def renewed_pod(pod: PendingPod, interpod: InterPodTerms) -> PendingPod:
    if not pod.eq_class.stale:
        return pod
    return replace(
        pod, eq_class=interpod.class_of(pod.eq_class.signature, pod.eq_class.signature.namespace, pod.labels)
    )


class Reason(StrEnum):
    """Why a group waits: the whole vocabulary."""

    WAITING_FOR_GROUP = "WaitingForPodGroup"
    WAITING_FOR_MEMBERS = "WaitingForMembers"
    GATED = "Gated"
    MISCONFIGURED = "Misconfigured"
    NO_MATCHING_NODE = "NoMatchingNode"
    INSUFFICIENT = "InsufficientResource"
    DOMAIN_TOO_SMALL = "TopologyDomainTooSmall"
    FRAGMENTED = "Fragmented"
    BLOCKED_BY_SIBLING = "BlockedBySibling"
    PREEMPTING = "PreemptionInProgress"
    WAITING_FOR_VOLUME = "WaitingForVolume"
    NOT_FOUND = "NotFoundInTime"
    ERROR = "SchedulerError"  # a fault of the scheduler, nothing about the group


class Meaning(NamedTuple):
    """Of a reason, in Markdown; `helps`: what somebody can do."""

    means: str
    helps: str


MEANINGS: Final = {
    Reason.WAITING_FOR_GROUP: Meaning(
        "the pod's group, or a parent of it, does not exist", "create it; of a workload, look at its controller"
    ),
    Reason.WAITING_FOR_MEMBERS: Meaning(
        "fewer pods (or groups) exist than the minimum",
        "look at the controller that makes them: a quota, a suspended workload, an admission webhook",
    ),
    Reason.GATED: Meaning("pods have scheduling gates", "whoever set `spec.schedulingGates` takes them away"),
    Reason.MISCONFIGURED: Meaning(
        "members cannot be scheduled as one: priorities, schedulers, domains", "make them agree; the message names both"
    ),
    Reason.NO_MATCHING_NODE: Meaning(
        "no node suits: labels, taints, cordons, claims, a resource that it does not have; nodes are counted by cause",
        "tolerations, another `nodeSelector`, nodes that have what it asks for",
    ),
    Reason.INSUFFICIENT: Meaning(
        "too little is free in all", "wait, ask for less, a lower minimum, a higher priority, more nodes"
    ),
    Reason.DOMAIN_TOO_SMALL: Meaning(
        "there is enough, in no single domain", "a wider level (`zone` for `rack`), or `preferred` for `required`"
    ),
    Reason.FRAGMENTED: Meaning(
        "there is enough, in pieces that are too small", "smaller pods, or a profile with `strategy: most`"
    ),
    Reason.BLOCKED_BY_SIBLING: Meaning(
        "each group fits alone, not all together", "as for too little in all, counted over the whole tree"
    ),
    Reason.PREEMPTING: Meaning(
        "pods of lower priority are going, or would go, for it", "wait: it starts when they have gone"
    ),
    Reason.WAITING_FOR_VOLUME: Meaning(
        "it has nodes, and a provisioner has been asked for volumes there", "look at the provisioner of the class"
    ),
    Reason.NOT_FOUND: Meaning(
        'nothing was found; it is not proven impossible. "not found yet, still searching": a search goes on beside the '
        "scheduler, and ends in another verdict ([search](search.md))",
        "wait; else make it simpler: fewer rules between pods, fewer sizes",
    ),
    Reason.ERROR: Meaning(
        "the scheduler itself failed on it ([below](#faults))", "look into its log; report it with a `kohort snapshot`"
    ),
}


@dataclass(slots=True)
class Outcome:
    """What became of one group."""

    ok: bool
    placed: dict[str, int] = field(default_factory=dict)  # pod -> row; of this group alone
    reason: Reason | None = None
    detail: str = ""
    first_cause: str = ""  # of a branch: the detail of the group furthest below that it fails for
    proven: bool = True  # False: not found; another search might find it


@dataclass(slots=True)
class Result:
    """What became of a tree: one outcome per group, and all placements of groups that count."""

    ok: bool
    outcomes: dict[str, Outcome]
    placed: dict[str, int]
    exact: bool = False  # the exact solver was asked
    searching: bool = False  # not found yet: the solver is still at it

    def of(self, name: str) -> Outcome:
        return self.outcomes[name]
