"""LeaderWorkerSet."""

from __future__ import annotations

from typing import Final

from kohort.api.bundle import READ, UPDATE, Bundle, ControllerGroup, FeatureGate, Page, PolicyRule

BUNDLE: Final = Bundle(
    name="leaderworkerset",
    api={"leaderworkerset.x-k8s.io": "kohort.kinds.leaderworkerset.api"},
    compilers={("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "kohort.kinds.leaderworkerset.compile.leaderworkerset"},
    gates=(
        FeatureGate("WorkloadAwareScheduling", True, "LeaderWorkerSet", "spec.scheduling of LeaderWorkerSets"),
        FeatureGate("LWSGangOfGangs", True, "LeaderWorkerSet", "several scheduling levels as CompositePodGroups"),
        FeatureGate(
            "LWSVolcano", False, "LeaderWorkerSet", "the scheduler provider is Volcano, which has no spec.scheduling"
        ),
    ),
    settings="kohort.kinds.leaderworkerset.settings",
    makers="kohort.kinds.leaderworkerset.control",
    controllers=(
        ControllerGroup(
            name="leaderworkerset",
            controllers=("leaderworkerset",),
            manages=("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
            leases=("lws", "leaderworkerset"),
            rules=(
                PolicyRule(("leaderworkerset.x-k8s.io",), ("leaderworkersets",), READ),
                PolicyRule(
                    ("leaderworkerset.x-k8s.io",), ("leaderworkersets/status", "leaderworkersets/finalizers"), UPDATE
                ),
                PolicyRule(("",), ("pods",), (*READ, "create", "patch", "delete")),
                PolicyRule(("",), ("persistentvolumeclaims",), (*READ, "create", "delete")),
                PolicyRule(("",), ("services",), (*READ, "create")),
                PolicyRule(("apps",), ("controllerrevisions",), (*READ, "create", "update", "delete")),
                PolicyRule(
                    ("scheduling.volcano.sh",),
                    ("podgroups",),
                    (*READ, "create"),
                    "Gangs that Volcano places, where featureGates say so.",
                ),
                PolicyRule(("",), ("nodes",), READ),
            ),
        ),
    ),
    explained=("LeaderWorkerSet",),
    ranks=(("leaderworkerset.sigs.k8s.io/group-index",), ("leaderworkerset.sigs.k8s.io/worker-index",)),
    page=Page("LeaderWorkerSet", "docs/kinds/leaderworkerset.md"),
    example="leaderworkerset-inference.yaml",
)
