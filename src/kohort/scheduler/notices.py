"""What is said of pods that no decision is made about: their group is incomplete or not there, or they have a node and
wait for a volume. kube-scheduler leaves such pods without a condition; here whoever looks at one is told, once it has
waited for a while (what comes together within seconds needs no word).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kohort.place.demand import Reason
from kohort.place.explain import Explanation
from kohort.scheduler.cache import SchedulerCache
from kohort.scheduler.diagnosis import gate, told, unrooted, volumes_under_way
from kohort.scheduler.queue import Queue, SubQueue
from kohort.scheduler.status import StatusBuilder, Writes
from kohort.scheduler.trees import BrokenChain, Group, PodInfo


class Notices:
    """Asked every few seconds. A root of which nothing changed costs one explanation, not its pods."""

    def __init__(
        self, cache: SchedulerCache, queue: Queue, status: StatusBuilder, after: float, stamp: Callable[[], str]
    ) -> None:
        self._cache, self._queue, self._status = cache, queue, status
        self._after, self._stamp = after, stamp
        self._said: dict[str, tuple[str, int, int]] = {}  # group -> text, pods told, the last of them
        self._parked: dict[str, float] = {}  # group that no root speaks for -> since when
        self._volumes: dict[str, float] = {}  # pod that waits for a volume -> since when

    def volumes_asked(self, uids: Iterable[str], now: float) -> None:
        """Volumes are being bound or made for these pods."""
        self._volumes |= dict.fromkeys(uids, now)

    def due(self, now: float) -> Writes:
        writes = Writes()
        self._incomplete(now, writes)
        self._unrooted(now, writes)
        self._without_volume(now, writes)
        self._said = {key: said for key, said in self._said.items() if self._cache.trees.get(key) is not None}
        return writes

    def _incomplete(self, now: float, writes: Writes) -> None:
        for entry in self._queue:
            root = self._cache.trees.get(entry.key)
            late = entry.queue is SubQueue.GATED and now - entry.since >= self._after
            if not late or root is None or root.spec is None:
                continue
            explanation = gate(root, self._cache)
            text = told(explanation, root.spec.by)
            writes.events += self._status.waiting(root.spec, text)
            self._tell_groups(explanation, writes)
            if explanation.reason is not Reason.GATED:  # of gates the API server speaks
                for leaf in root.leaves():
                    self._tell(leaf, text, writes)

    def _unrooted(self, now: float, writes: Writes) -> None:
        parked: dict[str, float] = {}
        for group in self._cache.trees:
            broken = self._cache.trees.root(group) if group.pending else None
            if not isinstance(broken, BrokenChain):
                continue
            parked[group.key] = self._parked.get(group.key, now)
            text = told(unrooted(group.key, broken))
            if group.spec is not None:
                writes.events += self._status.waiting(group.spec, text)
            if now - parked[group.key] >= self._after:
                if group.spec is not None:
                    writes.patches += self._status.group_waiting(group.spec, text, self._stamp())
                self._tell(group, text, writes)
        self._parked = parked

    def _without_volume(self, now: float, writes: Writes) -> None:
        for uid, since in list(self._volumes.items()):
            member = self._cache.members.get(uid)
            if member is None or not member.assumed:
                del self._volumes[uid]
            elif now - since >= self._after:
                explanation = volumes_under_way(member, self._cache)
                if explanation is not None:
                    self._add(writes, member, told(explanation))
                    self._tell_above(member, told(explanation), writes)

    def _tell_groups(self, explanation: Explanation, writes: Writes) -> None:
        """Each group of a tree that is not ready, in its condition."""
        for one in explanation.every():
            group = None if one.ok else self._cache.trees.get(one.group)
            if group is not None and group.spec is not None:
                writes.patches += self._status.group_waiting(group.spec, told(one), self._stamp())

    def _tell_above(self, member: PodInfo, text: str, writes: Writes) -> None:
        """The groups of a pod, and the owners of its root. What holds one up holds up all that start with it."""
        above = self._cache.trees.get(member.pod.group or "")
        while above is not None and above.spec is not None:
            if not self._status.is_scheduled(above):
                writes.events += self._status.waiting(above.spec, text, root=above.parent is None)
                writes.patches += self._status.group_waiting(above.spec, text, self._stamp())
            above = above.parent

    def _tell(self, group: Group, text: str, writes: Writes) -> None:
        said = (text, len(group.pending), max((one.order for one in group.pending.values()), default=0))
        if self._said.get(group.key) == said:
            return
        self._said[group.key] = said
        for member in group.pending.values():
            if not member.gated and not member.leaving:
                self._add(writes, member, text)

    def _add(self, writes: Writes, member: PodInfo, text: str) -> None:
        more = self._status.member_waiting(member, text, self._stamp())
        writes.patches += more.patches
        writes.events += more.events
