"""PodCliqueSet: its topology binding (spec grove 1.10), and names that other sets of the namespace have (1.7, D19)."""

from __future__ import annotations

from kohort.api.kind import Object
from kohort.gang.admission import NOTHING, Findings
from kohort.gang.compile import CompileContext
from kohort.kinds.grove.compile import clash
from kohort.kinds.grove.compile.topology import resolve


def validate(new: Object, old: Object | None, ctx: CompileContext) -> Findings:
    """Constraints are frozen, and the binding may lose levels later; replicas bring new names."""
    if old is not None and new.get("spec") == old.get("spec"):
        return NOTHING
    errors, warnings = resolve(new, ctx)[1:] if old is None else ([], [])
    return Findings((*errors, *clash.check(new, old, ctx)), tuple(warnings))
