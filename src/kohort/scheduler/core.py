"""The scheduler without its shell: the world goes in change by change, decisions come out one by one.

Whoever drives it (the live loop, a simulation, a test) calls `step` until nothing is left to do, carries out what a
step says, and reports back what came of it. Time is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final

from kohort.api.scheduling.constants import POD_GROUP_INITIALLY_SCHEDULED
from kohort.place.demand import Reason
from kohort.place.explain import Explanation
from kohort.place.reserve import Reservation
from kohort.scheduler.conditions import Eviction, Ledger, Note, Target, Writes
from kohort.scheduler.decide import Decider, Kind, Verdict
from kohort.scheduler.holding import Holding
from kohort.scheduler.lack import Lack, could
from kohort.scheduler.model import POD_PREFIX, Pod
from kohort.scheduler.queue import Entry, Queue, Where
from kohort.scheduler.settings import Settings
from kohort.scheduler.storage import Promise
from kohort.scheduler.trees import Group, Member
from kohort.scheduler.why import Pending, Why, gate, unrooted
from kohort.scheduler.world import World

_ABOVE_ALL: Final = 2**31 - 1  # of all priorities


@dataclass(slots=True)
class Step:
    """One decision, and what follows from it."""

    verdict: Verdict | None = None
    evictions: list[Eviction] = field(default_factory=list)
    writes: Writes = field(default_factory=Writes)


class Core:
    """Decides. `stamp` gives the time as it is written into objects."""

    def __init__(
        self, settings: Settings, stamp: Callable[[], str], group_condition: str = POD_GROUP_INITIALLY_SCHEDULED
    ) -> None:
        self.settings = settings
        self.world = World(settings)
        self.queue = Queue(settings)
        self.decider = Decider(self.world)
        self.ledger = Ledger(group_condition, next(iter(sorted(settings.names)), "kohort"))
        self.holding = Holding(self.world.engine, settings, self._freed)
        self.verdicts: dict[str, Verdict] = {}  # the last failure of each root that waits
        self._victims: dict[str, set[str]] = {}  # preemptor -> uids that must be gone first
        self.unwritten = Writes()  # found between two steps
        self.why = Why(self.world, self.decider, self.verdicts, self._victims)
        self._stamp = stamp
        self._gains = (0, 0)
        self._noticed: set[tuple[str, str]] = set()

    def _freed(self) -> None:
        """Room that was held is free again."""
        self.world.gains += 1

    # ---- the world

    def drop_pod(self, pod: Pod) -> None:
        self.world.drop_pod(pod)
        self.ledger.forget(pod.metadata.uid)

    def drop_group(self, key: str) -> None:
        group = self.world.trees.get(key)
        if group is not None and group.spec is not None:
            self.ledger.forget(group.spec.uid)
            self.ledger.forget(key)
        self.world.drop_group(key)

    def sync(self, now: float) -> Writes:
        """The queue catches up with the world."""
        writes = Writes()
        while self.world.touched:
            touched, self.world.touched = self.world.touched, {}
            for key in touched:
                self._update(key, now, writes)
        gains = (self.world.gains, self.world.storage.version)
        if gains != self._gains:
            self._gains = gains
            self._victims_gone(now)
            self.holding.grow(now)
            self.queue.wake(now, self._could())
        return writes

    def _could(self) -> Callable[[Hashable], bool]:
        """Whether what a root lacked may be there now."""
        lowest, engine = min(self.world.priorities, default=None), self.world.engine
        return lambda lack: isinstance(lack, Lack) and could(engine, lack, lowest)

    def _update(self, key: str, now: float, writes: Writes) -> None:
        root = self.root(key)
        if root is None:
            self._gone(key, now)
        elif isinstance(root, Member):
            self.queue.put(key, priority=root.pod.spec.priority or 0, age=root.age, size=1, gated=root.gated, now=now)
        else:
            for group in root.walk():
                if group.settled:
                    _add(writes, self.ledger.settled(group, self._stamp()))
            if not root.waiting:
                self._gone(key, now)
                return
            leaves = [leaf for leaf in root.leaves() if leaf.pending]
            gated = root.held or not root.ready
            self.queue.put(
                key,
                priority=self.decider.priority(root),
                age=min(next(iter(leaf.pending.values())).age for leaf in leaves),
                size=sum(len(leaf.pending) for leaf in leaves),
                gated=gated,
                now=now,
                begun=self._begun(root),
            )
            if gated:
                self._give_up(key)
                for leaf in leaves:
                    _add(writes, self.ledger.regressed(leaf, _said(gate(root)), self._stamp()))

    def _begun(self, root: Group) -> bool:
        """Some of it is bound, and never was enough: nothing may take the room that the rest needs."""
        some = [leaf for leaf in root.leaves() if leaf.placed and leaf.pending]
        whole = _startable(root) if some else []
        return any(leaf not in whole and not self.ledger.is_scheduled(leaf) for leaf in some)

    def root(self, key: str) -> Group | Member | None:
        """What the key of an entry stands for; None if that has nothing to be decided any more."""
        if key.startswith(POD_PREFIX):
            member = self.world.members.get(key.removeprefix(POD_PREFIX))
            alone = member is not None and member.pod.group is None
            return member if member is not None and alone and not member.node and not member.leaving else None
        group = self.world.trees.get(key)
        if group is None or group.spec is None or self.world.trees.root(group) is not group:
            return None
        return group

    def _gone(self, key: str, now: float) -> None:
        self.queue.remove(key)
        self.verdicts.pop(key, None)
        self.holding.release(now, key)
        self._give_up(key)

    def _give_up(self, key: str) -> None:
        """A root no longer needs the room that was to be made for it."""
        self._victims.pop(key, None)
        if self.world.reservations.drop(key):
            self.world.gains += 1

    def _victims_gone(self, now: float) -> None:
        for root, victims in list(self._victims.items()):
            if not victims & self.world.members.keys():
                del self._victims[root]
                self.queue.activate(root, now, "VictimsGone")

    # ---- deciding

    def step(self, now: float) -> Step | None:
        """The next decision; None if there is nothing to decide now and nothing to write."""
        writes, self.unwritten = _joined(self.unwritten, self.sync(now)), Writes()
        entry = self.queue.pop(now)
        if entry is None:
            return Step(writes=writes) if writes else None
        root = self.root(entry.key)
        if root is None:
            self._gone(entry.key, now)
            return Step(writes=writes)
        verdict = self.decider.decide(root)
        step = Step(verdict, writes=writes)
        if verdict.kind is Kind.SCHEDULED:
            self._scheduled(entry, verdict, now)
        elif verdict.kind is Kind.PREEMPTING:
            self._preempting(entry, verdict, root, step, now)
        elif verdict.kind is Kind.NOTHING:
            self.queue.placed(entry, now, more=False)
        else:
            self._failed(entry, verdict, now)
        if verdict.leftovers:
            _add(writes, self.ledger.failure(verdict, self.world.trees, self._stamp()))
        return step

    def _scheduled(self, entry: Entry, verdict: Verdict, now: float) -> None:
        self.verdicts.pop(entry.key, None)
        self._victims.pop(entry.key, None)
        self.holding.release(now, entry.key)
        for uid, node in verdict.seats.items():
            self.world.assume(verdict.members[uid], node)
            self.world.reservations.drop_pod(entry.key, uid)
        lacked, entry.lack = entry.lack, None
        self.queue.placed(entry, now, more=bool(verdict.leftovers))
        if lacked is not None:
            self.queue.wake_next(lacked, now, self._could())

    def _failed(self, entry: Entry, verdict: Verdict, now: float) -> None:
        self.verdicts[entry.key] = verdict
        self._victims.pop(entry.key, None)
        kept = self.world.reservations.get(entry.key)
        if kept is not None and not kept.held:
            self.world.reservations.drop(entry.key)
            self.world.gains += 1
        if verdict.kind is Kind.ERROR or verdict.lack is None:
            self.queue.erred(entry, now, str(verdict.reason or ""))
            return
        self.queue.failed(entry, verdict.lack, now, str(verdict.reason or ""))
        self.holding.failed(entry, verdict.lack, now)

    def _preempting(self, entry: Entry, verdict: Verdict, root: Group | Member, step: Step, now: float) -> None:
        self.verdicts[entry.key] = verdict
        self.holding.release(now, entry.key)
        if verdict.preemption is not None:
            wanted = self.world.wanted
            seats = {uid: (wanted(verdict.members[uid]), node) for uid, node in verdict.nominations.items()}
            self.world.reservations.put(Reservation(entry.key, verdict.priority, seats))
            self._victims[entry.key] = {victim.pod.uid for unit in verdict.preemption.victims for victim in unit.pods}
            step.evictions, more = self.ledger.evictions(verdict, _target(root), self.world.trees, self._stamp())
            _add(step.writes, more)
        else:
            self._victims.setdefault(entry.key, self._leaving_from(verdict))
        self.queue.preempting(entry, verdict.lack, now, Reason.PREEMPTING)

    def _leaving_from(self, verdict: Verdict) -> set[str]:
        """After a restart: those whose going was asked for before it."""
        found: set[str] = set()
        for node in set(verdict.nominations.values()):
            row = self.world.state.row(node)
            if row is not None:
                found |= {pod.uid for pod in self.world.state.node(row).pods.values() if pod.terminating}
        return found

    # ---- carrying out

    def confirm(self, verdict: Verdict, now: float) -> dict[str, str]:
        """Right before binding: what still holds of a decision. A gang that lost a member, or whose minimum was raised,
        since it was decided, is not started; its pods go back to the queue."""
        seats = {uid: node for uid, node in verdict.seats.items() if self._still(uid, node)}
        group = self.world.trees.get(verdict.root)
        if group is None:
            return seats
        keep = {leaf.key for leaf in _startable(group)}
        kept: dict[str, str] = {}
        for uid, node in seats.items():
            member = self.world.members[uid]
            if member.pod.group in keep:
                kept[uid] = node
            else:
                self.world.forget(member)
        return kept

    def volumes(self, seats: dict[str, str], now: float) -> list[Promise] | None:
        """Which volumes the pods of a decision get; None if some got away: its pods are back in the queue."""
        found = {}
        for uid, node in seats.items():
            member, row = self.world.members[uid], self.world.state.row(node)
            if member.pod.spec.volumes and row is not None:
                found[uid] = (self.world.raw(member), node, self.world.state.node(row).labels)
        promises, short = self.world.storage.choose(found)
        if short:
            self._send_back(seats, "a volume that was free is not any more", now)
            return None
        self.world.storage.promise(promises)
        return promises

    def provided(self, verdict: Verdict, now: float) -> dict[str, str]:
        """The volumes are there: the seats that still hold, all or none of them reaching their volumes."""
        seats = self.confirm(verdict, now)
        for uid, node in seats.items():
            member, row = self.world.members[uid], self.world.state.row(node)
            labels = self.world.state.node(row).labels if row is not None else {}
            if member.pod.spec.volumes and not self.world.storage.usable(self.world.raw(member), node, labels):
                self._send_back(seats, f"a volume cannot be reached from {node}", now)
                return {}
        return seats

    def _send_back(self, seats: dict[str, str], text: str, now: float) -> None:
        self.unwritten = _joined(self.unwritten, self.unprovided(seats, text, now))

    def unprovided(self, seats: dict[str, str], text: str, now: float) -> Writes:
        """Volumes did not come: nothing of the decision is started."""
        members = [member for uid in seats if (member := self.world.members.get(uid)) is not None and member.assumed]
        for member in members:
            self.world.forget(member)
        writes = self.sync(now)
        for key in {self.world.root_key(member) for member in members}:
            entry = self.queue.get(key)
            if entry is not None:
                entry.refusal = text
                self.queue.later(entry, now)
        for member in members:
            if self.world.storage.unbound(self.world.raw(member)):
                _add(writes, self.ledger.unprovided(member, text, self._stamp()))
        return writes

    def _still(self, uid: str, node: str) -> bool:
        member = self.world.members.get(uid)
        if member is None or not member.assumed or member.node != node:
            return False
        if member.leaving:
            self.world.forget(member)
            return False
        return True

    def bound(self, uid: str, node: str) -> list[Note]:
        """The API server took the binding. The watch confirms it."""
        member = self.world.members.get(uid)
        return [] if member is None else self.ledger.bound(member, node)

    def refused(self, uid: str, node: str, text: str, now: float, *, answered: bool = True) -> Writes:
        """A binding was refused, or not answered: the room stays the pod's, and it is tried again later, elsewhere if
        that can be."""
        member = self.world.members.get(uid)
        if member is None or not member.assumed:
            return Writes()
        self.world.forget(member)
        member.refused.add(node)
        member.refusals += 1
        key = self.world.root_key(member)
        root = self.root(key)
        begun = isinstance(root, Group) and self._begun(root)
        priority = _ABOVE_ALL if begun else self.world.priority(member)
        self.world.reservations.add(key, priority, self.world.wanted(member), node)
        writes = self.sync(now)
        entry = self.queue.get(key)
        if entry is not None:
            entry.errors = max(entry.errors, member.refusals - 1)
            entry.refusal = f"{member.pod.key}: binding to {node} was refused: {text}"
            self.queue.later(entry, now)
        _add(writes, self.ledger.refused(member, node, text, self._stamp()))
        group = self.world.trees.get(member.pod.group) if member.pod.group is not None else None
        if answered and group is not None and member.refusals > 1:
            _add(writes, self.ledger.stuck(member, group, text, self._stamp()))
        return writes

    def lost(self, uid: str) -> None:
        """The pod is gone, or somebody else bound it: the watch will say which."""
        member = self.world.members.get(uid)
        if member is not None and member.assumed:
            self.world.forget(member)

    def still_preempting(self, root: str, now: float) -> bool:
        """Right before an eviction: whether anybody still waits for it."""
        self.unwritten = _joined(self.unwritten, self.sync(now))
        return root in self._victims

    def not_evicted(self, root: str, now: float) -> None:
        """A victim could not be deleted: the plan is void."""
        self._give_up(root)
        self.queue.activate(root, now, "PreemptionFailed")

    # ---- why

    def pending(self) -> Iterator[Pending]:
        """Everything that waits, each with a reason."""
        for entry in self.queue:
            yield self.why.waiting(entry, self.root(entry.key))
        yield from self.why.parked()

    def notices(self, now: float) -> list[Note]:
        """Events for roots that have not been ready for a while; each said once."""
        notes: list[Note] = []
        for entry in self.queue:
            root = self.root(entry.key)
            late = entry.where is Where.GATED and now - entry.since >= self.settings.notice_after
            if late and isinstance(root, Group) and root.spec is not None:
                notes += self.ledger.waiting(root.spec, _said(gate(root)))
        for group in self.world.trees:
            if group.pending and group.spec is not None:
                root_or_broken = self.world.trees.root(group)
                if not isinstance(root_or_broken, Group):
                    notes += self.ledger.waiting(group.spec, _said(unrooted(group.key, root_or_broken)))
        return notes


def _startable(group: Group) -> list[Group]:
    """The leaves that may be bound: those that have their minimum, under parents that have theirs."""
    spec = group.spec
    if spec is None:
        return []
    if not spec.composite:
        return [group] if len(group.placed) + len(group.finished) >= spec.need else []
    below = [found for child in group.ordered() if (found := _startable(child))]
    return [leaf for found in below for leaf in found] if len(below) >= spec.need else []


def _target(root: Group | Member) -> Target:
    if isinstance(root, Member):
        return Target.pod(root.pod)
    assert root.spec is not None
    return Target.group(root.spec)


def _add(writes: Writes, more: Writes) -> None:
    writes.patches += more.patches
    writes.notes += more.notes


def _joined(one: Writes, other: Writes) -> Writes:
    return Writes([*one.patches, *other.patches], [*one.notes, *other.notes])


def _said(told: Explanation) -> str:
    return f"{told.reason}: {told.detail}"
