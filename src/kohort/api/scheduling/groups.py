"""PodGroup of 1.37 (v1beta1 and v1alpha3) and CompositePodGroup (v1alpha3): the runtime tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.api import formats
from kohort.api.errors import FieldError, invalid, required
from kohort.api.kind import Kind
from kohort.api.releases import SCHEDULING_GROUP, Gate
from kohort.api.scheduling import columns, parts
from kohort.api.scheduling.constants import POD_GROUP_INITIALLY_SCHEDULED, PREEMPT_LOWER_PRIORITY
from kohort.api.schema import EMPTY, Node, Obj, Str, Update, but

if TYPE_CHECKING:
    from kohort.api.kind import Context, Object

_WORKLOAD_REF: Final = Obj(fields={"workloadName": parts.SUBDOMAIN, "templateName": parts.LABEL}, update=Update.FROZEN)
_PARENT: Final = Str(format=formats.subdomain, update=Update.FROZEN)
_DISRUPTION: Final = but(parts.DISRUPTION, default={"single": {}})
_PRIORITIES: Final[dict[str, Node]] = {
    "priorityClassName": parts.PRIORITY_CLASS,
    "priority": parts.PRIORITY,
    "preemptionPolicy": but(parts.PREEMPTION_POLICY, default=PREEMPT_LOWER_PRIORITY),
}

_POD_GROUP: Final = Obj(
    fields={
        "spec": Obj(
            fields={
                "parentCompositePodGroupName": but(_PARENT, gate=Gate.COMPOSITE),
                "workloadRef": _WORKLOAD_REF,
                "schedulingPolicy": parts.POLICY,
                "schedulingConstraints": parts.GROUP_CONSTRAINTS,
                "resourceClaims": parts.CLAIMS,
                "disruptionMode": _DISRUPTION,
                **_PRIORITIES,
            },
            embedded=True,
            required=True,
        ),
        "status": Obj(
            fields={"conditions": parts.CONDITIONS, "resourceClaimStatuses": parts.CLAIM_STATUSES}, embedded=True
        ),
    }
)

_FROZEN_POLICY: Final = but(
    parts.COMPOSITE_POLICY,
    update=Update.FROZEN,
    fields={"basic": EMPTY, "gang": but(parts.COMPOSITE_POLICY.fields["gang"], update=Update.FREE)},
)
_COMPOSITE: Final = Obj(
    fields={
        "spec": Obj(
            fields={
                "parentCompositePodGroupName": _PARENT,
                "workloadRef": but(_WORKLOAD_REF, required=True),
                "schedulingPolicy": _FROZEN_POLICY,
                "schedulingConstraints": parts.COMPOSITE_CONSTRAINTS,
                "disruptionMode": _DISRUPTION,
                **_PRIORITIES,
            },
            embedded=True,
            required=True,
        ),
        "status": Obj(fields={"conditions": parts.CONDITIONS}, embedded=True),
    }
)


def _validate(obj: Object, _: Context) -> list[FieldError]:
    spec = obj.get("spec") or {}
    if spec.get("parentCompositePodGroupName") is not None and spec.get("workloadRef") is None:
        return [required("spec.workloadRef", "a group with a parent needs it")]
    return []


def known_claims(new: Object, _: Object, __: Context) -> list[FieldError]:
    """Claim statuses name claims of the spec."""
    claims = [claim.get("name") for claim in (new.get("spec") or {}).get("resourceClaims") or []]
    statuses = (new.get("status") or {}).get("resourceClaimStatuses") or []
    return [
        invalid(
            f"status.resourceClaimStatuses[{index}].name", name, "must be the name of an item of spec.resourceClaims"
        )
        for index, status in enumerate(statuses)
        if (name := (status or {}).get("name") or "") not in claims
    ]


def _pod_group(version: str) -> Kind:
    return Kind(
        group=SCHEDULING_GROUP,
        version=version,
        kind="PodGroup",
        plural="podgroups",
        singular="podgroup",
        schema=_POD_GROUP,
        native=True,
        minors=("1.37",),
        columns=columns.group_columns(POD_GROUP_INITIALLY_SCHEDULED),
        storage=version == "v1beta1",
        gate=Gate.GENERIC_WORKLOAD,
        needs_version=True,
        validate=_validate,
        validate_status=known_claims,
    )


V1BETA1: Final = _pod_group("v1beta1")
V1ALPHA3: Final = _pod_group("v1alpha3")
COMPOSITE: Final = Kind(
    group=SCHEDULING_GROUP,
    version="v1alpha3",
    kind="CompositePodGroup",
    plural="compositepodgroups",
    singular="compositepodgroup",
    schema=_COMPOSITE,
    native=True,
    minors=("1.37",),
    columns=(columns.POLICY, columns.WORKLOAD, columns.AGE),
    gate=Gate.COMPOSITE,
    needs_version=True,
)
