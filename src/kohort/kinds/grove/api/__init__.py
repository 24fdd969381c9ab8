"""Grove: grove.io/v1alpha1 (PodCliqueSet and its children) and scheduler.grove.io/v1alpha1 (PodGang)."""

from __future__ import annotations

from typing import Final

from kohort.api.errors import FieldError, invalid
from kohort.api.kind import Column, Context, Kind, Object, Scale
from kohort.api.releases import Gate
from kohort.api.schema import Obj
from kohort.kinds.grove.api import constants, defaults, options, parts, schema, status, topology, update, validation
from kohort.kinds.grove.api.options import OPTIONS

__all__ = ["KINDS", "OPTIONS"]

_AGE: Final = Column("Age", "date", ".metadata.creationTimestamp")
_BREACHED: Final = Column(
    "MinBreached", "string", '.status.conditions[?(@.type=="MinAvailableBreached")].status', priority=1
)


def _number(name: str, path: str, priority: int = 0) -> Column:
    return Column(name, "integer", path, priority=priority)


def _warn(obj: Object, ctx: Context) -> list[str]:
    """Cliques whose claims nobody would make: generated claims of grouped pods need their own gate from 1.37 on."""
    if not ctx.on(options.GANG) or not ctx.release.min_count_mutable or ctx.on(Gate.CLAIMS):
        return []
    return [
        f"{path}.spec.podSpec.resourceClaims: claim templates of pods in a group stay without claims "
        f"while feature gate {Gate.CLAIMS} is off; the pods will hang"
        for path, clique in parts.cliques(obj)
        if any(claim.get("resourceClaimTemplateName") for claim in parts.pod_spec(clique).get("resourceClaims") or [])
    ]


def _minimum(obj: Object, _ctx: Context) -> list[FieldError]:
    """What the schema's rule says of a PodClique or scaling group: it is not scaled below its minimum (D22)."""
    spec = obj.get("spec") or {}
    replicas, least = spec.get("replicas"), spec.get("minAvailable")
    if not isinstance(replicas, int) or not isinstance(least, int) or not 0 <= replicas < least:
        return []
    return [invalid("spec.replicas", replicas, f"must not be less than minAvailable ({least})")]


def _still_minimum(new: Object, _old: Object, ctx: Context) -> list[FieldError]:
    return _minimum(new, ctx)


KINDS: Final = (
    Kind(
        group=constants.GROUP,
        version=constants.VERSION,
        kind="PodCliqueSet",
        plural="podcliquesets",
        short_names=("pcs",),
        schema=Obj(fields={"spec": schema.SET_SPEC, "status": status.PODCLIQUESET}),
        scale=Scale(".spec.replicas", ".status.replicas", ".status.hpaPodSelector"),
        columns=(
            _number("Replicas", ".spec.replicas"),
            _number("Available", ".status.availableReplicas"),
            _number("Updated", ".status.updatedReplicas"),
            _number("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
            _number("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
            _number("PCSGs-Updated", ".status.updateProgress.updatedPodCliqueScalingGroupsCount"),
            _number("PCSGs-Total", ".status.updateProgress.totalPodCliqueScalingGroupsCount"),
            _AGE,
        ),
        default=defaults.podcliqueset,
        validate=validation.validate,
        validate_update=update.validate_update,
        warn=_warn,
    ),
    Kind(
        group=constants.GROUP,
        version=constants.VERSION,
        kind="PodClique",
        plural="podcliques",
        short_names=("pclq",),
        schema=Obj(fields={"spec": schema.PODCLIQUE_SPEC, "status": status.PODCLIQUE}),
        scale=Scale(".spec.replicas", ".status.replicas", ".status.hpaPodSelector"),
        columns=(
            _number("MinAvail", ".spec.minAvailable"),
            _number("Replicas", ".spec.replicas"),
            _number("Ready", ".status.readyReplicas"),
            _number("Scheduled", ".status.scheduledReplicas"),
            _number("Updated", ".status.updatedReplicas"),
            _number("Gated", ".status.scheduleGatedReplicas", priority=1),
            _BREACHED,
            _AGE,
        ),
        validate=_minimum,
        validate_update=_still_minimum,
    ),
    Kind(
        group=constants.GROUP,
        version=constants.VERSION,
        kind="PodCliqueScalingGroup",
        plural="podcliquescalinggroups",
        short_names=("pcsg",),
        schema=Obj(fields={"spec": schema.PODCLIQUESCALINGGROUP_SPEC, "status": status.PODCLIQUESCALINGGROUP}),
        scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
        columns=(
            _number("MinAvail", ".spec.minAvailable"),
            _number("Replicas", ".spec.replicas"),
            _number("Available", ".status.availableReplicas"),
            _number("Scheduled", ".status.scheduledReplicas"),
            _number("Updated", ".status.updatedReplicas"),
            _number("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
            _number("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
            _BREACHED,
            _AGE,
        ),
        validate=_minimum,
        validate_update=_still_minimum,
    ),
    Kind(
        group=constants.GROUP,
        version=constants.VERSION,
        kind="ClusterTopologyBinding",
        plural="clustertopologybindings",
        short_names=("ct",),
        namespaced=False,
        schema=Obj(fields={"spec": schema.TOPOLOGY_BINDING_SPEC, "status": status.TOPOLOGY_BINDING}),
        columns=(Column("Domains", "string", ".spec.levels[*].domain"), _AGE),
        validate=topology.validate_binding,
    ),
    Kind(
        group=constants.SCHEDULER_GROUP,
        version=constants.VERSION,
        kind="PodGang",
        plural="podgangs",
        short_names=("pg",),
        schema=Obj(fields={"spec": schema.PODGANG_SPEC, "status": status.PODGANG}),
        columns=(Column("Phase", "string", ".status.phase"), _AGE),
    ),
)
