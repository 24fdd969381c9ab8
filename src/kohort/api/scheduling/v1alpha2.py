"""Workload and PodGroup of Kubernetes 1.36 (spec workload-api 2.2): templates and policies never change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, duplicate, invalid, not_supported, required, too_long
from kohort.api.kind import Kind
from kohort.api.releases import SCHEDULING_GROUP, Gate
from kohort.api.scheduling import columns, parts
from kohort.api.scheduling.constants import DISRUPT_POD, DISRUPT_POD_GROUP, MOST_TEMPLATES, POD_GROUP_SCHEDULED
from kohort.api.scheduling.groups import known_claims
from kohort.api.schema import EMPTY, Arr, Int, Obj, Str, Time, Update, WhenOff, but

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context, Object

_POLICY: Final = Obj(
    fields={"basic": EMPTY, "gang": Obj(fields={"minCount": Int(required=True, minimum=1)})},
    union=("basic", "gang"),
    embedded=True,
)
_MODE: Final = Str(enum=(DISRUPT_POD, DISRUPT_POD_GROUP), gate=Gate.PREEMPTION)
_TEMPLATE: Final = Obj(
    fields={
        "name": parts.LABEL,
        "schedulingPolicy": _POLICY,
        "schedulingConstraints": parts.TEMPLATE_CONSTRAINTS,
        "resourceClaims": parts.CLAIMS,
        "disruptionMode": _MODE,
        "priorityClassName": but(parts.PRIORITY_CLASS, gate=Gate.PREEMPTION),
        "priority": but(parts.PRIORITY, gate=Gate.PREEMPTION),
    }
)
_WORKLOAD: Final = Obj(
    fields={
        "spec": Obj(
            fields={
                "controllerRef": parts.CONTROLLER_REF,
                "podGroupTemplates": Arr(
                    key=("name",), required=True, max_items=MOST_TEMPLATES, update=Update.FROZEN, item=_TEMPLATE
                ),
            },
            embedded=True,
            required=True,
        )
    }
)

_REFERENCE: Final = Obj(
    fields={"workload": Obj(fields={"workloadName": parts.SUBDOMAIN, "podGroupTemplateName": parts.LABEL}, shown=True)},
    union=("workload",),
    update=Update.FROZEN,
    shown=True,
)
_GATED: Final = {"gate": Gate.PREEMPTION, "when_off": WhenOff.THAWED}
# Conditions are validated by hand in this release: other kinds of errors, other places (see `_conditions`).
_CONDITION: Final = Obj(
    fields={
        "type": Str(),
        "status": Str(),
        "observedGeneration": Int(bits=64, blank=True),
        "lastTransitionTime": Time(),
        "reason": Str(),
        "message": Str(blank=True, shown=True),
    }
)
_POD_GROUP: Final = Obj(
    fields={
        "spec": Obj(
            fields={
                "podGroupTemplateRef": _REFERENCE,
                "schedulingPolicy": but(_POLICY, update=Update.FROZEN),
                "schedulingConstraints": parts.GROUP_CONSTRAINTS,
                "resourceClaims": parts.CLAIMS,
                "disruptionMode": but(_MODE, update=Update.FROZEN, when_off=WhenOff.THAWED),
                "priorityClassName": but(parts.PRIORITY_CLASS, **_GATED),
                "priority": but(parts.PRIORITY, **_GATED),
            },
            embedded=True,
            required=True,
        ),
        "status": Obj(
            fields={
                "conditions": Arr(key=("type",), distinct=False, item=_CONDITION),
                "resourceClaimStatuses": parts.CLAIM_STATUSES,
            },
            embedded=True,
        ),
    }
)


def _default(obj: Object, _: Context) -> None:
    # Applied whenever the object is decoded, also with the gate off.
    spec = obj.setdefault("spec", {})
    if spec.get("disruptionMode") is None:
        spec["disruptionMode"] = DISRUPT_POD


def _validate_status(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    return [*conditions(new), *known_claims(new, old, ctx)]


def conditions(obj: Object) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or []):
        path, name = f"status.conditions[{index}]", condition.get("type") or ""
        if name in seen:
            yield duplicate(f"{path}.type", name)
        seen.add(name)
        yield from _condition(condition, path)


def _condition(condition: dict[str, Any], path: str) -> Iterator[FieldError]:
    name, status, reason = (condition.get(member) or "" for member in ("type", "status", "reason"))
    yield from (invalid(f"{path}.type", name, problem) for problem in formats.problems(formats.label_key, name))
    if status not in ("True", "False", "Unknown"):
        yield not_supported(f"{path}.status", status, ("False", "True", "Unknown"))
    if (condition.get("observedGeneration") or 0) < 0:
        yield invalid(
            f"{path}.observedGeneration", condition["observedGeneration"], "must be greater than or equal to zero"
        )
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime", "must be set")
    if not reason:
        yield required(f"{path}.reason", "must be set")
    elif len(reason.encode()) > 1024:
        yield too_long(f"{path}.reason", 1024)
    elif problem := formats.condition_reason(reason):
        yield invalid(f"{path}.reason", reason, problem)
    if len((condition.get("message") or "").encode()) > 32768:
        yield too_long(f"{path}.message", 32768)


WORKLOAD: Final = Kind(
    group=SCHEDULING_GROUP,
    version="v1alpha2",
    kind="Workload",
    plural="workloads",
    singular="workload",
    schema=_WORKLOAD,
    native=True,
    minors=("1.36",),
    columns=(columns.AGE,),
    status=False,
    gate=Gate.GENERIC_WORKLOAD,
)
POD_GROUP: Final = Kind(
    group=SCHEDULING_GROUP,
    version="v1alpha2",
    kind="PodGroup",
    plural="podgroups",
    singular="podgroup",
    schema=_POD_GROUP,
    native=True,
    minors=("1.36",),
    columns=columns.group_columns(POD_GROUP_SCHEDULED),
    gate=Gate.GENERIC_WORKLOAD,
    default=_default,
    validate_status=_validate_status,
)
