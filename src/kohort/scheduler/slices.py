"""A decision that takes long, or a look at several roots at once, in slices: between two of them others are decided.

The search is a recursion with trials on the state. It runs in a thread of its own, which works only while whoever
advances it waits, so that there are never two at the state. Where it may pause (`Engine.pause`) and its time is up, it
takes its trials back and waits; when it goes on, they are made again, if they still hold. If not (somebody took the
room, or a node has changed), it begins anew, and does not pause again: nobody waits for it for ever, nor it for others.

Generators instead of a thread would be a tax on every decision, and nearly all of them are made in a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from time import monotonic, thread_time
from typing import Final, Generic, TypeVar

from kohort.place.engine import Engine
from kohort.place.together import Together
from kohort.scheduler.decision import Decision
from kohort.scheduler.lookahead import Window
from kohort.scheduler.queue import QueuedRoot
from kohort.scheduler.trees import Group

SLICE: Final = 0.008  # seconds of one slice, about
LARGE: Final = 64  # pods from which on a decision is made in slices; a thread for it costs as much as one pod or two
_OTHERS: Final = 32  # decisions between two slices at the most
Found = TypeVar("Found")
Pause = Callable[[], None] | None  # called where the work may pause


class _Stale(BaseException):
    """What a decision rests on has changed. Nobody in between is to catch it."""


class _Abandoned(BaseException):
    """Nobody wants the decision any more."""


class Sliced(Generic[Found]):
    """One decision, or one look. What it raises, `advance` raises."""

    def __init__(self, engine: Engine, find: Callable[[Pause], Found]) -> None:
        self._engine, self._find = engine, find
        self._turns: SimpleQueue[float | None] = SimpleQueue()  # when each slice ends; None: it is not wanted any more
        self._reports: SimpleQueue[Found | Exception | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="decision", daemon=True)
        self._thread.start()
        self._ends = 0.0
        self.seconds = 0.0  # of the processor, so far

    def advance(self, seconds: float) -> Found | None:
        """One slice; what was found, if that was the last."""
        self._turns.put(monotonic() + seconds)
        report = self._reports.get()
        if report is not None:
            self._thread.join()
        if isinstance(report, Exception):
            raise report
        return report

    def abandon(self) -> None:
        self._turns.put(None)
        self._thread.join()

    # ---- in the thread

    def _work(self) -> None:
        try:
            self._wait()
            report: Found | Exception = self._found()
        except _Abandoned:
            return
        except Exception as error:
            report = error
        finally:
            self._engine.pause = None
        self.seconds = thread_time()
        self._reports.put(report)

    def _found(self) -> Found:
        try:
            return self._find(self._pause)
        except _Stale:
            return self._find(None)

    def _wait(self) -> None:
        ends = self._turns.get()
        if ends is None:
            raise _Abandoned
        self._ends = ends

    def _pause(self) -> None:
        if monotonic() < self._ends:
            return
        trial = self._engine.suspend()
        self.seconds = thread_time()
        self._reports.put(None)
        self._wait()
        if not self._engine.resume(trial):
            raise _Stale


@dataclass(slots=True)
class DecisionUnderWay:
    entry: QueuedRoot
    work: Sliced[Decision]
    root: Group
    versions: tuple[int, ...]  # of what may make room, as it began

    @property
    def keys(self) -> list[str]:
        return [self.entry.key]


@dataclass(slots=True)
class LookUnderWay:
    entry: QueuedRoot  # the first of those that are looked at
    work: Sliced[Together]
    window: Window

    @property
    def keys(self) -> list[str]:
        return self.window.keys


@dataclass(slots=True)
class Slices:
    """The one decision or look of a scheduler that is under way, and what waits for it."""

    under_way: DecisionUnderWay | LookUnderWay | None = None
    parked: list[QueuedRoot] = field(default_factory=list)  # large ones that came to their turn meanwhile
    _others: int = 0  # decisions that may still be made before the next slice
    _whole: set[str] = field(default_factory=set)  # roots that changed while they were decided: at once the next time

    def takes(self, entry: QueuedRoot) -> bool:
        """Whether the decision about an entry is to be made in slices, or after what is under way."""
        if self.under_way is not None and entry.key in self.under_way.keys:
            return True
        if entry.size < LARGE or (self.under_way is None and entry.key in self._whole):
            self._whole.discard(entry.key)
            return False
        return True

    def looks(self, window: Window) -> bool:
        """Whether roots are to be looked at in slices."""
        if window.pods < LARGE or not self._whole.isdisjoint(window.keys):
            self._whole.difference_update(window.keys)
            return False
        return True

    def is_due(self) -> bool:
        return self.under_way is not None and self._others <= 0

    def lets(self, entry: QueuedRoot | None) -> bool:
        """Whether somebody else is decided before the next slice: not those that come after it by more than age."""
        if self.under_way is None:
            return True
        self._others -= 1
        first = self.under_way.entry.order
        return entry is not None and (entry.order[:3] <= first[:3] or entry.order[1:3] <= first[1:3])

    def advance(self, work: Sliced[Found]) -> Found | None:
        self._others = _OTHERS
        return work.advance(SLICE)

    def end(self) -> list[QueuedRoot]:
        """It is decided, or given up: who has waited for that."""
        self.under_way, self._others = None, 0
        parked, self.parked = self.parked, []
        return parked

    def interrupt(self, key: str, *, changed: bool = True) -> QueuedRoot | None:
        """A root is not what it was (`changed`), or has an answer: what is under way about it is given up."""
        if self.under_way is None or key not in self.under_way.keys:
            return None
        self.under_way.work.abandon()
        if changed:
            self._whole.add(key)
        return self.under_way.entry

    def forget(self, key: str) -> None:
        self._whole.discard(key)
