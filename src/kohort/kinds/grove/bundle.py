"""Grove: PodCliqueSet and what it is made of."""

from __future__ import annotations

from typing import Final

from kohort.api.bundle import READ, Bundle, ControllerGroup, Page, Rule

BUNDLE: Final = Bundle(
    name="grove",
    api={"grove.io": "kohort.kinds.grove.api", "scheduler.grove.io": "kohort.kinds.grove.api"},
    compilers={("grove.io", "PodCliqueSet"): "kohort.kinds.grove.compile.podcliqueset"},
    admission={("grove.io", "PodCliqueSet"): "kohort.kinds.grove.admission"},
    settings="kohort.kinds.grove.settings",
    makers="kohort.kinds.grove.control.makers",
    controllers=(
        ControllerGroup(
            name="grove",
            controllers=("podcliqueset", "podcliquescalinggroup", "podclique", "podgang", "clustertopologybinding"),
            manages=("grove.io", "PodCliqueSet"),
            leases=("grove",),
            rules=(
                Rule(("grove.io",), ("podcliquesets", "clustertopologybindings"), (*READ, "patch")),
                Rule(("grove.io",), ("podcliques", "podcliquescalinggroups"), (*READ, "create", "patch", "delete")),
                Rule(
                    ("grove.io",),
                    (
                        "podcliquesets/status",
                        "podcliques/status",
                        "podcliquescalinggroups/status",
                        "clustertopologybindings/status",
                    ),
                    ("patch",),
                ),
                Rule(
                    ("grove.io",),
                    ("podcliquesets/finalizers", "podcliques/finalizers", "podcliquescalinggroups/finalizers"),
                    ("update",),
                ),
                Rule(("scheduler.grove.io",), ("podgangs",), (*READ, "create", "patch", "delete")),
                Rule(("scheduler.grove.io",), ("podgangs/status",), ("patch",)),
                Rule(("scheduler.grove.io",), ("podgangs/finalizers",), ("update",)),
                Rule(("",), ("pods", "services", "serviceaccounts", "secrets"), (*READ, "create", "patch", "delete")),
                Rule(
                    ("",),
                    ("pods/status",),
                    READ,
                    "what init containers that wait for other cliques may do: nobody can give what they do not have",
                ),
                Rule(("rbac.authorization.k8s.io",), ("roles", "rolebindings"), (*READ, "create", "delete")),
                Rule(("autoscaling",), ("horizontalpodautoscalers",), (*READ, "create", "patch", "delete")),
                Rule(("resource.k8s.io",), ("resourceclaims",), (*READ, "create", "delete")),
                Rule(("resource.k8s.io",), ("resourceclaimtemplates",), READ),
            ),
        ),
    ),
    explained=("PodCliqueSet",),
    page=Page("PodCliqueSet (Grove)", "docs/kinds/podcliqueset.md"),
    example="podcliqueset-simple.yaml",
)
