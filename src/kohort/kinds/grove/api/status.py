"""The statuses of Grove's kinds."""

from __future__ import annotations

from typing import Final

from kohort.api.schema import Anything, Arr, Bool, Int, Obj, Ref, Str, Time

_CONDITIONS: Final = Arr(item=Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.Condition"))
_LAST_ERRORS: Final = Arr(
    item=Obj(
        fields={"code": Str(required=True), "description": Str(required=True), "observedAt": Time(required=True)},
    )
)
_COMMON: Final = {"observedGeneration": Int(bits=64), "conditions": _CONDITIONS, "lastErrors": _LAST_ERRORS}
_COUNT: Final = Int(default=0)
_SPAN: Final = {"updateStartedAt": Time(), "updateEndedAt": Time()}

PODCLIQUESET: Final = Obj(
    fields={
        **_COMMON,
        "replicas": Int(),
        "updatedReplicas": _COUNT,
        "availableReplicas": _COUNT,
        "hpaPodSelector": Str(),
        "currentGenerationHash": Str(),
        "podGangStatuses": Arr(
            item=Obj(fields={"name": Str(required=True), "phase": Str(required=True), "conditions": _CONDITIONS})
        ),
        "updateProgress": Obj(
            fields={
                **_SPAN,
                "updatedPodCliquesCount": _COUNT,
                "totalPodCliquesCount": _COUNT,
                "updatedPodCliqueScalingGroupsCount": _COUNT,
                "totalPodCliqueScalingGroupsCount": _COUNT,
                "currentlyUpdating": Arr(item=Obj(fields={"replicaIndex": Int(required=True), **_SPAN})),
            }
        ),
    }
)
PODCLIQUE: Final = Obj(
    fields={
        **_COMMON,
        "replicas": Int(),
        "readyReplicas": _COUNT,
        "scheduledReplicas": _COUNT,
        "scheduleGatedReplicas": _COUNT,
        "updatedReplicas": _COUNT,
        "hpaPodSelector": Str(),
        "currentPodTemplateHash": Str(),
        "currentPodCliqueSetGenerationHash": Str(),
        "updateProgress": Obj(
            fields={
                **_SPAN,
                "podCliqueSetGenerationHash": Str(required=True),
                "podTemplateHash": Str(required=True),
                "readyPodsSelectedToUpdate": Obj(
                    fields={"current": Str(required=True), "completed": Arr(item=Str())},
                ),
            }
        ),
    }
)
PODCLIQUESCALINGGROUP: Final = Obj(
    fields={
        **_COMMON,
        "replicas": Int(),
        "scheduledReplicas": _COUNT,
        "availableReplicas": _COUNT,
        "updatedReplicas": _COUNT,
        "selector": Str(),
        "currentPodCliqueSetGenerationHash": Str(),
        "updateProgress": Obj(
            fields={
                **_SPAN,
                "podCliqueSetGenerationHash": Str(required=True),
                "updatedPodCliquesCount": _COUNT,
                "totalPodCliquesCount": _COUNT,
                "readyReplicaIndicesSelectedToUpdate": Obj(
                    fields={"current": Int(required=True), "completed": Arr(item=Int())},
                ),
            }
        ),
    }
)
TOPOLOGY_BINDING: Final = Obj(
    fields={
        "observedGeneration": Int(bits=64),
        "conditions": _CONDITIONS,
        "schedulerTopologyStatuses": Arr(
            item=Obj(
                fields={
                    "schedulerName": Str(required=True),
                    "topologyReference": Str(required=True),
                    "inSync": Bool(required=True),
                    "schedulerBackendTopologyObservedGeneration": Int(bits=64),
                    "message": Str(),
                }
            )
        ),
    }
)
PODGANG: Final = Obj(
    fields={
        "phase": Str(),  # Pending, Starting, Running; the operator only ever writes Pending
        "conditions": _CONDITIONS,
        "placementScore": Anything(),  # a number between 0 and 1
    }
)
