"""The fields of TrainingRuntime and ClusterTrainingRuntime (spec trainjob 1.6) with the `workload` policy (3.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kohort.api import formats
from kohort.api.scheduling import blocks
from kohort.api.schema import EMPTY, Arr, Bool, Int, Map, Node, Obj, Str, Update, but
from kohort.kinds.jobset.api import schema as jobset
from kohort.kinds.trainer.api.schema import META


def _thawed(node: Node) -> Any:
    """The same node where nothing is frozen: a runtime is a template and may be edited, unlike what it makes.

    Rules of a whole JobSet are not for a template either, except the one that upstream has in the type itself.
    """
    free = replace(node, update=Update.FREE)
    if isinstance(free, Obj):
        fields = {name: _thawed(member) for name, member in free.fields.items()}
        return replace(free, fields=fields, rules=tuple(rule for rule in free.rules if rule is jobset.EXCLUSIVE))
    if isinstance(free, Str):
        return replace(free, most=None)
    if isinstance(free, Arr):
        return replace(free, item=_thawed(free.item))
    return replace(free, value=_thawed(free.value)) if isinstance(free, Map) else free


# ---- how the training is spread

_INJECTION: Final = Obj(
    fields={
        "targets": Arr(
            key=("jobName",),
            max_items=16,
            item=Obj(
                fields={
                    "jobName": Str(required=True, min_length=1),
                    "containerNames": Arr(required=True, unique=True, min_items=1, max_items=8, item=Str()),
                }
            ),
        )
    }
)
ML_SOURCES: Final = ("torch", "mpi", "jax", "xgboost", "flux")
ML_POLICY: Final = Obj(
    union=ML_SOURCES,
    union_optional=True,
    fields={
        "numNodes": Int(description="Nodes where the TrainJob names none; less than 1 counts as 1."),
        "torch": Obj(fields={"envInjection": _INJECTION}),
        "mpi": Obj(
            fields={
                "numProcPerNode": Int(default=1, minimum=1),
                "mpiImplementation": Str(default="OpenMPI", enum=("OpenMPI", "")),
                "sshAuthMountPath": Str(default="/root/.ssh"),
                "runLauncherAsNode": Bool(default=False),
            }
        ),
        "jax": EMPTY,
        "xgboost": EMPTY,
        "flux": Obj(fields={"numProcPerNode": Int(default=1, minimum=1)}),
    },
)

# ---- how it is grouped

_BLOCK: Final = {
    "schedulingPolicy": blocks.POLICY,
    "schedulingConstraints": blocks.CONSTRAINTS,
    "disruptionMode": blocks.DISRUPTION,
    "resourceClaims": blocks.CLAIMS,
}
SCHEDULING: Final = Obj(
    description="Groups said explicitly, shaped as in KEP-969 of JobSet. Empty: the whole job is one gang.",
    fields={
        **_BLOCK,
        "replicatedJobs": Arr(
            max_items=8,
            item=Obj(
                fields={
                    "targetReplicatedJobs": Arr(required=True, unique=True, min_items=1, max_items=8, item=Str()),
                    **_BLOCK,
                    "job": Obj(fields=_BLOCK, description="Every Job of the target is a group of its own."),
                }
            ),
        ),
    },
)
WORKLOAD: Final = Obj(
    description="Groups of the Workload API. Empty: one group for the initializers, one gang for the trainer.",
    fields={
        "topologyConstraint": Obj(fields={"level": Str(required=True, format=formats.label_key)}),
        "disruptionMode": blocks.DISRUPTION,
        "scheduling": SCHEDULING,
    },
)
GROUP_POLICIES: Final = ("coscheduling", "volcano", "workload")
POD_GROUP_POLICY: Final = Obj(
    union=GROUP_POLICIES,
    union_optional=True,
    fields={
        "coscheduling": Obj(fields={"scheduleTimeoutSeconds": Int(default=60)}),
        "volcano": Obj(
            fields={
                "networkTopology": Obj(
                    fields={"mode": Str(enum=("hard", "soft")), "highestTierAllowed": Int(default=1)}
                )
            }
        ),
        "workload": WORKLOAD,
    },
)
SPEC: Final = Obj(
    fields={
        "mlPolicy": ML_POLICY,
        "podGroupPolicy": POD_GROUP_POLICY,
        "scheduling": but(
            SCHEDULING, description="Upstream's proposal: the same as podGroupPolicy.workload.scheduling."
        ),
        "template": Obj(fields={"metadata": META, "spec": _thawed(jobset.SPEC)}),
    }
)
SCHEMA: Final = Obj(fields={"spec": SPEC})
