"""Which groups are to be of the newest revision, and how many groups there are: the arithmetic of spec lws 3.3.

Upstream keeps the two numbers in a StatefulSet. Here they stand in an annotation of the newest ControllerRevision, so a
controller that was stopped goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import meta_of
from kohort.apimachinery.intstr import scaled
from kohort.kinds.leaderworkerset.api.levels import replicas
from kohort.kinds.leaderworkerset.control.reading import rolling

MOST_AHEAD: Final = 1000  # they are listed in an annotation
ANNOTATION: Final = "leaderworkerset.kohort.dev/rollout"


@dataclass(frozen=True, slots=True)
class Rollout:
    """`replicas`: spec.replicas when this was decided; `groups`: those that shall exist, surge included.

    Groups from `partition` on, and those `ahead`, are of the newest revision; if another one comes back, it is of
    revision `base`.
    """

    replicas: int
    groups: int
    partition: int = 0
    base: str = ""
    ahead: tuple[int, ...] = ()

    def is_new(self, index: int) -> bool:
        return index >= self.partition or index in self.ahead

    def text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Seen:
    """Of the groups: which are ready as a whole, which are of the newest revision, which have a leader of an older."""

    ready: Set[int]
    updated: Set[int]
    old: Set[int] = frozenset()

    def done(self, index: int) -> bool:
        return index in self.ready and index in self.updated

    def done_below(self, groups: int) -> int:
        """How many of the first `groups` are done: counted among those that are there, not among all that may come."""
        return sum(1 for index in self.ready if index < groups and index in self.updated)


def read(revision: Object, lws: Object, key: str) -> Rollout:
    """What is written there. A revision that upstream's controller left behind says nothing: it is rolled out."""
    text = (meta_of(revision).get("annotations") or {}).get(ANNOTATION)
    try:
        found = json.loads(text or "{}")
        return Rollout(
            int(found["replicas"]),
            int(found["groups"]),
            int(found["partition"]),
            str(found["base"]),
            tuple(map(int, found["ahead"])),
        )
    except (ValueError, KeyError, TypeError):
        return Rollout(replicas(lws), replicas(lws), 0, key)


def first(lws: Object, key: str) -> Rollout:
    return Rollout(replicas(lws), replicas(lws), _partition(lws), key)


def begin(lws: Object, before: Rollout, old_key: str) -> Rollout:
    """A new revision: nothing is replaced in this pass. Groups that come back meanwhile are as most of them are."""
    wanted = replicas(lws)
    rests = before.groups < wanted or _partition(lws) >= wanted
    groups = wanted if rests else _with_surge(lws, wanted)
    partition = max(min(wanted, before.groups), _partition(lws))
    base = before.base if before.partition and before.base else old_key
    return Rollout(wanted, groups, partition, base)


def go_on(lws: Object, now: Rollout, seen: Seen) -> Rollout:
    wanted, least = replicas(lws), _partition(lws)
    unfinished = wanted - seen.done_below(wanted)
    if now.partition == 0 and now.groups == wanted:
        partition, groups = 0, wanted
    elif now.groups < wanted:  # first there are as many as asked for
        partition, groups = now.partition, wanted
    elif now.replicas != wanted:
        partition, groups = min(now.partition, wanted + _surge(lws)), _with_surge(lws, unfinished)
    else:
        # A set that only starts, or has its partition above all groups, has nothing to replace and so no surge.
        rests = (now.groups == wanted and not seen.old) or least >= wanted
        partition = min(_next(lws, now, seen), now.partition)
        groups = wanted if rests else _with_surge(lws, unfinished)
    partition = max(partition, least)
    ahead = tuple(index for index in now.ahead if index < partition)
    moved = replace(now, replicas=wanted, groups=groups, partition=partition, ahead=ahead)
    return replace(moved, ahead=(*ahead, *_overtaking(lws, moved, seen, least)))


def _next(lws: Object, now: Rollout, seen: Seen) -> int:
    """The partition that leaves enough groups ready."""
    step = _step(lws, now)
    trailing = 0
    while trailing < now.groups and seen.done(now.groups - 1 - trailing):
        trailing += 1
    lowest = max(0, now.groups - trailing - step)
    found = 2 * lowest - sum(1 for index in seen.ready if index < lowest)
    highest = min(found, now.groups - 1)
    if highest < lowest:
        return found
    serving = max((one for one in seen.ready if lowest <= one <= highest and one not in seen.updated), default=-1)
    if serving == highest:
        return found
    return max(serving + 1, lowest)


def _step(lws: Object, now: Rollout) -> int:
    """How many groups may be without service or on their way, surge groups that exist included."""
    return _unavailable(lws) + now.groups - replicas(lws)


def _overtaking(lws: Object, now: Rollout, seen: Seen, least: int) -> list[int]:
    """Groups that are not ready anyway are replaced before their turn, as far as the limit allows (spec lws 3.7)."""
    new = max(0, now.groups - now.partition) + sum(1 for one in now.ahead if one < min(now.partition, now.groups))
    done = sum(1 for one in seen.ready if one in seen.updated and one < now.groups and now.is_new(one))
    waiting = (
        index
        for index in range(min(now.partition, now.groups) - 1, least - 1, -1)
        if index not in now.ahead and index not in seen.ready and index not in seen.updated
    )
    room = min(_step(lws, now) - (new - done), MOST_AHEAD - len(now.ahead))
    return list(islice(waiting, max(0, room)))


def _with_surge(lws: Object, unfinished: int) -> int:
    wanted, surge = replicas(lws), _surge(lws)
    return wanted + (max(0, unfinished - _unavailable(lws)) if unfinished <= surge else surge)


def _partition(lws: Object) -> int:
    return int(rolling(lws).get("partition") or 0)


def _unavailable(lws: Object) -> int:
    return _share(rolling(lws).get("maxUnavailable", 1), replicas(lws), up=False)


def _surge(lws: Object) -> int:
    return min(_share(rolling(lws).get("maxSurge", 0), replicas(lws), up=True), replicas(lws))


def _share(value: Any, whole: int, *, up: bool) -> int:
    return scaled(value, whole, up=up)
