"""The LeaderWorkerSet controller as the runtime sees it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, controller_of, controller_uid, is_deleting, label, name_of
from kohort.controllers.controller import (
    Controller,
    Enqueue,
    Key,
    Reader,
    Watch,
    enqueue_itself,
    enqueue_nothing,
)
from kohort.controllers.reconcile import Reconcile
from kohort.controllers.reverse_index import ReverseIndex
from kohort.gang.compile import CompileContext
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import is_delegated
from kohort.kinds.leaderworkerset.control import volcano
from kohort.kinds.leaderworkerset.control.reading import topology, worker_index
from kohort.kinds.leaderworkerset.control.reconcile import LeaderWorkerSetView, reconcile

BATCH: Final = 0.05  # seconds in which changes of pods are gathered
_GROUPS: Final = ("Workload", "PodGroup", "CompositePodGroup")
_LONGEST_CHAIN: Final = 10


def leaderworkerset_controller(ctx: CompileContext, *, grouping: bool = True) -> Controller:
    """`grouping`: whether the server has groups. Without, sets that ask for them wait, and say so."""
    delegated, led = ReverseIndex(_delegated), ReverseIndex(_node_of_leader)

    def of_set(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        delegated.update(old, new)
        return enqueue_itself(old, new)

    def of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        led.update(old, new)
        return _of_pod(old, new)

    def of_node(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        """Where a leader is decides where its workers go: the domain may have become known."""
        if new is None or (old is not None and _labels(old) == _labels(new)):
            return ()
        leaders = [item.key for item in led.enqueue(name_of(new))]
        return [Enqueue(Key(leader.namespace, leader.name.rpartition("-")[0])) for leader in leaders]

    def of_group(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        """Sets whose groups belong into somebody else's tree may have waited for it."""
        found = [*_of_labelled(old, new)]
        return [*found, *delegated.enqueue(_of_space(new))] if old is None and new is not None else found

    watches = [
        Watch(constants.API_VERSION, constants.KIND, of_set),
        Watch("v1", "Pod", of_pod, {"lws": _named}, controllers=(constants.KIND,), label=constants.NAME),
        Watch("v1", "Service", _of_labelled, {"lws": _named}),
        Watch("v1", "PersistentVolumeClaim", enqueue_nothing, {"lws": _named}),
        Watch("v1", "Node", of_node),
        Watch("apps/v1", "ControllerRevision", _of_labelled, {"lws": _named}),
    ]
    if grouping:
        version, composite = ctx.release.api_version, ctx.release.composite_api_version
        kinds = [(version, "Workload")]
        if ctx.release.has_pod_groups:
            kinds.append((version, "PodGroup"))
        watches += [Watch(*kind, of_group, {"lws": _owned, "space": _space}) for kind in kinds]
        if composite:
            branch = Watch(composite, "CompositePodGroup", of_group, {"lws": _owned}, optional=True)
            watches.append(branch)

    by_volcano = ctx.on(constants.VOLCANO)
    if by_volcano:
        foreign = Watch(
            volcano.API_VERSION, "PodGroup", _of_labelled, {"lws": _named}, optional=True, alias=volcano.ALIAS
        )
        watches.append(foreign)

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        view = view_of(key, reader, now, grouping=grouping)
        return reconcile(replace(view, volcano=_volcano(key, reader)) if by_volcano else view, ctx)

    return Controller(name="leaderworkerset", watches=tuple(watches), reconcile=reconcile_key, workers=10)


def view_of(key: Key, reader: Reader, now: datetime, *, grouping: bool = True) -> LeaderWorkerSetView:
    lws = reader.get(constants.KIND, key)
    if lws is None:
        return LeaderWorkerSetView(None, now)
    pods = reader.indexed("Pod", "lws", key)
    services = {name_of(one): one for one in reader.indexed("Service", "lws", key)}
    shared = reader.get("Service", key)
    if shared is not None:
        services[key.name] = shared
    return LeaderWorkerSetView(
        lws,
        now,
        pods=pods,
        revisions=reader.indexed("ControllerRevision", "lws", key),
        services=services,
        claims={name_of(one): one for one in reader.indexed("PersistentVolumeClaim", "lws", key)},
        nodes=_nodes(lws, pods, reader),
        groups=[group for kind in _GROUPS for group in reader.indexed(kind, "lws", key)] if grouping else (),
        others=_parents(lws, key, reader) if grouping and is_delegated(lws) else (),
        grouping=grouping,
    )


def _volcano(key: Key, reader: Reader) -> dict[str, str]:
    return {name_of(one): controller_uid(one) for one in reader.indexed(volcano.ALIAS, "lws", key)}


def _nodes(lws: Object, pods: Iterable[Object], reader: Reader) -> dict[str, Object]:
    """Only where the place of a leader decides the place of its workers."""
    if not topology(lws):
        return {}
    names = {str((pod.get("spec") or {}).get("nodeName") or "") for pod in pods if worker_index(pod) == 0}
    found = {name: reader.get("Node", Key("", name)) for name in names if name}
    return {name: node for name, node in found.items() if node is not None}


def _parents(lws: Object, key: Key, reader: Reader) -> list[Object]:
    """Workloads of the namespace, the branch that the set's groups go below, owners up the chain as far as known."""
    found = reader.indexed("Workload", "space", key.namespace)
    for word in (constants.PARENT_GROUP, constants.PARENT_GROUP_TOO):
        branch = reader.get("CompositePodGroup", Key(key.namespace, annotation(lws, word) or ""))
        found += [branch] if branch is not None else []
    child: Object | None = lws
    for _ in range(_LONGEST_CHAIN):
        above = controller_of(child) if child is not None else None
        if above is None:
            break
        child = reader.get(str(above.get("kind")), Key(key.namespace, str(above.get("name"))))
        found += [child] if child is not None else []
    return found


# ---- event handlers: which keys a change enqueues


def _delegated(lws: Object) -> list[str]:
    return [_of_space(lws)] if is_delegated(lws) else []


def _node_of_leader(pod: Object) -> list[str]:
    if not label(pod, constants.NAME) or worker_index(pod) != 0 or not topology(pod):
        return []
    node = str((pod.get("spec") or {}).get("nodeName") or "")
    return [node] if node else []


def _labels(node: Object) -> Object:
    found: Object = node["metadata"].get("labels") or {}
    return found


def _of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """A pod that begins to go may take its group along, and is soon not to be seen any more."""
    begins = old is not None and new is not None and is_deleting(new) and not is_deleting(old)
    return (Enqueue(key, 0.0 if begins else BATCH) for key in _keys(old, new))


def _of_labelled(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    return (Enqueue(key) for key in _keys(old, new))


def _keys(*objects: Object | None) -> set[Key]:
    return {key for obj in objects if obj is not None for key in (*_named(obj), *_owned(obj))}


def _named(obj: Object) -> list[Key]:
    name = label(obj, constants.NAME)
    return [Key(_of_space(obj), name)] if name else []


def _owned(obj: Object) -> list[Key]:
    owner = controller_of(obj)
    if owner is None or owner.get("kind") != constants.KIND:
        return []
    return [Key(_of_space(obj), str(owner.get("name")))]


def _of_space(obj: Object) -> str:
    return str(obj["metadata"].get("namespace") or "")


def _space(obj: Object) -> Iterable[Hashable]:
    yield _of_space(obj)
