"""The queue follows the cache: what comes, changes, waits, goes, or may fit now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from functools import partial
from time import thread_time

from kohort.api.scheduling.constants import POD_GROUP_INITIALLY_SCHEDULED
from kohort.scheduler.backfill import BackfillReservation
from kohort.scheduler.cache import SchedulerCache
from kohort.scheduler.decision import Decider, Decision
from kohort.scheduler.diagnosis import gate, told
from kohort.scheduler.evictions import Evictions
from kohort.scheduler.faults import Fault, failed_decision
from kohort.scheduler.grouphealing import lacking
from kohort.scheduler.hardquestions import HardQuestions
from kohort.scheduler.healing import Healer
from kohort.scheduler.lookahead import Lookahead
from kohort.scheduler.model import POD_PREFIX, Pod, is_pod_key
from kohort.scheduler.queue import MayFit, Queue, QueuedRoot, SubQueue
from kohort.scheduler.queueinghint import QueueingHint, Waking, may_fit_now
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.silentstatus import SilentStatus
from kohort.scheduler.slices import LookUnderWay, Slices
from kohort.scheduler.status import StatusBuilder, Writes
from kohort.scheduler.trees import Group, PodInfo, startable

log = logging.getLogger(__name__)


class QueueUpkeep:
    """Of one scheduler. `stamp` gives the time as it is written into objects."""

    def __init__(
        self,
        settings: SchedulerSettings,
        stamp: Callable[[], str],
        group_condition: str = POD_GROUP_INITIALLY_SCHEDULED,
        *,
        aside: bool = False,
    ) -> None:
        """`aside`: whoever drives it answers hard questions (`questions`) while others are decided."""
        self.settings = settings
        self.cache = SchedulerCache(settings)
        self.queue = Queue(settings)
        self.evictions = Evictions(self.cache)
        self.questions = HardQuestions(self.cache.state) if aside else None
        self.decider = Decider(self.cache, self.evictions, self.questions)
        self._sliced = Decider(self.cache, self.evictions, self.questions, thread_time)
        self.slices = Slices()
        status = StatusBuilder if settings.explains else SilentStatus
        self.status = status(group_condition, next(iter(sorted(settings.names)), "kohort"))
        self.backfill = BackfillReservation(self.cache.engine, settings, self._freed)
        self.healer = Healer(self.cache, stamp)
        self.lookahead = Lookahead(self.cache, self.queue, self.decider, self.questions, self.root)
        self.decisions: dict[str, Decision] = {}  # the last failure of each root that waits
        self.unwritten = Writes()  # found between two steps
        self.faults: list[Fault] = []  # of ours, for the log
        self._stamp = stamp
        self._move_requests = (0, 0)
        self._hopeless: tuple[tuple[int, ...], set[Hashable]] = ((), set())  # what cannot be met, as things stand
        self._gained = False  # since somebody was last asked whether room is to be held for them

    def _freed(self) -> None:
        """Room that was held is free again."""
        self.cache.move_requests += 1

    # ---- the cache

    def drop_pod(self, pod: Pod) -> None:
        self.cache.drop_pod(pod)
        self.status.forget(pod.metadata.uid)

    def drop_group(self, key: str) -> None:
        group = self.cache.trees.get(key)
        if group is not None and group.spec is not None:
            self.status.forget(group.spec.uid)
            self.status.forget(key)
        self.cache.drop_group(key)

    # ---- the queue follows

    def root(self, key: str) -> Group | PodInfo | None:
        """What the key of an entry stands for; None if that has nothing to be decided any more."""
        if is_pod_key(key):
            member = self.cache.members.get(key.removeprefix(POD_PREFIX))
            alone = member is not None and member.group is None
            return member if member is not None and alone and not member.node and not member.leaving else None
        group = self.cache.trees.get(key)
        if group is None or group.spec is None or self.cache.trees.root(group) is not group:
            return None
        return group

    def sync(self, now: float) -> Writes:
        """The queue catches up with the cache."""
        writes = Writes()
        while self.cache.dirty_roots:
            dirty_roots, self.cache.dirty_roots = self.cache.dirty_roots, {}
            for key in dirty_roots:
                try:
                    self._update(key, now, writes)
                except Exception as error:
                    entry = self.queue.get(key)
                    if entry is None:
                        entry = self.queue.put(key, priority=0, age=("", 0), size=1, gated=False, now=now)
                    self._faulted(entry, {}, writes, error, now)
        if self.backfill.is_over(now):
            self._hold(now, self.backfill.grow)
        move_requests = (self.cache.move_requests, self.cache.storage.version)
        if move_requests != self._move_requests:
            self._move_requests = move_requests
            self._victims_gone(now)
            self._hold(now, self.backfill.grow)
            self._wake(now)
            self._gained = True
        return writes

    def _update(self, key: str, now: float, writes: Writes) -> None:
        root = self.root(key)
        self._interrupt(key, now)
        if key in self.decisions:
            self.decisions[key].rests_on = ()  # it is not what it was
        if root is None:
            self._gone(key, now)
            self.cache.later.release(key)
        elif isinstance(root, PodInfo):
            namespace = root.pod.metadata.namespace
            priority = root.pod.spec.priority or 0
            self.queue.put(key, priority=priority, age=root.age, size=1, gated=root.gated, now=now, namespace=namespace)
        else:
            for group in root.walk():
                if group.settled:
                    writes.add(self.status.settled(group, self._stamp()))
                elif self.status.was_satisfied(group):
                    writes.patches += self.status.satisfied(group, self._stamp())
            self.healer.look(root, now)
            self._hold_later(root)
            if not root.waiting:
                self._gone(key, now)
                return
            leaves = [leaf for leaf in root.leaves() if leaf.pending]
            gated, first = root.gated or not root.ready, leaves[0]
            self.queue.put(
                key,
                priority=self.decider.priority(root),
                age=_age(first) if len(leaves) == 1 else min(_age(leaf) for leaf in leaves),
                size=sum(len(leaf.pending) for leaf in leaves),
                gated=gated,
                now=now,
                begun=self._begun(root) or self.cache.later.follows(key),
                surplus=_has_minimum(root),
                family=root.spec.family if root.spec is not None else "",
                namespace=next(iter(first.pending.values())).pod.metadata.namespace,
            )
            if gated:
                self._give_up(key)
                by = root.spec.by if root.spec is not None else ""
                for leaf in leaves:
                    writes.add(self.status.regressed(leaf, told(gate(root, self.cache), by), self._stamp()))

    def _hold_later(self, root: Group) -> None:
        """For parts that follow it, while it runs. Whoever decided on it has done so; not so after a restart."""
        if root.spec is None or not root.spec.later:
            return
        if not startable(root):
            self.cache.later.release(root.key)
            return
        self.cache.later.adopt(root)
        if self.cache.later.missing(root):
            self.cache.later.hold(root, self.decider.priority(root), self.decider.seats_of_later(root))

    def _begun(self, root: Group) -> bool:
        """Some of it is bound, and never was enough: nothing may take the room that the rest needs."""
        some = [leaf for leaf in root.leaves() if leaf.placed and leaf.pending]
        whole = startable(root) if some else []
        return any(leaf not in whole and not self.status.is_scheduled(leaf) for leaf in some)

    def _gone(self, key: str, now: float) -> None:
        self._interrupt(key, now)
        self.slices.forget(key)
        self._no_question(key)
        self.lookahead.gone(key)
        self.queue.remove(key)
        self.decisions.pop(key, None)
        self.backfill.release(now, key)
        self._give_up(key)

    def _give_up(self, key: str) -> None:
        """A root no longer needs the room that was to be made for it."""
        self.evictions.drop(key)
        if self.cache.reservations.get(key) is None:
            return
        kept = self.healer.holds(key) or self.cache.later.holds(key)
        if not kept and self.cache.reservations.drop(key):
            self.cache.move_requests += 1

    def _victims_gone(self, now: float) -> None:
        for root in self.evictions.gone():
            self.queue.activate(root, now, "VictimsGone")

    def _no_question(self, key: str) -> None:
        if self.questions is not None:
            self.questions.drop(key)

    def _interrupt(self, key: str, now: float, *, changed: bool = True) -> None:
        """A decision that is under way is about what is no longer so: its root has its turn anew."""
        if self.slices.under_way is None:
            return
        entry = self.slices.interrupt(key, changed=changed)
        if entry is not None:
            if isinstance(self.slices.under_way, LookUnderWay):
                self.lookahead.given_up()
            self._unpark(now, entry)

    def _unpark(self, now: float, *more: QueuedRoot) -> None:
        for entry in (*more, *self.slices.end()):
            if entry.queue is SubQueue.IN_FLIGHT and self.queue.get(entry.key) is entry:
                self.queue.back(entry, now)

    def close(self) -> None:
        """Nothing is decided any more."""
        if self.slices.under_way is not None:
            self.slices.interrupt(self.slices.under_way.entry.key)
            self.slices.end()

    def _faulted(
        self, entry: QueuedRoot, members: dict[str, PodInfo], writes: Writes, error: Exception, now: float
    ) -> Decision | None:
        """A fault of ours concerns one root: nothing of its decision stays, it is marked and tried again ever later."""
        self.faults.append(Fault(entry.key, error, entry.errors == 0))
        for member in members.values():
            self.cache.forget(member)
        self.queue.faulted(entry, now)
        try:
            decision = failed_decision(entry, self.root(entry.key), members, error)
            self.decisions[entry.key] = decision
            writes.add(self.status.failure(decision, self.cache.trees, self._stamp()))
        except Exception:
            log.exception("%s cannot even be marked", entry.key)
            return None
        return decision

    # ---- who may fit now

    def _hold_next(self, now: float) -> None:
        """All who may fit have had their turn, and nobody has room held any more: the next who has failed for long is
        not tried before it may fit, and it may fit only if freed room is held for it."""
        self._gained = False
        for entry in self.queue.impatient(now, self.backfill.resting(now)) if self.backfill.root is None else ():
            if isinstance(entry.hint, QueueingHint):
                self._hold(now, partial(self.backfill.failed, entry, entry.hint))

    def _hold(self, now: float, change: Callable[[float], None]) -> None:
        try:
            change(now)
        except Exception:  # its owner meets the fault when it is decided, and is told
            log.exception("room is no longer held for %s", self.backfill.root)
            if self.backfill.root is not None:
                self.backfill.release(now, self.backfill.root)

    def _wake(self, now: float) -> None:
        engine, mark = self.cache.engine, self.cache.engine.mark()
        try:
            with Waking(engine, min(self.cache.priorities, default=None)) as waking:

                def may(hint: Hashable | None, root: str) -> bool:
                    return isinstance(hint, QueueingHint) and waking.may_fit(hint, root)

                self.queue.wake(now, may, self.backfill.root or "")
        except Exception:  # one hint fails: each is asked for itself
            engine.undo(mark)
            self.queue.wake(now, self._may_fit_now(), self.backfill.root or "")

    def _may_fit_now(self) -> MayFit:
        """Whether what a root lacked may be there now."""
        lowest, engine = min(self.cache.priorities, default=None), self.cache.engine

        def may(hint: Hashable | None, root: str) -> bool:
            mark = engine.mark()
            try:
                return isinstance(hint, QueueingHint) and may_fit_now(engine, hint, lowest, root)
            except Exception:  # whoever left the hint meets the fault when it is decided, and is told
                engine.undo(mark)
                log.exception("a queueing hint failed")
                return True

        return may

    def next_timer(self) -> float | None:
        """When something happens by itself."""
        first = self.queue.next_timer()
        for other in (self.healer.next_timer(), self.backfill.ends()):
            if other is not None and (first is None or other < first):
                first = other
        return first


def _age(leaf: Group) -> tuple[str, int]:
    """Of its oldest pod that waits; a gang that has lost members does not get younger by that."""
    first = next(iter(leaf.pending.values())).age
    return min((one.age for one in leaf.placed.values()), default=first) if lacking(leaf) else first


def is_gang(root: Group | PodInfo) -> bool:
    return isinstance(root, Group) and root.spec is not None and root.spec.minimum is not None


def _has_minimum(root: Group) -> bool:
    """Of a gang: enough of it has nodes; what is pending is surplus."""
    return is_gang(root) and any(leaf.placed or leaf.finished for leaf in root.leaves()) and bool(startable(root))
