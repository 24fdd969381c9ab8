"""Namespace bootstrap: every namespace gets the service account `default` and the ConfigMap `kube-root-ca.crt`.

Upstream these are the service account controller and the root CA certificate publisher."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from kohort.server import randomness, storage_codec, timestamps
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.resources import Resources
    from kohort.server.store import Item, Store

ACCOUNT, AUTHORITY = "default", "kube-root-ca.crt"
_TABLES: Final = ("namespaces", "serviceaccounts", "configmaps")
_DESCRIPTION: Final = {"kubernetes.io/description": "The certificate authority of the API server, for clients in pods."}


async def run(store: Store, resources: Resources, authority: bytes) -> None:
    """Until cancelled: at once in new namespaces, and again where one was deleted or another authority was written."""
    right: dict[str, Item] = {}
    while True:
        deleting_dependents = [asyncio.ensure_future(store.table(name).changed()) for name in _TABLES]
        try:
            await sync(store, resources, authority, right)
            await asyncio.wait(deleting_dependents, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in deleting_dependents:
                one.cancel()


async def sync(store: Store, resources: Resources, authority: bytes, right: dict[str, Item]) -> None:
    """`right`: by namespace, the ConfigMap that was looked at and holds the authority."""
    writes = []
    for item in store.table("namespaces").items():
        namespace = storage_codec.decode(item.value)
        if namespace["metadata"].get("deletionTimestamp"):
            continue
        for plural, obj in (
            ("serviceaccounts", _object(ACCOUNT, item.name)),
            ("configmaps", _object(AUTHORITY, item.name) | {"data": {"ca.crt": authority.decode()}}),
        ):
            resource = resources.of_plural("", plural)
            head = store.table(plural).head(item.name, obj["metadata"]["name"])
            if resource is None or (head is not None and (plural != "configmaps" or head is right.get(item.name))):
                continue
            if plural == "configmaps":
                if head is not None and not _restored(head, obj):
                    right[item.name] = head
                    continue
                obj["metadata"].setdefault("annotations", {}).update(_DESCRIPTION)

            def encode(revision: int, obj: Object = obj, one: object = resource) -> bytes:
                return storage_codec.dump(one, obj, revision)  # type: ignore[arg-type]

            writes.append(store.write(plural, item.name, obj["metadata"]["name"], encode, expect=head))
    with contextlib.suppress(ConflictError):
        await asyncio.gather(*writes)


def _restored(head: Item, wanted: Object) -> bool:
    """Whether it has another authority; then `wanted` is made its next version."""
    now = storage_codec.decode(head.value)
    if now.get("data") == wanted["data"] or now["metadata"].get("deletionTimestamp"):
        return False
    wanted["metadata"] = now["metadata"]
    return True


def _object(name: str, namespace: str) -> Object:
    meta = {"name": name, "namespace": namespace, "uid": randomness.uid(), "creationTimestamp": timestamps.stamp()}
    return {"metadata": meta}
