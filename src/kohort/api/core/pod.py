"""The Pod: its membership in a group is the point, the rest is what a server says first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api.copying import copied
from kohort.api.core import ephemeral_containers, pod_status, resize
from kohort.api.core.pod_defaults import default_pod_spec
from kohort.api.core.pod_spec import check_pod_spec
from kohort.api.core.qos import qos_class
from kohort.api.errors import FieldError, forbidden, invalid, required
from kohort.api.kind import Column, Context, Kind, Object
from kohort.api.releases import Gate
from kohort.api.rules import same
from kohort.api.scheduling import membership
from kohort.api.schema import Obj, Ref

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FROZEN: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_GATES_MESSAGE: Final = "Scheduling is blocked due to non-empty scheduling gates"
# Members of a pod's spec that vanish without a feature gate.
GATED: Final[Mapping[str, str]] = {
    "schedulingGroup": Gate.GENERIC_WORKLOAD,
    "workloadRef": Gate.GENERIC_WORKLOAD,
    "evictionResponders": Gate.EVICTION_REQUEST,
}
SCHEMA: Final = Obj(
    fields={
        "spec": Ref(definition="io.k8s.api.core.v1.PodSpec", gated=GATED, parsed=True),
        "status": Ref(definition="io.k8s.api.core.v1.PodStatus"),
    }
)


def default(pod: Object, ctx: Context) -> None:
    spec = pod.get("spec")
    if isinstance(spec, dict):
        default_pod_spec(spec, template=False)
        membership.tidy(spec, ctx)


def validate(pod: Object, ctx: Context) -> list[FieldError]:
    spec = pod.get("spec") or {}
    return [*check_pod_spec(spec, "spec", ctx), *ephemeral_containers.check_create(spec)]


def validate_update(pod: Object, old: Object, ctx: Context) -> list[FieldError]:
    new, before = pod.get("spec") or {}, old.get("spec") or {}
    found = list(check_pod_spec(new, "spec", ctx))
    for member in ("containers", "initContainers"):
        if len(new.get(member) or []) != len(before.get(member) or []):
            # Nothing else is compared then.
            return [*found, forbidden(f"spec.{member}", "pod updates may not add or remove containers")]
    return [
        *found,
        *_deadline(new, before),
        *_tolerations(new, before),
        *_gates(new, before),
        *_rest(new, before),
    ]


def _rest(new: dict[str, Any], old: dict[str, Any]) -> Iterator[FieldError]:
    """Put back what may change; whatever still differs may not."""
    left = copied(new)
    for member in ("containers", "initContainers"):
        for container, before in zip(left.get(member) or [], old.get(member) or [], strict=False):
            _put_back(container, before, "image")
    _put_back(left, old, "activeDeadlineSeconds")
    _put_back(left, old, "schedulingGates")
    if old.get("schedulingGates"):  # a pod that waits may still be sent elsewhere
        _put_back(left, old, "nodeSelector")
        _put_back(left, old, "affinity")
    _put_back(left, old, "tolerations")  # they have a rule of their own
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and left.get("terminationGracePeriodSeconds") == 1:
        _put_back(left, old, "terminationGracePeriodSeconds")
    if not same(left, old):
        yield forbidden("spec", _FROZEN)


def _put_back(block: dict[str, Any], old: dict[str, Any], name: str) -> None:
    block.pop(name, None)
    if name in old:
        block[name] = copied(old[name])


def _tolerations(new: dict[str, Any], old: dict[str, Any]) -> Iterator[FieldError]:
    """All of the old ones must still be there, whatever their seconds."""
    after = [_lasting(one) for one in new.get("tolerations") or []]
    if not all(_lasting(one) in after for one in old.get("tolerations") or []):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _lasting(toleration: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds" and value}


def _gates(new: dict[str, Any], old: dict[str, Any]) -> Iterator[FieldError]:
    before = {gate.get("name") for gate in old.get("schedulingGates") or []}
    for index, gate in enumerate(new.get("schedulingGates") or []):
        if gate.get("name") not in before:
            yield forbidden(f"spec.schedulingGates[{index}]", "only deletion is allowed, but found new scheduling gate")


def _deadline(new: dict[str, Any], old: dict[str, Any]) -> Iterator[FieldError]:
    after, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if before is not None and after is None:
        yield required("spec.activeDeadlineSeconds", "must not be removed once set")
    elif before is not None and after is not None and after > before:
        yield invalid("spec.activeDeadlineSeconds", after, "must be less than or equal to previous value")


def _ready(pod: Object) -> str:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    ready = sum(1 for container in status.get("containerStatuses") or [] if container.get("ready"))
    return f"{ready}/{len(spec.get('containers') or [])}"


def _phase(pod: Object) -> str:
    status = pod.get("status") or {}
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return "Terminating"
    return str(status.get("reason") or status.get("phase") or "Pending")


def _restarts(pod: Object) -> int:
    status = pod.get("status") or {}
    return sum(int(container.get("restartCount") or 0) for container in status.get("containerStatuses") or [])


def _group(pod: Object) -> str:
    spec = pod.get("spec") or {}
    named = (spec.get("schedulingGroup") or {}).get("podGroupName")
    reference = spec.get("workloadRef") or {}
    return str(named or "/".join(filter(None, (reference.get("name"), reference.get("podGroup")))) or "<none>")


def warn(pod: Object, _: Context) -> list[str]:
    """What is accepted, and will not do what its author hopes for."""
    constraints = (pod.get("spec") or {}).get("topologySpreadConstraints") or []
    return [
        f"spec.topologySpreadConstraints[{index}].labelSelector: a null labelSelector results in matching no pod"
        for index, constraint in enumerate(constraints)
        if constraint.get("labelSelector") is None
    ]


def _first_status(pod: Object) -> Object:
    spec = pod.get("spec") or {}
    found: Object = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        moments = {"lastProbeTime": None, "lastTransitionTime": pod["metadata"].get("creationTimestamp")}
        found["conditions"] = [gated | moments | {"message": _GATES_MESSAGE}]
    return found


POD: Final = Kind(
    group="",
    version="v1",
    kind="Pod",
    plural="pods",
    singular="pod",
    short_names=("po",),
    categories=("all",),
    native=True,
    schema=SCHEMA,
    counts_changes=True,
    first_status=_first_status,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=pod_status.validate,
    reset_status=pod_status.reset,
    subresources={"ephemeralcontainers": ephemeral_containers.STRATEGY, "resize": resize.STRATEGY},
    warn=warn,
    columns=(
        Column("Ready", cell=_ready, description="Containers that are ready, of all."),
        Column("Status", cell=_phase, description="Phase, or the reason that stands for it."),
        Column("Restarts", "integer", cell=_restarts),
        Column("Age", "date", path=".metadata.creationTimestamp"),
        Column("Node", cell=lambda pod: (pod.get("spec") or {}).get("nodeName") or "<none>", priority=1),
        Column("Group", cell=_group, priority=1, description="The group that the pod is a member of."),
    ),
)
