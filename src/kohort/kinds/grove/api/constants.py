"""Keys and values that Grove puts on its objects, and the words of its API: reasons, gates, kinds (spec grove 1.8)."""

from __future__ import annotations

from typing import Final

GROUP: Final = "grove.io"
SCHEDULER_GROUP: Final = "scheduler.grove.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
SCHEDULER_API_VERSION: Final = f"{SCHEDULER_GROUP}/{VERSION}"

# The operator alone writes keys with this prefix: they are never taken over from a PodCliqueSet.
OWN_PREFIX: Final = "grove.io/"

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
PART_OF: Final = "app.kubernetes.io/part-of"
COMPONENT: Final = "app.kubernetes.io/component"
NAME: Final = "app.kubernetes.io/name"
OPERATOR: Final = "grove-operator"

PODGANG: Final = "grove.io/podgang"
BASE_PODGANG: Final = "grove.io/base-podgang"
PODCLIQUE: Final = "grove.io/podclique"
SET_INDEX: Final = "grove.io/podcliqueset-replica-index"
SCALING_GROUP: Final = "grove.io/podcliquescalinggroup"
SCALING_GROUP_INDEX: Final = "grove.io/podcliquescalinggroup-replica-index"
POD_INDEX: Final = "grove.io/podclique-pod-index"
TEMPLATE_HASH: Final = "grove.io/pod-template-hash"
SCHEDULER_NAME: Final = "grove.io/scheduler-name"
TOPOLOGY_NAME: Final = "grove.io/topology-name"
EXTERNAL: Final = "grove.io/external-workload-managed"

GATE: Final = "grove.io/podgang-pending-creation"

IN_ORDER: Final = "CliqueStartupTypeInOrder"
EXPLICIT: Final = "CliqueStartupTypeExplicit"

SET_FINALIZER: Final = "grove.io/podcliqueset.grove.io"
CLIQUE_FINALIZER: Final = "grove.io/podclique.grove.io"
SCALING_GROUP_FINALIZER: Final = "grove.io/podcliquescalinggroup.grove.io"

# Condition types of PodCliques and scaling groups
SCHEDULED: Final = "PodCliqueScheduled"
BREACHED: Final = "MinAvailableBreached"
TERMINATING: Final = "GangTerminationInProgress"
# of PodCliqueSets
LEVELS_UNAVAILABLE: Final = "TopologyLevelsUnavailable"
# of PodGangs: all pods made; all groups made and as they should be (ours); enough pods of each group scheduled (D25)
INITIALIZED: Final = "Initialized"
BACKEND_READY: Final = "BackendReady"
GANG_SCHEDULED: Final = "Scheduled"
# of ClusterTopologyBindings
DRIFT: Final = "SchedulerTopologyDrift"
