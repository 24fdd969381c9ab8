"""The garbage collector: what has lost its owners goes, what waits for its dependents waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.server import objects
from kohort.server.collect.graph import Do, Graph, Key, Place, Step, Thing
from kohort.server.collect.heads import meta_of
from kohort.server.collect.job import Job
from kohort.server.collect.writing import change, delete
from kohort.server.store import Change

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.kube.clock import Clock
    from kohort.server.api import Api
    from kohort.server.resources import Resource
    from kohort.server.store import Event, Item

_GONE: Final = (200, 202, 404)
_CHANGED: Final = 409


class GarbageCollector(Job[Key]):
    name = "garbage collector"

    def __init__(self, api: Api, clock: Clock) -> None:
        super().__init__(api, clock)
        self.graph = Graph(self._place)

    def _place(self, group: str, kind: str) -> Place | None:
        found = self.api.resources.of_kind(group, kind)
        return Place(found.table, found.namespaced) if found is not None else None

    def see(self, table: str, item: Item, event: Event | None) -> None:
        key = (table, item.namespace, item.name)
        if event is not None and event.change is Change.DELETE:
            work = self.graph.drop(key)
        else:
            work = self.graph.put(Thing.of(key, meta_of(item)))
        for one in work:
            self.look_at(one)

    async def work(self, key: Key) -> bool:
        step = self.graph.decide(key)
        resource = self._resource(key[0])
        if step is None or resource is None:
            return True
        match step.do:
            case Do.DELETE:
                return await self._delete(resource, step)
            case Do.LOSE_OWNERS:
                await self._edit(step.thing, lambda one: _without_owners(one, step.owners))
            case Do.RELEASE:
                await self._edit(step.thing, lambda one: _without_finalizer(one, step.finalizer))
            case Do.ORPHAN:
                for one in step.dependents:
                    await self._edit(one, lambda found: _without_owners(found, (step.thing.uid,)))
                await self._edit(step.thing, lambda one: _without_finalizer(one, step.finalizer))
            case Do.UNBLOCK:
                await self._edit(step.thing, _without_blocks)
                return await self._delete(resource, step)
        return True

    def _resource(self, table: str) -> Resource | None:
        return self.api.resources.stored().get(table)

    async def _delete(self, resource: Resource, step: Step) -> bool:
        """Only if it is still what the decision was about."""
        _, namespace, name = step.thing.key
        head = self.core.head(resource, namespace, name)
        if head is None:
            return True
        version = objects.load(resource, head)["metadata"].get("resourceVersion", "")
        code = await delete(
            self.api, resource, namespace, name, uid=step.thing.uid, version=version, propagation=step.policy
        )
        return code in _GONE

    async def _edit(self, thing: Thing, edit: _Edit) -> None:
        table, namespace, name = thing.key
        resource = self._resource(table)
        if resource is not None:
            same = thing.uid
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
    meta = obj["metadata"]
    left = [one for one in meta.get("ownerReferences") or () if one.get("uid") not in uids]
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
