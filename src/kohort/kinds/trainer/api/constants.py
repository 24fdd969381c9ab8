"""The fixed words of Kubeflow Trainer: labels, roles, names of containers and of environment variables."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Object

GROUP: Final = "trainer.kubeflow.org"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CLUSTER_RUNTIME: Final = "ClusterTrainingRuntime"
RUNTIME: Final = "TrainingRuntime"
RUNTIME_KINDS: Final = (CLUSTER_RUNTIME, RUNTIME)

# Our gates (spec trainjob D18 and 3.9). The first is on in this project, see the bundle.
GATE: Final = "TrainJobWorkloadAwareScheduling"
COMPOSITE_GATE: Final = "TrainJobCompositePodGroup"

# Condition types
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"

MANAGED_HERE: Final = f"{GROUP}/trainjob-controller"
MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"

STEP_LABEL: Final = f"{GROUP}/trainjob-ancestor-step"
SUPPORT_LABEL: Final = f"{GROUP}/support"
UNCHECKED_LABEL: Final = f"{GROUP}/webhook-validation"

TRAINER: Final = "trainer"
DATASET: Final = "dataset-initializer"
MODEL: Final = "model-initializer"
INITIALIZER: Final = "initializer"  # the stage of both, and the volume they must mount
NODE: Final = "node"
LAUNCHER: Final = "launcher"
CONTAINERS: Final = {TRAINER: NODE, DATASET: DATASET, MODEL: MODEL}  # role -> container that must exist

PORT: Final = 29500

TORCH_ENV: Final = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
MPI_ENV: Final = (
    "OMPI_MCA_orte_default_hostfile",
    "OMPI_MCA_orte_keep_fqdn_hostnames",
    "OMPI_MCA_orte_set_default_slots",
    "OMPI_MCA_plm_rsh_args",
)
XGBOOST_ENV: Final = ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")
FLUX_INSTALLER: Final = "flux-installer"
VOLCANO_QUEUE: Final = "scheduling.volcano.sh/queue-name"


def tidy(value: Any) -> Any:
    """A copy without nulls, which mean absence everywhere. Rules and compilers then need not think of them."""
    if isinstance(value, dict):
        return {name: tidy(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [tidy(item) for item in value if item is not None]
    return value


def spec_of(obj: Object) -> dict[str, Any]:
    """The spec, where there is one."""
    return obj.get("spec") or {}


def labels_of(obj: dict[str, Any]) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def replicated_jobs(runtime: Object) -> list[dict[str, Any]]:
    """The ReplicatedJobs of a runtime, in its order."""
    template = spec_of(runtime).get("template") or {}
    return (template.get("spec") or {}).get("replicatedJobs") or []


def role_of(job: dict[str, Any]) -> str | None:
    """What a ReplicatedJob is for the TrainJob. Read from the Job template, never from the Pod template (1.8)."""
    value = labels_of(job.get("template") or {}).get(STEP_LABEL)
    return value if value in CONTAINERS else None


def pod_spec(job: dict[str, Any]) -> dict[str, Any]:
    """The Pod spec of a ReplicatedJob, as it stands there; an empty one where it is missing."""
    return (((job.get("template") or {}).get("spec") or {}).get("template") or {}).get("spec") or {}


def containers_of(job: dict[str, Any], member: str = "containers") -> list[dict[str, Any]]:
    return pod_spec(job).get(member) or []


def container_of(job: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((found for found in containers_of(job) if found.get("name") == name), None)
