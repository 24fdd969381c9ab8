"""The groups of a set as they are: a leader and the workers that belong to this very leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kohort.api.kind import Object
from kohort.api.objects import controller_uid, is_deleting, name_of, uid_of
from kohort.kinds.leaderworkerset.control.reading import (
    group_index,
    is_ready,
    leader_name,
    revision_of,
    size_of,
    worker_index,
)
from kohort.kinds.leaderworkerset.control.rollout import Seen


@dataclass(frozen=True, slots=True)
class Replica:
    """`others`: pods that have names of this group but belong to an earlier leader, or to somebody else."""

    index: int
    leader: Object | None = None
    workers: Mapping[int, Object] = field(default_factory=dict)
    others: Sequence[Object] = ()

    @property
    def lives(self) -> bool:
        return self.leader is not None and not is_deleting(self.leader)

    @property
    def size(self) -> int:
        return size_of(self.leader) if self.leader is not None else 0

    @property
    def pods(self) -> list[Object]:
        leader = [self.leader] if self.leader is not None else []
        return [*leader, *(self.workers[number] for number in sorted(self.workers))]

    @property
    def has_workers(self) -> bool:
        return self.leader is not None and (self.size == 1 or bool(self.workers))

    @property
    def is_ready(self) -> bool:
        if self.leader is None or not is_ready(self.leader):
            return False
        return all(number in self.workers and is_ready(self.workers[number]) for number in range(1, self.size))

    def is_updated(self, key: str) -> bool:
        return self.has_workers and all(revision_of(pod) == key for pod in self.pods)


def observe(lws: Object, pods: Sequence[Object]) -> dict[int, Replica]:
    """By index. A pod that nobody controls counts as a leader if its labels say so: it is adopted."""
    leaders, others = {}, []
    for pod in pods:
        index = group_index(pod)
        if worker_index(pod) == 0 and name_of(pod) == leader_name(lws, index) and _is_of(pod, lws):
            leaders[index] = pod
        else:
            others.append(pod)
    workers: dict[int, dict[int, Object]] = {index: {} for index in leaders}
    left: dict[int, list[Object]] = {}
    for pod in others:
        index = group_index(pod)
        leader = leaders.get(index)
        if leader is not None and controller_uid(pod) == uid_of(leader) and worker_index(pod) > 0:
            workers[index][worker_index(pod)] = pod
        else:
            left.setdefault(index, []).append(pod)
    return {
        index: Replica(index, leaders.get(index), workers.get(index, {}), left.get(index, ()))
        for index in sorted({*leaders, *left})
        if index >= 0
    }


def _is_of(pod: Object, lws: Object) -> bool:
    found = controller_uid(pod)
    return found == uid_of(lws) or (not found and not is_deleting(pod))


def seen(found: Mapping[int, Replica], key: str) -> Seen:
    ready = {index for index, one in found.items() if one.is_ready}
    updated = {index for index, one in found.items() if one.is_updated(key)}
    old = {index for index, one in found.items() if one.leader is not None and revision_of(one.leader) != key}
    return Seen(ready, updated, old)
