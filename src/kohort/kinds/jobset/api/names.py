"""Names and label keys of JobSet that both validation and the controllers compute."""

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

POD_SUFFIX: Final = "-abcde"  # as long as the random end of a pod's name


def job_name(jobset: str, replicated_job: str, index: int) -> str:
    return f"{jobset}-{replicated_job}-{index}"


def pod_name(jobset: str, replicated_job: str, index: int, pod: int) -> str:
    """A pod of an Indexed Job, without its random end: also its hostname."""
    return f"{job_name(jobset, replicated_job, index)}-{pod}"


def coordinator_endpoint(jobset: str, coordinator: dict[str, object], subdomain: str) -> str:
    job, pod = coordinator.get("jobIndex") or 0, coordinator.get("podIndex") or 0
    return f"{jobset}-{coordinator.get('replicatedJob') or ''}-{job}-{pod}.{subdomain}"
