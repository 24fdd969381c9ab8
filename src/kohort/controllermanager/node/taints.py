"""Taints that follow from what a node says about itself: no pods for what is not ready, is short, or was cordoned.

Whether a node is heard of at all, virtual nodes say themselves (kohort.sim.nodelife): there is no lease to wait for.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, meta_of, status_of
from kohort.apimachinery import times
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, key_of
from kohort.controllers.reconcile import Event, Reconcile, ReconcileError, Result, one
from kohort.controllers.writes import patch

_PREFIX: Final = "node.kubernetes.io/"
NOT_READY: Final = f"{_PREFIX}not-ready"
UNREACHABLE: Final = f"{_PREFIX}unreachable"
UNSCHEDULABLE: Final = f"{_PREFIX}unschedulable"
# (condition, status) -> the taints that it means
_MEANS: Final = {
    ("Ready", "False"): ((NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")),
    ("Ready", "Unknown"): ((UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")),
    ("MemoryPressure", "True"): ((f"{_PREFIX}memory-pressure", "NoSchedule"),),
    ("DiskPressure", "True"): ((f"{_PREFIX}disk-pressure", "NoSchedule"),),
    ("PIDPressure", "True"): ((f"{_PREFIX}pid-pressure", "NoSchedule"),),
    ("NetworkUnavailable", "True"): ((f"{_PREFIX}network-unavailable", "NoSchedule"),),
}
_OURS: Final = frozenset({pair for pairs in _MEANS.values() for pair in pairs} | {(UNSCHEDULABLE, "NoSchedule")})


def node_lifecycle_controller() -> Controller:
    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        return reconcile(reader.get("Node", key), now)

    return Controller(
        name="node-lifecycle", watches=(Watch("v1", "Node", _of_node),), reconcile=reconcile_key, conditions=False
    )


def _of_node(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """Not each sign of life: only where something else is said."""
    if new is not None and (old is None or _said(old) != _said(new)):
        yield Enqueue(key_of(new))


def _said(node: Object) -> tuple[object, object]:
    return wanted(node), (node.get("spec") or {}).get("taints")


def wanted(node: Object) -> frozenset[tuple[str, str]]:
    found = {
        pair
        for one in status_of(node).get("conditions") or ()
        for pair in _MEANS.get((str(one.get("type")), str(one.get("status"))), ())
    }
    if (node.get("spec") or {}).get("unschedulable"):
        found.add((UNSCHEDULABLE, "NoSchedule"))
    return frozenset(found)


def reconcile(node: Object | None, now: datetime) -> Reconcile:
    if node is None or is_deleting(node):
        return Result()
    had = list((node.get("spec") or {}).get("taints") or ())
    known, needed = {_pair(one) for one in had}, wanted(node)
    if known & _OURS == needed:
        return Result()
    kept = [one for one in had if _pair(one) not in _OURS or _pair(one) in needed]
    added = [_taint(*pair, now) for pair in sorted(needed - known)]
    body = {"metadata": {"resourceVersion": meta_of(node).get("resourceVersion")}, "spec": {"taints": kept + added}}
    write = patch(node, body)
    lost = any(taint["effect"] == "NoExecute" for taint in added)
    note = f"Node {meta_of(node)['name']} status is now: NodeNotReady"
    answer = yield from one(write, *([Event(node, "Normal", "NodeNotReady", note)] if lost else []))
    if answer.refusal is not None and not (answer.refusal.not_found or answer.refusal.conflict):
        raise ReconcileError(f"{write}: {answer.refusal.message}")
    return Result(requeue_after=0.1 if answer.refusal is not None and answer.refusal.conflict else None)


def _pair(taint: dict[str, Any]) -> tuple[str, str]:
    return str(taint.get("key")), str(taint.get("effect"))


def _taint(key: str, effect: str, now: datetime) -> dict[str, Any]:
    found = {"key": key, "effect": effect}
    return {**found, "timeAdded": times.seconds(now)} if effect == "NoExecute" else found
