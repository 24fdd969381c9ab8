"""The fields of Grove's kinds, beside the PodCliqueSet's own statuses (spec grove 1.1 to 1.5)."""

from __future__ import annotations

from typing import Final

from kohort.api.schema import (
    Arr,
    Bool,
    Cel,
    Duration,
    Int,
    Map,
    Obj,
    Ref,
    Str,
    but,
)

DOMAIN_PATTERN: Final = r"^[a-z][a-z0-9-]*$"
LABEL_KEY_PATTERN: Final = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
STARTUP_TYPES: Final = ("CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit")

_DOMAIN: Final = Str(pattern=DOMAIN_PATTERN, max_bytes=63, min_length=1)
TOPOLOGY_CONSTRAINT: Final = Obj(
    fields={
        "topologyName": Str(),
        "pack": Obj(
            fields={"required": _DOMAIN, "preferred": _DOMAIN},
            rules=(
                Cel(
                    "has(self.required) || has(self.preferred)",
                    "pack must specify at least one of required or preferred",
                ),
            ),
        ),
        "packDomain": but(_DOMAIN, description="deprecated; not for new objects"),
    },
    rules=(
        Cel("has(self.pack) || has(self.packDomain)", "topologyConstraint must specify pack or deprecated packDomain"),
        Cel(
            "!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
            "must not set both pack.required and deprecated packDomain",
        ),
    ),
)
AUTOSCALING: Final = Obj(
    fields={
        "minReplicas": Int(),
        "maxReplicas": Int(required=True),
        "metrics": Arr(item=Ref(definition="io.k8s.api.autoscaling.v2.MetricSpec")),
    }
)
_SHARING_FIELDS: Final = {
    "name": Str(required=True),
    "namespace": Str(),
    "scope": Str(required=True, enum=("AllReplicas", "PerReplica")),
}
_CHILD_CLIQUES: Final = {"childCliqueNames": Arr(item=Str())}
CLIQUE_SHARING: Final = Arr(item=Obj(fields=_SHARING_FIELDS))
GROUP_SHARING: Final = Arr(item=Obj(fields={**_SHARING_FIELDS, "filter": Obj(fields=_CHILD_CLIQUES)}))
SET_SHARING: Final = Arr(
    item=Obj(
        fields={
            **_SHARING_FIELDS,
            "filter": Obj(fields={**_CHILD_CLIQUES, "childScalingGroupNames": Arr(item=Str())}),
        }
    )
)
CLAIM_TEMPLATES: Final = Arr(
    item=Obj(
        fields={
            "name": Str(required=True),
            "templateSpec": Ref(definition="io.k8s.api.resource.v1.ResourceClaimTemplateSpec", required=True),
        }
    )
)

# The webhook completes roleName, replicas and minAvailable in a PodCliqueSet; a PodClique of its own gets no such help.
_CLIQUE_SPEC: Final = {
    "roleName": Str(),
    "podSpec": Ref(definition="io.k8s.api.core.v1.PodSpec"),
    "replicas": Int(),
    "minAvailable": Int(),
    "startsAfter": Arr(item=Str()),
    "autoScalingConfig": AUTOSCALING,
}
CLIQUE_SPEC: Final = Obj(fields=_CLIQUE_SPEC)
# What update.py says, for servers that do not ask us: as far as a rule finds the counterpart and stays cheap.
_SAME_MINIMUM: Final = Cel(
    "has(self.minAvailable) == has(oldSelf.minAvailable)"
    " && (!has(self.minAvailable) || self.minAvailable == oldSelf.minAvailable)",
    "minAvailable cannot be set, cleared or changed later",
)
_SAME_PARTS: Final = Cel(
    "self.cliques.size() == oldSelf.cliques.size()"
    " && has(self.podCliqueScalingGroups) == has(oldSelf.podCliqueScalingGroups) && (!has(self.podCliqueScalingGroups)"
    " || self.podCliqueScalingGroups.size() == oldSelf.podCliqueScalingGroups.size())",
    "cliques and scaling groups cannot be added or removed later",
)
CLIQUE_TEMPLATE: Final = Obj(
    fields={
        "name": Str(required=True),
        "labels": Map(),
        "annotations": Map(),
        "topologyConstraint": TOPOLOGY_CONSTRAINT,
        "resourceSharing": CLIQUE_SHARING,
        "spec": but(CLIQUE_SPEC, required=True, rules=(_SAME_MINIMUM,)),
    }
)
SCALING_GROUP_CONFIG: Final = Obj(
    fields={
        "name": Str(required=True),
        "cliqueNames": Arr(item=Str(), required=True),
        "annotations": Map(),
        "replicas": Int(default=1),
        "minAvailable": Int(default=1),
        "scaleConfig": AUTOSCALING,
        "resourceSharing": GROUP_SHARING,
        "topologyConstraint": TOPOLOGY_CONSTRAINT,
    }
)
SET_TEMPLATE: Final = Obj(
    required=True,
    rules=(_SAME_PARTS,),
    fields={
        "cliques": Arr(item=CLIQUE_TEMPLATE, key=("name",), min_items=1, required=True),
        "cliqueStartupType": Str(enum=STARTUP_TYPES, default=STARTUP_TYPES[0]),
        "priorityClassName": Str(),
        "headlessServiceConfig": Obj(fields={"publishNotReadyAddresses": Bool(default=True)}),
        "topologyConstraint": TOPOLOGY_CONSTRAINT,
        "terminationDelay": Duration(),
        "podCliqueScalingGroups": Arr(item=SCALING_GROUP_CONFIG),
        "resourceClaimTemplates": CLAIM_TEMPLATES,
        "resourceSharing": SET_SHARING,
    },
)
SET_SPEC: Final = Obj(
    required=True,
    fields={
        "replicas": Int(default=0, minimum=0),
        "updateStrategy": Obj(
            fields={"type": Str(enum=("RollingRecreate", "OnDelete"), default="RollingRecreate")},
        ),
        "template": SET_TEMPLATE,
    },
)
# A gang that is smaller than its minimum would be ended after a while: it is not made smaller in the first place (D22).
_MINIMUM: Final = Cel(
    "!has(self.minAvailable) || self.replicas >= self.minAvailable", "replicas must not be less than minAvailable"
)
PODCLIQUE_SPEC: Final = Obj(
    required=True,
    rules=(_MINIMUM,),
    fields={
        **_CLIQUE_SPEC,
        "roleName": Str(required=True),
        "podSpec": Ref(definition="io.k8s.api.core.v1.PodSpec", required=True),
        "replicas": Int(required=True, minimum=0),
    },
)
PODCLIQUESCALINGGROUP_SPEC: Final = Obj(
    required=True,
    rules=(_MINIMUM,),
    fields={
        "replicas": Int(default=1, minimum=0),
        "minAvailable": Int(default=1),
        "cliqueNames": Arr(item=Str(), required=True),
    },
)
TOPOLOGY_BINDING_SPEC: Final = Obj(
    required=True,
    fields={
        "levels": Arr(
            required=True,
            min_items=1,
            item=Obj(
                fields={
                    "domain": but(_DOMAIN, required=True),
                    "key": Str(required=True, pattern=LABEL_KEY_PATTERN, max_bytes=63, min_length=1),
                }
            ),
        ),
        "schedulerTopologyBindings": Arr(
            item=Obj(fields={"schedulerName": Str(required=True), "topologyReference": Str(required=True)})
        ),
    },
)
_PACK_CONSTRAINT: Final = Obj(fields={"packConstraint": Obj(fields={"required": Str(), "preferred": Str()})})
_NAMESPACED_NAME: Final = Obj(fields={"namespace": Str(required=True), "name": Str(required=True)})
PODGANG_SPEC: Final = Obj(
    required=True,
    fields={
        "podgroups": Arr(
            required=True,
            item=Obj(
                fields={
                    "name": Str(required=True),
                    "podReferences": Arr(item=_NAMESPACED_NAME, required=True),
                    "minReplicas": Int(required=True),
                    "topologyConstraint": _PACK_CONSTRAINT,
                }
            ),
        ),
        "topologyConstraint": _PACK_CONSTRAINT,
        "topologyConstraintGroupConfigs": Arr(
            item=Obj(
                fields={
                    "name": Str(required=True),
                    "podGroupNames": Arr(item=Str(), required=True),
                    "topologyConstraint": _PACK_CONSTRAINT,
                }
            )
        ),
        "priorityClassName": Str(),
        "reuseReservationRef": _NAMESPACED_NAME,
    },
)
