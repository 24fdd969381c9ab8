"""A group in slices: every so many neighbouring ranks share one domain, inside what the group as a whole is kept to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kohort.api.scheduling.topology import Slice
from kohort.place.demand import Branch, Leaf, PendingPod, Rank
from kohort.place.state import ClusterState


@dataclass(slots=True)
class _Slice:
    pods: list[PendingPod] = field(default_factory=list)
    running: list[tuple[int, Rank | None]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.pods) + len(self.running)


def sliced(state: ClusterState, leaf: Leaf, slices: Sequence[Slice]) -> Branch:
    """The group as a group of slices, the largest first, and those of the next. Its minimum, in pods, becomes one in
    slices: a slice is whole or not there. Levels are label keys."""
    (size, required, preferred), *smaller = slices
    found = _by_rank(leaf, size) or _by_arrival(state, leaf, required or preferred, size)
    children: list[Leaf | Branch] = []
    for number, one in enumerate(found):
        child = replace(
            leaf,
            name=f"{leaf.name}#{number}",
            pods=one.pods,
            minimum=one.size,
            topology=required or None,
            running=[row for row, _ in one.running],
            running_ranks=[rank for _, rank in one.running],
            preferred=(preferred,) if preferred else (),
        )
        children.append(sliced(state, child, smaller) if smaller else child)
    minimum = None if leaf.minimum is None else -(-leaf.minimum // size)
    return Branch(leaf.name, children, minimum, leaf.topology, leaf.preferred, slices=True)


def _by_rank(leaf: Leaf, size: int) -> list[_Slice]:
    """Slices by the last number of a rank, for ranks that agree in the others; none, if a member has no rank."""
    ranks = leaf.running_ranks or (None,) * len(leaf.running)
    made: dict[Rank, _Slice] = {}
    for pod in leaf.pods:
        if not pod.rank:
            return []
        made.setdefault(_number(pod.rank, size), _Slice()).pods.append(pod)
    for row, rank in zip(leaf.running, ranks, strict=True):
        if not rank:
            return []
        made.setdefault(_number(rank, size), _Slice()).running.append((row, rank))
    return [made[number] for number in sorted(made)]


def _number(rank: Rank, size: int) -> Rank:
    return (*rank[:-1], rank[-1] // size)


def _by_arrival(state: ClusterState, leaf: Leaf, key: str, size: int) -> list[_Slice]:
    """Members that run are slices by where they are; others fill those up, then make new ones."""
    codes = state.column(key).codes
    found: list[_Slice] = []
    open_: dict[int, _Slice] = {}
    for row in leaf.running:
        one = open_.get(int(codes[row]))
        if one is None or one.size == size:
            one = open_[int(codes[row])] = _Slice()
            found.append(one)
        one.running.append((row, None))
    waiting: Sequence[PendingPod] = leaf.pods
    for one in [one for one in found if one.size < size]:
        count = size - one.size
        one.pods += waiting[:count]
        waiting = waiting[count:]
    return found + [_Slice(list(waiting[start : start + size])) for start in range(0, len(waiting), size)]
