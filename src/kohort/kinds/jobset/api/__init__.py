"""JobSet (jobset.x-k8s.io/v1alpha2): a set of Jobs that belong together, with the gangs that Kohort adds to it."""

from __future__ import annotations

from kohort.api.errors import FieldError
from kohort.api.kind import Column, Context, Kind, Object
from kohort.kinds.jobset.api import constants, gang_validation, validation, volumes
from kohort.kinds.jobset.api.defaults import default
from kohort.kinds.jobset.api.schema import SCHEMA
from kohort.kinds.jobset.api.update import validate_update
from kohort.kinds.jobset.api.warnings import warn

__all__ = ["JOBSET", "KINDS"]


def validate(obj: Object, ctx: Context) -> list[FieldError]:
    """All that the schema cannot say about a new JobSet."""
    return [*validation.check(obj, ctx), *volumes.check(obj), *gang_validation.check(obj, ctx)]


JOBSET = Kind(
    group=constants.GROUP,
    version="v1alpha2",
    kind=constants.KIND,
    plural="jobsets",
    singular="jobset",
    schema=SCHEMA,
    columns=(
        Column("TerminalState", path=".status.terminalState", description="Completed or Failed, once it has ended"),
        Column("Restarts", path=".status.restarts", description="How often it was restarted as a whole"),
        Column("Completed", path='.status.conditions[?(@.type=="Completed")].status'),
        Column("Suspended", path=".spec.suspend"),
        Column("Age", "date", path=".metadata.creationTimestamp"),
    ),
    default=default,
    validate=validate,
    validate_update=validate_update,
    warn=warn,
)
KINDS = (JOBSET,)
