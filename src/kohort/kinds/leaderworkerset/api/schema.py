"""The fields of LeaderWorkerSet v1, with `spec.scheduling` of KEP-666 (text of September 2026)."""

from __future__ import annotations

from typing import Final

from kohort.api.scheduling.blocks import CLAIMS, COMPOSITE_POLICY, CONSTRAINTS, DISRUPTION, POLICY
from kohort.api.schema import Arr, Cel, Int, IntOrStr, Obj, Ref, Str, Update, but, label_name

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

# ---- the rest of the spec. Its rules in CEL are those of validation.py and update.py, for servers that do not ask us.

_SUBGROUP_SIZE: Final = "self.subGroupPolicy.subGroupSize"
_PERCENT: Final = "^([0-9]{1,2}|100)%$"
_ROLLING: Final = "self.rolloutStrategy.rollingUpdateConfiguration"

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
    rules=(
        Cel("self.size >= 1", "size must be equal or greater than 1"),
        Cel(
            f"!has(self.subGroupPolicy) || has({_SUBGROUP_SIZE}) && {_SUBGROUP_SIZE} >= 1"
            f" && {_SUBGROUP_SIZE} <= self.size && ((self.size - 1) % {_SUBGROUP_SIZE} == 0"
            f" || self.size % {_SUBGROUP_SIZE} == 0 && !(has(self.subGroupPolicy.subGroupPolicyType)"
            " && self.subGroupPolicy.subGroupPolicyType == 'LeaderExcluded'))",
            "subGroupSize must be 1 to size, and size (without LeaderExcluded) or size - 1 divisible by it",
        ),
        Cel(
            "has(self.subGroupPolicy) == has(oldSelf.subGroupPolicy) && (!has(self.subGroupPolicy)"
            f" || {_SUBGROUP_SIZE} == oldSelf.subGroupPolicy.subGroupSize)",
            "subGroupSize cannot be set, cleared or changed later",
        ),
    ),
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
            rules=(
                Cel("!has(self.partition) || self.partition >= 0", "partition must be greater than or equal to 0"),
                *(
                    Cel(
                        f"type(self.{name}) == string ? self.{name}.matches('{_PERCENT}') : self.{name} >= 0",
                        f"{name} must be a number of groups, or a percentage up to 100%",
                    )
                    for name in ("maxUnavailable", "maxSurge")
                ),
            ),
            fields={
                "partition": Int(default=0, description="Groups below this index keep their revision."),
                "maxUnavailable": IntOrStr(default=1, description="Groups or percentage (rounded down)."),
                "maxSurge": IntOrStr(default=0, description="Groups or percentage (rounded up)."),
            },
        ),
    }
)
SPEC: Final = Obj(
    required=True,
    rules=(
        Cel(
            f"self.replicas * self.leaderWorkerTemplate.size <= {2**31 - 1}",
            f"the product of replicas and size must not exceed {2**31 - 1}",
        ),
        Cel(
            f"self.replicas == 0 || !has(self.rolloutStrategy) || !has({_ROLLING})"
            f" || (type({_ROLLING}.maxSurge) == string ? {_ROLLING}.maxSurge != '0%' : {_ROLLING}.maxSurge != 0)"
            f" || (type({_ROLLING}.maxUnavailable) == string"
            f" ? int({_ROLLING}.maxUnavailable.replace('%', '')) * self.replicas >= 100"
            f" : {_ROLLING}.maxUnavailable != 0)",
            "maxUnavailable must not be 0 when maxSurge is 0",
        ),
    ),
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
SCHEMA: Final = Obj(
    rules=(label_name("pods and Services are named after it"),),
    fields={"spec": SPEC, "status": STATUS},
)
