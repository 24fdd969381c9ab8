"""How soon controllers of pods look at what changed, and what they do when there is nothing to do."""

from __future__ import annotations

from typing import Final

from kohort.controllers.reconcile import Reconcile, Result

BATCH: Final = 0.05  # seconds in which changes of pods are gathered
BASE_DELAY: Final = 0.05  # seconds until what was refused is tried again, at first


def nothing() -> Reconcile:
    """Of a key whose object is gone."""
    yield from ()
    return Result()
