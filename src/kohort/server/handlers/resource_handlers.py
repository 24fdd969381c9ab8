"""The verbs of one object together, from a request to its response: what the server and its workers both run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.kube.wire import Response
from kohort.server import render, status
from kohort.server.handlers.delete import Deleter
from kohort.server.handlers.get import Reader
from kohort.server.handlers.patch import Writer
from kohort.server.handlers.subresources import Subresources

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.core import Core
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.store import Item


class ResourceHandlers:
    """Lists, watches and collections aside: those are the server's own."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.reader = Reader(core)
        self.writer = Writer(core)
        self.deleter = Deleter(core)
        self.subresources = Subresources(core, self.writer, self.deleter)
        self.renderer = render.Renderer(core.slices)

    async def answer(self, info: RequestInfo) -> Response:
        if info.subresource:
            return await self._subresource(info)
        if info.verb == "get":
            return self.renderer.one(info, await self._shown(info, self.reader.get(info)))
        verbs = {"create": self._create, "update": self.writer.update, "patch": self.writer.patch}
        code, found = await verbs.get(info.verb, self.deleter.delete)(info)
        return self.renderer.one(info, await self._shown(info, found), code)

    async def _shown(self, info: RequestInfo, found: Item | Object) -> Item | Object:
        """In the version that was asked for, where a webhook has to carry it over."""
        resource = info.resource
        if resource.conversion is None or self.core.converter is None:
            return found
        if not isinstance(found, dict):
            return await self.core.load(resource, found)
        stored = resource.storage
        if (found.get("apiVersion"), found.get("kind")) != (stored.api_version, stored.kind):
            return found  # of this version already, or a Status
        return await self.core.converter.object(found, stored, resource)

    async def _create(self, info: RequestInfo) -> tuple[int, Item | Object]:
        if info.resource.plural == "bindings" and not info.resource.group:
            return await self.subresources.bind(info)
        if not info.resource.stored:
            raise status.ApiError(
                status.failure(501, "NotImplemented", f"{info.resource.full_name} are not answered by this server")
            )
        return await self.writer.create(info)

    async def _subresource(self, info: RequestInfo) -> Response:
        handler = self.subresources.handlers.get((info.subresource, info.verb))
        if handler is not None:
            info.resource = info.resource.storage  # a Scale is the same in all versions
            code, found = await handler(info)
            return self.renderer.one(info, found, code)
        if info.subresource == "log":
            return Response(200, {"content-type": "text/plain"}, self.subresources.log(info))
        if info.verb == "get":
            return self.renderer.one(info, await self._shown(info, self.reader.get(info)))
        if info.verb not in ("update", "patch"):
            raise status.ApiError(
                status.failure(501, "NotImplemented", f"{info.subresource} is not answered by this server")
            )
        code, found = await (self.writer.update(info) if info.verb == "update" else self.writer.patch(info))
        return self.renderer.one(info, await self._shown(info, found), code)
