"""Writes the rules of aggregated cluster roles, so that people see in them what the authorizer already decides by."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from kohort.server import storage_codec
from kohort.server.auth import aggregation
from kohort.server.auth.rbac import GROUP
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.resources import Resource, Resources
    from kohort.server.store import Store


async def run(store: Store, resources: Resources) -> None:
    """Until cancelled."""
    resource = resources.of_plural(GROUP, "clusterroles")
    if resource is None:
        return
    table = store.table(resource.table)
    while True:
        await sync(store, resource)
        await table.changed()


async def sync(store: Store, resource: Resource) -> None:
    items = {item.name: item for item in store.table(resource.table).items()}
    roles = [storage_codec.decode(item.value) for item in items.values()]
    for role in aggregation.outdated(roles):

        def encode(revision: int, role: Object = role) -> bytes:
            return storage_codec.dump(resource, role, revision)

        name = role["metadata"]["name"]
        with contextlib.suppress(ConflictError):  # somebody was faster: there will be another turn
            await store.write(resource.table, "", name, encode, expect=items[name])
