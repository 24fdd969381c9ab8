"""Work counted instead of timed: the lines of Python that were run, and the calls.

A clock measures the machine as well, also one of processor time: caches and cores are shared with whatever else runs.
Counts are the same on every machine, so what grows with the square of a size is told from what grows with the size by
small numbers. What C does without a call (`x in a_list`) is one step, however long it takes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Steps:
    """Of one thread, while it is counted."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _frame: object, _event: str, _arg: object) -> Any:
        self.count += 1
        return self


@contextmanager
def counted() -> Iterator[Steps]:
    """Each line and each call in functions that the block calls; the lines of the block itself are not counted."""
    steps, before = Steps(), sys.gettrace()
    sys.settrace(steps)
    try:
        yield steps
    finally:
        sys.settrace(before)
