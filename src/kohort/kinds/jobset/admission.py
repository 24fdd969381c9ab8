"""JobSet: claims that exist already must match the templates, and are not the JobSet's to delete (spec jobset 1.1)."""

from __future__ import annotations

from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.gang.admission import NOTHING, Findings
from kohort.gang.compile import CompileContext
from kohort.kinds.jobset.api.reading import spec_of
from kohort.kinds.jobset.api.volumes import against_existing, claim_names


def validate(new: Object, old: Object | None, ctx: CompileContext) -> Findings:
    """Only on create: later they are its own claims."""
    if old is not None or not spec_of(new).get("volumeClaimPolicies"):
        return NOTHING
    space = namespace_or_default(new)
    found = (ctx.lookup.find("PersistentVolumeClaim", name, space) for name in claim_names(new))
    return Findings(tuple(against_existing(new, [claim for claim in found if claim is not None])))
