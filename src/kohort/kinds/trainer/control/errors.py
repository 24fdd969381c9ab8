"""Why a TrainJob's objects are not there yet."""

from __future__ import annotations

from kohort.controllers.script import SyncError


class BuildError(SyncError):
    """Something is wrong; people are told."""


class WaitError(SyncError):
    """Something has to happen first, and will."""
