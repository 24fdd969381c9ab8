"""The ReplicaSet and the ReplicationController controller as the runtime sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import controller_of, controller_uid, uid_of
from kohort.controllermanager.claims import loose, owner_key
from kohort.controllermanager.podcontrol import BASE_DELAY, BATCH, nothing
from kohort.controllermanager.replicaset.reconcile import View, reconcile
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, enqueue_itself, key_of
from kohort.controllers.reconcile import Reconcile
from kohort.controllers.reverse_index import Adopters

Selector = Callable[[Object], dict[str, Any] | None]


def replicaset_controller() -> Controller:
    return _controller("replicaset", "apps/v1", "ReplicaSet", _label_selector, terminating=True)


def replication_controller() -> Controller:
    return _controller("replicationcontroller", "v1", "ReplicationController", _map_selector, terminating=False)


def _label_selector(owner: Object) -> dict[str, Any] | None:
    found: dict[str, Any] | None = (owner.get("spec") or {}).get("selector")
    return found


def _map_selector(owner: Object) -> dict[str, Any] | None:
    found = (owner.get("spec") or {}).get("selector")
    return {"matchLabels": found} if found else None


def _controller(name: str, api_version: str, kind: str, selector: Selector, *, terminating: bool) -> Controller:
    group = api_version.rpartition("/")[0]
    adopters = Adopters(selector)

    def keys(obj: Object) -> Iterable[Key]:
        return owner_key(obj, kind, group)

    def of_owner(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        adopters.see(old, new)
        return enqueue_itself(old, new)

    def of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        found = {key for pod in (old, new) if pod is not None for key in keys(pod)}
        if new is not None and controller_of(new) is None:
            found.update(adopters.of(new))
        return [Enqueue(key, BATCH) for key in sorted(found)]

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        owner = reader.get(kind, key)
        if owner is None:
            return nothing()
        pods = [*reader.indexed("Pod", "owner", key), *reader.indexed("Pod", "loose", key.namespace)]
        own = [pod for pod in pods if controller_uid(pod) in ("", uid_of(owner))]
        related = _related(kind, owner, reader)
        return reconcile(View(owner, selector(owner), own, related, now, terminating))

    watches = (
        Watch(api_version, kind, of_owner, {"siblings": _parent}),
        Watch("v1", "Pod", of_pod, {"owner": keys, "loose": loose}, controllers=(kind, "")),
    )
    return Controller(name=name, watches=watches, reconcile=reconcile_key, base_delay=BASE_DELAY)


def _parent(obj: Object) -> Iterable[str]:
    uid = controller_uid(obj)
    if uid:
        yield uid


def _related(kind: str, owner: Object, reader: Reader) -> list[Object]:
    """Pods of all that have the same owner as this one; its own, if nobody owns it."""
    parent = controller_uid(owner)
    siblings = reader.indexed(kind, "siblings", parent) if parent else [owner]
    return [pod for one in siblings for pod in reader.indexed("Pod", "owner", key_of(one))]
