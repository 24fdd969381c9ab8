"""The fields of a Job's spec. CronJobs embed the same spec, therefore defaults are not declared here."""

from __future__ import annotations

from typing import Final

from kohort.api import formats
from kohort.api.core.pod import GATED
from kohort.api.releases import Gate
from kohort.api.scheduling.blocks import EMBEDDED
from kohort.api.schema import Arr, Bool, Int, Obj, Ref, Str, Update

MAX_RULES: Final = 20  # of either policy
ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
COMPLETION_MODES: Final = ("NonIndexed", "Indexed")

SCHEDULING: Final = Obj(
    fields=EMBEDDED,
    since="1.37",
    gate=Gate.JOB,
    update=Update.VARIANT,
    description="How the Job's pods are scheduled as a group.",
)
FAILURE_POLICY: Final = Obj(
    fields={
        "rules": Arr(
            max_items=MAX_RULES,
            item=Obj(
                fields={
                    "action": Str(required=True, enum=ACTIONS),
                    "onExitCodes": Obj(
                        fields={
                            "containerName": Str(),
                            "operator": Str(required=True, enum=("In", "NotIn")),
                            "values": Arr(item=Int(), max_items=255),
                        }
                    ),
                    "onPodConditions": Arr(
                        max_items=20,
                        item=Obj(fields={"type": Str(required=True, format=formats.label_key), "status": Str()}),
                    ),
                }
            ),
        )
    },
)
SUCCESS_POLICY: Final = Obj(
    fields={
        "rules": Arr(
            max_items=MAX_RULES,
            item=Obj(fields={"succeededIndexes": Str(max_bytes=64 * 1024), "succeededCount": Int(minimum=0)}),
        )
    },
)
SPEC: Final = Obj(
    embedded=True,
    fields={
        "parallelism": Int(minimum=0),
        "completions": Int(minimum=0),
        "activeDeadlineSeconds": Int(minimum=0, bits=64),
        "backoffLimit": Int(minimum=0),
        "backoffLimitPerIndex": Int(minimum=0),
        "maxFailedIndexes": Int(minimum=0),
        "completionMode": Str(enum=COMPLETION_MODES),
        "suspend": Bool(),
        "selector": Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"),
        "manualSelector": Bool(),
        "template": Ref(
            definition="io.k8s.api.core.v1.PodTemplateSpec",
            gated={f"spec.{member}": gate for member, gate in GATED.items()},
            parsed=True,
        ),
        "ttlSecondsAfterFinished": Int(minimum=0),
        "podFailurePolicy": FAILURE_POLICY,
        "successPolicy": SUCCESS_POLICY,
        "podReplacementPolicy": Str(),
        "managedBy": Str(format=formats.domain_prefixed_path, max_bytes=63),
        "scheduling": SCHEDULING,
    },
)
JOB: Final = Obj(fields={"spec": SPEC, "status": Ref(definition="io.k8s.api.batch.v1.JobStatus")})
