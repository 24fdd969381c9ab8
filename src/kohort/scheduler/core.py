"""The scheduler without its shell: the cache goes in change by change, decisions come out one by one.

Whoever drives it (the live loop, a simulation, a test) calls `step` until nothing is left to do, carries out what a
step says, and reports back what came of it. Time is passed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from kohort.api.scheduling.constants import POD_GROUP_INITIALLY_SCHEDULED
from kohort.scheduler.decision import Decision
from kohort.scheduler.diagnosis import Pending, PendingDiagnosis
from kohort.scheduler.notices import Notices
from kohort.scheduler.schedulingcycle import SchedulingCycle
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.status import SchedulerEvent, Writes
from kohort.scheduler.trees import Group, startable
from kohort.scheduler.volumes import VolumeBinding

_ABOVE_ALL: Final = 2**31 - 1  # of all priorities
_TIDY: Final = 60.0  # seconds between two times that rules of pods that have gone are forgotten


class SchedulerCore(SchedulingCycle):
    """Decides, and takes in what came of its decisions: bindings, volumes and evictions, answered or refused."""

    def __init__(
        self,
        settings: SchedulerSettings,
        stamp: Callable[[], str],
        group_condition: str = POD_GROUP_INITIALLY_SCHEDULED,
        *,
        aside: bool = False,
    ) -> None:
        super().__init__(settings, stamp, group_condition, aside=aside)
        self.bindings: Counter[str] = Counter()  # by what the API server said
        self.why = PendingDiagnosis(self.cache, self.decider, self.decisions, self.evictions.victims)
        self._tidied = 0.0
        self.rules_forgotten = 0  # of pods that have gone, since somebody last asked
        self._notices = Notices(self.cache, self.queue, self.status, settings.notice_after, stamp)

    # ---- carrying out

    def confirm(self, decision: Decision) -> dict[str, str]:
        """Right before binding: what still holds of a decision. A gang that lost a member, or whose minimum was raised,
        since it was decided, is not started; its pods go back to the queue."""
        assignments = {uid: node for uid, node in decision.assignments.items() if self._still(uid, node)}
        group = self.cache.trees.get(decision.root)
        if group is None:
            return assignments
        keep = {leaf.key for leaf in startable(group)}
        kept: dict[str, str] = {}
        for uid, node in assignments.items():
            member = self.cache.members[uid]
            if member.group in keep:
                kept[uid] = node
            else:
                self.cache.forget(member)
        return kept

    def volumes(self, assignments: dict[str, str], now: float) -> list[VolumeBinding] | None:
        """Which volumes the pods of a decision get; None if some got away: its pods are back in the queue."""
        found = {}
        for uid, node in assignments.items():
            member, row = self.cache.members[uid], self.cache.state.row(node)
            if member.pod.spec.volumes and row is not None:
                found[uid] = (self.cache.as_json(member), node, self.cache.state.node(row).labels)
        bindings, short = self.cache.storage.choose(found)
        if short:
            self._send_back(assignments, "a volume that was free is not any more", now)
            return None
        self.cache.storage.assume(bindings)
        if bindings:
            self._notices.volumes_asked(found, now)
        return bindings

    def volumes_bound(self, decision: Decision, now: float) -> dict[str, str]:
        """The volumes are there: the seats that still hold, all or none of them reaching their volumes."""
        assignments = self.confirm(decision)
        for uid, node in assignments.items():
            member, row = self.cache.members[uid], self.cache.state.row(node)
            labels = self.cache.state.node(row).labels if row is not None else {}
            if member.pod.spec.volumes and not self.cache.storage.usable(self.cache.as_json(member), node, labels):
                self._send_back(assignments, f"a volume cannot be reached from {node}", now)
                return {}
        return assignments

    def _send_back(self, assignments: dict[str, str], text: str, now: float) -> None:
        self.unwritten = self.unwritten + self.volumes_not_bound(assignments, text, now)

    def volumes_not_bound(self, assignments: dict[str, str], text: str, now: float) -> Writes:
        """Volumes did not come: nothing of the decision is started."""
        members = [
            member for uid in assignments if (member := self.cache.members.get(uid)) is not None and member.assumed
        ]
        for member in members:
            self.cache.forget(member)
        writes = self.sync(now)
        for key in {self.cache.root_key(member) for member in members}:
            entry = self.queue.get(key)
            if entry is not None:
                entry.refusal = text
                self.queue.later(entry, now)
        for member in members:
            if self.cache.storage.unbound(self.cache.as_json(member)):
                writes.add(self.status.volumes_not_bound(member, text, self._stamp()))
        return writes

    def _still(self, uid: str, node: str) -> bool:
        member = self.cache.members.get(uid)
        if member is None or not member.assumed or member.node != node:
            return False
        if member.leaving:
            self.cache.forget(member)
            return False
        return True

    def bound(self, uid: str, node: str) -> list[SchedulerEvent]:
        """The API server took the binding. The watch confirms it."""
        self.bindings["bound"] += 1
        member = self.cache.members.get(uid)
        return [] if member is None else self.status.bound(member, node)

    def refused(self, uid: str, node: str, text: str, now: float, *, answered: bool = True) -> Writes:
        """A binding was refused, or not answered: the room stays the pod's, and it is tried again later, elsewhere if
        that can be."""
        self.bindings["refused" if answered else "unanswered"] += 1
        member = self.cache.members.get(uid)
        if member is None or not member.assumed:
            return Writes()
        self.cache.forget(member)
        member.refused.add(node)
        member.refusals += 1
        key = self.cache.root_key(member)
        root = self.root(key)
        begun = isinstance(root, Group) and self._begun(root)
        priority = _ABOVE_ALL if begun else self.cache.priority(member)
        self.cache.reservations.add(key, priority, self.cache.pending_pod(member), node)
        writes = self.sync(now)
        entry = self.queue.get(key)
        if entry is not None:
            entry.errors = max(entry.errors, member.refusals - 1)
            entry.refusal = f"{member.pod.key}: binding to {node} was refused: {text}"
            self.queue.later(entry, now)
        writes.add(self.status.refused(member, node, text, self._stamp()))
        group = self.cache.trees.get(member.group) if member.group is not None else None
        if answered and group is not None and member.refusals > 1:
            writes.add(self.status.stuck(member, group, text, self._stamp()))
        return writes

    def lost(self, uid: str) -> None:
        """The pod is gone, or somebody else bound it: the watch will say which."""
        member = self.cache.members.get(uid)
        if member is not None and member.assumed:
            self.cache.forget(member)

    def still_wanted(self, uid: str, now: float) -> bool:
        """Right before an eviction: whether anybody still waits for it."""
        self.unwritten = self.unwritten + self.sync(now)
        return self.evictions.wanted(uid)

    def not_sent(self, uid: str) -> None:
        """A victim was not asked to go after all."""
        self.evictions.keep(uid)

    def not_evicted(self, uid: str, text: str, now: float) -> Writes:
        """The server does not let a victim go: plans with it are void, and it is left alone for a while."""
        for root in self.evictions.refused(uid, now + self.settings.retry_after):
            self._give_up(root)
            entry = self.queue.get(root)
            if entry is not None:
                member = self.cache.members.get(uid)
                entry.refusal = f"{member.pod.key if member else uid}: eviction was refused: {text}"
                self.queue.later(entry, now, "PreemptionFailed")
        return self.sync(now)

    # ---- why

    def pending(self) -> Iterator[Pending]:
        """Everything that waits, each with a reason."""
        for entry in self.queue:
            yield self.why.waiting(entry, self.root(entry.key))
        yield from self.why.parked()

    def notices(self, now: float) -> Writes:
        """For roots that have not been ready for a while, pods without a group, claims without a volume; said once."""
        self.cache.companion.overdue(now)
        if now - self._tidied >= _TIDY:
            self._tidied = now
            self.rules_forgotten += self.cache.engine.tidy()
        return self._notices.due(now)
