"""The fields of LeaderWorkerSet v1, with `spec.scheduling` of KEP-666 (text of September 2026)."""

from __future__ import annotations

from typing import Final

from kohort.api.scheduling.blocks import CLAIMS, COMPOSITE_POLICY, CONSTRAINTS, DISRUPTION, POLICY
from kohort.api.schema import Arr, Int, IntOrStr, Obj, Ref, Str, Update, but

MOST_REPLICAS: Final = 1_000_000
RETENTION: Final = ("Retain", "Delete")
_TEMPLATE: Final = Ref(definition="io.k8s.api.core.v1.PodTemplateSpec")

# ---- spec.scheduling: policy, constraints and disruption at every level, claims at the leaves only

_BRANCH: Final = {
    "schedulingPolicy": but(
        COMPOSITE_POLICY,
        update=Update.FROZEN,
        description="basic or gang. Absent: gang for a replica that is the only level, else basic.",
    ),
    "schedulingConstraints": but(
        CONSTRAINTS, update=Update.FROZEN, description="All pods of this level in one domain of a node label."
    ),
    "disruptionMode": but(
        DISRUPTION, update=Update.FROZEN, description="Whether preemption takes members singly or all together."
    ),
}
# Declared so that it can be refused: an unknown field would only be pruned, and nobody told.
_NOT_HERE: Final = {"resourceClaims": but(CLAIMS, description="Refused here: claims are shared by leader or workers.")}
_LEAF: Final = {
    # VARIANT, not FROZEN: an explicit minCount follows the size of the group
    "schedulingPolicy": but(
        POLICY, update=Update.VARIANT, description="basic (default) or gang; minCount, if given, is the full number."
    ),
    "schedulingConstraints": but(CONSTRAINTS, update=Update.FROZEN),
    "disruptionMode": but(DISRUPTION, update=Update.FROZEN),
    "resourceClaims": but(
        CLAIMS,
        update=Update.FROZEN,
        description="Claims that the pods of this role share; the template names them too.",
    ),
}
SCHEDULING: Final = Obj(
    update=Update.VARIANT,
    description="Groups for the scheduler: for the whole set, for each replica, for leader and workers. "
    "{} means one gang for each replica.",
    fields={
        **_BRANCH,
        **_NOT_HERE,
        "replica": Obj(
            description="One leader with its workers.",
            fields={
                **_BRANCH,
                **_NOT_HERE,
                "leader": Obj(fields=_LEAF, description="The leader's own group."),
                "worker": Obj(fields=_LEAF, description="The workers' own group."),
            },
        ),
    },
)

# ---- the rest of the spec

_SUBGROUPS: Final = Obj(
    description="Splits a group into subgroups for placement and TPU variables; not a scheduling level.",
    fields={
        "subGroupSize": Int(description="Pods in a subgroup; size or size - 1 is divisible by it. Never changes."),
        "subGroupPolicyType": Str(
            enum=("LeaderWorker", "LeaderExcluded"), description="Whether the leader is in a subgroup."
        ),
    },
)
_LEADER_WORKER_TEMPLATE: Final = Obj(
    required=True,
    fields={
        "size": Int(default=1, description="Pods in a group, its leader included."),
        "workerTemplate": but(_TEMPLATE, description="Pods other than the leader; the leader too without its own."),
        "leaderTemplate": but(_TEMPLATE, description="The leader pod."),
        "restartPolicy": Str(
            default="RecreateGroupOnPodRestart",
            enum=("Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"),
            description="What happens to a group when one of its pods restarts. Default is stored as None.",
        ),
        "subGroupPolicy": _SUBGROUPS,
        "volumeClaimTemplates": Arr(
            update=Update.FROZEN, item=Ref(definition="io.k8s.api.core.v1.PersistentVolumeClaim")
        ),
        "persistentVolumeClaimRetentionPolicy": Obj(
            fields={"whenDeleted": Str(enum=RETENTION), "whenScaled": Str(enum=RETENTION)}
        ),
    },
)
_ROLLOUT: Final = Obj(
    fields={
        "type": Str(enum=("RollingUpdate",)),
        "rollingUpdateConfiguration": Obj(
            fields={
                "partition": Int(default=0, description="Groups below this index keep their revision."),
                "maxUnavailable": IntOrStr(default=1, description="Groups or percentage (rounded down)."),
                "maxSurge": IntOrStr(default=0, description="Groups or percentage (rounded up)."),
            }
        ),
    }
)
SPEC: Final = Obj(
    required=True,
    fields={
        "replicas": Int(default=1, minimum=0, maximum=MOST_REPLICAS, description="Number of groups."),
        "leaderWorkerTemplate": _LEADER_WORKER_TEMPLATE,
        "rolloutStrategy": _ROLLOUT,
        "startupPolicy": Str(
            default="LeaderCreated",
            enum=("LeaderCreated", "LeaderReady"),
            description="Whether workers come with their leader or once it is ready.",
        ),
        "networkConfig": Obj(fields={"subdomainPolicy": Str(enum=("Shared", "UniquePerReplica"))}),
        "scheduling": SCHEDULING,
    },
)
STATUS: Final = Obj(
    fields={
        "replicas": Int(description="Groups whose leader exists."),
        "readyReplicas": Int(description="Groups that are ready as a whole."),
        "updatedReplicas": Int(description="Groups of the newest revision."),
        "hpaPodSelector": Str(description="Selector of the leader pods, for autoscalers."),
        "observedGeneration": Int(bits=64),
        "conditions": Arr(key=("type",), item=Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.Condition")),
    }
)
SCHEMA: Final = Obj(fields={"spec": SPEC, "status": STATUS})
