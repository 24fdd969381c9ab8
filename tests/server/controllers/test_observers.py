"""Controllers that name their tables: changes of others would have meant nothing to them."""

from __future__ import annotations

import asyncio

from tests.server.controllers.world import World

from kohort.server import storage_codec
from kohort.server.controllers.partial_objects import meta_of, pod_of
from kohort.server.store import Change, Event, Item

POD = {
    "metadata": {"name": "p", "finalizers": ["a.io/hold"], "labels": {"managedFields": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "schedulingGroup": {"podGroupName": "g"}},
}


def test_a_change_of_another_table_leaves_no_trace() -> None:
    async def told() -> int:
        count = 0
        async with World() as world:
            for controller in world.controllers.controllers:
                if controller.tables is None:
                    continue
                before = {name: repr(value) for name, value in vars(controller).items()}
                for table in {"secrets", "jobset.x-k8s.io/jobsets", *world.store.tables} - controller.tables:
                    item = Item("ns", "x", 3, b"not even read")
                    for event in (None, *(Event(change, item, None) for change in Change)):
                        controller.observe(table, item, event)
                        count += 1
                assert before == {name: repr(value) for name, value in vars(controller).items()}
        return count

    assert asyncio.run(told()) > 20


def test_what_is_read_without_managers_is_what_is_read_with_them() -> None:
    async def both() -> None:
        async with World() as world:
            await world.post("/api/v1/namespaces/ns/pods", POD)
            item = world.store.table("pods").get("ns", "p")
            assert item is not None
            storage_codec._split.pop(item.value, None)
            whole = Item(item.namespace, item.name, item.revision, item.value)
            long = (pod_of(whole), meta_of(whole))
            assert storage_codec.shorter(item) == item.value
            storage_codec.unmanaged(item)
            assert len(storage_codec.shorter(item)) < len(item.value)
            assert (pod_of(item), meta_of(item)) == long
            assert long[0].spec.schedulingGroup is not None
            assert long[1].finalizers == ("a.io/hold",)

    asyncio.run(both())
