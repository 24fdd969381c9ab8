"""Names and labels of what a LeaderWorkerSet compiles to (spec lws 4.5), and the groups of pods they are made for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kohort.api.kind import Object
from kohort.gang.stand_in import uid_of
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import Level, Role, replicas, size
from kohort.kinds.leaderworkerset.api.revision import revision_data, revision_key, safe

_LONGEST_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class Instance:
    """One living group of pods: a leader and its workers.

    `incarnation` counts its restarts (W2), so that pods of before and after never share a PodGroup.
    `workload` is the number of its Workload where a new size needs a new one (1.35 and 1.36, spec lws 4.9).
    """

    index: int
    revision: str
    size: int
    incarnation: int = 0
    workload: int = 0

    @property
    def key(self) -> str:
        """What tells it from other groups of the set on 1.35."""
        restarts = f"{self.incarnation}-" if self.incarnation else ""
        return f"{restarts}{self.index}-{self.revision}"

    def labels(self, set_name: str, level: Level) -> dict[str, str]:
        found = {
            constants.NAME: set_name,
            constants.LEVEL: level,
            constants.GROUP_INDEX: str(self.index),
            constants.REVISION: self.revision,
        }
        return found | ({constants.INCARNATION: str(self.incarnation)} if self.incarnation else {})


@dataclass(frozen=True, slots=True)
class Observed:
    """What a controller knows of a living set.

    `newest_workload`: the number of its newest Workload (1.35 and 1.36: after each change of size there is one more).
    """

    instances: tuple[Instance, ...] = ()
    newest_workload: int = 0


def new_set(obj: Object) -> Observed:
    """What becomes of a set that was just created."""
    key, pods = revision_key(revision_data(obj)), size(obj)
    return Observed(tuple(Instance(index, key, pods) for index in range(replicas(obj))))


def base_name(obj: Object) -> str:
    """`W` of spec lws 4.5: the set's name and a hash of its uid, as Job names its Workloads (W3)."""
    mark = _uid_hash(uid_of(obj))
    return f"{obj['metadata']['name'][: _LONGEST_NAME - 1 - len(mark)]}-{mark}"


def _uid_hash(uid: str) -> str:
    """FNV-1a, 32 bit, of the uid as Go prints it with its type."""
    number = 2166136261
    for byte in f"(types.UID){uid}".encode():
        number = (number ^ byte) * 16777619 & 0xFFFFFFFF
    return safe(number)


def set_group(base: str) -> str:
    """The group of all pods, or the root of a tree."""
    return f"{base}-lws"


def replica_group(base: str, one: Instance) -> str:
    return f"{_incarnated(base, one)}-{one.index}-{one.revision}"


def role_group(base: str, one: Instance, role: Role) -> str:
    return f"{_incarnated(base, one)}-{one.index}-{role}-{one.revision}"


def _incarnated(base: str, one: Instance) -> str:
    return f"{base}.{one.incarnation}" if one.incarnation else base
