"""JobSet."""

from __future__ import annotations

from typing import Final

from kohort.api.bundle import READ, UPDATE, Bundle, ControllerGroup, FeatureGate, Page, PolicyRule

BUNDLE: Final = Bundle(
    name="jobset",
    api={"jobset.x-k8s.io": "kohort.kinds.jobset.api"},
    compilers={("jobset.x-k8s.io", "JobSet"): "kohort.kinds.jobset.compile.jobset"},
    admission={("jobset.x-k8s.io", "JobSet"): "kohort.kinds.jobset.admission"},
    consults=(PolicyRule(("",), ("persistentvolumeclaims",), ("get",), "Claims that would be shared."),),
    pods="kohort.kinds.jobset.api.placement",
    gates=(
        FeatureGate(
            "GangScheduling", True, "JobSet", "gang configuration of JobSets", "JobSetWorkloadAwareSchedulingAPI"
        ),
        FeatureGate("GangOfGangs", True, "JobSet", "JobSet trees as CompositePodGroups", "JobSetGangOfGangs"),
        FeatureGate(
            "GangQuorumShrink", False, "JobSet", "a gang that has started waits for no more pods than are left to run"
        ),
        FeatureGate("InPlaceRestart", False, "JobSet", "restart strategy InPlaceRestart"),
        FeatureGate("RestartJob", False, "JobSet", "failure policy actions RestartJob…"),
        FeatureGate("ElasticJobSet", False, "JobSet", "change of parallelism and completions after creation"),
    ),
    settings="kohort.kinds.jobset.settings",
    makers="kohort.kinds.jobset.control",
    controllers=(
        ControllerGroup(
            name="jobset",
            controllers=("jobset", "jobset-placement"),
            manages=("jobset.x-k8s.io", "JobSet"),
            leases=("jobset",),
            rules=(
                PolicyRule(("jobset.x-k8s.io",), ("jobsets",), (*READ, "delete")),
                PolicyRule(("jobset.x-k8s.io",), ("jobsets/status", "jobsets/finalizers"), UPDATE),
                PolicyRule(("batch",), ("jobs",), (*READ, "create", "patch", "delete")),
                PolicyRule(("batch",), ("jobs/status",), UPDATE),
                PolicyRule(("",), ("pods",), (*READ, "patch", "delete")),
                PolicyRule(("",), ("pods/status",), UPDATE),
                PolicyRule(("",), ("services", "persistentvolumeclaims"), (*READ, "create")),
                PolicyRule(("",), ("nodes",), READ),
            ),
        ),
    ),
    explained=("JobSet",),
    ranks=(
        ("jobset.sigs.k8s.io/job-global-index", "jobset.sigs.k8s.io/job-index"),
        ("batch.kubernetes.io/job-completion-index",),
    ),
    page=Page("JobSet", "docs/kinds/jobset.md"),
    example="jobset-gang.yaml",
)
