"""Annotations, conditions and reasons that people and kubectl know."""

from __future__ import annotations

from typing import Final

HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"
# What is said of a Deployment and not of its ReplicaSets.
NOT_COPIED: Final = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        REVISION_HISTORY,
        DESIRED,
        MAXIMUM,
    )
)

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
REPLICA_FAILURE: Final = "ReplicaFailure"

NEW_SET: Final = "NewReplicaSetCreated"
FOUND_SET: Final = "FoundNewReplicaSet"
SET_ERROR: Final = "ReplicaSetCreateError"
UPDATED: Final = "ReplicaSetUpdated"
COMPLETE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
RESUMED: Final = "DeploymentResumed"
ENOUGH: Final = "MinimumReplicasAvailable"
TOO_FEW: Final = "MinimumReplicasUnavailable"
SCALING: Final = "ScalingReplicaSet"

NO_DEADLINE: Final = 2**31 - 1
LONGEST_HISTORY: Final = 2000  # characters of the annotation
