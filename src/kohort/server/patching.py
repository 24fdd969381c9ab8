"""patch: what is stored, changed by a patch or merged with what a manager applies, and then written like any update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.api import admit, apply
from kohort.server import ages, codec, objects, options, status
from kohort.server.bodies import change_of, check_patch, refused, remark
from kohort.server.store import ConflictError
from kohort.server.updating import conflict

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.ask import Ask
    from kohort.server.core import Core
    from kohort.server.creating import Creator
    from kohort.server.options import WriteOptions
    from kohort.server.store import Item
    from kohort.server.updating import Updater

_TRIES: Final = 50


class Patcher:
    def __init__(self, core: Core, creator: Creator, updater: Updater) -> None:
        self.core, self.creator, self.updater = core, creator, updater

    async def patch(self, ask: Ask) -> tuple[int, Item | Object]:
        media = codec.media_type(ask.content_type)
        check_patch(ask, media)
        chosen = options.write_options(ask.query, "PatchOptions", ask.agent, media)
        if media == options.APPLY:
            return await self._apply(ask, chosen)
        change = change_of(ask)
        for _ in range(_TRIES):
            head = self.core.head(ask.resource, ask.namespace, ask.name)
            if head is None:
                raise status.not_found(ask.resource.group, ask.resource.plural, ask.name)
            ask.warnings.clear()
            prior = admit.known(objects.load(ask.resource, head), ask.resource.rules, self.core.ctx)
            answer = admit.patched(
                change, prior, self.core.ctx, content_type=media, kind=ask.resource.rules, prior=prior
            )
            if answer.object is None:
                raise refused(answer)
            try:
                return 200, await self.updater.replace(ask, head, answer.object, chosen, by_patch=True, prior=prior)
            except ConflictError:
                continue
        raise conflict(ask)

    async def _apply(self, ask: Ask, chosen: WriteOptions) -> tuple[int, Item | Object]:
        resource = ask.resource
        applied, remarks = codec.parse(ask.request.body, resource.kind, codec.YAML)
        if not isinstance(applied, dict):
            raise status.bad_request("error decoding YAML: an applied object is a mapping")
        remark(ask, remarks)
        target = self.core.books.target(resource, ask.subresource)
        if target is None:
            raise status.unsupported_media_type(("application/json-patch+json", "application/merge-patch+json"))
        self._named(ask, applied)
        remarks = list(ask.warnings)
        for _ in range(_TRIES):
            ask.warnings[:] = remarks
            head = self.core.head(resource, ask.namespace, ask.name)
            live = objects.load(resource, head) if head is not None else None
            if live is None and ask.subresource:
                raise status.not_found(resource.group, resource.plural, ask.name)
            try:
                result = apply.apply(
                    live,
                    applied,
                    of=target,
                    manager=chosen.manager,
                    now=ages.stamp(),
                    force=bool(chosen.force),
                )
            except apply.ApplyError as error:
                raise status.bad_request(str(error)) from None
            if result.conflicts:
                raise status.ApiError(apply.conflict_status(result.conflicts))
            try:
                if head is None:
                    return await self._apply_new(ask, result.object, applied, chosen)
                return 200, await self.updater.replace(ask, head, result.object, chosen, named=False, applied=True)
            except ConflictError:
                continue
        raise conflict(ask)

    async def _apply_new(
        self, ask: Ask, new: Object, applied: Object, chosen: WriteOptions
    ) -> tuple[int, Item | Object]:
        resource = ask.resource
        self.core.check_namespace(resource, ask.namespace)
        given = (new.get("metadata") or {}).get("uid")
        if given:
            text = f"uid mismatch: the provided object specified uid {given}, and no existing object was found"
            raise status.conflict(resource.group, resource.plural, ask.name, text)
        new.setdefault("metadata", {}).setdefault("name", ask.name)
        code, made = await self.creator.create_object(ask, new, chosen)
        version = (applied.get("metadata") or {}).get("resourceVersion")
        if version and isinstance(made, dict):  # a dry run, in which nobody gave it another one
            made["metadata"]["resourceVersion"] = version
        return code, made

    def _named(self, ask: Ask, applied: Object) -> None:
        meta = applied.get("metadata")
        if not isinstance(meta, dict):
            return
        if meta.get("name") and meta["name"] != ask.name:
            text = f"metadata.name: the name of the object ({meta['name']}) does not match the name on the URL"
            raise status.bad_request(f"{text} ({ask.name})")
        if meta.get("namespace") and meta["namespace"] != ask.namespace:
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
