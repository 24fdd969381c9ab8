"""How the built-in controllers write: straight to the store with the care of any client, or through the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.kube.wire import Request, User
from kohort.server import storage_codec
from kohort.server.handlers.update import is_finalized
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kohort.api.kind import Object
    from kohort.server.api import Api
    from kohort.server.core import Core
    from kohort.server.resources import Resource

SYSTEM: Final = User("system:apiserver", groups=("system:masters", "system:authenticated"))
_TRIES: Final = 20


async def change(
    core: Core, resource: Resource, namespace: str, name: str, edit: Callable[[Object], Object | None]
) -> bool:
    """Let `edit` change the newest state of an object; None means that there is nothing to do. Whether it was written.

    For what belongs to the server itself: finalizers, conditions. No admission, no managedFields.
    """
    resource = resource.storage
    for _ in range(_TRIES):
        head = core.head(resource, namespace, name)
        if head is None:
            return False
        before = storage_codec.load(resource, head)
        after = edit(storage_codec.load(resource, head))
        if after is None or after == before:
            return False
        if not after["metadata"].get("finalizers"):
            after["metadata"].pop("finalizers", None)
        try:
            await core.store.write(
                resource.table,
                head.namespace,
                head.name,
                lambda revision, after=after: storage_codec.dump(resource, after, revision),  # type: ignore[misc]
                expect=head,
                delete=is_finalized(after),
            )
        except ConflictError:
            continue
        return True
    return False


async def delete(
    api: Api,
    resource: Resource,
    namespace: str,
    name: str,
    *,
    uid: str = "",
    version: str = "",
    propagation: str = "Background",
    grace: int | None = None,
) -> int:
    """A deletion as a client would send it, with preconditions. The status code of the answer."""
    body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
    conditions = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
    if conditions:
        body["preconditions"] = conditions
    if grace is not None:
        body["gracePeriodSeconds"] = grace
    return await _send(api, "DELETE", _path(resource, namespace, name), body)


async def merge(api: Api, resource: Resource, namespace: str, name: str, body: Object, *, subresource: str) -> int:
    """A merge patch as a client would send it. The status code of the answer."""
    path = f"{_path(resource, namespace, name)}/{subresource}"
    return await _send(api, "PATCH", path, body, "application/merge-patch+json")


def _path(resource: Resource, namespace: str, name: str) -> str:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    inside = f"/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root}{inside}/{resource.plural}/{name}"


async def _send(api: Api, method: str, path: str, body: Object, kind: str = "application/json") -> int:
    headers = {"content-type": kind, "accept": "application/json", "user-agent": "kohort-collector"}
    answer = await api.handle(Request(method, path, {}, headers, msgspec.json.encode(body), SYSTEM))
    return answer.status
