"""A daemon that fails on a node again and again is made anew ever later there."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

_FIRST: Final = 1.0
_MOST: Final = 900.0


@dataclass(slots=True)
class FailureBackoff:
    """Of one DaemonSet, by node. Losing it makes a retry come sooner, nothing else."""

    _known: dict[str, tuple[float, datetime]] = field(default_factory=dict)

    def wait(self, node: str, now: datetime) -> float:
        """Seconds until a failed pod may be replaced; 0: now, and that counts."""
        delay, since = self._known.get(node, (0.0, now))
        passed = (now - since).total_seconds()
        if passed < delay:
            return delay - passed
        grown = _FIRST if passed > 2 * _MOST or not delay else min(_MOST, delay * 2)
        self._known[node] = (grown, now)
        return 0.0
