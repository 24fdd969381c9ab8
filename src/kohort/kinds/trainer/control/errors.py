"""Why a TrainJob's objects are not there yet."""

from __future__ import annotations

from kohort.controllers.reconcile import ReconcileError


class BuildError(ReconcileError):
    """Something is wrong; people are told."""


class WaitError(ReconcileError):
    """Something has to happen first, and will."""
