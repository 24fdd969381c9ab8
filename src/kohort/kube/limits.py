"""How often: growing waits after failures, and a bucket of tokens. Pure; the caller brings time and jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Waits that grow from `first` to `most`, each drawn from the upper half of its range so that clients spread."""

    first: float = 0.8
    most: float = 30.0
    factor: float = 2.0
    jitter: random.Random = field(default_factory=random.Random)
    failures: int = 0

    def next(self) -> float:
        # The exponent is bounded so that years of failures do not overflow a float.
        wait = min(self.most, self.first * self.factor ** min(self.failures, 64))
        self.failures += 1
        return wait * (0.5 + self.jitter.random() / 2)

    def reset(self) -> None:
        self.failures = 0


@dataclass(slots=True)
class Bucket:
    """`burst` at once, then `rate` per second."""

    rate: float
    burst: float
    filled: float | None = None
    at: float = 0.0

    def take(self, now: float) -> bool:
        """One token if there is one."""
        filled = self._fill(now)
        self.filled = filled - 1 if filled >= 1 else filled
        return filled >= 1

    def reserve(self, now: float) -> float:
        """One token, now or later: the seconds to wait for it."""
        self.filled = self._fill(now) - 1
        return max(0.0, -self.filled / self.rate)

    def is_full(self, now: float) -> bool:
        """As if nobody had taken any."""
        return self._held(now) >= self.burst

    def _held(self, now: float) -> float:
        before = self.burst if self.filled is None else self.filled + (now - self.at) * self.rate
        return min(self.burst, before)

    def _fill(self, now: float) -> float:
        held = self._held(now)
        self.at = now
        return held
