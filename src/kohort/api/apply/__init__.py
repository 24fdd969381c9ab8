"""Server-side apply and managedFields, as pure functions.

    result = apply(live, applied, of=resource, manager="me", now="2026-01-01T00:00:00Z")
    if result.conflicts: refuse with conflict_status(result.conflicts)
    else: default, admit, validate and store result.object

`update_managed_fields` does so for every other write. Call both after defaulting and before mutating admission:
what admission adds belongs to nobody. `keep_times` comes last, so that a write which changes nothing is one.
"""

from kohort.api.apply.errors import ApplyError, Conflict, conflict_message, conflict_status
from kohort.api.apply.managed import manager_name
from kohort.api.apply.structure import DEDUCED, Structure, custom, native
from kohort.api.apply.unowned import reset_fields, zero
from kohort.api.apply.writing import Applied, Target, apply, keep_times, update_managed_fields

__all__ = [
    "DEDUCED",
    "Applied",
    "ApplyError",
    "Conflict",
    "Structure",
    "Target",
    "apply",
    "conflict_message",
    "conflict_status",
    "custom",
    "keep_times",
    "manager_name",
    "native",
    "reset_fields",
    "update_managed_fields",
    "zero",
]
