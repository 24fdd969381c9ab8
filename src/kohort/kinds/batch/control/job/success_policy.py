"""successPolicy: when enough indexes have succeeded (spec job 6)."""

from __future__ import annotations

from kohort.api.kind import Object
from kohort.kinds.batch.api.indexes import IndexSet
from kohort.kinds.batch.control.job import indexes


def met(job: Object, succeeded: IndexSet) -> str:
    """Which rule is met, in words; empty if none is."""
    completions = int(job["spec"].get("completions") or 0)
    for number, rule in enumerate((job["spec"].get("successPolicy") or {}).get("rules") or ()):
        listed, wanted = rule.get("succeededIndexes"), rule.get("succeededCount")
        among = indexes.read(listed, completions) if listed is not None else None
        done = len(succeeded) if among is None else len(among & succeeded)
        least = wanted if wanted is not None else len(among or ())
        if least and done >= least:
            return f"Matched rules at index {number}"
    return ""
