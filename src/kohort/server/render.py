"""Answers: objects, lists, tables and statuses as bytes, in the form that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.server import codec, listing, negotiate, objects, options, table
from kohort.server.codec import encode
from kohort.server.wire import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.kind import Object
    from kohort.server.ask import Ask
    from kohort.server.listing import Page
    from kohort.server.resources import Resource
    from kohort.server.status import ApiError
    from kohort.server.store import Item

_AGENT: Final = "-"


def warning_header(texts: Sequence[str]) -> str:
    """The Warning headers of RFC 7234, joined: one value can hold several."""
    return ", ".join(f'299 {_AGENT} "{_quoted(text)}"' for text in dict.fromkeys(texts))


def _quoted(text: str) -> str:
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')[:4096]


def response(status: int, body: bytes, media: str = codec.JSON, warnings: Sequence[str] = ()) -> Response:
    headers = {"content-type": media, "cache-control": "no-cache, private"}
    if warnings:
        headers["warning"] = warning_header(warnings)
    return Response(status, headers, body)


def failure(error: ApiError, media: str = codec.JSON) -> Response:
    body = codec.to_yaml(error.status) if media == codec.YAML else encode(error.status)
    found = response(error.code, body, media, error.warnings)
    found.headers.update(error.headers)
    return found


def document(value: Any, status: int = 200, media: str = codec.JSON) -> Response:
    return response(status, codec.to_yaml(value) if media == codec.YAML else encode(value), media)


class Renderer:
    """Remembers how objects of each resource begin."""

    def __init__(self) -> None:
        self._heads: dict[Resource, bytes] = {}

    def head(self, resource: Resource) -> bytes:
        found = self._heads.get(resource)
        if found is None:
            if len(self._heads) > 2048:
                self._heads.clear()
            found = self._heads[resource] = objects.prefix(resource)
        return found

    def one(self, ask: Ask, found: Item | Object, status: int = 200) -> Response:
        """A stored item, or an object that is not stored (a dry run, a Status, a Scale)."""
        form, resource = ask.form, ask.resource
        if form.kind == negotiate.OBJECT and form.media == codec.JSON:
            body = encode(found) if isinstance(found, dict) else objects.whole(resource, self.head(resource), found)
            return response(status, body, codec.JSON, ask.warnings)
        obj = found if isinstance(found, dict) else objects.load(resource, found)
        if obj.get("kind") != "Status":
            obj = self._formed(ask, obj)
        return self._written(ask, obj, status)

    def _formed(self, ask: Ask, obj: Object) -> Object:
        form = ask.form
        if form.kind == negotiate.TABLE:
            include = options.one(ask.query, "includeObject")
            meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return table.table(ask.resource, [obj], meta=meta, include=include, version=form.version)
        if form.kind == negotiate.PARTIAL:
            return table.partial(obj, form.version)
        return obj

    def _written(self, ask: Ask, obj: Object, status: int) -> Response:
        if ask.form.media == codec.YAML:
            return response(status, codec.to_yaml(obj), codec.YAML, ask.warnings)
        return response(status, encode(obj), codec.JSON, ask.warnings)

    def page(self, ask: Ask, page: Page) -> Response:
        resource, form, meta = ask.resource, ask.form, listing.list_meta(page)
        if form.kind == negotiate.OBJECT and form.media == codec.JSON:
            start = encode({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": meta})[:-1]
            return response(200, b"".join((start, b',"items":[', self._items(resource, page.items), b"]}\n")))
        loaded = (objects.load(resource, item) for item in page.items)
        body: Object
        if form.kind == negotiate.TABLE:
            include = options.one(ask.query, "includeObject")
            body = table.table(resource, loaded, meta=meta, include=include, version=form.version)
        elif form.kind in (negotiate.PARTIAL, negotiate.PARTIAL_LIST):
            version = f"meta.k8s.io/{form.version}"
            head = {"kind": "PartialObjectMetadata", "apiVersion": version}
            items = [{**head, "metadata": obj["metadata"]} for obj in loaded]
            body = {"kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": meta, "items": items}
        else:
            items = list(loaded)
            body = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": meta, "items": items}
        return self._written(ask, body, 200)

    def _items(self, resource: Resource, items: list[Item]) -> bytes:
        if not resource.native:
            head = self.head(resource)
            return b",".join([objects.whole(resource, head, item) for item in items])
        if resource.converts:
            return b",".join([objects.bare(resource, item) for item in items])
        return b",".join([item.value for item in items])
