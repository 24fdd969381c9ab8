"""Kubeflow Trainer: TrainJob and its runtimes."""

from __future__ import annotations

from typing import Final

from kohort.api.bundle import (
    READ,
    UPDATE,
    Bundle,
    ControllerGroup,
    FeatureGate,
    Page,
    PolicyRule,
    ReportEndpoint,
)

BUNDLE: Final = Bundle(
    name="trainer",
    api={"trainer.kubeflow.org": "kohort.kinds.trainer.api"},
    compilers={("trainer.kubeflow.org", "TrainJob"): "kohort.kinds.trainer.compile.trainjob"},
    admission={("trainer.kubeflow.org", "TrainJob"): "kohort.kinds.trainer.admission"},
    consults=(
        PolicyRule(
            ("trainer.kubeflow.org",), ("trainingruntimes", "clustertrainingruntimes"), ("get",), "What a job rests on."
        ),
        PolicyRule(("",), ("configmaps",), ("get",), "The runtime as a job has found it."),
        PolicyRule(("jobset.x-k8s.io",), ("jobsets",), ("get",), "Whether a job runs."),
        PolicyRule(("scheduling.k8s.io",), ("priorityclasses",), ("list",)),
    ),
    gates=(
        FeatureGate(
            "TrainJobWorkloadAwareScheduling", True, "TrainJob", "podGroupPolicy.workload of training runtimes"
        ),
        FeatureGate("TrainJobCompositePodGroup", False, "TrainJob", "several levels of groups as CompositePodGroups"),
        FeatureGate(
            "TrainJobStatus", False, "TrainJob", "status.trainerStatus, progress as the training code reports it"
        ),
    ),
    settings="kohort.kinds.trainer.settings",
    makers="kohort.kinds.trainer.control",
    objects="kohort.kinds.trainer.control.builtin",
    controllers=(
        ControllerGroup(
            name="trainjob",
            controllers=("trainjob",),
            manages=("trainer.kubeflow.org", "TrainJob"),
            needs=(("trainer.kubeflow.org", "ClusterTrainingRuntime"), ("jobset.x-k8s.io", "JobSet")),
            leases=("trainer.kubeflow", "kubeflow-trainer"),
            reports=ReportEndpoint(
                application="kohort.kinds.trainer.control.progress",
                gate="TrainJobStatus",
                option="trainerStatus",
                what="progress of trainings",
                field="status.trainerStatus",
            ),
            rules=(
                PolicyRule(
                    ("trainer.kubeflow.org",),
                    ("trainjobs", "trainingruntimes", "clustertrainingruntimes"),
                    READ,
                ),
                PolicyRule(
                    ("trainer.kubeflow.org",),
                    ("trainjobs/status", "trainjobs/finalizers"),
                    UPDATE,
                ),
                PolicyRule(
                    ("authentication.k8s.io",),
                    ("tokenreviews",),
                    ("create",),
                    "whose report of progress it is (featureGates: TrainJobStatus)",
                ),
                PolicyRule(("jobset.x-k8s.io",), ("jobsets",), (*READ, "create", "patch", "delete")),
                PolicyRule(("",), ("configmaps",), (*READ, "create", "patch")),
                PolicyRule(("",), ("secrets",), (*READ, "create")),
                PolicyRule(
                    ("scheduling.x-k8s.io", "scheduling.volcano.sh"), ("podgroups",), (*READ, "create", "patch")
                ),
            ),
        ),
    ),
    referenced=(
        ("trainer.kubeflow.org", "TrainingRuntime"),
        ("trainer.kubeflow.org", "ClusterTrainingRuntime"),
    ),
    explained=("TrainJob",),
    page=Page("TrainJob", "docs/kinds/trainjob.md"),
    example="trainjob-torch.yaml",
)
