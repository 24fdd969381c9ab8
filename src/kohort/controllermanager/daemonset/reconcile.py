"""One reconcile of a DaemonSet: its revision, pods on nodes, the next part of an update, the status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, meta_of, name_of, namespace_of, status_of
from kohort.controllermanager import history, podcontrol
from kohort.controllermanager import pods as pods_
from kohort.controllermanager.claims import claim
from kohort.controllermanager.daemonset import nodes, plan
from kohort.controllermanager.daemonset.plan import FailureBackoff, Plan
from kohort.controllermanager.podtemplate import template_hash
from kohort.controllers.reconcile import Event, Part, Reconcile, ReconcileError, Result, emit, must, one
from kohort.controllers.writes import update

AT_ONCE: Final = 250  # pods that one reconcile makes or removes
_REQUIRED: Final = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


@dataclass(frozen=True, slots=True)
class View:
    """`pods`, `revisions`: those that it controls or might adopt."""

    ds: Object
    nodes: Sequence[Object]
    pods: Sequence[Object]
    revisions: Sequence[Object]
    revision_named: Callable[[str], Object | None]
    now: datetime
    backoff: FailureBackoff


def reconcile(view: View) -> Reconcile:
    ds, selector = view.ds, view.ds["spec"].get("selector")
    if is_deleting(ds):
        return Result()
    known = yield from claim(ds, view.revisions, selector)
    current, collisions = yield from _revision(view, known)
    pods: list[Object] = yield from claim(ds, view.pods, selector)
    hashed = label(current, history.HASH)
    demand = nodes.demand(ds)
    fits = {name_of(node): demand.fit(node) for node in view.nodes}
    on_nodes: dict[str, list[Object]] = {}
    for pod in pods:
        if not (pods_.is_terminal(pod) and is_deleting(pod)):
            on_nodes.setdefault(nodes.target(pod), []).append(pod)
    rule = plan.rules(ds, hashed, sum(fit.run for fit in fits.values()), view.now)
    todo = plan.needed(fits, on_nodes, rule, view.backoff)
    waits = todo.waits
    if not todo and plan.is_rolling(ds):
        todo = plan.update({node: some for node, some in on_nodes.items() if node in fits}, rule)
    problem, more = yield from _do(ds, todo, hashed)
    yield from _write_status(ds, plan.counts(fits, on_nodes, rule), collisions)
    yield from _trim(ds, current, known, pods)
    if problem:
        raise ReconcileError(problem)
    soon = pods_.next_available(pods, rule.least, view.now)
    waits += [soon] if soon is not None else []
    return Result(requeue_after=0.0 if more else min(waits, default=None))


# ---- revisions


def _revision(view: View, known: Sequence[Object]) -> Part:
    """-> that of today's template, and how many names were taken."""
    ds, data = view.ds, history.data_of(view.ds)
    collisions = int(status_of(ds).get("collisionCount") or 0)
    same = history.in_order([revision for revision in known if history.equal(data, revision)])
    names = set(map(name_of, same))
    newest = max((history.number(one_) for one_ in known if name_of(one_) not in names), default=0)
    if same:
        kept = same[-1]
        return (yield from history.renumber(kept, max(history.number(kept), newest + 1))), collisions

    def wanted(count: int) -> Object:
        hashed = template_hash(ds["spec"].get("template"), count or None)
        return history.new_revision(ds, data, newest + 1, hashed, history.HASH)

    made, collisions = yield from history.make(view.revision_named, wanted, collisions)
    return made, collisions


def _trim(ds: Object, current: Object, known: Sequence[Object], pods: Sequence[Object]) -> Part:
    live = {label(pod, history.HASH) for pod in pods} | {label(current, history.HASH)}
    others = [revision for revision in known if name_of(revision) != name_of(current)]
    limit = ds["spec"].get("revisionHistoryLimit")
    surplus = max(0, len(others) - (10 if limit is None else int(limit)))
    old = [revision for revision in history.in_order(others) if label(revision, history.HASH) not in live]
    yield from history.trim(old[:surplus], 0)


# ---- pods


def _do(ds: Object, todo: Plan, hashed: str) -> Part:
    """-> what went wrong, and whether there is more to do."""
    yield from emit(*(_ended(ds, pod) for pod in todo.ended))
    wanted = [nodes.daemon(ds, node, hashed) for node in todo.create[:AT_ONCE]]
    made = yield from podcontrol.create_all(ds, wanted)
    gone = yield from podcontrol.delete_all(ds, todo.delete[:AT_ONCE])
    return made.problem or gone.problem, len(todo.create) > AT_ONCE or len(todo.delete) > AT_ONCE


def _ended(ds: Object, pod: Object) -> Event:
    which = f"{namespace_of(pod)}/{name_of(pod)} on node {pods_.node_of(pod)}"
    if pods_.phase(pod) == "Failed":
        note = f"Found failed daemon pod {which}, will try to kill it"
        return Event(ds, "Warning", "FailedDaemonPod", note)
    return Event(ds, "Normal", "SucceededDaemonPod", f"Found succeeded daemon pod {which}, will try to delete it")


# ---- status


def _write_status(ds: Object, counts: dict[str, int], collisions: int) -> Part:
    counts = {**counts, "observedGeneration": int(meta_of(ds).get("generation") or 0)}
    status: dict[str, Any] = {name: value for name, value in counts.items() if value or name in _REQUIRED}
    if collisions:
        status["collisionCount"] = collisions
    kept = status_of(ds).get("conditions")
    if kept:
        status["conditions"] = copied(kept)
    if status != status_of(ds):
        write = update({**ds, "status": status}, "status")
        must(write, (yield from one(write)))
