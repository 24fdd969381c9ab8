"""Whose turn is it? Gangs that were begun and are not whole, then roots by priority; of equal ones those that have not
their minimum before those that only want more; then by the age of their oldest pending pod.

A root is in one place: active (may be decided now), backoff (soon), waiting (failed, until something happens that can
help), gated (members are missing or held back) or preempting (until its victims are gone). Time is passed in.

A failure leaves what it lacked. Roots that lacked the same share a bucket; when the cluster gained something and the
lack may be met, the first of the bucket is released, and the next only after that one got its place: a thousand equal
gangs cost one attempt per gain. Failing does not make a root younger, so what fails is not overtaken by its equals.

A decision that fails costs time that everybody waits for, and whoever asked for it may ask for as many as they like. So
what fails dearly pauses: its namespace has its next first try after as long again, its next retry after ten times that.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kohort.scheduler.settings import SchedulerSettings

_DEAR: Final = "DearFailures"
_RESTS: Final = "NamespaceRests"
_TIMEOUT: Final = "UnschedulableTimeout"
_IMPATIENCE: Final = "PatienceEnded"
_FREE: Final = 0.005  # seconds that a failure may cost without a pause
_RETRIES: Final = 10.0  # so many times as long as failures of a namespace took, it has no retry; no first try: once
_PAUSES: Final = 1000  # that are remembered, before those that are over are looked for
_IMPATIENT: Final = 4  # of which one may get room held
_PLACES: Final = 8  # of those that lack the same, if the first have had room held
_LOOK: Final = 0.5  # seconds between two looks whether the minimums that come before a surplus are placed
_GOING: Final = 0.2  # seconds that a root waits for the rest of those who go for it, if some have gone

Age = tuple[str, int]
Order = tuple[bool, int, bool, Age, str]


MayFit = Callable[[Hashable | None, str], bool]  # what a root lacked, and which root it is


class SubQueue(StrEnum):
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    PREEMPTING = "preempting"
    IN_FLIGHT = "in-flight"


@dataclass(slots=True, eq=False)
class QueuedRoot:
    """A root with pods to place."""

    key: str
    priority: int
    age: Age
    size: int
    begun: bool = False  # some of it is bound, and not enough: whoever began died, or was refused
    surplus: bool = False  # it has its minimum: what is pending is above it
    surplus_since: float | None = None  # when its surplus first had its turn
    family: str = ""  # roots of one owner
    namespace: str = ""
    queue: SubQueue = SubQueue.GATED
    since: float = 0.0  # in this place
    attempts: int = 0  # failures in a row: did not fit
    errors: int = 0  # failures in a row: could not even be tried, or bound
    until: float = 0.0  # not decided before
    timed_out: bool = False  # it has its turn by the clock alone
    impatient: bool = False  # it has it because its patience has ended
    by_clock: bool = True  # it is tried again after a while even if nothing was gained
    failing_since: float | None = None
    hint: Hashable | None = None
    reason: str = ""
    refusal: str = ""  # of its last binding, if that was refused
    passed_since: float | None = None  # when others that came later first had their turn before it

    @property
    def order(self) -> Order:
        return (not self.begun, -self.priority, self.surplus, self.age, self.key)


@dataclass(slots=True)
class _Timers:
    """Keys by time, forgotten lazily."""

    heap: list[tuple[float, str]] = field(default_factory=list)

    def add(self, at: float, key: str) -> None:
        heapq.heappush(self.heap, (at, key))

    def due(self, now: float) -> Iterator[str]:
        while self.heap and self.heap[0][0] <= now:
            yield heapq.heappop(self.heap)[1]


class Queue:
    """All roots that have pods to place."""

    def __init__(self, settings: SchedulerSettings) -> None:
        self._settings = settings
        self._entries: dict[str, QueuedRoot] = {}
        self._active: list[Order] = []
        self._families: dict[str, set[str]] = {}  # keys of entries
        self._timers = _Timers()
        self._hints: dict[Hashable, list[Order]] = {}
        self._pauses: dict[tuple[str, bool], float] = {}  # namespace, whether of retries -> end
        self._resting: dict[str, QueuedRoot] = {}  # or have rested
        self._preempting: dict[str, QueuedRoot] = {}  # or have waited for victims
        self.rests: Callable[[str], float] = lambda _: 0.0  # seconds for which a namespace lets others work
        self.incoming: Counter[tuple[str, str]] = Counter()  # (place, cause): how often roots came there

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueuedRoot]:
        return iter(self._entries.values())

    def get(self, key: str) -> QueuedRoot | None:
        return self._entries.get(key)

    # ---- what the cache says

    def put(
        self,
        key: str,
        *,
        priority: int,
        age: Age,
        size: int,
        gated: bool,
        now: float,
        begun: bool = False,
        surplus: bool = False,
        family: str = "",
        namespace: str = "",
    ) -> QueuedRoot:
        """A root with pods to place is there, or something about it changed that may help it."""
        entry = self._entries.get(key)
        if entry is None:
            entry = QueuedRoot(key, priority, age, size, begun, surplus, None, family, namespace, since=now)
            self._entries[key] = entry
            if family:
                self._families.setdefault(family, set()).add(key)
            self._place(entry, SubQueue.GATED if gated else SubQueue.ACTIVE, now, "PodAdd")
            return entry
        before = entry.order
        entry.begun, entry.priority, entry.age, entry.size, entry.surplus = begun, priority, age, size, surplus
        moved = entry.order != before
        if gated:
            if entry.queue is not SubQueue.GATED:
                self._place(entry, SubQueue.GATED, now, "Gate")
        elif entry.queue in {SubQueue.GATED, SubQueue.UNSCHEDULABLE}:
            self.release(entry, now, "TreeChange")
        elif entry.queue is SubQueue.ACTIVE and moved:
            heapq.heappush(self._active, entry.order)
        return entry

    def remove(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None and entry.family in self._families:
            self._families[entry.family].discard(key)
            if not self._families[entry.family]:
                del self._families[entry.family]

    # ---- turns

    def pop(self, now: float) -> QueuedRoot | None:
        """The next root to decide. Whoever takes it says what came of it. One that rests is passed by those as
        important; before one that is less important comes, it has rested enough."""
        if self._timers.heap and self._timers.heap[0][0] <= now:
            self._flush(now)
        while (entry := self._first()) is not None:
            before = self._more_important(entry.priority) if self._resting else None
            if before is not None:
                return self._taken(before, now)
            heapq.heappop(self._active)
            ends, cause = self._held(entry, now)
            if ends <= now:
                return self._taken(entry, now)
            if cause is _RESTS:
                self._resting[entry.key] = entry
            entry.until = max(entry.until, ends)
            self._place(entry, SubQueue.BACKOFF, now, cause)
        return None

    def _taken(self, entry: QueuedRoot, now: float) -> QueuedRoot:
        self._resting.pop(entry.key, None)
        entry.queue, entry.since = SubQueue.IN_FLIGHT, now
        return entry

    def _more_important(self, priority: int) -> QueuedRoot | None:
        """Of those that rest."""
        self._resting = {
            key: one
            for key, one in self._resting.items()
            if one.queue is SubQueue.BACKOFF and self._entries.get(key) is one
        }
        found = (one for one in self._resting.values() if one.priority > priority)
        return min(found, key=lambda one: one.order, default=None)

    def _held(self, entry: QueuedRoot, now: float) -> tuple[float, str]:
        """Until when a root is not decided, and why."""
        if entry.begun:
            return 0.0, ""
        ends = self._pauses.get((entry.namespace, _is_retry(entry)), 0.0) if self._pauses else 0.0
        if ends > now:
            return ends, _DEAR
        return now + self.rests(entry.namespace), _RESTS

    def following(self, entry: QueuedRoot, count: int, now: float) -> list[QueuedRoot]:
        """Who has its turn after an entry, of those as important as it that want their minimum as well."""
        found: list[QueuedRoot] = []
        reached = [(self._active[0], 0)] if self._active else []
        while reached and len(found) < count:  # a heap, from its top on: only as much of it as is asked for
            order, place = heapq.heappop(reached)
            if order[:3] != entry.order[:3]:
                break
            one = self._entries.get(order[-1])
            if one is not None and one is not entry and one.queue is SubQueue.ACTIVE and one.order == order:
                found += [one] if one not in found and self._held(one, now)[0] <= now else []
            for below in (2 * place + 1, 2 * place + 2):
                if below < len(self._active):
                    heapq.heappush(reached, (self._active[below], below))
        return found

    def take(self, key: str, now: float) -> QueuedRoot | None:
        """An entry out of its turn, if it is ready."""
        entry = self._entries.get(key)
        if entry is None or entry.queue is not SubQueue.ACTIVE or self._held(entry, now)[0] > now:
            return None
        return self._taken(entry, now)

    def back(self, entry: QueuedRoot, now: float) -> None:
        """It was taken, and is not decided now: it is the next again."""
        self._place(entry, SubQueue.ACTIVE, now, "PassedOver")

    def hold(self, entry: QueuedRoot, now: float, until: float) -> None:
        """It is ready, and waits for others to be looked at together with it."""
        entry.until = until
        self._place(entry, SubQueue.BACKOFF, now, "Lookahead")

    def charge(self, key: str, seconds: float, now: float) -> None:
        """A decision about a root has failed, and took so many seconds of the processor."""
        entry, dear = self._entries.get(key), seconds - _FREE
        if entry is None or dear <= 0:
            return
        if len(self._pauses) >= _PAUSES:
            self._pauses = {one: ends for one, ends in self._pauses.items() if ends > now}
        for retry, times in ((False, 1.0), (True, _RETRIES)):
            ends = max(self._pauses.get((entry.namespace, retry), now), now)
            self._pauses[entry.namespace, retry] = ends + dear * times

    def _first(self) -> QueuedRoot | None:
        while self._active:
            order = self._active[0]
            entry = self._entries.get(order[-1])
            if entry is not None and entry.queue is SubQueue.ACTIVE and entry.order == order:
                return entry
            heapq.heappop(self._active)
        return None

    def minimums_wait(self, entry: QueuedRoot) -> bool:
        """Whether, beside a root that has its turn, a minimum waits that comes before its surplus: of one that is as
        important and ready, or of one of the same owner, ready or not."""
        following = self._first()
        if following is not None and following.priority == entry.priority and not following.surplus:
            return True
        return self.family_waits(entry)

    def family_waits(self, entry: QueuedRoot) -> bool:
        """Whether a root of the same owner has not had its turn. One that was tried and did not fit holds nobody up."""
        if not entry.family:
            return False
        family = (self._entries[key] for key in self._families.get(entry.family, ()) if key != entry.key)
        waiting = {SubQueue.GATED, SubQueue.ACTIVE, SubQueue.IN_FLIGHT}
        return any(one.queue in waiting and not one.surplus for one in family)

    def hold_surplus(self, entry: QueuedRoot, now: float) -> bool:
        """Minimums of the same owner come first, but are not waited for without end."""
        if entry.surplus_since is None:
            entry.surplus_since = now
        ends = entry.surplus_since + self._settings.surplus_wait
        if now >= ends or not self.family_waits(entry):
            return False
        entry.until = min(now + _LOOK, ends)
        self._place(entry, SubQueue.BACKOFF, now, "Surplus")
        return True

    def placed(self, entry: QueuedRoot, now: float, *, more: bool) -> None:
        """It got what it needs. `more`: pods are left over, and are tried again at once, at their own age."""
        entry.attempts = entry.errors = 0
        entry.until, entry.failing_since, entry.reason, entry.refusal = 0.0, None, "", ""
        if more:
            self._place(entry, SubQueue.ACTIVE, now, "Leftovers")
        else:
            self.remove(entry.key)

    def failed(self, entry: QueuedRoot, hint: Hashable, now: float, reason: str = "", *, by_clock: bool = True) -> None:
        """It did not fit: it waits until what it lacked may be there. One that was tried by the clock has waited long
        enough: when something is gained it need not wait because of that."""
        entry.reason, entry.by_clock = reason, by_clock
        if entry.failing_since is None:
            entry.failing_since = now
        if not entry.timed_out:
            entry.attempts += 1
            entry.until = now + self._backoff(entry, entry.attempts)
        entry.hint = hint
        self._place(entry, SubQueue.UNSCHEDULABLE, now, "ScheduleAttemptFailure")

    def erred(self, entry: QueuedRoot, now: float, reason: str = "") -> None:
        """It cannot be tried as it is: it waits until its own tree changes."""
        entry.errors += 1
        entry.reason, entry.by_clock = reason, True
        entry.until = now + self._backoff(entry, entry.errors)
        entry.hint = None
        self._place(entry, SubQueue.UNSCHEDULABLE, now, "ScheduleAttemptFailure")

    def faulted(self, entry: QueuedRoot, now: float) -> None:
        """We failed on it: again after a pause that doubles, up to the one after which everything is tried again."""
        self._entries[entry.key] = entry
        if entry.family:
            self._families.setdefault(entry.family, set()).add(entry.key)
        entry.errors += 1
        pause = self._settings.first_backoff * 2.0 ** min(entry.errors - 1, 32)
        entry.until, entry.hint, entry.reason = now + min(pause, self._settings.retry_after), None, "SchedulerError"
        self._place(entry, SubQueue.BACKOFF, now, "SchedulerError")

    def preempting(self, entry: QueuedRoot, hint: Hashable, now: float, reason: str = "") -> None:
        """Others go for it: it waits until they are gone."""
        entry.hint, entry.reason = hint, reason
        self._place(entry, SubQueue.PREEMPTING, now, "Preemption")

    def later(self, entry: QueuedRoot, now: float, cause: str = "BindingFailure") -> None:
        """A binding (or an eviction for it) was refused: soon again, each time a little later."""
        entry.errors += 1
        entry.until = now + self._backoff(entry, entry.errors)
        self._place(entry, SubQueue.BACKOFF, now, cause)

    def activate(self, key: str, now: float, cause: str) -> None:
        """Now, whatever it waited for."""
        entry = self._entries.get(key)
        if entry is not None and entry.queue in {SubQueue.PREEMPTING, SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF}:
            self._place(entry, SubQueue.ACTIVE, now, cause)

    def wake(self, now: float, may_fit_now: MayFit, holder: str = "") -> None:
        """The cluster gained something. `may_fit_now`: whether a root's lack may be met now; an upper bound is enough.
        `holder`: the root that room is held for, which others of its kind may not have. A root for which others go
        waits a moment for the rest of them: they are told to go together, and it is to be where it was planned."""
        for hint in list(self._hints):
            self.wake_next(hint, now, may_fit_now)
        held = self._entries.get(holder)
        if held is not None and held.queue is SubQueue.UNSCHEDULABLE and may_fit_now(held.hint, holder):
            self.release(held, now, "ClusterGain")
        if not self._preempting:
            return
        self._preempting = {
            key: one
            for key, one in self._preempting.items()
            if one.queue is SubQueue.PREEMPTING and self._entries.get(key) is one
        }
        for entry in list(self._preempting.values()):
            if entry.hint is not None and may_fit_now(entry.hint, entry.key):
                entry.until = now + _GOING
                self._place(entry, SubQueue.BACKOFF, now, "ClusterGain")

    def wake_next(self, hint: Hashable, now: float, may_fit_now: MayFit) -> None:
        """Of those that lacked the same, one got its place: is there more?"""
        head = self._head(hint)
        if head is not None and may_fit_now(hint, head.key):
            self._release_first(hint, now)

    def impatient(self, now: float, resting: Container[str] = ()) -> list[QueuedRoot]:
        """Of each lack, the first that waits and does not rest, if its patience has ended; in order, the first few."""
        found = [one for hint in list(self._hints) if (one := self._first_of(hint, resting)) is not None]
        ended = [one for one in found if (ends := self._patience_ends(one)) is not None and ends <= now]
        return heapq.nsmallest(_IMPATIENT, ended, key=lambda one: one.order)

    def _first_of(self, hint: Hashable, resting: Container[str]) -> QueuedRoot | None:
        """Of those that lack the same; not looked for further than a few places."""
        head = self._head(hint)
        if head is None or head.key not in resting:
            return head
        for order in heapq.nsmallest(_PLACES, self._hints[hint]):
            entry = self._entries.get(order[-1])
            if entry is not None and entry.key not in resting and self._waits(entry, hint, order):
                return entry
        return None

    def next_timer(self) -> float | None:
        """When something happens by itself."""
        return self._timers.heap[0][0] if self._timers.heap else None

    def release(self, entry: QueuedRoot, now: float, cause: str) -> None:
        """To active, or to backoff if its time has not come."""
        self._place(entry, SubQueue.BACKOFF if entry.until > now else SubQueue.ACTIVE, now, cause)

    # ---- inside

    def _place(self, entry: QueuedRoot, queue: SubQueue, now: float, cause: str) -> None:
        entry.queue, entry.since = queue, now
        self.incoming[queue._value_, cause] += 1
        if queue is SubQueue.ACTIVE:
            entry.timed_out, entry.impatient = cause in {_TIMEOUT, _IMPATIENCE}, cause == _IMPATIENCE
            heapq.heappush(self._active, entry.order)
        elif queue is SubQueue.BACKOFF:
            self._timers.add(entry.until, entry.key)
        elif queue is not SubQueue.IN_FLIGHT:
            if queue is not SubQueue.UNSCHEDULABLE or entry.by_clock:
                self._timers.add(now + self._settings.retry_after, entry.key)
            ends = self._patience_ends(entry)
            if queue is SubQueue.UNSCHEDULABLE and ends is not None and ends > now:
                self._timers.add(ends, entry.key)
        if queue is SubQueue.PREEMPTING:
            self._preempting[entry.key] = entry
        if queue is SubQueue.UNSCHEDULABLE and entry.hint is not None:
            heapq.heappush(self._hints.setdefault(entry.hint, []), entry.order)

    def _flush(self, now: float) -> None:
        for key in self._timers.due(now):
            entry = self._entries.get(key)
            if entry is None:
                continue
            if entry.queue is SubQueue.BACKOFF:
                if entry.until <= now:
                    self._place(entry, SubQueue.ACTIVE, now, "BackoffComplete")
            elif (cause := self._long_enough(entry, now)) is not None:
                self._place(entry, SubQueue.ACTIVE, now, cause)

    def _long_enough(self, entry: QueuedRoot, now: float) -> str | None:
        """Of one that waits: its patience has ended since it was last tried, or it waited as long as anybody does."""
        if entry.queue not in {SubQueue.UNSCHEDULABLE, SubQueue.PREEMPTING}:
            return None
        ends = self._patience_ends(entry)
        if ends is not None and entry.since < ends <= now:
            return _IMPATIENCE
        return _TIMEOUT if entry.by_clock and entry.since + self._settings.retry_after <= now else None

    def _patience_ends(self, entry: QueuedRoot) -> float | None:
        if entry.failing_since is None or self._settings.patience <= 0:
            return None
        return entry.failing_since + self._settings.patience

    def _head(self, hint: Hashable) -> QueuedRoot | None:
        """The first that waits in a bucket; the bucket goes when nobody does."""
        heap = self._hints.get(hint)
        while heap:
            entry = self._entries.get(heap[0][-1])
            if entry is not None and self._waits(entry, hint, heap[0]):
                return entry
            heapq.heappop(heap)
        self._hints.pop(hint, None)
        return None

    def _waits(self, entry: QueuedRoot, hint: Hashable, order: Order) -> bool:
        if entry.queue is not SubQueue.UNSCHEDULABLE or entry.order != order:
            return False
        return entry.hint is hint or entry.hint == hint

    def _release_first(self, hint: Hashable, now: float) -> None:
        """The first that may go at once; those before it that are in their backoff go when that ends."""
        while (entry := self._head(hint)) is not None:
            self.release(entry, now, "ClusterGain")
            if entry.queue is SubQueue.ACTIVE:
                return

    def _backoff(self, entry: QueuedRoot, failures: int) -> float:
        longest = self._settings.longest_backoff * math.sqrt(max(entry.size, 1))
        return min(self._settings.first_backoff * 2.0 ** min(failures - 1, 32), longest)


def _is_retry(entry: QueuedRoot) -> bool:
    return entry.attempts + entry.errors > 0
