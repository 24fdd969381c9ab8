"""The fields of JobSet (spec jobset 1.1 to 1.5) and of its three gang front ends (3.1, 3.2).

The gang fields are ours: upstream's v1alpha2 has none yet. `gangConfig` is the form of JobSet PR #1068,
`podGroupPolicies` a reviewer's proposal there, `scheduling` the form of KEP-969.
"""

from __future__ import annotations

from typing import Final

from kohort.api import formats
from kohort.api.scheduling import blocks
from kohort.api.schema import Arr, Bool, Cel, Int, Obj, Ref, Str, Update, but
from kohort.kinds.jobset.api import cel

MAX_INT32: Final = cel.MOST_INT
MAX_TEMPLATES: Final = cel.MOST_GROUPS
ACTIONS: Final = (
    "FailJobSet",
    "RestartJobSet",
    "RestartJobSetAndIgnoreMaxRestarts",
    "RestartJob",
    "RestartJobAndIgnoreMaxRestarts",
)
RESTART_JOB_ACTIONS: Final = ACTIONS[3:]
FAILURE_REASONS: Final = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
STARTUP_ORDERS: Final = ("AnyOrder", "InOrder")
RESTART_STRATEGIES: Final = ("Recreate", "BlockingRecreate", "InPlaceRestart")

NAMES: Final = Arr(item=Str())

# ---- gangs

# Proposed on the way to gangConfig and never served (spec jobset 3.2)
REPLACED: Final = {
    "scheduleAtOnce": "gangConfig.gangMode: Gang",
    "scheduleAtOncePerReplica": "gangConfig.gangMode: ReplicatedGang on the ReplicatedJob",
    "gangPolicy": "gangConfig, podGroupPolicies or scheduling",
}


def _mode(*modes: str) -> Obj:
    return Obj(
        fields={"gangMode": Str(required=True, enum=modes, description="Which pods start together or not at all.")},
        update=Update.FROZEN,
    )


POD_GROUP_POLICIES: Final = Arr(
    key=("name",),
    max_items=50,
    update=Update.FROZEN,
    description="Gangs over chosen ReplicatedJobs; no target means all of them.",
    item=Obj(
        fields={
            # pg-<name> is the name of a template, which is a label as well
            "name": Str(required=True, format=formats.label, max_bytes=60),
            "targetReplicatedJobs": but(NAMES, unique=True, max_items=50),
            "mode": Str(enum=("Gang", "ReplicatedGang"), description="Gang where nothing is said."),
        }
    ),
)
_BLOCK: Final = {
    "schedulingPolicy": blocks.POLICY,
    "schedulingConstraints": blocks.CONSTRAINTS,
    "disruptionMode": blocks.DISRUPTION,
}
# A part of the names of Jobs. As the key of a list it has to be there: upstream's webhook writes an empty one.
_NAME: Final = Str(default="", most=cel.MOST_NAME)
_LEAF: Final = {**_BLOCK, "resourceClaims": blocks.CLAIMS}
SCHEDULING: Final = Obj(
    update=Update.FROZEN,
    description="Workload-aware scheduling in the shape of KEP-969. Empty: the whole JobSet is one gang.",
    rules=(cel.BLOCK,),
    fields={
        **_BLOCK,
        "replicatedJobs": Arr(
            max_items=50,
            item=Obj(
                rules=(cel.BLOCK, cel.ENTRY),
                fields={
                    "targetReplicatedJobs": but(NAMES, required=True, unique=True, min_items=1, max_items=50),
                    **_LEAF,
                    "job": Obj(
                        fields=_LEAF, rules=(cel.BLOCK,), description="Every Job of the target is a group of its own."
                    ),
                },
            ),
        ),
    },
)

# ---- the JobSet

DEPENDS_ON: Final = Arr(
    key=("name",),
    max_items=5,
    item=Obj(fields={"name": _NAME, "status": Str(required=True, enum=("Ready", "Complete"))}),
)
REPLICATED_JOB: Final = Obj(
    fields={
        "name": _NAME,
        "groupName": Str(default="default", format=formats.label_1035),
        "replicas": Int(default=1, minimum=0),
        "template": Ref(definition="io.k8s.api.batch.v1.JobTemplateSpec"),
        "dependsOn": DEPENDS_ON,
        "gangConfig": _mode("Off", "Gang", "ReplicatedGang"),
    },
    replaced=REPLACED,
)
FAILURE_POLICY: Final = Obj(
    update=Update.FROZEN,
    fields={
        "maxRestarts": Int(),
        "restartStrategy": Str(default="Recreate", enum=RESTART_STRATEGIES),
        "rules": Arr(
            item=Obj(
                fields={
                    "name": Str(most=cel.MOST_RULE_NAME),
                    "action": Str(required=True, enum=ACTIONS),
                    "onJobFailureReasons": Arr(item=Str()),
                    "onJobFailureMessagePatterns": Arr(item=Str()),
                    "targetReplicatedJobs": NAMES,
                }
            )
        ),
    },
)
VOLUME_CLAIM_POLICIES: Final = Arr(
    max_items=50,
    update=Update.FROZEN,
    item=Obj(
        fields={
            "templates": Arr(max_items=50, item=Ref(definition="io.k8s.api.core.v1.PersistentVolumeClaim")),
            "retentionPolicy": Obj(
                default={}, fields={"whenDeleted": Str(default="Delete", enum=("Delete", "Retain"))}
            ),
        }
    ),
)
EXCLUSIVE: Final = Cel(
    "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && "
    "self.replicatedJobs.exists(x, has(x.dependsOn)))",
    "InOrder startup and dependsOn exclude each other",
)
SPEC: Final = Obj(
    fields={
        "replicatedJobs": Arr(key=("name",), item=REPLICATED_JOB),
        "network": Obj(
            update=Update.FROZEN,
            fields={
                "enableDNSHostnames": Bool(),
                "subdomain": Str(),
                "publishNotReadyAddresses": Bool(),
            },
        ),
        "successPolicy": Obj(
            update=Update.FROZEN,
            fields={"operator": Str(required=True, enum=("All", "Any")), "targetReplicatedJobs": NAMES},
        ),
        "failurePolicy": FAILURE_POLICY,
        "startupPolicy": Obj(
            update=Update.FROZEN,
            fields={"startupPolicyOrder": Str(required=True, enum=STARTUP_ORDERS)},
        ),
        "suspend": Bool(),
        "coordinator": Obj(fields={"replicatedJob": Str(), "jobIndex": Int(), "podIndex": Int()}),
        "managedBy": Str(update=Update.FROZEN),
        "ttlSecondsAfterFinished": Int(minimum=0),
        "volumeClaimPolicies": VOLUME_CLAIM_POLICIES,
        "gangConfig": _mode("Off", "Gang"),
        "podGroupPolicies": POD_GROUP_POLICIES,
        "scheduling": SCHEDULING,
    },
    replaced=REPLACED,
    rules=(EXCLUSIVE, *cel.RULES),
)
_COUNTER: Final = Int(required=True)
STATUS: Final = Obj(
    fields={
        "conditions": Arr(key=("type",), item=Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.Condition")),
        "restarts": Int(),
        "restartsCountTowardsMax": Int(),
        "terminalState": Str(),
        "replicatedJobsStatus": Arr(
            key=("name",),
            item=Obj(
                fields={
                    "name": Str(required=True),
                    **dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), _COUNTER),
                    "jobRestarts": Arr(item=Int(), max_items=1024),
                    "jobRestartsCountTowardsMax": Arr(item=Int(), max_items=1024),
                }
            ),
        ),
        "previousInPlaceRestartAttempt": Int(),
        "currentInPlaceRestartAttempt": Int(),
    }
)
SCHEMA: Final = Obj(rules=(cel.NAMES,), fields={"spec": SPEC, "status": STATUS})
