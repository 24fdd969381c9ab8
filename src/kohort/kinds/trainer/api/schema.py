"""The fields of TrainJob (spec trainjob 1.1 to 1.5)."""

from __future__ import annotations

import re
from typing import Final

from kohort.api.schema import Arr, Bool, Cel, Int, Map, Obj, Ref, Str, Time, Update, label_name
from kohort.kinds.trainer.api.constants import (
    CLUSTER_RUNTIME,
    CONTAINERS,
    GROUP,
    MANAGED_HERE,
    MULTIKUEUE,
    RUNTIME_KINDS,
)

_CORE: Final = "io.k8s.api.core.v1."
_URI: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://.+")
_ARGUMENT: Final = Str(max_bytes=1 << 20)
META: Final = Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")


def _uri(text: str) -> str | None:
    return None if not text or _URI.fullmatch(text) else "must be empty or a URI (scheme://something)"


def _manager(text: str) -> str | None:
    return None if text in (MANAGED_HERE, MULTIKUEUE) else f"must be {MANAGED_HERE} or {MULTIKUEUE}"


def _one_of(words: tuple[str, ...]) -> str:
    return f"[{', '.join(map(repr, words))}]"


ENV: Final = Arr(
    key=("name",),
    max_items=128,
    item=Obj(
        fields={
            "name": Str(required=True),
            "value": Str(),
            "valueFrom": Ref(definition=f"{_CORE}EnvVarSource"),
        }
    ),
)
RUNTIME_REF: Final = Obj(
    required=True,
    update=Update.FROZEN,
    description="The runtime that says what the training looks like.",
    rules=(
        Cel(f"self.apiGroup == '{GROUP}'", f"no runtime of that group is known; accepted is {GROUP}", ".apiGroup"),
        Cel(
            f"self.kind in {_one_of(RUNTIME_KINDS)}",
            f"no such runtime is known; accepted are {', '.join(RUNTIME_KINDS)}",
            ".kind",
        ),
    ),
    fields={
        "name": Str(required=True, min_length=1, max_bytes=253),
        "apiGroup": Str(default=GROUP, max_bytes=253),
        "kind": Str(default=CLUSTER_RUNTIME, max_bytes=253),
    },
)
_SOURCE: Final = Obj(
    rules=(
        Cel(
            "!has(self.storageUri) || self.storageUri == '' || self.storageUri.matches('^[a-zA-Z][a-zA-Z0-9+.-]*://.')",
            "must be empty or a URI (scheme://something)",
            ".storageUri",
        ),
    ),
    fields={
        "storageUri": Str(format=_uri, max_bytes=2048),
        "env": ENV,
        "secretRef": Obj(fields={"name": Str(default="")}),
    },
)
INITIALIZER: Final = Obj(update=Update.FROZEN, fields={"dataset": _SOURCE, "model": _SOURCE})
TRAINER: Final = Obj(
    update=Update.FROZEN,
    description="Values for the ReplicatedJob of the runtime that is labelled as the trainer.",
    fields={
        "image": Str(max_bytes=500),
        "command": Arr(max_items=128, item=_ARGUMENT),
        "args": Arr(max_items=128, item=_ARGUMENT),
        "env": ENV,
        "numNodes": Int(minimum=0, description="Pods of the training: the size of its gang."),
        "numProcPerNode": Int(minimum=1),
        "resourcesPerNode": Ref(definition=f"{_CORE}ResourceRequirements"),
    },
)

# ---- runtimePatches

_CONTAINER_PATCH: Final = Obj(
    fields={
        "name": Str(required=True),
        "env": Arr(key=("name",), item=ENV.item),
        "volumeMounts": Arr(key=("name",), item=Ref(definition=f"{_CORE}VolumeMount")),
        "securityContext": Ref(definition=f"{_CORE}SecurityContext"),
    }
)
_CONTAINERS: Final = Arr(key=("name",), item=_CONTAINER_PATCH)
_POD_PATCH: Final = Obj(
    fields={
        "serviceAccountName": Str(),
        "nodeSelector": Map(value=Str()),
        "affinity": Ref(definition=f"{_CORE}Affinity"),
        "tolerations": Arr(item=Ref(definition=f"{_CORE}Toleration")),
        "volumes": Arr(key=("name",), item=Ref(definition=f"{_CORE}Volume")),
        "initContainers": _CONTAINERS,
        "containers": _CONTAINERS,
        "imagePullSecrets": Arr(key=("name",), item=Ref(definition=f"{_CORE}LocalObjectReference")),
        "securityContext": Ref(definition=f"{_CORE}PodSecurityContext"),
        "terminationGracePeriodSeconds": Int(minimum=0, bits=64),
        "schedulingGates": Arr(key=("name",), item=Ref(definition=f"{_CORE}PodSchedulingGate")),
    }
)
_POD_TEMPLATE_PATCH: Final = Obj(fields={"metadata": META, "spec": _POD_PATCH})
_JOB_TEMPLATE_PATCH: Final = Obj(fields={"metadata": META, "spec": Obj(fields={"template": _POD_TEMPLATE_PATCH})})
# The first places only: these lists have no bound, and a rule that may be dear is refused.
_PATCHED: Final = "self.trainingRuntimeSpec.template.spec.replicatedJobs"
_CONTAINERS_OF: Final = f"{_PATCHED}[i].template.spec.template.spec.containers"
_PATCH_RULES: Final = (
    Cel("self.manager.matches('^[^/]+/.')", "must be a domain-prefixed path (such as 'acme.io/foo')", ".manager"),
    Cel(
        "!(has(self.trainingRuntimeSpec) && has(self.trainingRuntimeSpec.template)"
        f" && has(self.trainingRuntimeSpec.template.spec) && has({_PATCHED})) || !{list(range(16))}.exists(i,"
        f" i < size({_PATCHED}) && has({_PATCHED}[i].template) && has({_PATCHED}[i].template.spec)"
        f" && has({_PATCHED}[i].template.spec.template) && has({_PATCHED}[i].template.spec.template.spec)"
        f" && has({_CONTAINERS_OF}) && {list(range(8))}.exists(c, c < size({_CONTAINERS_OF})"
        f" && {_CONTAINERS_OF}[c].name in {_one_of(tuple(CONTAINERS.values()))}"
        f" && has({_CONTAINERS_OF}[c].env) && size({_CONTAINERS_OF}[c].env) > 0))",
        f"variables of the containers {', '.join(CONTAINERS.values())} come from spec.trainer and spec.initializer",
    ),
)
PATCHES: Final = Arr(
    key=("manager",),
    max_items=16,
    description="Changes that other controllers make to the runtime's template for this job alone.",
    item=Obj(
        rules=_PATCH_RULES,
        fields={
            "manager": Str(required=True, max_bytes=253),
            "time": Time(),
            "trainingRuntimeSpec": Obj(
                fields={
                    "template": Obj(
                        fields={
                            "metadata": META,
                            "spec": Obj(
                                fields={
                                    "replicatedJobs": Arr(
                                        key=("name",),
                                        item=Obj(fields={"name": Str(required=True), "template": _JOB_TEMPLATE_PATCH}),
                                    )
                                }
                            ),
                        }
                    )
                }
            ),
        },
    ),
)
SPEC: Final = Obj(
    required=True,
    rules=(
        Cel(
            f"self.managedBy in {_one_of((MANAGED_HERE, MULTIKUEUE))}",
            f"must be {MANAGED_HERE} or {MULTIKUEUE}",
            ".managedBy",
        ),
        Cel(
            "(has(self.runtimePatches) ? self.runtimePatches.map(p, p.manager) : [])"
            " == (has(oldSelf.runtimePatches) ? oldSelf.runtimePatches.map(p, p.manager) : [])"
            " || has(self.suspend) && self.suspend || has(oldSelf.suspend) && oldSelf.suspend",
            "may only change while the TrainJob is suspended, before or after the update",
            ".runtimePatches",
        ),
    ),
    fields={
        "runtimeRef": RUNTIME_REF,
        "initializer": INITIALIZER,
        "trainer": TRAINER,
        "runtimePatches": PATCHES,
        "suspend": Bool(default=False),
        "activeDeadlineSeconds": Int(minimum=1, bits=64, update=Update.FROZEN),
        "managedBy": Str(default=MANAGED_HERE, format=_manager, max_bytes=253, update=Update.FROZEN),
    },
)

# ---- status

_COUNTER: Final = Int(required=True, minimum=0)
STATUS: Final = Obj(
    fields={
        "conditions": Arr(
            key=("type",), max_items=8, item=Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.Condition")
        ),
        "jobsStatus": Arr(
            key=("name",),
            max_items=100,
            item=Obj(
                fields={
                    "name": Str(required=True),
                    **dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), _COUNTER),
                }
            ),
        ),
        "trainerStatus": Obj(
            gate="TrainJobStatus",
            fields={
                "progressPercentage": Int(minimum=0, maximum=100),
                "estimatedRemainingSeconds": Int(minimum=0),
                "metrics": Arr(
                    max_items=256,
                    item=Obj(fields=dict.fromkeys(("name", "value"), Str(required=True, min_length=1, max_bytes=64))),
                ),
                "lastUpdatedTime": Time(required=True),
            },
        ),
    }
)
SCHEMA: Final = Obj(
    rules=(label_name("the JobSet is named after it"),),
    fields={"spec": SPEC, "status": STATUS},
)
