"""How many pods a budget expects, how many are healthy, and so how many may be evicted: one reconcile of one budget.

A budget in numbers counts the pods it selects. One in percent, or one of maxUnavailable, asks how many pods there
should be: that is the scale of what controls them, whatever kind that is. Where nobody can say, nothing may be
evicted, and the condition says why.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import controller_of, is_deleting, meta_of, name_of, namespace_of, status_of, uid_of
from kohort.apimachinery import times
from kohort.apimachinery.intstr import scaled
from kohort.controllermanager.pods import is_ready
from kohort.controllers.conditions import condition, set_condition
from kohort.controllers.reconcile import Answer, Event, Reconcile, ReconcileError, Result, Step, Write, emit, one
from kohort.controllers.writes import update

ALLOWED: Final = "DisruptionAllowed"
DELETION_TIMEOUT: Final = 120.0  # seconds in which a pod whose eviction was granted has to be seen going
_AGAIN: Final = 0.1  # after somebody else has changed the budget
_UNMANAGED: Final = (
    "Pods selected by this PodDisruptionBudget were found to be unmanaged: {names}. As a result, the status of the "
    'PodDisruptionBudget cannot be calculated correctly. Set ".spec.minAvailable" to an integer value to count them.'
)
_MOST_NAMES: Final = 5

# The object that a kind, namespace and name mean, where it is watched; None where it is not there.
Getter = Callable[[str, str, str], Object | None]
Asked = Generator[Step, Sequence[Answer], Any]


class ScaleError(Exception):
    """Nobody can say how many pods there should be."""


@dataclass(frozen=True, slots=True)
class Expected:
    """`pods`: how many there should be; `healthy`: how many of them must be; `unmanaged`: pods that nobody controls."""

    pods: int
    healthy: int
    unmanaged: tuple[str, ...] = ()


def reconcile(budget: Object | None, pods: Sequence[Object], get: Getter, now: datetime) -> Reconcile:
    if budget is None or is_deleting(budget):
        return Result()
    if not pods:
        yield from emit(Event(budget, "Normal", "NoPods", "No matching pods found"))
    try:
        expected: Expected = yield from _expected(budget, pods, get)
    except ScaleError as error:
        note = f"Failed to calculate the number of expected pods: {error}"
        yield from emit(Event(budget, "Warning", "CalculateExpectedPodCountFailed", note))
        return (yield from _fail(budget, str(error), now))
    if expected.unmanaged:
        names = ", ".join(expected.unmanaged[:_MOST_NAMES])
        yield from emit(Event(budget, "Warning", "UnmanagedPods", _UNMANAGED.format(names=names)))
    disrupted, recheck, late = _disrupted(budget, pods, now)
    for pod in late:
        note = f"Pod was expected by PDB {namespace_of(budget)}/{name_of(budget)} to be deleted but it wasn't"
        yield from emit(Event(pod, "Warning", "NotDeleted", note))
    healthy = sum(1 for pod in pods if not is_deleting(pod) and name_of(pod) not in disrupted and is_ready(pod))
    status = _status(budget, expected, healthy, disrupted, now)
    again = yield from _write(budget, status)
    return Result(requeue_after=again or recheck)


# ---- how many there should be


def _expected(budget: Object, pods: Sequence[Object], get: Getter) -> Asked:
    spec = budget.get("spec") or {}
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if most is not None:
        total, unmanaged = yield from _scale(pods, get)
        return Expected(total, max(0, total - scaled(most, total, up=True)), unmanaged)
    if isinstance(least, str):
        total, unmanaged = yield from _scale(pods, get)
        return Expected(total, scaled(least, total, up=True), unmanaged)
    return Expected(len(pods), int(least or 0)) if least is not None else Expected(0, 0)


def _scale(pods: Sequence[Object], get: Getter) -> Asked:
    """The scales of all that control the pods, each counted once; and pods that nobody controls."""
    known: dict[str, int] = {}
    asked: set[str] = set()  # owners: many pods have the same
    unmanaged = []
    for pod in pods:
        owner = controller_of(pod)
        if owner is None:
            unmanaged.append(name_of(pod))
            continue
        if str(owner.get("uid")) in asked:
            continue
        found = yield from _scale_of(owner, pod, get)
        if found is None:
            raise ScaleError(f'found no controllers for pod "{name_of(pod)}"')
        uid, count = found
        asked.add(str(owner.get("uid")))
        known[uid] = count
    return sum(known.values()), tuple(unmanaged)


def _scale_of(owner: Mapping[str, Any], pod: Object, get: Getter) -> Asked:
    """The uid and the wanted replicas of what controls a pod; of a Deployment, where there is one behind it."""
    namespace = namespace_of(pod)
    if _is_workload(owner):
        found = get(str(owner.get("kind")), namespace, str(owner.get("name")))
        if found is None or uid_of(found) != owner.get("uid"):
            return None
        above = controller_of(found)
        if owner.get("kind") == "ReplicaSet" and above is not None and above.get("kind") == "Deployment":
            found = get("Deployment", namespace, str(above.get("name")))
            if found is None or uid_of(found) != above.get("uid"):
                return None
        return uid_of(found), _replicas(found)
    return (yield from _ask(owner, namespace))


def _is_workload(owner: Mapping[str, Any]) -> bool:
    group = str(owner.get("apiVersion") or "").rpartition("/")[0]
    return (group, owner.get("kind")) in {
        ("", "ReplicationController"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
    }


def _replicas(obj: Mapping[str, Any]) -> int:
    found = (obj.get("spec") or {}).get("replicas")
    return 1 if found is None else int(found)


def _ask(owner: Mapping[str, Any], namespace: str) -> Asked:
    """Of any other kind its scale is asked for."""
    kind, name = str(owner.get("kind")), str(owner.get("name"))
    get = Write(
        verb="get", api_version=str(owner.get("apiVersion")), kind=kind, namespace=namespace, name=name,
        subresource="scale",
    )  # fmt: skip
    answer = yield from one(get)
    if answer.ok and answer.object is not None:
        if uid_of(answer.object) != owner.get("uid"):
            return None
        return str(owner.get("uid")), int((answer.object.get("spec") or {}).get("replicas") or 0)
    refusal = answer.refusal
    if refusal is None or not refusal.not_found:
        raise ReconcileError(f"{get}: {refusal.message if refusal is not None else 'no answer'}")
    there = yield from one(Write(verb="get", api_version=get.api_version, kind=kind, namespace=namespace, name=name))
    if there.ok and uid_of(there.object or {}) == owner.get("uid"):
        group = get.api_version.rpartition("/")[0]
        raise ScaleError(f"{kind.lower()}s{f'.{group}' if group else ''} does not implement the scale subresource")
    return None


# ---- evictions that were granted


def _disrupted(
    budget: Object, pods: Sequence[Object], now: datetime
) -> tuple[dict[str, str], float | None, list[Object]]:
    """Pods whose eviction was granted and that are not seen going yet; when the first of them is late; who is late."""
    granted = status_of(budget).get("disruptedPods") or {}
    waiting: dict[str, str] = {}
    late: list[Object] = []
    ends: list[datetime] = []
    for pod in pods if granted else ():
        moment = times.parse(granted.get(name_of(pod)))
        if moment is None or is_deleting(pod):
            continue
        end = moment + timedelta(seconds=DELETION_TIMEOUT)
        if end < now:
            late.append(pod)
        else:
            ends.append(end)
            waiting[name_of(pod)] = granted[name_of(pod)]
    recheck = max(0.0, (min(ends) - now).total_seconds()) + 1.0 if ends else None
    return waiting, recheck, late


# ---- the status


def _status(
    budget: Object, expected: Expected, healthy: int, disrupted: dict[str, str], now: datetime
) -> dict[str, Any]:
    # Without expected pods nothing is allowed, so that a first pod is safe until it has been counted.
    allowed = max(0, healthy - expected.healthy) if expected.pods > 0 else 0
    generation = meta_of(budget).get("generation")
    status: dict[str, Any] = {
        "currentHealthy": healthy,
        "desiredHealthy": expected.healthy,
        "disruptionsAllowed": allowed,
        "expectedPods": expected.pods,
        "observedGeneration": generation,
        "conditions": list(status_of(budget).get("conditions") or ()),
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    reason = "SufficientPods" if allowed else "InsufficientPods"
    set_condition(status, now, ALLOWED, bool(allowed), reason, "", observedGeneration=generation)
    return status


def _fail(budget: Object, why: str, now: datetime) -> Reconcile:
    """Nothing may be evicted while it is not known how many there should be."""
    status = copied(status_of(budget))
    status["disruptionsAllowed"] = 0
    more = {"observedGeneration": status["observedGeneration"]} if status.get("observedGeneration") else {}
    known = condition(status, ALLOWED)
    if known is None or known.get("reason") != "SyncFailed" or known.get("message") != why:
        set_condition(status, now, ALLOWED, False, "SyncFailed", why, **more)
    yield from _write(budget, status)
    return Result(requeue_after=DELETION_TIMEOUT)  # nothing tells when a kind gets a scale


def _write(budget: Object, status: dict[str, Any]) -> Generator[Step, Sequence[Answer], float | None]:
    """The whole status, and only of the version that was looked at: an eviction may be granted at the same time."""
    if status == status_of(budget):
        return None
    write = update({**budget, "status": status}, "status")
    answer = yield from one(write)
    if answer.refusal is None or answer.refusal.not_found:
        return None
    if answer.refusal.conflict:
        return _AGAIN
    raise ReconcileError(f"{write}: {answer.refusal.message}")
