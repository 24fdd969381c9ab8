"""What the default admission plugins do to these kinds: Priority, DefaultTolerationSeconds, PodGroupProtection,
1.36's PodGroupWorkloadExists.

Each plugin changes the object in place or says why it is denied. Pure: what exists is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kohort.api.releases import SCHEDULING_GROUP, Gate
from kohort.api.scheduling.constants import (
    PREEMPT_LOWER_PRIORITY,
    PROTECTION_FINALIZER,
    SYSTEM_CLASSES,
)

if TYPE_CHECKING:
    from kohort.api.kind import Context, Kind, Object

_LOST_NODES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_WORDS = {"Pod": "pod", "PodGroup": "pod group", "CompositePodGroup": "composite pod group"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a priority class means for an object."""

    name: str
    value: int
    policy: str


def mutate(kind: Kind, obj: Object, ctx: Context, classes: Sequence[Object], old: Object | None = None) -> str | None:
    """The mutating plugins, in order. Returns why the object is denied, or None."""
    problem = _priority(kind, obj, ctx, classes, old)
    if problem is None:
        _tolerate(kind, obj)
    if problem is None and old is None:
        _protect(kind, obj, ctx)
    return problem


def validate(kind: Kind, obj: Object, existing: Iterable[Object], classes: Sequence[Object]) -> str | None:
    """The validating plugins on create."""
    if kind.group != SCHEDULING_GROUP:
        return None
    if kind.kind == "PriorityClass" and obj.get("globalDefault"):
        return _second_default(obj, classes)
    if kind.kind == "PodGroup" and kind.version == "v1alpha2":
        return _workload_exists(obj, existing)
    return None


# ---- Priority


def _has_priority(kind: Kind, ctx: Context) -> bool:
    if kind.group == "" and kind.kind == "Pod":
        return True
    if kind.group != SCHEDULING_GROUP or kind.kind not in {"PodGroup", "CompositePodGroup"}:
        return False
    return kind.version != "v1alpha2" or ctx.on(Gate.PREEMPTION)


def _priority(kind: Kind, obj: Object, ctx: Context, classes: Sequence[Object], old: Object | None) -> str | None:
    if not _has_priority(kind, ctx):
        return None
    spec, pod = obj.setdefault("spec", {}), kind.kind == "Pod"
    if old is not None:
        if pod:
            _copy_back(spec, old.get("spec") or {})
        return None
    found = resolve(spec.get("priorityClassName") or "", classes)
    if found is None:
        return f"no PriorityClass with name {spec['priorityClassName']} was found"
    if found.name:
        spec["priorityClassName"] = found.name
    problem = _fill_priority(spec, found, _WORDS[kind.kind])
    if problem is None and (pod or (ctx.release.has_composites and ctx.on(Gate.PREEMPTION_POLICY))):
        problem = _fill_policy(spec, found, _WORDS[kind.kind])
    return problem


def _fill_priority(spec: dict[str, Any], found: Resolved, what: str) -> str | None:
    given = spec.get("priority")
    if given is not None and given != found.value:
        return (
            f"priority set in the {what} ({given}) must match the priority computed ({found.value}) "
            "based on the priority class set in the spec"
        )
    spec["priority"] = found.value
    return None


def _fill_policy(spec: dict[str, Any], found: Resolved, what: str) -> str | None:
    given = spec.get("preemptionPolicy")
    if given is not None and given != found.policy:
        return (
            f"the string value of PreemptionPolicy ({given}) must not be provided in the {what} spec; "
            f"priority admission computed {found.policy} from the given PriorityClass name"
        )
    spec["preemptionPolicy"] = found.policy
    return None


def resolve(name: str, classes: Sequence[Object]) -> Resolved | None:
    """The class of this name; without a name the global default, of several the one of the smallest value, or zero."""
    if name in SYSTEM_CLASSES:
        return Resolved(name, SYSTEM_CLASSES[name], PREEMPT_LOWER_PRIORITY)
    if name:
        found = next((one for one in classes if one["metadata"]["name"] == name), None)
        return _resolved(found) if found is not None else None
    defaults = [one for one in classes if one.get("globalDefault")]
    if not defaults:
        return Resolved("", 0, PREEMPT_LOWER_PRIORITY)
    return _resolved(min(defaults, key=lambda one: one.get("value") or 0))


def _resolved(found: Object) -> Resolved:
    policy = found.get("preemptionPolicy") or PREEMPT_LOWER_PRIORITY
    return Resolved(found["metadata"]["name"], found.get("value") or 0, policy)


def _copy_back(spec: dict[str, Any], before: dict[str, Any]) -> None:
    for member in ("priority", "preemptionPolicy"):
        if spec.get(member) is None and before.get(member) is not None:
            spec[member] = before[member]


# ---- the others


def _tolerate(kind: Kind, obj: Object) -> None:
    """A pod stays five minutes on a node that is not ready or out of reach, unless it says otherwise itself."""
    if kind.group != "" or kind.kind != "Pod":
        return
    spec = obj.setdefault("spec", {})
    given = spec.get("tolerations") or []
    for key in _LOST_NODES:
        if not any(one.get("key") in (key, "", None) and one.get("effect") in ("NoExecute", "", None) for one in given):
            toleration = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            spec["tolerations"] = [*(spec.get("tolerations") or []), toleration]


def _protect(kind: Kind, obj: Object, ctx: Context) -> None:
    if kind.group != SCHEDULING_GROUP or kind.kind != "PodGroup" or not ctx.on(Gate.GENERIC_WORKLOAD):
        return
    finalizers = obj.setdefault("metadata", {}).setdefault("finalizers", [])
    if PROTECTION_FINALIZER not in finalizers:
        finalizers.append(PROTECTION_FINALIZER)


def _second_default(obj: Object, classes: Sequence[Object]) -> str | None:
    name = obj["metadata"]["name"]
    for other in classes:
        if other.get("globalDefault") and other["metadata"]["name"] != name:
            return f"PriorityClass {other['metadata']['name']} is already marked as default. Only one default can exist"
    return None


def _workload_exists(obj: Object, existing: Iterable[Object]) -> str | None:
    reference = (obj["spec"].get("podGroupTemplateRef") or {}).get("workload")
    if reference is None:
        return None
    name, template = reference["workloadName"], reference["podGroupTemplateName"]
    found = next((one for one in existing if one.get("kind") == "Workload" and one["metadata"]["name"] == name), None)
    if found is None:
        return f'PodGroup rejected: Workload "{name}" not found'
    if found["metadata"].get("deletionTimestamp"):
        return f'PodGroup rejected: Workload "{name}" is being deleted'
    if template not in [one.get("name") for one in found["spec"].get("podGroupTemplates") or []]:
        return f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{name}"'
    return None
