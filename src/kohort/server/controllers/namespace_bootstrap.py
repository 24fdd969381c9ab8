"""Namespace bootstrap: every namespace gets the service account `default` and the ConfigMap `kube-root-ca.crt`.

Upstream these are the service account controller and the root CA certificate publisher."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from typing import TYPE_CHECKING, Final

from kohort.server import storage_codec, timestamps
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.resources import Resources
    from kohort.server.store import Store

ACCOUNT, AUTHORITY = "default", "kube-root-ca.crt"
_TABLES: Final = ("namespaces", "serviceaccounts", "configmaps")
_DESCRIPTION: Final = {"kubernetes.io/description": "The certificate authority of the API server, for clients in pods."}


async def run(store: Store, resources: Resources, authority: bytes) -> None:
    """Until cancelled: at once in new namespaces, and again where one was deleted."""
    while True:
        deleting_dependents = [asyncio.ensure_future(store.table(name).changed()) for name in _TABLES]
        try:
            await sync(store, resources, authority)
            await asyncio.wait(deleting_dependents, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in deleting_dependents:
                one.cancel()


async def sync(store: Store, resources: Resources, authority: bytes) -> None:
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
            if resource is None or store.table(plural).head(item.name, obj["metadata"]["name"]) is not None:
                continue
            if plural == "configmaps":
                obj["metadata"]["annotations"] = dict(_DESCRIPTION)

            def encode(revision: int, obj: Object = obj, one: object = resource) -> bytes:
                return storage_codec.dump(one, obj, revision)  # type: ignore[arg-type]

            writes.append(store.write(plural, item.name, obj["metadata"]["name"], encode, expect=None))
    with contextlib.suppress(ConflictError):
        await asyncio.gather(*writes)


def _object(name: str, namespace: str) -> Object:
    meta = {"name": name, "namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": timestamps.stamp()}
    return {"metadata": meta}
