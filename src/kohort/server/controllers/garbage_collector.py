"""The garbage collector: what has lost its owners goes, what waits for its dependents waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.server.controllers.controller import Controller
from kohort.server.controllers.owner_graph import Action, Decision, Key, Node, OwnerGraph, ResourceScope
from kohort.server.controllers.partial_objects import meta_of, pod_of
from kohort.server.controllers.writes import change, delete
from kohort.server.store import Change

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.kube.clock import Clock
    from kohort.server.api import Api
    from kohort.server.resources import Resource
    from kohort.server.store import Event, Item

_GONE: Final = (200, 202, 404)
_CHANGED: Final = 409


class GarbageCollector(Controller[Key]):
    name = "garbage-collector-controller"

    def __init__(self, api: Api, clock: Clock) -> None:
        super().__init__(api, clock)
        self.graph = OwnerGraph(self._place)
        self._places: dict[tuple[str, str], ResourceScope] = {}  # of the kinds that are served
        self._changes = -1  # of what is served, when these were found

    def _place(self, group: str, kind: str) -> ResourceScope | None:
        resources = self.api.resources
        if self._changes != resources.changes:
            self._places, self._changes = {}, resources.changes
        known = self._places.get((group, kind))
        if known is None:
            found = resources.of_kind(group, kind)
            if found is None:
                return None
            known = self._places[group, kind] = ResourceScope(found.table, found.namespaced)
        return known

    def observe(self, table: str, item: Item, event: Event | None) -> None:
        key = (table, item.namespace, item.name)
        if event is not None and event.change is Change.DELETE:
            affected = self.graph.drop(key)
        else:
            meta = pod_of(item).metadata if table == "pods" else meta_of(item)  # others read more of a pod
            if self.graph.is_kept(key, meta):
                return  # the usual change: of a status
            affected = self.graph.put(Node.of(key, meta))
        for one in affected:
            self.enqueue(one)

    async def reconcile(self, key: Key) -> bool:
        decision = self.graph.decide(key)
        resource = self._resource(key[0])
        if decision is None or resource is None:
            return True
        match decision.action:
            case Action.DELETE:
                return await self._delete(resource, decision)
            case Action.LOSE_OWNERS:
                await self._edit(decision.node, lambda one: _without_owners(one, decision.owners))
            case Action.RELEASE:
                await self._edit(decision.node, lambda one: _without_finalizer(one, decision.finalizer))
            case Action.ORPHAN:
                for one in decision.dependents:
                    await self._edit(one, lambda found: _without_owners(found, (decision.node.uid,)))
                await self._edit(decision.node, lambda one: _without_finalizer(one, decision.finalizer))
            case Action.UNBLOCK:
                await self._edit(decision.node, _without_blocks)
                return await self._delete(resource, decision)
        return True

    def _resource(self, table: str) -> Resource | None:
        return self.api.resources.stored().get(table)

    async def _delete(self, resource: Resource, decision: Decision) -> bool:
        """Only if it is still what the decision was about."""
        _, namespace, name = decision.node.key
        head = self.core.head(resource, namespace, name)
        if head is None:
            return True
        version, uid = str(head.revision), decision.node.uid
        code = await delete(self.api, resource, namespace, name, uid=uid, version=version, propagation=decision.policy)
        return code in _GONE

    async def _edit(self, node: Node, edit: _Edit) -> None:
        table, namespace, name = node.key
        resource = self._resource(table)
        if resource is not None:
            same = node.uid
            await change(
                self.core,
                resource,
                namespace,
                name,
                lambda one: edit(one) if one["metadata"].get("uid") == same else None,
            )


if TYPE_CHECKING:
    from collections.abc import Callable

    _Edit = Callable[[Object], Object | None]


def _without_owners(obj: Object, uids: tuple[str, ...]) -> Object:
    meta, lost = obj["metadata"], frozenset(uids)
    left = [one for one in meta.get("ownerReferences") or () if one.get("uid") not in lost]
    if left:
        meta["ownerReferences"] = left
    else:
        meta.pop("ownerReferences", None)
    return obj


def _without_blocks(obj: Object) -> Object:
    for one in obj["metadata"].get("ownerReferences") or ():
        one["blockOwnerDeletion"] = False
    return obj


def _without_finalizer(obj: Object, name: str) -> Object:
    meta = obj["metadata"]
    meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != name]
    return obj
