"""What becomes of the pods of a DaemonSet on each node: plain functions of what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, meta_of, name_of
from kohort.apimachinery.intstr import scaled
from kohort.controllermanager import history
from kohort.controllermanager import pods as pods_
from kohort.controllermanager.daemonset.nodes import Fit

_FIRST: Final = 1.0
_MOST: Final = 900.0


@dataclass(slots=True)
class FailureBackoff:
    """Of one DaemonSet, by node. Losing it makes a retry come sooner, nothing else."""

    _known: dict[str, tuple[float, datetime]] = field(default_factory=dict)

    def wait(self, node: str, now: datetime) -> float:
        """Seconds until a failed pod may be replaced; 0: now, and that counts."""
        delay, since = self._known.get(node, (0.0, now))
        passed = (now - since).total_seconds()
        if passed < delay:
            return delay - passed
        grown = _FIRST if passed > 2 * _MOST or not delay else min(_MOST, delay * 2)
        self._known[node] = (grown, now)
        return 0.0


OnNodes = Mapping[str, Sequence[Object]]  # pods by the node that they are for


@dataclass(slots=True)
class Plan:
    """Nodes that get a pod, pods that go, which of them have ended, and when to look again at those that failed."""

    create: list[str] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    ended: list[Object] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


@dataclass(frozen=True, slots=True)
class Rules:
    """`most_surge`, `most_unavailable`: as numbers of nodes."""

    hashed: str
    least: int
    most_surge: int
    most_unavailable: int
    now: datetime

    def is_new(self, pod: Object) -> bool:
        return label(pod, history.HASH) == self.hashed

    def is_available(self, pod: Object) -> bool:
        return pods_.is_available(pod, self.least, self.now)


def rules(ds: Object, hashed: str, desired: int, now: datetime) -> Rules:
    given: dict[str, Any] = (ds["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    surge = scaled(given.get("maxSurge", 0), desired, up=True)
    unavailable = scaled(given.get("maxUnavailable", 1), desired, up=True)
    least = int(ds["spec"].get("minReadySeconds") or 0)
    return Rules(hashed, least, surge, unavailable if surge or unavailable else 1, now)


def is_rolling(ds: Object) -> bool:
    return str((ds["spec"].get("updateStrategy") or {}).get("type") or "RollingUpdate") == "RollingUpdate"


def by_age(pods: Sequence[Object]) -> list[Object]:
    """Those that have a node first, then the oldest."""
    return sorted(
        pods, key=lambda pod: (not pods_.node_of(pod), str(meta_of(pod).get("creationTimestamp") or ""), name_of(pod))
    )


def needed(fits: Mapping[str, Fit], on_nodes: OnNodes, rule: Rules, backoff: FailureBackoff) -> Plan:
    """One pod on each node that is to have one; what has ended, is too much or out of place goes."""
    plan = Plan()
    for node, fit in fits.items():
        there = on_nodes.get(node, ())
        if fit.run and not there:
            plan.create.append(node)
        elif fit.stay:
            staying = [pod for pod in there if not is_deleting(pod)]
            _remove_ended(plan, node, [pod for pod in staying if pods_.is_terminal(pod)], rule, backoff)
            _keep_one(plan, [pod for pod in staying if not pods_.is_terminal(pod)], rule)
        else:
            plan.delete += [pod for pod in there if not is_deleting(pod)]
    for node, pods in on_nodes.items():
        if node not in fits:  # the pods that have a node there are the pod collector's
            plan.delete += [pod for pod in pods if not pods_.node_of(pod) and not is_deleting(pod)]
    return plan


def _remove_ended(plan: Plan, node: str, pods: Sequence[Object], rule: Rules, backoff: FailureBackoff) -> None:
    for pod in pods:
        wait = backoff.wait(node, rule.now) if pods_.phase(pod) == "Failed" else 0.0
        if wait:
            plan.waits.append(wait)
        else:
            plan.ended.append(pod)
            plan.delete.append(pod)


def _keep_one(plan: Plan, pods: Sequence[Object], rule: Rules) -> None:
    running = by_age(pods)
    if len(running) <= 1:
        return
    if not rule.most_surge:
        plan.delete += running[1:]
        return
    new = [pod for pod in running if rule.is_new(pod)]
    old = [pod for pod in running if not rule.is_new(pod)]
    plan.delete += [*new[1:], *old[1:]]
    if new and old and (not pods_.is_ready(old[0]) or rule.is_available(new[0])):
        plan.delete.append(old[0])


def update(on_nodes: OnNodes, rule: Rules) -> Plan:
    """The next part of a rolling update. Nodes with more than one pod of a kind are left to `needed`."""
    return _surge(on_nodes, rule) if rule.most_surge else _replace(on_nodes, rule)


def _pair(pods: Sequence[Object], rule: Rules) -> tuple[list[Object], list[Object]]:
    staying = [pod for pod in pods if not is_deleting(pod)]
    return [pod for pod in staying if rule.is_new(pod)], [pod for pod in staying if not rule.is_new(pod)]


def _replace(on_nodes: OnNodes, rule: Rules) -> Plan:
    plan, candidates, unavailable = Plan(), [], 0
    for pods in on_nodes.values():
        new, old = _pair(pods, rule)
        if len(new) > 1 or len(old) > 1 or not (new or old):
            unavailable += 1
        elif new:
            unavailable += not rule.is_available(new[0])
        elif not rule.is_available(old[0]):
            plan.delete += old  # it helps nobody: no need to wait
        else:
            candidates += old
    plan.delete += candidates[: max(0, rule.most_unavailable - unavailable)]
    return plan


def _surge(on_nodes: OnNodes, rule: Rules) -> Plan:
    plan, candidates, surging = Plan(), [], 0
    for node, pods in on_nodes.items():
        new, old = _pair(pods, rule)
        if len(new) > 1 or len(old) > 1:
            surging += 1
        elif old and not new:
            if rule.is_available(old[0]):
                candidates.append(node)
            else:
                plan.create.append(node)
        elif old and rule.is_available(new[0]):
            plan.delete += old
        elif old:
            surging += 1
    plan.create += candidates[: max(0, rule.most_surge - surging)]
    return plan


def counts(fits: Mapping[str, Fit], on_nodes: OnNodes, rule: Rules) -> dict[str, int]:
    """Of the status; the oldest pod speaks for its node."""
    found = dict.fromkeys(
        (
            "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
            "updatedNumberScheduled", "numberAvailable",
        ), 0
    )  # fmt: skip
    for node, fit in fits.items():
        there = by_age(on_nodes.get(node, ()))
        if not fit.run:
            found["numberMisscheduled"] += bool(there)
            continue
        found["desiredNumberScheduled"] += 1
        if there:
            found["currentNumberScheduled"] += 1
            found["numberReady"] += pods_.is_ready(there[0])
            found["numberAvailable"] += rule.is_available(there[0])
            found["updatedNumberScheduled"] += rule.is_new(there[0])
    found["numberUnavailable"] = found["desiredNumberScheduled"] - found["numberAvailable"]
    return found
