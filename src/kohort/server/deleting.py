"""delete and deletecollection: preconditions, grace, finalizers, and what becomes of dependents."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from kohort.server import ages, codec, objects, options, status
from kohort.server.call import DELETE, Call
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.ask import Ask
    from kohort.server.core import Core
    from kohort.server.options import DeleteOptions
    from kohort.server.resources import Resource
    from kohort.server.store import Item

_TRIES: Final = 50
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
# Kinds that answer a deletion with the object, not with a Status.
_RETURNED: Final = {
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
}
_ORPHANS: Final = {("", "ReplicationController"), ("batch", "Job")}  # what they made stays unless asked otherwise
_JOB_WARNING: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


def read_options(ask: Ask) -> DeleteOptions:
    body: Any = None
    if ask.request.body.strip():
        media = codec.media_type(ask.content_type) or codec.JSON
        if media not in codec.READ:
            raise status.unsupported_media_type(codec.READ)
        body, _ = codec.parse(ask.request.body, "DeleteOptions", media)
        if not isinstance(body, dict):
            raise status.bad_request("DeleteOptions: expected an object")
    return options.delete_options(ask.query, body)


class Deleter:
    def __init__(self, core: Core) -> None:
        self.core = core

    async def delete(self, ask: Ask) -> tuple[int, Item | Object]:
        """200 and a Status or the object: gone, or on its way out."""
        chosen = read_options(ask)
        resource = ask.resource
        if (resource.group, resource.kind) == ("batch", "Job") and not chosen.propagation:
            ask.warnings.append(_JOB_WARNING)
        return 200, await self.remove(ask, ask.namespace, ask.name, chosen)

    async def remove(self, ask: Ask, namespace: str, name: str, chosen: DeleteOptions) -> Item | Object:
        resource = ask.resource
        for _ in range(_TRIES):
            head = self.core.head(resource, namespace, name)
            if head is None:
                raise status.not_found(resource.group, resource.plural, name)
            old = objects.load(resource, head)
            self._check(resource, old, chosen)
            call = Call(
                DELETE, resource, ask.subresource, namespace, name, None, old, ask.user, chosen.dry_run,
                {"propagationPolicy": chosen.propagation, "gracePeriodSeconds": chosen.grace},
            )  # fmt: skip
            await self.core.mutate(call)
            await self.core.validate(call)
            ask.warnings += call.warnings
            try:
                return await self._go(resource, head, old, chosen, call)
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
        self, resource: Resource, head: Item, old: Object, chosen: DeleteOptions, call: Call
    ) -> Item | Object:
        new = {**old, "metadata": dict(old["metadata"])}
        marked = mark(resource, new, chosen)
        if is_gone(resource, new):
            returned = (resource.group, resource.kind) in _RETURNED
            if not chosen.dry_run:
                if marked and resource.table == "pods":
                    head = self._marked(resource, head, new)
                last = new if returned else old  # what goes at once was never marked
                item = await self.core.store.write(
                    resource.table,
                    head.namespace,
                    head.name,
                    lambda revision: objects.dump(resource, last, revision),
                    expect=head,
                    delete=True,
                )
                await self.core.stored(call)
                if returned:
                    return item
            return new if returned else _gone(resource, old)
        if not marked:
            return head
        if chosen.dry_run:
            return new
        item = await self.core.store.write(
            resource.table,
            head.namespace,
            head.name,
            lambda revision: objects.dump(resource, new, revision),
            expect=head,
        )
        await self.core.stored(call)
        return item

    def _marked(self, resource: Resource, head: Item, new: Object) -> Item:
        """A pod is marked first even if it has no time to go, and watchers see both, as upstream."""
        marking = self.core.store.write(
            resource.table,
            head.namespace,
            head.name,
            lambda revision: objects.dump(resource, new, revision),
            expect=head,
        )
        marking.add_done_callback(lambda done: done.cancelled() or done.exception())  # the next write tells of it
        after = self.core.head(resource, head.namespace, head.name)
        assert after is not None
        return after

    async def collection(self, ask: Ask, items: list[Item]) -> None:
        """Delete all of these; whoever is gone meanwhile is gone."""
        chosen = read_options(ask)
        for item in items:
            try:
                await self.remove(ask, item.namespace, item.name, chosen)
            except status.ApiError as error:
                if error.code not in (404, 409):
                    raise


def _gone(resource: Resource, old: Object) -> Object:
    details = {"name": old["metadata"]["name"], "group": resource.group, "kind": resource.plural}
    details = {key: value for key, value in details.items() if value}
    return status.success({**details, "uid": old["metadata"].get("uid", "")})


def mark(resource: Resource, obj: Object, chosen: DeleteOptions) -> bool:
    """Ask an object to go, in place. Whether that changes it."""
    meta, before = obj["metadata"], dict(obj["metadata"])
    finalizers = _finalizers(resource, meta.get("finalizers") or [], chosen)
    grace = _grace(resource, obj, chosen)
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    if not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = ages.stamp(ages.now() + timedelta(seconds=grace))
        meta["deletionGracePeriodSeconds"] = grace
        if meta.get("generation"):
            meta["generation"] += 1
    elif grace < (meta.get("deletionGracePeriodSeconds") or 0):
        meta["deletionTimestamp"] = ages.stamp(ages.now() + timedelta(seconds=grace))
        meta["deletionGracePeriodSeconds"] = grace
    if resource.kind == "Namespace" and not resource.group:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return bool(before != meta)


def _finalizers(resource: Resource, now: list[str], chosen: DeleteOptions) -> list[str]:
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(chosen.propagation, "")
    if not chosen.propagation:
        if FOREGROUND in now or ORPHAN in now:
            return now
        if (resource.group, resource.kind) in _ORPHANS:
            wanted = ORPHAN
    kept = [name for name in now if name not in {FOREGROUND, ORPHAN} or name == wanted]
    return [*kept, wanted] if wanted and wanted not in kept else kept


def _grace(resource: Resource, obj: Object, chosen: DeleteOptions) -> int:
    """Only pods have time to go: unless nobody runs them."""
    if resource.kind != "Pod" or resource.group:
        return 0
    spec = obj.get("spec") or {}
    wanted = chosen.grace if chosen.grace is not None else spec.get("terminationGracePeriodSeconds")
    grace = 30 if wanted is None else max(int(wanted), 1) if int(wanted) < 0 else int(wanted)
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return 0
    return grace


def is_gone(resource: Resource, obj: Object) -> bool:
    meta = obj["metadata"]
    if meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return not (resource.kind == "Namespace" and not resource.group and (obj.get("spec") or {}).get("finalizers"))
