"""Roots of equal priority that are ready together, looked at as one: whose turn is it, if the fewest are to wait?

The first of the queue and the next few gangs as important as it are asked for together (`place/together.py`), if there
is not much more free than they need. Mostly one after the other is as good, and nothing changes. If another set leaves
fewer waiting, its roots have their turns first, each with the seats that were found for it; then the others, in order.

A root that would have had its place and gives it up so is passed over for as long as its patience lasts; then it is in
every set. What is hard is searched elsewhere, if there is an elsewhere: until that has ended these roots wait, and
others are decided. After a search that found nothing there is none for a while. A look at many pods is itself made in
slices (`slices.py`), for the same reason.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kohort.place.demand import Demand
from kohort.place.effort import Effort
from kohort.place.highs import SolverStatus
from kohort.place.solving import Verdict
from kohort.place.together import JointSearch, Seats, Together, is_plenty
from kohort.scheduler.cache import SchedulerCache
from kohort.scheduler.decision import Decider
from kohort.scheduler.hardquestions import HardQuestions
from kohort.scheduler.queue import Queue, QueuedRoot
from kohort.scheduler.trees import Group, PodInfo
from kohort.scheduler.validate import problems

log = logging.getLogger(__name__)

TOGETHER: Final = "together"  # instead of a root's key, in questions
_LONGEST: Final = 2.0  # seconds of a search
_REST: Final = 10.0  # so many times as long as a search that found nothing could take, there is no other
_PATIENCE: Final = 60.0  # seconds, where nobody's patience ends
_PODS: Final = 5000  # of all roots that are looked at

Nodes = dict[str, str]  # pod -> node
Roots = Callable[[str], Group | PodInfo | None]


@dataclass(slots=True)
class Window:
    """Roots that are looked at together, in their order."""

    entries: list[QueuedRoot]
    demands: list[Demand]
    required: set[int]  # those that were passed over for long enough
    search: JointSearch | None = None

    @property
    def keys(self) -> list[str]:
        return [entry.key for entry in self.entries]

    @property
    def pods(self) -> int:
        return sum(entry.size for entry in self.entries)


@dataclass(slots=True)
class _Agenda:
    """Who has its turn next, and where it goes; of one priority."""

    priority: int
    turns: list[str] = field(default_factory=list)


class Lookahead:
    """Beside one queue. `roots`: what the key of an entry stands for."""

    def __init__(
        self,
        cache: SchedulerCache,
        queue: Queue,
        decider: Decider,
        questions: HardQuestions | None,
        roots: Roots,
    ) -> None:
        self._cache, self._queue, self._decider, self._questions = cache, queue, decider, questions
        self._roots = roots
        self._covered: set[str] = set()  # looked at already: they have their turn without another look
        self._looking = False  # at a window that whoever drives this has been given
        self._agenda = _Agenda(0)
        self._seats: dict[str, Nodes] = {}
        self._waiting: Window | None = None  # for a search elsewhere
        self._rests_until = 0.0
        self._full = -1  # what the cluster had gained when nothing was free for a gang

    @property
    def size(self) -> int:
        return self._cache.settings.profile.lookahead

    # ---- whose turn it is

    def turn(self, entry: QueuedRoot, now: float) -> QueuedRoot | Window:
        """Who is decided now: the first of the queue, or another in its place. Or what must be looked at before that:
        `find`, then `looked`, or `given_up`."""
        if self.size < 2 or entry.begun or entry.surplus:
            return entry
        mark = self._cache.engine.mark()
        try:
            return self._turn(entry, now)
        except Exception:  # a fault of ours: roots have their turns as if nobody looked ahead
            self._cache.engine.undo(mark)
            log.exception("roots could not be looked at together")
            return entry

    def _turn(self, entry: QueuedRoot, now: float) -> QueuedRoot | Window:
        agreed = self._next(entry, now)
        if agreed is not None:
            return agreed
        if self._looking:  # at others, or at it: then it waits for that
            return entry
        if entry.key in self._covered:
            self._covered.discard(entry.key)
            return entry
        if self._full == self._gains:  # nothing was freed since no gang could be placed
            return entry
        window = self._window(entry, now)
        if window is not None:
            self._covered = set(window.keys)
            self._looking = self._is_worth_it(window)
        return window if window is not None and self._looking else entry

    def _is_worth_it(self, window: Window) -> bool:
        """Not if there is room for all of them, nor if there is none for any."""
        first = window.entries[0]
        with self._cache.engine.respecting_nominations(first.key, first.priority):
            search = self._search(window, Effort())
            if search.is_roomy():
                return False
            if not search.by_sums():
                self._full = self._gains
                return False
        return True

    def find(self, window: Window, decider: Decider, now: float) -> Together:
        """A set of them, by the clock of a decider. The state is as it was."""
        first = window.entries[0]
        with self._cache.engine.respecting_nominations(first.key, first.priority):
            window.search = self._search(window, self._effort(decider, now))
            return window.search.find()

    def looked(self, window: Window, found: Together, now: float) -> QueuedRoot | None:
        """Whose turn it is after a look; None: nobody's, a search is under way."""
        entry = window.entries[0]
        self._looking, self._covered = False, set(window.keys)
        if found.searching:
            self._wait(window, now)
            return None
        if found.ordered:
            return entry
        self._agree(window, found.seats, now)
        return self._next(entry, now) or entry

    def given_up(self) -> None:
        """What was to be looked at is not what it was: there is another look at what it is now."""
        self._looking, self._covered = False, set()

    def seats(self, root: str) -> Nodes:
        """Where a root was found to fit beside the others; said once."""
        return self._seats.pop(root, {})

    def gone(self, root: str) -> None:
        self._covered.discard(root)
        self._seats.pop(root, None)

    def answered(self, verdict: Verdict, now: float) -> None:
        """A search elsewhere has ended: its roots have their turns."""
        window, self._waiting = self._waiting, None
        if self._questions is None or window is None:
            return
        if verdict.status is SolverStatus.FOUND and window.search is not None:
            self._agree(window, window.search.seated(self._questions.found(TOGETHER)), now)
        else:
            self._rests_until = now + _REST * _LONGEST
        self._questions.drop(TOGETHER)
        self._covered |= set(window.keys)
        for key in window.keys:
            self._queue.activate(key, now, "SearchEnded")

    # ---- inside

    @property
    def _gains(self) -> int:
        return self._cache.move_requests

    def _next(self, entry: QueuedRoot, now: float) -> QueuedRoot | None:
        """Of those that were agreed on, the first that still waits for its turn."""
        if entry.priority != self._agenda.priority:
            return None
        while self._agenda.turns:
            key = self._agenda.turns.pop(0)
            self._covered.discard(key)
            if key == entry.key:
                return entry
            other = self._queue.take(key, now)
            if other is not None:
                self._queue.back(entry, now)
                return other
        return None

    def _window(self, entry: QueuedRoot, now: float) -> Window | None:
        """The first of the queue and gangs that come after it; None if it is alone, or if there is plenty for all."""
        found = self._ready(entry, now) if self._is_free(entry) else []
        if len(found) < 2 or found[0][0] is not entry:
            return None
        if self._is_plenty([root for _, root in found]):
            self._covered = {one.key for one, _ in found}
            return None
        found = [(one, root) for one, root in found if not problems(root)]
        if len(found) < 2 or found[0][0] is not entry:
            return None
        patience = self._cache.settings.patience or _PATIENCE
        required = {
            number
            for number, (one, _) in enumerate(found)
            if one.passed_since is not None and now - one.passed_since >= patience
        }
        return Window([one for one, _ in found], [self._decider.demand(root) for _, root in found], required)

    def _ready(self, entry: QueuedRoot, now: float) -> list[tuple[QueuedRoot, Group]]:
        found: list[tuple[QueuedRoot, Group]] = []
        pods = 0
        for one in (entry, *self._queue.following(entry, self.size - 1, now)):
            root = self._roots(one.key)
            pods += one.size
            if pods > _PODS:
                break
            if isinstance(root, Group) and _is_gang(root) and self._is_free(one):
                found.append((one, root))
        return found

    def _is_plenty(self, roots: list[Group]) -> bool:
        """Whether nothing has to be looked at closer, by what all their pods ask for. Most of the time it is so."""
        if self._cache.reservations:
            return False
        pending = (self._cache.pending_pods(leaf.pending, {}) for root in roots for leaf in root.leaves())
        asked = Counter(pod.eq_class.signature for pods in pending for pod in pods)
        return is_plenty(self._cache.state, asked)

    def _is_free(self, entry: QueuedRoot) -> bool:
        """Whether nothing is under way for it: room that is kept for it, or a search."""
        asked = self._questions is not None and self._questions.is_open(entry.key)
        return not asked and self._cache.reservations.get(entry.key) is None

    def _search(self, window: Window, effort: Effort) -> JointSearch:
        return JointSearch(self._cache.engine, window.demands, effort, window.required)

    def _effort(self, decider: Decider, now: float) -> Effort:
        if now < self._rests_until or self._waiting is not None:
            return Effort(solver_work=0, solver_size=0)
        return decider.limits_of(TOGETHER, _LONGEST)

    def _agree(self, window: Window, seats: dict[int, Seats], now: float) -> None:
        """On a set: its roots have their turns before the others, which it passes over."""
        state = self._cache.state
        self._agenda = _Agenda(window.entries[0].priority, [window.entries[number].key for number in seats])
        for number, entry in enumerate(window.entries):
            if number in seats:
                self._seats[entry.key] = {pod: state.node(row).name for pod, row in seats[number].items()}
            elif any(other > number for other in seats) and entry.passed_since is None:
                entry.passed_since = now

    def _wait(self, window: Window, now: float) -> None:
        self._waiting = window
        for entry in window.entries:
            self._queue.hold(entry, now, now + 2 * _LONGEST)


def _is_gang(root: Group) -> bool:
    return root.spec is not None and root.spec.minimum is not None
