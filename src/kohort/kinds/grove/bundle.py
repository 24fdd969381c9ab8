"""Grove: PodCliqueSet and what it is made of."""

from __future__ import annotations

from typing import Final

from kohort.api.bundle import READ, Bundle, ControllerGroup, FeatureGate, Page, PolicyRule

BUNDLE: Final = Bundle(
    name="grove",
    api={"grove.io": "kohort.kinds.grove.api", "scheduler.grove.io": "kohort.kinds.grove.api"},
    compilers={("grove.io", "PodCliqueSet"): "kohort.kinds.grove.compile.podcliqueset"},
    admission={("grove.io", "PodCliqueSet"): "kohort.kinds.grove.admission"},
    consults=(
        PolicyRule(("grove.io",), ("clustertopologybindings",), ("get",)),
        PolicyRule(
            ("grove.io",), ("podcliquesets", "podcliques", "podcliquescalinggroups"), ("list",), "Names that are taken."
        ),
        PolicyRule(("scheduler.grove.io",), ("podgangs",), ("list",)),
    ),
    gates=(
        FeatureGate("GroveGangScheduling", True, "PodCliqueSet", "groups for PodCliqueSets, not only a schedulerName"),
        FeatureGate("GroveTopology", True, "PodCliqueSet", "topology constraints of PodCliqueSets"),
        FeatureGate("GroveFlat", False, "PodCliqueSet", "no CompositePodGroups even where they are served"),
        FeatureGate("GroveKai", False, "PodCliqueSet", "schedulerName kai-scheduler is allowed"),
        FeatureGate("GroveVolcano", False, "PodCliqueSet", "schedulerName volcano is allowed"),
        FeatureGate("GroveLpx", False, "PodCliqueSet", "schedulerName lpx-scheduler is allowed"),
    ),
    settings="kohort.kinds.grove.settings",
    makers="kohort.kinds.grove.control",
    controllers=(
        ControllerGroup(
            name="grove",
            controllers=("podcliqueset", "podcliquescalinggroup", "podclique", "podgang", "clustertopologybinding"),
            manages=("grove.io", "PodCliqueSet"),
            leases=("grove",),
            rules=(
                PolicyRule(("grove.io",), ("podcliquesets",), (*READ, "patch")),
                PolicyRule(("grove.io",), ("clustertopologybindings",), READ),
                PolicyRule(
                    ("grove.io",), ("podcliques", "podcliquescalinggroups"), (*READ, "create", "patch", "delete")
                ),
                PolicyRule(
                    ("grove.io",),
                    (
                        "podcliquesets/status",
                        "podcliques/status",
                        "podcliquescalinggroups/status",
                        "clustertopologybindings/status",
                    ),
                    ("patch",),
                ),
                PolicyRule(
                    ("grove.io",),
                    ("podcliquesets/finalizers", "podcliques/finalizers", "podcliquescalinggroups/finalizers"),
                    ("update",),
                ),
                PolicyRule(("scheduler.grove.io",), ("podgangs",), (*READ, "create", "patch", "delete")),
                PolicyRule(("scheduler.grove.io",), ("podgangs/status",), ("patch",)),
                PolicyRule(("scheduler.grove.io",), ("podgangs/finalizers",), ("update",)),
                PolicyRule(("",), ("pods", "services"), (*READ, "create", "patch", "delete")),
                PolicyRule(("",), ("serviceaccounts", "secrets"), (*READ, "create", "delete")),
                PolicyRule(
                    ("",),
                    ("pods/status",),
                    READ,
                    "what init containers that wait for other cliques may do: nobody can give what they do not have",
                ),
                PolicyRule(("rbac.authorization.k8s.io",), ("roles", "rolebindings"), (*READ, "create", "delete")),
                PolicyRule(("autoscaling",), ("horizontalpodautoscalers",), (*READ, "create", "patch", "delete")),
                PolicyRule(("resource.k8s.io",), ("resourceclaims",), (*READ, "create", "delete")),
                PolicyRule(("resource.k8s.io",), ("resourceclaimtemplates",), READ),
            ),
        ),
    ),
    referenced=(("grove.io", "ClusterTopologyBinding"),),
    explained=("PodCliqueSet",),
    ranks=(("grove.io/podclique-pod-index",),),
    page=Page("PodCliqueSet (Grove)", "docs/kinds/podcliqueset.md"),
    example="podcliqueset-simple.yaml",
)
