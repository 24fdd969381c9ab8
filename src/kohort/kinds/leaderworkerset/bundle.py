"""LeaderWorkerSet."""

from __future__ import annotations

from typing import Final

from kohort.api.bundle import MANAGE, READ, UPDATE, Bundle, ControllerGroup, FeatureGate, Page, PolicyRule

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
                PolicyRule(("leaderworkerset.x-k8s.io",), ("leaderworkersets",), (*READ, "update", "patch")),
                PolicyRule(
                    ("leaderworkerset.x-k8s.io",), ("leaderworkersets/status", "leaderworkersets/finalizers"), UPDATE
                ),
                PolicyRule(("",), ("pods", "services", "persistentvolumeclaims"), MANAGE),
                PolicyRule(("apps",), ("controllerrevisions",), MANAGE),
                PolicyRule(("",), ("nodes",), READ),
            ),
        ),
    ),
    explained=("LeaderWorkerSet",),
    ranks=(("leaderworkerset.sigs.k8s.io/group-index",), ("leaderworkerset.sigs.k8s.io/worker-index",)),
    page=Page("LeaderWorkerSet", "docs/kinds/leaderworkerset.md"),
    example="leaderworkerset-inference.yaml",
)
