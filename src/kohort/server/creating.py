"""create: from a body to an object that was not there.

decode -> managedFields -> mutating plugins -> rules -> validating plugins -> store. A pod like one before takes a short
way.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from kohort.api import admit, shape
from kohort.server import ages, objects, options, status
from kohort.server.bodies import body_of, refused
from kohort.server.call import CREATE, Call
from kohort.server.naming import name_for, suffix

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.ask import Ask
    from kohort.server.core import Core
    from kohort.server.options import WriteOptions
    from kohort.server.stencil import Key
    from kohort.server.store import Item

_TRIES: Final = 8


class _TakenError(Exception):
    """There is an object of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Creator:
    def __init__(self, core: Core) -> None:
        self.core = core

    async def create(self, ask: Ask) -> tuple[int, Item | Object]:
        """201 and what is stored; with dryRun, what would be."""
        chosen = options.write_options(ask.query, "CreateOptions", ask.agent)
        body = body_of(ask, self.core.ctx)
        self.core.check_namespace(ask.resource, ask.namespace)
        return await self.create_object(ask, body, chosen)

    async def create_object(self, ask: Ask, body: Object, chosen: WriteOptions) -> tuple[int, Item | Object]:
        remarks = list(ask.warnings)
        for attempt in range(_TRIES):
            key = self.core.stencils.key(ask.resource, body, ask.namespace, chosen) if not ask.name else None
            try:
                if key is not None:
                    found = await self._traced(ask, key, body, chosen)
                    if found is not None:
                        return 201, found
                return 201, await self._created(ask, body, chosen, key)
            except _TakenError as taken:
                if not _generated(body) or attempt == _TRIES - 1:
                    raise self._exists(ask, body, taken.name) from None
                ask.warnings[:] = remarks
        raise AssertionError("unreachable")

    def _exists(self, ask: Ask, body: Object, name: str) -> status.ApiError:
        resource = ask.resource
        error = status.already_exists(resource.group, resource.plural, name)
        head = self.core.head(resource, ask.namespace, name)
        if head is not None and objects.load(resource, head)["metadata"].get("deletionTimestamp"):
            error.status["message"] = f"object is being deleted: {error.status['message']}"
        if body["metadata"].get("generateName"):
            error.status["message"] += ", the server was not able to generate a unique name for the object"
            error.status["details"]["retryAfterSeconds"] = 1
        return error

    async def _traced(self, ask: Ask, key: Key, body: Object, chosen: WriteOptions) -> Item | Object | None:
        """The short way, for a pod like one before."""
        meta = body["metadata"]
        name = name_for(meta)
        new = self.core.stencils.make(key, ask.resource, body, ask.namespace, name)
        if new is None:
            return None
        self.core.check_terminating(ask.resource, ask.namespace, name)
        new["metadata"]["uid"] = str(uuid.uuid4())
        ask.warnings += self.core.stencils.warnings(key)
        return await self._finish(ask, call_of(ask, CREATE, new, None, chosen), chosen)

    async def _created(self, ask: Ask, body: Object, chosen: WriteOptions, key: Key | None) -> Item | Object:
        """The long way."""
        resource, core = ask.resource, self.core
        read = admit.received(
            body,
            core.ctx,
            namespace=ask.namespace if resource.namespaced else None,
            suffix=suffix,
            field_validation=chosen.validation,
            kind=resource.rules,
        )
        if read.object is None:
            raise refused(read)
        new = read.object
        ask.warnings += read.warnings
        if ask.name and new["metadata"].get("name") != ask.name:
            raise status.bad_request("the name of the object does not match the name on the URL")
        if "managedFields" not in (body.get("metadata") or {}):
            new = core.books.keep(resource, "", None, new, chosen.manager)
        core.check_terminating(resource, ask.namespace, str(new["metadata"].get("name") or ""))
        call = call_of(ask, CREATE, new, None, chosen)
        new["metadata"]["creationTimestamp"] = ages.stamp()
        new["metadata"]["uid"] = str(uuid.uuid4())
        await core.mutate(call)
        new = call.object or new
        answer = core.judge_create(resource, new, ask.namespace)
        if answer.object is None:
            raise refused(answer)
        ask.warnings += [*answer.warnings, *call.warnings]
        call.object = shape.written(resource.rules, answer.object)
        await core.complete_new(resource, call.object)
        if key is not None:
            core.stencils.remember(key, call.object, (*read.warnings, *answer.warnings, *call.warnings))
        return await self._finish(ask, call, chosen)

    async def _finish(self, ask: Ask, call: Call, chosen: WriteOptions) -> Item | Object:
        resource, core, new = ask.resource, self.core, call.object
        assert new is not None
        before = len(call.warnings)
        await core.validate(call)
        ask.warnings += call.warnings[before:]
        namespace = new["metadata"].get("namespace", "") if resource.namespaced else ""
        name = new["metadata"]["name"]
        if core.store.table(resource.table).head(namespace, name) is not None:
            raise _TakenError(name)
        if chosen.dry_run:
            return new
        item = await core.store.write(
            resource.table, namespace, name, lambda revision: objects.dump(resource, new, revision), expect=None
        )
        await core.stored(call)
        return item


def _generated(body: Object) -> bool:
    meta = body.get("metadata") or {}
    return bool(meta.get("generateName")) and not meta.get("name")


def call_of(ask: Ask, operation: str, new: Object, old: Object | None, chosen: WriteOptions) -> Call:
    """A write as admission sees it."""
    meta = new.get("metadata") or {}
    return Call(
        operation,
        ask.resource,
        ask.subresource,
        ask.namespace,
        ask.name or str(meta.get("name") or ""),
        new,
        old,
        ask.user,
        chosen.dry_run,
        {"fieldManager": chosen.manager, "fieldValidation": chosen.validation},
    )
