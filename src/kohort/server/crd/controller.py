"""Definitions at work: names and conditions are written, resources come and go with their definitions.

One task that listens to the store. `start` serves what is stored before it returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kohort.server import codec, storage_codec, timestamps
from kohort.server.controllers.partial_objects import meta_of
from kohort.server.controllers.writes import change, delete
from kohort.server.crd import accepted_names, definition, resources, served
from kohort.server.crd.definition import GROUP, PLURAL, spec_of
from kohort.server.crd.group_names import GroupNames

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.api import Api
    from kohort.server.resources import Resource
    from kohort.server.store.records import Entry, Item

log = logging.getLogger(__name__)
_IN_PROGRESS: Final = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
_DONE: Final = ("False", "InstanceDeletionCompleted", "removed all instances")
_NEVER: Final = ("False", "NeverEstablished", "resource was never established")


class DefinitionController:
    """Takes over the resource of CustomResourceDefinitions, and adds those that they define.

    `own_rules`: definitions that are ours are validated by our rules; else by what they say, as all others.
    """

    def __init__(self, api: Api, *, own_rules: bool = True) -> None:
        self._api, self._store, self._resources = api, api.store, api.resources
        self._own_rules = own_rules
        found = self._resources.of_plural(GROUP, PLURAL)
        if found is None:
            raise ValueError(f"this release does not serve {PLURAL}.{GROUP}")
        self._native = definition.Native.of(self._resources.every())
        self._own = served.definitions(found, self._native)
        self._resources.add(self._own)
        self._served: dict[str, list[Resource]] = {}
        self._shown: dict[str, bytes] = {}  # what they were served from; the definition itself is not kept
        self._names = GroupNames()
        self._ends: dict[str, str] = {}  # tables whose definition waits for them to be empty
        self._waiting: dict[str, None] = {}
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def _table(self) -> str:
        return self._own.table

    async def start(self) -> None:
        self._store.listeners.append(self._listen)
        for item in self._store.table(self._table).items():
            self._names.see(item.name, item)
        for item in self._store.table(self._table).items():
            if not self._own_rules or not self._is_shipped(item):
                await self._try(item.name)
        self._task = asyncio.create_task(self._run(), name="custom resource definitions")

    async def stop(self) -> None:
        if self._listen in self._store.listeners:
            self._store.listeners.remove(self._listen)
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _listen(self, entries: Sequence[Entry]) -> None:
        """A definition changed, or an object of one that is terminating."""
        for entry in entries:
            name = self._ends.get(entry.table)
            if entry.table == self._table:
                name = entry.event.item.name
                self._names.see(name, self._store.table(self._table).get("", name))
            if name is not None:
                self._waiting[name] = None
                self._some.set()

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            while self._waiting:
                name = next(iter(self._waiting))
                del self._waiting[name]
                await self._try(name)

    async def _try(self, name: str) -> None:
        try:
            await self._sync(name)
        except Exception:  # one bad definition must not stop the others
            log.exception("CustomResourceDefinition %s", name)

    def _is_shipped(self, item: Item) -> bool:
        """Whether it is one of ours that is in order; then it is served, without a look at its schemas."""
        found = served.shipped_in_order(item)
        if found is None:
            return False
        crd, ours = found
        self._put(item.name, resources.resources_of(crd, ours))
        self._api.discovery.add(item.name, lambda: resources.openapi({**crd, "spec": ours.whole}))
        return True

    def _crd(self, name: str) -> Object | None:
        item = self._store.table(self._table).get("", name)
        return storage_codec.load(self._own, item) if item is not None else None

    def _openapi(self, name: str) -> dict[str, dict[str, Any]]:
        crd = self._crd(name)
        return resources.openapi(crd) if crd is not None else {}

    async def _sync(self, name: str) -> None:
        crd = self._crd(name)
        if crd is None:
            self._withdraw(name)
            for other in self._names.waiting(name.partition(".")[2]):  # names that it had are free now
                await self._sync(other)
            return
        if crd["metadata"].get("deletionTimestamp"):
            await self._end(name, crd)
            return
        others = self._names.others(str(spec_of(crd).get("group")), name)
        status = accepted_names.names_status(crd, others, timestamps.stamp())
        finalizers = crd["metadata"].get("finalizers") or []
        if status != crd.get("status") or accepted_names.CLEANUP not in finalizers:
            # Served before it says so: whoever waits for the condition finds it.
            self._serve(name, {**crd, "status": status})
            await change(self._api.core, self._own, "", name, lambda one: self._named(one, crd, status))
        else:
            self._serve(name, crd)

    @staticmethod
    def _named(one: Object, seen: Object, status: Object) -> Object | None:
        if spec_of(one) != spec_of(seen) or one["metadata"].get("deletionTimestamp"):
            return None  # it changed meanwhile: another round comes
        finalizers = one["metadata"].get("finalizers") or []
        if accepted_names.CLEANUP not in finalizers:
            one["metadata"]["finalizers"] = [*finalizers, accepted_names.CLEANUP]
        one["status"] = status
        return one

    def _serve(self, name: str, crd: Object) -> None:
        if not definition.is_true(crd, "Established"):
            return
        accepted, ends = (crd.get("status") or {}).get("acceptedNames"), crd["metadata"].get("deletionTimestamp")
        mark = hashlib.sha256(codec.encode([spec_of(crd), accepted, ends])).digest()
        if self._shown.get(name) == mark:
            return
        fresh = resources.resources_of(crd, own_rules=self._own_rules)
        kept = {one.version for one in fresh}
        for one in self._served.get(name, ()):
            if one.version not in kept:
                self._resources.remove(one.group, one.version, one.plural)
        self._api.discovery.add(name, lambda: self._openapi(name))
        self._put(name, fresh)
        self._shown[name] = mark

    def _put(self, name: str, fresh: list[Resource]) -> None:
        """What the server has itself stays: a definition from another release or another server cannot take over."""
        self._served[name] = [one for one in fresh if not self._native.has(one)]
        for one in self._served[name]:
            self._resources.add(one)

    def _withdraw(self, name: str) -> None:
        self._shown.pop(name, None)
        self._api.discovery.remove(name)
        self._ends = {table: owner for table, owner in self._ends.items() if owner != name}
        for one in self._served.pop(name, ()):
            self._resources.remove(one.group, one.version, one.plural)

    # ---- the end of a definition

    async def _end(self, name: str, crd: Object) -> None:
        if accepted_names.CLEANUP not in (crd["metadata"].get("finalizers") or []):
            return
        self._serve(name, crd)
        if not definition.is_true(crd, "Established"):
            await self._finish(name, _NEVER)
            return
        served = [one for one in self._served.get(name) or resources.resources_of(crd) if not self._native.has(one)]
        table = self._store.table(served[0].table) if served else None
        if served:
            self._ends[served[0].table] = name
        if table is not None and table.items():
            if not definition.is_true(crd, "Terminating"):
                now = timestamps.stamp()
                await change(
                    self._api.core,
                    self._own,
                    "",
                    name,
                    lambda one: {**one, "status": accepted_names.terminating(one, _IN_PROGRESS, now)},
                )
            await self._empty(served[0])
        if table is None or not table.items():
            await self._finish(name, _DONE)

    async def _empty(self, resource: Resource) -> None:
        for item in self._store.table(resource.table).items():
            if not meta_of(item).deletionTimestamp:
                await delete(self._api, resource, item.namespace, item.name)

    async def _finish(self, name: str, condition_values: tuple[str, str, str]) -> None:
        now = timestamps.stamp()

        def last(one: Object) -> Object:
            one["status"] = accepted_names.terminating(one, condition_values, now)
            left = [entry for entry in one["metadata"].get("finalizers") or [] if entry != accepted_names.CLEANUP]
            one["metadata"]["finalizers"] = left
            return one

        await change(self._api.core, self._own, "", name, last)
