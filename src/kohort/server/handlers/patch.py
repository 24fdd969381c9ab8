"""patch: what is stored, changed by a patch or merged with what a manager applies, and then written like any update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import admit, apply
from kohort.api import patch as patches
from kohort.server import codec, options, status, storage_codec, timestamps
from kohort.server.handlers.create import Creator
from kohort.server.handlers.update import Updater, conflict
from kohort.server.request_body import add_warnings, check_patch_type, decode_patch, refused
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.core import Core
    from kohort.server.options import WriteOptions
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.store import Item

_TRIES: Final = 50


class Patcher:
    def __init__(self, core: Core, creator: Creator, updater: Updater) -> None:
        self.core, self.creator, self.updater = core, creator, updater

    async def patch(self, info: RequestInfo) -> tuple[int, Item | Object]:
        media = codec.media_type(info.content_type)
        check_patch_type(info, media)
        chosen = options.write_options(info.query, "PatchOptions", info.agent, media)
        if media == options.APPLY:
            return await self._apply(info, chosen)
        change = decode_patch(info)
        for _ in range(_TRIES):
            head = self.core.head(info.resource, info.namespace, info.name)
            if head is None:
                raise status.not_found(info.resource.group, info.resource.plural, info.name)
            info.warnings.clear()
            try:
                if media == patches.MERGE and info.subresource == "status" and info.resource.table == "pods":
                    return 200, await self._patch_status(info, change, head, chosen)
                return 200, await self._patched(info, change, head, chosen)
            except ConflictError:
                continue
        raise conflict(info)

    async def _patched(self, info: RequestInfo, change: Any, head: Item, chosen: WriteOptions) -> Item | Object:
        rules, ctx, media = info.resource.rules, self.core.ctx, codec.media_type(info.content_type)
        stored = await self.core.load(info.resource, head)
        prior = admit.stored_with_defaults(stored, rules, ctx)
        answer = admit.apply_patch(change, prior, ctx, content_type=media, kind=rules, prior=prior)
        if answer.object is None:
            raise refused(answer)
        return await self.updater.replace(info, head, answer.object, chosen, by_patch=True, old=stored, prior=prior)

    async def _patch_status(self, info: RequestInfo, patch: Any, head: Item, chosen: WriteOptions) -> Item | Object:
        """Of a pod like one before, from the pod status cache."""
        cache, stored = self.core.pod_statuses, storage_codec.load_quickly(info.resource, head)
        change = cache.change(info, patch, stored, chosen)
        new = cache.build(change, stored, chosen) if change is not None else None
        if new is not None:
            return await self.updater.store(info, head, stored, new, chosen)
        item = await self._patched(info, patch, head, chosen)
        if change is not None and not isinstance(item, dict) and not info.warnings:
            cache.add(change, stored, chosen, info.resource, item)
        return item

    async def _apply(self, info: RequestInfo, chosen: WriteOptions) -> tuple[int, Item | Object]:
        resource = info.resource
        applied, warnings = codec.parse(info.request.body, resource.kind, codec.YAML)
        if not isinstance(applied, dict):
            raise status.bad_request("error decoding YAML: an applied object is a mapping")
        add_warnings(info, warnings)
        target = self.core.field_manager.target(resource, info.subresource)
        if target is None:
            raise status.unsupported_media_type(("application/json-patch+json", "application/merge-patch+json"))
        self._named(info, applied)
        warnings = list(info.warnings)
        for _ in range(_TRIES):
            info.warnings[:] = warnings
            head = self.core.head(resource, info.namespace, info.name)
            live = await self.core.load(resource, head) if head is not None else None
            if live is None and info.subresource:
                raise status.not_found(resource.group, resource.plural, info.name)
            try:
                result = apply.apply(
                    live,
                    applied,
                    of=target,
                    manager=chosen.manager,
                    now=timestamps.stamp(),
                    force=bool(chosen.force),
                )
            except apply.ApplyError as error:
                raise status.bad_request(str(error)) from None
            if result.conflicts:
                raise status.ApiError(apply.conflict_status(result.conflicts))
            try:
                if head is None:
                    return await self._apply_new(info, result.object, applied, chosen)
                return 200, await self.updater.replace(info, head, result.object, chosen, named=False, applied=True)
            except ConflictError:
                continue
        raise conflict(info)

    async def _apply_new(
        self, info: RequestInfo, new: Object, applied: Object, chosen: WriteOptions
    ) -> tuple[int, Item | Object]:
        resource = info.resource
        self.core.check_namespace(resource, info.namespace)
        given = (new.get("metadata") or {}).get("uid")
        if given:
            text = f"uid mismatch: the provided object specified uid {given}, and no existing object was found"
            raise status.conflict(resource.group, resource.plural, info.name, text)
        new.setdefault("metadata", {}).setdefault("name", info.name)
        code, made = await self.creator.create_object(info, new, chosen)
        version = (applied.get("metadata") or {}).get("resourceVersion")
        if version and isinstance(made, dict):  # a dry run, in which nobody gave it another one
            made["metadata"]["resourceVersion"] = version
        return code, made

    def _named(self, info: RequestInfo, applied: Object) -> None:
        meta = applied.get("metadata")
        if not isinstance(meta, dict):
            return
        if meta.get("name") and meta["name"] != info.name:
            text = f"metadata.name: the name of the object ({meta['name']}) does not match the name on the URL"
            raise status.bad_request(f"{text} ({info.name})")
        if meta.get("namespace") and meta["namespace"] != info.namespace:
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )


class Writer:
    """The verbs that write an object: create, update and patch share one way to the store."""

    def __init__(self, core: Core) -> None:
        creator = Creator(core)
        updater = Updater(core, creator)
        self.create = creator.create
        self.update, self.replace = updater.update, updater.replace
        self.patch = Patcher(core, creator, updater).patch
