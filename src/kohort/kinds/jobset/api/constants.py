"""Labels, annotations, condition types and other fixed names of JobSet."""

from __future__ import annotations

from typing import Final

GROUP: Final = "jobset.x-k8s.io"
API_VERSION: Final = "jobset.x-k8s.io/v1alpha2"
KIND: Final = "JobSet"
CONTROLLER: Final = "jobset.sigs.k8s.io/jobset-controller"  # managedBy of the built-in controller

# Labels (spec jobset 1.6)
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
JOBSET_UID: Final = "jobset.sigs.k8s.io/jobset-uid"
REPLICATED_JOB_NAME: Final = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
COORDINATOR: Final = "jobset.sigs.k8s.io/coordinator"

# Annotations
EXCLUSIVE_TOPOLOGY: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR_STRATEGY: Final = "alpha.jobset.sigs.k8s.io/node-selector"

# Condition types
COMPLETED: Final = "Completed"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"
RESTARTING: Final = "RestartingJobSet"
IN_PROGRESS: Final = "StartupPolicyInProgress"
STARTED: Final = "StartupPolicyCompleted"

POD_SUFFIX: Final = "-abcde"  # as long as the random end of a pod's name
