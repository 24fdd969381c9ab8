"""Pods leave nodes with taints of effect NoExecute that they do not tolerate, or do not tolerate for longer.

One reconcile is of one node: its pods are looked at only while it has such a taint. That a node is lost is seen to by
virtual nodes themselves (kohort.sim.nodelife), since nobody there would say that a pod has stopped.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, meta_of, name_of, namespace_of, status_of
from kohort.apimachinery import times
from kohort.apimachinery.labels import tolerates
from kohort.controllermanager.node.taints import UNREACHABLE
from kohort.controllermanager.pods import is_terminal, node_of
from kohort.controllers.conditions import set_condition
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch
from kohort.controllers.reconcile import Event, Reconcile, ReconcileError, Result, Step
from kohort.controllers.writes import delete, patch

_AT_ONCE: Final = 100  # pods in one reconcile; the next goes on
_WORDS: Final = "Taint manager: deleting due to NoExecute taint"


def taint_eviction_controller() -> Controller:
    seen: dict[str, dict[tuple[str, str], str]] = {}  # node -> taints, and when they were first seen

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        node = reader.get("Node", key)
        taints = _dated(key.name, no_execute(node) if node is not None else [], seen, now)
        return reconcile(taints, reader.indexed("Pod", "node", key.name) if taints else (), now)

    tainted: set[str] = set()  # nodes: whoever comes to another has nothing to fear

    def of_node(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        if new is not None and no_execute(new):
            tainted.add(name_of(new))
        elif new is not None or old is not None:
            tainted.discard(name_of(new or old or {}))
        return _of_node(old, new)

    def of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        return _of_pod(old, new) if new is not None and node_of(new) in tainted else ()

    watches = (Watch("v1", "Node", of_node), Watch("v1", "Pod", of_pod, {"node": _node}))
    return Controller(name="taint-eviction", watches=watches, reconcile=reconcile_key, conditions=False)


def no_execute(node: Object) -> list[dict[str, Any]]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return [one for one in taints if one.get("effect") == "NoExecute" and one.get("key") != UNREACHABLE]


def _dated(
    node: str, taints: list[dict[str, Any]], seen: dict[str, dict[tuple[str, str], str]], now: datetime
) -> list[dict[str, Any]]:
    """People's taints do not say since when they are there: the time of a toleration then runs from the first look."""
    known = seen.pop(node, {})
    found = []
    for one in taints:
        pair = (str(one.get("key")), str(one.get("value") or ""))
        since = one.get("timeAdded") or known.get(pair) or times.micros(now)
        seen.setdefault(node, {})[pair] = since
        found.append({**one, "timeAdded": since})
    return found


def _of_node(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    before = no_execute(old) if old is not None else []
    found = new or old
    if found is not None and before != (no_execute(new) if new is not None else []):
        yield Enqueue(Key("", name_of(found)))


def _of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """One that has just come to its node, or tolerates something else now."""
    if new is None or not node_of(new):
        return
    if old is None or node_of(old) != node_of(new) or _tolerations(old) != _tolerations(new):
        yield Enqueue(Key("", node_of(new)))


def _node(pod: Object) -> Iterable[Hashable]:
    return (node_of(pod),) if node_of(pod) else ()


def _tolerations(pod: Object) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = (pod.get("spec") or {}).get("tolerations") or ()
    return found


def reconcile(taints: Sequence[Mapping[str, Any]], pods: Iterable[Object], now: datetime) -> Reconcile:
    going: list[Object] = []
    ends: list[datetime] = []
    for pod in pods:
        if is_deleting(pod) or is_terminal(pod):
            continue
        end = tolerated_until(pod, taints, now)
        if end is not None and end <= now:
            going.append(pod)
        elif end is not None:
            ends.append(end)
    for pod in going[:_AT_ONCE]:
        yield from _evict(pod, now)
    if len(going) > _AT_ONCE:
        return Result(requeue_after=0.0)
    return Result(requeue_after=(min(ends) - now).total_seconds() if ends else None)


def tolerated_until(pod: Object, taints: Sequence[Mapping[str, Any]], now: datetime) -> datetime | None:
    """When it has to go, which may be past; None: it may stay. The shortest of the times that it tolerates counts."""
    ends = []
    for taint in taints:
        used = [one for one in _tolerations(pod) if tolerates([one], taint)]
        if not used:
            return now
        waits = [float(one["tolerationSeconds"]) for one in used if one.get("tolerationSeconds") is not None]
        if waits:
            since = times.parse(taint.get("timeAdded")) or now
            ends.append(since + timedelta(seconds=max(0.0, min(waits))))
    return min(ends, default=None)


def _evict(pod: Object, now: datetime) -> Any:
    """Said first, then done: failure policies of Jobs ask why a pod went."""
    status = {"conditions": list(status_of(pod).get("conditions") or ())}
    set_condition(status, now, "DisruptionTarget", True, "DeletionByTaintManager", _WORDS)
    guard = {"uid": meta_of(pod).get("uid"), "resourceVersion": meta_of(pod).get("resourceVersion")}
    note = f"Marking for deletion Pod {namespace_of(pod)}/{name_of(pod)}"
    told = patch(pod, {"metadata": guard, "status": status}, "status")
    (answer,) = yield Step((told,), [Event(pod, "Normal", "TaintManagerEviction", note)])
    if answer.refusal is None:
        (answer,) = yield Step((delete(pod),))
    if answer.refusal is not None and not answer.refusal.not_found:
        raise ReconcileError(f"eviction of {namespace_of(pod)}/{name_of(pod)}: {answer.refusal.message}")
