"""What is to be placed, and what became of it: a tree of groups with pods at its leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kohort.place.pairs import PairClass


@dataclass(frozen=True, slots=True)
class Pod:
    """A pending pod: who it is, and what the engine sees of it."""

    key: str
    kind: PairClass


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A group of pods. `minimum` None: basic, one pod is enough. `running`: rows of members that have a node."""

    name: str
    pods: Sequence[Pod]
    minimum: int | None = None
    topology: str | None = None
    running: Sequence[int] = ()

    @property
    def need(self) -> int:
        return 1 if self.minimum is None else self.minimum

    @property
    def missing(self) -> int:
        """How many pods must still find a place for the minimum."""
        return max(self.need - len(self.running), 0)

    def leaves(self) -> Iterator[Leaf]:
        yield self


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A group of groups. `minimum` None: basic, one child is enough."""

    name: str
    children: Sequence[Leaf | Branch]
    minimum: int | None = None
    topology: str | None = None

    @property
    def need(self) -> int:
        return 1 if self.minimum is None else self.minimum

    def leaves(self) -> Iterator[Leaf]:
        for child in self.children:
            yield from child.leaves()

    @property
    def running(self) -> list[int]:
        return [row for leaf in self.leaves() for row in leaf.running]


Demand = Leaf | Branch


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
    NOT_FOUND = "NotFoundInTime"


@dataclass(slots=True)
class Outcome:
    """What became of one group."""

    ok: bool
    placed: dict[str, int] = field(default_factory=dict)  # pod -> row; of this group alone
    reason: Reason | None = None
    detail: str = ""


@dataclass(slots=True)
class Result:
    """What became of a tree: one outcome per group, and all placements of groups that count."""

    ok: bool
    outcomes: dict[str, Outcome]
    placed: dict[str, int]

    def of(self, name: str) -> Outcome:
        return self.outcomes[name]
