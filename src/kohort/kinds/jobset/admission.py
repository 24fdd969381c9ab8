"""JobSet: claims that exist already must match the templates, and are not the JobSet's to delete (spec jobset 1.1)."""

from __future__ import annotations

from kohort.api.kind import Object
from kohort.gang.admission import NOTHING, Findings
from kohort.gang.compile import CompileContext, namespace_of
from kohort.kinds.jobset.api.reading import spec_of
from kohort.kinds.jobset.api.volumes import against_existing


def validate(new: Object, old: Object | None, ctx: CompileContext) -> Findings:
    """Only on create: later they are its own claims."""
    if old is not None or not spec_of(new).get("volumeClaimPolicies"):
        return NOTHING
    claims = ctx.lookup.every("PersistentVolumeClaim", namespace_of(new))
    return Findings(tuple(against_existing(new, claims)))
