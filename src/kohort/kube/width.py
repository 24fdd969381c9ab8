"""How many requests at a time: as many as make the server do more. Pure; the caller brings the time.

A connection costs a handshake on both sides, and a server that has all it can do does no more if it is asked more at
once: its answers only take longer. How much it can do is seen by trying.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FIRST: Final = 48
_WINDOW: Final = 4  # answers of each request at a time, between two looks
_BETTER: Final = 1.1  # times as many answers a second, or it was not worth it
_GROWTH: Final = 1.5
_PAUSE: Final = 10.0  # seconds until more is tried again, twice as long each time
_LONGEST: Final = 300.0


@dataclass(slots=True)
class Width:
    """`now`: how many. Grows while somebody waits and it helps; one step back where it did not."""

    most: int
    now: int = 0
    _before: tuple[int, float] | None = None  # the width of the last look, and answers a second
    _since: float = 0.0
    _answers: int = 0
    _pause: float = _PAUSE
    _again: float = 0.0  # not before

    def __post_init__(self) -> None:
        self.now = min(self.now or FIRST, self.most)

    def answered(self, time: float, *, waiting: bool) -> None:
        """`waiting`: somebody would have asked, too."""
        if not waiting:
            self._answers = 0  # it is not the width that says how much is done
            return
        if self._answers == 0:
            self._since = time
        self._answers += 1
        if self._answers > _WINDOW * self.now and time > self._since:
            self._look((self._answers - 1) / (time - self._since), time)
            self._answers = 0

    def _look(self, rate: float, time: float) -> None:
        if self._before is not None and rate < self._before[1] * _BETTER:
            self.now, self._before = self._before[0], None
            self._again, self._pause = time + self._pause, min(self._pause * 2, _LONGEST)
        elif self.now < self.most and time >= self._again:
            self._before = (self.now, rate)
            self.now = min(self.most, int(self.now * _GROWTH))
