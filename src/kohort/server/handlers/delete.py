"""delete and deletecollection: preconditions, grace, finalizers, and what becomes of dependents."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from kohort.api import apply
from kohort.server import codec, options, status, storage_codec
from kohort.server.admission.attributes import DELETE, AdmissionAttributes
from kohort.server.graceful_deletion import DeletionOutcome, before_delete
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from asyncio import Future

    from kohort.api.kind import Object
    from kohort.server.core import Core
    from kohort.server.options import DeleteOptions
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.resources import Resource
    from kohort.server.store import Item

_TRIES: Final = 50
# Kinds that answer a deletion with the object, not with a Status.
_RETURNED: Final = {
    ("", "Namespace"),
    ("", "Pod"),
    ("", "Service"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "PodTemplate"),
    ("", "ServiceAccount"),
    ("", "ResourceQuota"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "ResourceClaim"),
    ("resource.k8s.io", "ResourceClaimTemplate"),
    ("resource.k8s.io", "ResourcePoolStatusRequest"),
    ("resource.k8s.io", "ResourceSlice"),
}
_JOB_WARNING: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


def read_options(info: RequestInfo) -> DeleteOptions:
    body: Any = None
    if info.request.body.strip():
        media = codec.media_type(info.content_type) or codec.JSON
        if media not in codec.READ:
            raise status.unsupported_media_type(codec.READ)
        body, _ = codec.parse(info.request.body, "DeleteOptions", media)
        if not isinstance(body, dict):
            raise status.bad_request("DeleteOptions: expected an object")
    return options.delete_options(info.query, body)


class Deleter:
    def __init__(self, core: Core) -> None:
        self.core = core

    async def delete(self, info: RequestInfo) -> tuple[int, Item | Object]:
        """200 and a Status or the object: deleted, or terminating."""
        chosen = read_options(info)
        resource = info.resource
        if (resource.group, resource.kind) == ("batch", "Job") and not chosen.propagation:
            info.warnings.append(_JOB_WARNING)
        return 200, await self.remove(info, info.namespace, info.name, chosen)

    async def remove(self, info: RequestInfo, namespace: str, name: str, chosen: DeleteOptions) -> Item | Object:
        resource = info.resource.storage
        for _ in range(_TRIES):
            head = self.core.head(resource, namespace, name)
            if head is None:
                raise status.not_found(resource.group, resource.plural, name)
            old = storage_codec.load(resource, head)
            self._check(resource, old, chosen)
            attrs = AdmissionAttributes(
                DELETE, resource, info.subresource, namespace, name, None, old, info.user, chosen.dry_run,
                {"propagationPolicy": chosen.propagation, "gracePeriodSeconds": chosen.grace},
            )  # fmt: skip
            await self.core.mutate(attrs)
            await self.core.validate(attrs)
            info.warnings += attrs.warnings
            try:
                return await self._go(resource, head, old, chosen, attrs)
            except ConflictError:
                continue
        raise status.conflict(resource.group, resource.plural, name, "the object keeps changing; try again")

    def _check(self, resource: Resource, old: Object, chosen: DeleteOptions) -> None:
        meta = old["metadata"]
        uid, version = meta.get("uid", ""), meta.get("resourceVersion", "")
        if chosen.uid is not None and chosen.uid != uid:
            why = (
                f"the UID in the precondition ({chosen.uid}) does not match the UID in record ({uid}). "
                "The object might have been deleted and then recreated"
            )
            raise status.conflict(resource.group, resource.kind, meta["name"], why)
        if chosen.version is not None and chosen.version != version:
            why = (
                f"the ResourceVersion in the precondition ({chosen.version}) does not match the ResourceVersion in "
                f"record ({version}). The object might have been modified"
            )
            raise status.conflict(resource.group, resource.kind, meta["name"], why)

    async def _go(
        self, resource: Resource, head: Item, old: Object, chosen: DeleteOptions, attrs: AdmissionAttributes
    ) -> Item | Object:
        new = {**old, "metadata": dict(old["metadata"])}
        outcome = before_delete(resource, new, chosen)
        if outcome is DeletionOutcome.TERMINATING or (outcome is DeletionOutcome.MARKED and new == old):
            return head
        if chosen.dry_run:
            return (
                new
                if outcome in (DeletionOutcome.MARKED, DeletionOutcome.MARKED_AND_DELETED)
                else _would_be_gone(resource, old)
            )
        if outcome is DeletionOutcome.MARKED:
            item = await self._write(resource, head, new)
            await self.core.stored(attrs)
            return item
        last = old  # what goes at once was never marked
        if outcome is DeletionOutcome.MARKED_AND_DELETED:
            if self.core.marked_seconds:
                return await self._seen_marked(resource, head, new, chosen, attrs)
            head, last = self._marked(resource, head, new), new
        item = await self._write(resource, head, last, delete=True)
        await self.core.stored(attrs)
        return item if (resource.group, resource.kind) in _RETURNED else _gone(resource, old)

    def _write(self, resource: Resource, head: Item, obj: Object, *, delete: bool = False) -> Future[Item]:
        return self.core.store.write(
            resource.table,
            head.namespace,
            head.name,
            lambda revision: storage_codec.dump(resource, obj, revision),
            expect=head,
            delete=delete,
        )

    def _marked(self, resource: Resource, head: Item, new: Object) -> Item:
        """A pod is marked first even if it has no time to go, and watchers see both, as upstream."""
        marking = self._write(resource, head, new)
        marking.add_done_callback(lambda done: done.cancelled() or done.exception())  # the next write tells of it
        after = self.core.head(resource, head.namespace, head.name)
        assert after is not None
        return after

    async def _seen_marked(
        self, resource: Resource, head: Item, new: Object, chosen: DeleteOptions, attrs: AdmissionAttributes
    ) -> Item | Object:
        """The same with time between the writes: whoever sees the mark can act before the pod is gone."""
        marked = await self._write(resource, head, new)
        await asyncio.sleep(self.core.marked_seconds)
        now = self.core.head(resource, head.namespace, head.name)
        current = storage_codec.load(resource, now) if now is not None else None
        if now is None or current is None or current["metadata"].get("uid") != new["metadata"].get("uid"):
            return marked  # somebody else's deletion came first
        return await self._go(resource, now, current, chosen, attrs)


def _gone(resource: Resource, old: Object) -> Object:
    details = {"name": old["metadata"]["name"], "group": resource.group, "kind": resource.plural}
    details = {key: value for key, value in details.items() if value}
    return status.success({**details, "uid": old["metadata"].get("uid", "")})


def _would_be_gone(resource: Resource, old: Object) -> Object:
    """Upstream's dry run of a deletion that takes the last finalizers away answers with an empty object."""
    if old["metadata"].get("finalizers"):
        empty = {"metadata": {}, **apply.zero(resource.api_version, resource.kind)} if resource.native else {}
        return {"kind": resource.kind, "apiVersion": resource.api_version, **empty}
    return old if (resource.group, resource.kind) in _RETURNED else _gone(resource, old)
