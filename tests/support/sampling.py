"""Which of many points of failure a run tries: every third, or all of them (KOHORT_EVERY_WRITE=1)."""

from __future__ import annotations

import os

STEP = 1 if os.environ.get("KOHORT_EVERY_WRITE") else 3


def points(writes: int, name: str) -> range:
    """Of the writes 1 to `writes`. Each life begins at another one, so that kinds of writes that recur are all met."""
    return range(1 + sum(name.encode()) % min(STEP, writes), writes + 1, STEP)
