"""LeaderWorkerSet: groups of one leader and its workers, as a unit of replication."""

from __future__ import annotations

from typing import Final

from kohort.api.kind import Column, Kind, Scale
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.defaults import default
from kohort.kinds.leaderworkerset.api.schema import SCHEMA
from kohort.kinds.leaderworkerset.api.update import validate_update
from kohort.kinds.leaderworkerset.api.validation import validate, warn

LEADER_WORKER_SET: Final = Kind(
    group=constants.GROUP,
    version=constants.VERSION,
    kind=constants.KIND,
    plural="leaderworkersets",
    singular="leaderworkerset",
    short_names=("lws",),
    schema=SCHEMA,
    webhook="vleaderworkerset.kb.io",
    scale=Scale(".spec.replicas", ".status.replicas", ".status.hpaPodSelector"),
    columns=(
        Column("Ready", "integer", ".status.readyReplicas", description="Groups that are ready."),
        Column("Desired", "integer", ".spec.replicas", description="Groups asked for."),
        Column("Up-to-date", "integer", ".status.updatedReplicas", description="Groups of the newest revision."),
        Column("Age", "date", ".metadata.creationTimestamp", description="Time since creation."),
    ),
    default=default,
    validate=validate,
    validate_update=validate_update,
    warn=warn,
)
KINDS: Final = (LEADER_WORKER_SET,)
