"""What an object counts for in a quota, and whether a quota's scopes pick it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

import msgspec

from kohort.apimachinery import podresources, quantity, times
from kohort.apimachinery.podresources import PodResources
from kohort.apimachinery.quantity import ONE, Quantities, Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kohort.api.kind import Object

Source = tuple[str, str]  # API group, plural
PODS: Final = ("", "pods")
SERVICES: Final = ("", "services")
CLAIMS: Final = ("", "persistentvolumeclaims")
_BY_CLASS: Final = ".storageclass.storage.k8s.io/"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_SERVICE_NAMES: Final = {"services", "services.nodeports", "services.loadbalancers"}
_OBJECTS: Final = {"configmaps", "secrets", "replicationcontrollers", "resourcequotas"}
_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")  # may be asked for without "requests."
REQUIRED: Final = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)  # of every container, where a quota limits them


@dataclass(frozen=True, slots=True)
class Usage:
    """`scopes`: those that hold for a pod; None for what scopes never pick. `until`: a time from which on it no longer
    counts."""

    quantities: Quantities
    scopes: frozenset[str] | None = None
    priority_class: str = ""
    until: datetime | None = None
    unstated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # who leaves out what a quota may require


def source(name: str) -> Source:
    """Whose objects a name in `hard` is about."""
    if name.startswith("count/"):
        plural, _, group = name.removeprefix("count/").partition(".")
        return group, plural
    if name in _SERVICE_NAMES:
        return SERVICES
    if name in {"persistentvolumeclaims", "requests.storage"} or _BY_CLASS in name:
        return CLAIMS
    return ("", name) if name in _OBJECTS else PODS


class _Container(TypedDict, total=False):
    name: Any
    resources: Any
    restartPolicy: Any


class _PodSpec(TypedDict, total=False):
    containers: list[_Container] | None
    initContainers: list[_Container] | None
    overhead: Any
    resources: Any
    affinity: Any
    priorityClassName: Any
    activeDeadlineSeconds: Any


class _PodMetadata(TypedDict, total=False):
    deletionTimestamp: Any
    deletionGracePeriodSeconds: Any


class _Pod(TypedDict, total=False):
    metadata: _PodMetadata
    spec: _PodSpec | None
    status: Any


_pod: Final = msgspec.json.Decoder(_Pod)
_whole: Final = msgspec.json.Decoder(dict[str, Any])


def counted(kind: Source, stored: bytes) -> Object:
    """Of a stored object, what `usage_of` looks at: most count by their number only, and a pod of a thousand variables
    as much as one without."""
    if kind == PODS:
        return cast("Object", _pod.decode(stored))
    return _whole.decode(stored) if kind in {SERVICES, CLAIMS} else {}


def usage_of(kind: Source, obj: Object, now: datetime, *, stated: bool = True) -> Usage:
    """`stated`: also what containers leave out, which is asked when they are created."""
    if kind == PODS:
        return _of_pod(obj, now, stated)
    count = {f"count/{kind[1]}.{kind[0]}" if kind[0] else f"count/{kind[1]}": ONE}
    if kind == SERVICES:
        return Usage(count | _of_service(obj))
    if kind == CLAIMS:
        return Usage(count | _of_claim(obj))
    return Usage(count | ({kind[1]: ONE} if not kind[0] and kind[1] in _OBJECTS else {}))


def to_wire(usage: Usage) -> list[Any]:
    """For another process."""
    quantities = {name: str(one) for name, one in usage.quantities.items()}
    scopes = None if usage.scopes is None else sorted(usage.scopes)
    until = None if usage.until is None else usage.until.isoformat()
    return [quantities, scopes, usage.priority_class, until, dict(usage.unstated)]


def from_wire(said: list[Any]) -> Usage:
    quantities, scopes, priority_class, until, unstated = said
    return Usage(
        quantity.parse_all(quantities),
        None if scopes is None else frozenset(scopes),
        priority_class,
        None if until is None else datetime.fromisoformat(until),
        {name: tuple(who) for name, who in unstated.items()},
    )


# ---- pods


def _of_pod(pod: Object, now: datetime, stated: bool) -> Usage:
    spec = pod.get("spec") or {}
    usage: Quantities = {"count/pods": ONE}
    resources = PodResources(pod)
    if _runs(pod, now):
        usage["pods"] = ONE
        usage |= dict(_named(*resources.total()))
    unstated = dict(_unstated(resources)) if stated else {}
    scopes = frozenset(_scopes(pod, resources))
    return Usage(usage, scopes, spec.get("priorityClassName") or "", _counts_until(pod), unstated)


def _unstated(resources: PodResources) -> Iterator[tuple[str, tuple[str, ...]]]:
    for member, prefixes in enumerate((("requests.", ""), ("limits.",))):
        for resource in ("cpu", "memory"):
            if resource not in resources.own[member]:
                who = tuple(
                    str(one.get("name")) for one, amounts in resources.containers if resource not in amounts[member]
                )
                yield from ((f"{prefix}{resource}", who) for prefix in prefixes if who)


def _runs(pod: Object, now: datetime) -> bool:
    """Whether it still takes anything: not when it has ended, nor when its node never said that it has."""
    if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return False
    until = _counts_until(pod)
    return until is None or now <= until


def _counts_until(obj: Object) -> datetime | None:
    """When a terminating pod no longer counts; None: for as long as it is there."""
    meta = obj.get("metadata") or {}
    gone, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    return None if not gone or grace is None else times.moment(gone) + timedelta(seconds=grace)


def _named(requests: Quantities, limits: Quantities) -> Iterator[tuple[str, Quantity]]:
    for name, value in requests.items():
        yield f"requests.{name}", value
        if name in _PLAIN or name.startswith("hugepages-"):
            yield name, value
    for name, value in limits.items():
        if name in _PLAIN:
            yield f"limits.{name}", value


def _scopes(pod: Object, resources: PodResources) -> Iterator[str]:
    spec = pod.get("spec") or {}
    deadline = spec.get("activeDeadlineSeconds")
    yield "Terminating" if deadline is not None and deadline >= 0 else "NotTerminating"
    yield "BestEffort" if _best_effort(resources) else "NotBestEffort"
    if _reaches_out(spec.get("affinity") or {}):
        yield "CrossNamespacePodAffinity"


def _best_effort(resources: PodResources) -> bool:
    holders = [resources.own, *(amounts for _, amounts in resources.containers)]
    return not any(
        amount.value for one in holders for part in one for name, amount in part.items()
        if name in {"cpu", "memory"}
    )  # fmt: skip


def _reaches_out(affinity: Mapping[str, Any]) -> bool:
    for member in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(member) or {}
        terms = [*(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())]
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [one.get("podAffinityTerm") or {} for one in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


# ---- the others


def _of_service(service: Object) -> Quantities:
    spec = service.get("spec") or {}
    ports, kind = spec.get("ports") or (), spec.get("type") or "ClusterIP"
    usage = {"services": ONE}
    if kind == "NodePort":
        usage["services.nodeports"] = quantity.parse(len(ports))
    if kind == "LoadBalancer":
        usage["services.loadbalancers"] = ONE
        given = spec.get("allocateLoadBalancerNodePorts") is not False
        number = len(ports) if given else sum(1 for port in ports if port.get("nodePort"))
        usage["services.nodeports"] = quantity.parse(number)
    return usage


def _of_claim(claim: Object) -> Quantities:
    usage = {"persistentvolumeclaims": ONE}
    storage = podresources.of_claim(claim).get("storage")
    annotations = claim["metadata"].get("annotations") or {}
    name = annotations.get(_CLASS_ANNOTATION) or (claim.get("spec") or {}).get("storageClassName")
    if name:
        usage[f"{name}{_BY_CLASS}persistentvolumeclaims"] = ONE
    if storage is not None:
        usage["requests.storage"] = storage
        if name:
            usage[f"{name}{_BY_CLASS}requests.storage"] = storage
    return usage


# ---- quotas


def scopes_match(spec: Mapping[str, Any], found: Usage) -> bool:
    """Whether all scopes of a quota hold."""
    conditions = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    conditions += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return not conditions or (found.scopes is not None and all(_holds(one, found) for one in conditions))


def _holds(condition: Mapping[str, Any], found: Usage) -> bool:
    scope, operator = condition.get("scopeName"), condition.get("operator")
    if scope != "PriorityClass":
        return scope in (found.scopes or ())
    name, values = found.priority_class, condition.get("values") or ()
    match operator:
        case "In":
            return bool(name) and name in values
        case "NotIn":
            return not name or name not in values
        case "DoesNotExist":
            return not name
    return bool(name)


def missing_requests(hard: Iterable[str], found: Usage) -> str:
    """Which containers leave out what a quota limits: "limits.memory for: a,b; requests.cpu for: a"."""
    missing = ((name, found.unstated.get(name)) for name in sorted(REQUIRED.intersection(hard)))
    return "; ".join(f"{name} for: {','.join(sorted(who))}" for name, who in missing if who)
