"""The scheduling cycle: one root after the other is decided, and what follows from that."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial

from kohort.place.demand import Reason
from kohort.place.highs import SolverStatus
from kohort.place.reservations import Reservation
from kohort.place.solving import Verdict
from kohort.place.together import Together
from kohort.scheduler.decision import Decision, DecisionKind
from kohort.scheduler.faults import members_of
from kohort.scheduler.hardquestions import HardQuestion
from kohort.scheduler.healing import HealingAction, Seats
from kohort.scheduler.lookahead import TOGETHER, Window
from kohort.scheduler.queue import QueuedRoot, SubQueue
from kohort.scheduler.queueupkeep import QueueUpkeep, is_gang
from kohort.scheduler.slices import DecisionUnderWay, LookUnderWay, Pause, Sliced
from kohort.scheduler.status import Eviction, Target, Writes
from kohort.scheduler.trees import Group, PodInfo

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Step:
    """One decision, and what follows from it."""

    decision: Decision | None = None
    evictions: list[Eviction] = field(default_factory=list)
    writes: Writes = field(default_factory=Writes)
    spent: float = 0.0  # seconds of the processor on the decision that are not the caller's own


class SchedulingCycle(QueueUpkeep):
    """Decides."""

    def step(self, now: float) -> Step | None:
        """The next decision; None if there is nothing to decide now and nothing to write."""
        writes = self.sync(now)
        if self.unwritten:
            writes, self.unwritten = self.unwritten + writes, Writes()
        self.evictions.expire(now)
        healed = self._heal(now)
        if healed is not None:
            healed.writes = writes + healed.writes
            return healed
        if self.slices.under_way is None:
            entry = self.queue.pop(now)
        else:
            entry = None if self.slices.is_due() else self.queue.pop(now)
            if not self.slices.lets(entry):
                if entry is not None:
                    self.queue.back(entry, now)
                return self._advance(writes, now)
        if entry is None:
            if self._gained:
                self._hold_next(now)
            return Step(writes=writes) if writes else None
        turn = self.lookahead.turn(entry, now)
        return self._look(turn, writes, now) if isinstance(turn, Window) else self._decided(turn, writes, now)

    def _look(self, window: Window, writes: Writes, now: float) -> Step:
        """At roots that are ready together, before one of them is decided."""
        engine, find, first = self.cache.engine, self.lookahead.find, window.entries[0]
        if self.questions is not None and self.slices.looks(window):
            if self.slices.under_way is not None:
                self.lookahead.given_up()
                others = (self.queue.take(key, now) for key in window.keys[1:])
                self.slices.parked += [first, *(entry for entry in others if entry is not None)]
                return Step(writes=writes)

            def in_slices(pause: Pause) -> Together:
                engine.pause = pause
                return find(window, self._sliced, now)

            self.slices.under_way = LookUnderWay(first, Sliced(engine, in_slices), window)
            return self._advance(writes, now)
        mark = engine.mark()
        try:
            found = find(window, self.decider, now)
        except Exception:
            engine.undo(mark)
            found = self._no_look()
        return self._looked(window, found, writes, now)

    def _looked(self, window: Window, found: Together, writes: Writes, now: float) -> Step:
        turn = self.lookahead.looked(window, found, now)
        return Step(writes=writes) if turn is None else self._decided(turn, writes, now)

    def _no_look(self) -> Together:
        """A fault of ours: roots have their turns as if nobody looked ahead."""
        log.exception("roots could not be looked at together")
        return Together()

    def _decided(self, entry: QueuedRoot, writes: Writes, now: float) -> Step:
        members: dict[str, PodInfo] = {}
        mark = self.cache.engine.mark()
        try:
            root = self.root(entry.key)
            if root is None:
                self._gone(entry.key, now)
                return Step(writes=writes)
            if entry.timed_out and self._fails_again(entry):
                self._failed(entry, self.decisions[entry.key], now)
                return Step(writes=writes)
            if self.questions is not None and isinstance(root, Group) and self.slices.takes(entry):
                return self._decide_in_slices(entry, root, writes, now)
            members = members_of(root)
            return self._decide(entry, root, writes, now)
        except Exception as error:
            self.cache.engine.undo(mark)
            return Step(self._faulted(entry, members, writes, error, now), writes=writes)

    # ---- large roots

    def _decide_in_slices(self, entry: QueuedRoot, root: Group, writes: Writes, now: float) -> Step:
        if self.slices.under_way is not None:
            self.slices.parked.append(entry)
            return Step(writes=writes)
        if entry.surplus and self.queue.hold_surplus(entry, now):
            return Step(writes=writes)
        decide = partial(
            self._sliced.decide, root, minimum_only=self._set_aside(entry, root), seats=self.lookahead.seats(entry.key)
        )
        sliced = Sliced(self.cache.engine, lambda pause: decide(pause=pause))
        self.slices.under_way = DecisionUnderWay(entry, sliced, root, self._versions())
        return self._advance(writes, now)

    def _advance(self, writes: Writes, now: float) -> Step:
        """The next slice of what is under way."""
        under_way = self.slices.under_way
        assert under_way is not None
        if isinstance(under_way, LookUnderWay):
            return self._advance_look(under_way, writes, now)
        entry, root = under_way.entry, under_way.root
        try:
            decision = self.slices.advance(under_way.work)
            if decision is None:
                return Step(writes=writes)
            step = self._concluded(entry, root, decision, writes, now)
            if entry.queue is SubQueue.UNSCHEDULABLE and under_way.versions != self._versions():
                # What was gained meanwhile may be what it lacked.
                decision.rests_on, self._move_requests = under_way.versions, (-1, -1)
        except Exception as error:
            self.cache.engine.undo(0)
            step = Step(self._faulted(entry, members_of(root), writes, error, now), writes=writes)
        step.spent = under_way.work.seconds
        self._unpark(now)
        return step

    def _advance_look(self, under_way: LookUnderWay, writes: Writes, now: float) -> Step:
        try:
            found = self.slices.advance(under_way.work)
        except Exception:
            self.cache.engine.undo(0)
            found = self._no_look()
        if found is None:
            return Step(writes=writes)
        self._unpark(now)
        step = self._looked(under_way.window, found, writes, now)
        step.spent = under_way.work.seconds
        return step

    # ---- gangs that have lost members

    def _heal(self, now: float) -> Step | None:
        """What is due by the clock."""
        if self.healer.is_idle(now):
            return None
        for root in self.healer.overdue(now):
            self._give_up(root)
        step: Step | None = None
        for action in (*self.healer.evicted(), *self.healer.lost(), *self.healer.due(now)):
            step = step or Step()
            self._carry_out(action, step, now)
        return step

    def _carry_out(self, action: HealingAction, step: Step, now: float) -> None:
        evictions, writes = self.status.healed(action, self.cache, self._stamp())
        self.evictions.order(action.pods, now)
        step.evictions += evictions
        step.writes.add(writes)

    def relocate(self, action: HealingAction, barred: Seats, seconds: float, now: float) -> Step:
        """A gang goes elsewhere to make room. Where it goes is held for it, and what would fill the nodes that it
        leaves (`barred`) is held against it and all that are not more important, for so long at the most."""
        step = Step()
        root = self.root(action.group)
        assert isinstance(root, Group), action.group
        priority = self.decider.priority(root)
        for owner, pods in ((action.group, action.seats), (freed_key(action.group), barred)):
            self.cache.reservations.put(Reservation(owner, priority, pods))
            self.healer.hold(owner, now, seconds)
        self._carry_out(action, step, now)
        return step

    def relocated(self, root: str) -> None:
        """A gang runs elsewhere, or does not: whoever needs the nodes that it has left may have them."""
        for owner in (root, freed_key(root)):
            self.healer.landed(owner)
            self._give_up(owner)

    def _decide(self, entry: QueuedRoot, root: Group | PodInfo, writes: Writes, now: float) -> Step:
        if entry.surplus and self.queue.hold_surplus(entry, now):
            return Step(writes=writes)
        seats = self.lookahead.seats(entry.key)
        decision = self.decider.decide(root, minimum_only=self._set_aside(entry, root), seats=seats)
        return self._concluded(entry, root, decision, writes, now)

    def _set_aside(self, entry: QueuedRoot, root: Group | PodInfo) -> bool:
        """Whether only the minimum of a root is placed for now."""
        return is_gang(root) and not entry.surplus and self.queue.minimums_wait(entry)

    def _concluded(
        self, entry: QueuedRoot, root: Group | PodInfo, decision: Decision, writes: Writes, now: float
    ) -> Step:
        """What follows from a decision, on the state that it was made on."""
        step = Step(decision, writes=writes)
        if decision.kind is DecisionKind.SCHEDULED:
            self._scheduled(entry, decision, root, now)
            if decision.widened and isinstance(root, Group):
                writes.events += self.status.widened(root, decision.widened)
        elif decision.kind is DecisionKind.PREEMPTING:
            self._preempting(entry, decision, root, step, now)
        elif decision.kind is DecisionKind.NOTHING:
            self.queue.placed(entry, now, more=False)
        else:
            self._failed(entry, decision, now)
        if decision.healing is not None:
            self._carry_out(decision.healing, step, now)
            if decision.healing.seats:
                self.cache.reservations.put(Reservation(entry.key, decision.priority, decision.healing.seats))
                self.healer.hold(entry.key, now)
        told = self.cache.settings.explains and not (decision.minimum_only and decision.kind is DecisionKind.SCHEDULED)
        if told and decision.leftovers:
            writes.add(self.status.failure(decision, self.cache.trees, self._stamp()))
        return step

    def not_carried_out(self, decision: Decision, error: Exception, now: float) -> Step:
        """A fault of ours before anything of a decision was sent: its pods go back to the queue."""
        writes = Writes()
        entry = self.queue.get(decision.root)
        if entry is None:
            size = max(len(decision.members), 1)
            entry = self.queue.put(
                decision.root, priority=decision.priority, age=("", 0), size=size, gated=False, now=now
            )
        return Step(self._faulted(entry, decision.members, writes, error, now), writes=writes)

    def answered(self, question: HardQuestion, verdict: Verdict, now: float) -> None:
        """A search that went on elsewhere has ended: its root has its turn again. What was found is wanted at once, and
        so is the next question; if nothing was found, its pause has to be over."""
        if self.questions is None or not self.questions.answered(question, verdict):
            return
        self._interrupt(question.root, now, changed=False)
        if question.root == TOGETHER:
            self.lookahead.answered(verdict, now)
            return
        entry = self.queue.get(question.root)
        if verdict.status is SolverStatus.FOUND or not question.last:
            self.queue.activate(question.root, now, "SearchEnded")
        elif entry is not None and entry.queue is SubQueue.UNSCHEDULABLE:
            self.queue.release(entry, now, "SearchEnded")

    def _scheduled(self, entry: QueuedRoot, decision: Decision, root: Group | PodInfo, now: float) -> None:
        self._no_question(entry.key)
        self.decisions.pop(entry.key, None)
        self.evictions.drop(entry.key)
        self.backfill.release(now, entry.key)
        if self.healer.holds(entry.key):
            self.healer.landed(entry.key)
            self.cache.reservations.drop(entry.key)
        kept = self.cache.reservations.get(entry.key) is not None
        for uid, node in decision.assignments.items():
            self.cache.assume(decision.members[uid], node)
            if kept:
                self.cache.reservations.drop_pod(entry.key, uid)
        self.cache.later.landed(entry.key)
        if decision.later and isinstance(root, Group):
            for pod in decision.later:
                self.cache.reservations.drop_pod(entry.key, pod)
            self.cache.later.hold(root, decision.priority, decision.later)
        entry.surplus = is_gang(root)
        hint_before, entry.hint = entry.hint, None
        self.queue.placed(entry, now, more=bool(decision.leftovers))
        if hint_before is not None:
            self.queue.wake_next(hint_before, now, self._may_fit_now())

    def _versions(self) -> tuple[int, ...]:
        """Of all that may make room for a root that did not fit."""
        cache = self.cache
        return (
            cache.move_requests,
            cache.storage.version,
            cache.state.claims.version,
            cache.default_selectors.version,
            cache.reservations.version,
        )

    def _fails_again(self, entry: QueuedRoot) -> bool:
        """A root has its turn by the clock, and nothing was freed or changed since it failed: pods bound since then
        leave no more room. A search that ended without a proof may find it yet. Where failures are not told, so that
        nobody waits for new numbers, it is enough that even by an upper bound it cannot fit."""
        known = self.decisions.get(entry.key)
        if known is None or known.kind is not DecisionKind.UNSCHEDULABLE or entry.surplus or self.evictions.protected():
            return False
        if not all(one.proven for one in known.outcomes.values()) or not known.rests_on:
            return False
        versions = self._versions()
        if known.rests_on == versions:
            return True
        if self.cache.settings.explains:
            return False
        if self._hopeless[0] != versions:
            self._hopeless = (versions, set())
        owner = self.cache.reservations.get(entry.key) is not None  # room is kept for it, not from it
        if entry.hint in self._hopeless[1] and not owner:
            return True
        may = self._may_fit_now()(entry.hint, entry.key)
        if not may and not owner:
            self._hopeless[1].add(entry.hint)
        return not may

    def _failed(self, entry: QueuedRoot, decision: Decision, now: float) -> None:
        self.decisions[entry.key] = decision
        self.evictions.drop(entry.key)
        self.cache.later.landed(entry.key)  # what was held for it is of no use as it is
        kept = self.cache.reservations.get(entry.key)
        if kept is not None and not kept.backfill and not self.healer.holds(entry.key):
            self.cache.reservations.drop(entry.key)
            self.cache.move_requests += 1
        if decision.kind is DecisionKind.ERROR or decision.hint is None:
            self.queue.erred(entry, now, str(decision.reason or ""))
            return
        proven = all(one.proven for one in decision.outcomes.values())
        by_clock = self.cache.settings.explains or not proven  # for new numbers, or because it may be found yet
        self.queue.failed(entry, decision.hint, now, str(decision.reason or ""), by_clock=by_clock)
        if not entry.timed_out or entry.impatient:  # nothing was gained: whoever may hold room had been asked
            self.backfill.failed(entry, decision.hint, now)
        decision.rests_on = self._versions()

    def _preempting(self, entry: QueuedRoot, decision: Decision, root: Group | PodInfo, step: Step, now: float) -> None:
        self.decisions[entry.key] = decision
        self.backfill.release(now, entry.key)
        if decision.preemption is not None:
            wanted = self.cache.pending_pod
            assignments = {uid: (wanted(decision.members[uid]), node) for uid, node in decision.nominations.items()}
            assignments |= decision.later
            self.cache.reservations.put(Reservation(entry.key, decision.priority, assignments))
            victims = [victim.pod.uid for one in decision.preemption.victims for victim in one.pods]
            self.evictions.plan(entry.key, victims, now)
            step.evictions, more = self.status.evictions(decision, _target(root), self.cache.trees, self._stamp())
            step.writes.add(more)
        else:
            self.evictions.wait(entry.key, self._leaving_from(decision))
        self.queue.preempting(entry, decision.hint, now, Reason.PREEMPTING)

    def _leaving_from(self, decision: Decision) -> set[str]:
        """After a restart: those whose going was asked for before it."""
        found: set[str] = set()
        for node in set(decision.nominations.values()):
            row = self.cache.state.row(node)
            if row is not None:
                found |= {pod.uid for pod in self.cache.state.node(row).pods.values() if pod.terminating}
        return found


def freed_key(root: str) -> str:
    """Whose the nodes are that a root leaves."""
    return f"freed:{root}"


def _target(root: Group | PodInfo) -> Target:
    if isinstance(root, PodInfo):
        return Target.pod(root.pod)
    assert root.spec is not None
    return Target.group(root.spec)
