"""Answers: objects, lists, tables and statuses as bytes, in the form that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from kohort.kube.wire import Response
from kohort.server import codec, list_stream, negotiation, options, storage_codec
from kohort.server.codec import encode
from kohort.server.handlers import get
from kohort.server.printers import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kohort.api.kind import Object
    from kohort.kube.timeslice import TimeSlices
    from kohort.server.handlers.get import ListPage
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.resources import Resource
    from kohort.server.status import ApiError
    from kohort.server.store import Item

_WARNINGS_TOTAL: Final = 4096  # letters of all warnings of a response, as kube-apiserver
_WARNING_CUT: Final = 256
_AGENT: Final = "-"


def warning_header(texts: Sequence[str]) -> str:
    """The Warning headers of RFC 7234, joined: one value can hold several. Bounded as upstream's are."""
    return ", ".join(f'299 {_AGENT} "{_quoted(text)}"' for text in _bounded(list(dict.fromkeys(texts))))


def _bounded(texts: list[str]) -> Iterator[str]:
    """All of them while they are short together; else each is cut, and those that no longer fit are left out."""
    if sum(map(len, texts)) <= _WARNINGS_TOTAL:
        yield from texts
        return
    total = 0
    for text in texts:
        total += min(len(text), _WARNING_CUT)
        if total > _WARNINGS_TOTAL:
            return
        yield text[:_WARNING_CUT]


def _quoted(text: str) -> str:
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def add_warning(answer: Response, text: str) -> None:
    """In front of those that it has."""
    given = answer.headers.get("warning")
    answer.headers["warning"] = warning_header([text]) + (f", {given}" if given else "")


def response(status: int, body: bytes, media: str = codec.JSON, warnings: Sequence[str] = ()) -> Response:
    headers = {"content-type": media, "cache-control": "no-cache, private"}
    if warnings:
        headers["warning"] = warning_header(warnings)
    return Response(status, headers, body)


def failure(error: ApiError, media: str = codec.JSON) -> Response:
    body = codec.to_yaml(error.status) if media == codec.YAML else encode(error.status) + b"\n"
    found = response(error.code, body, media, error.warnings)
    found.headers.update(error.headers)
    return found


def document(value: Any, status: int = 200, media: str = codec.JSON) -> Response:
    return response(status, codec.to_yaml(value) if media == codec.YAML else encode(value) + b"\n", media)


class Renderer:
    """Remembers how objects of each resource begin."""

    def __init__(self, slices: TimeSlices) -> None:
        self._slices = slices
        # A resource of a definition that is gone must not stay, with its schemas, for what it was called.
        self._heads: WeakKeyDictionary[Resource, bytes] = WeakKeyDictionary()

    def head(self, resource: Resource) -> bytes:
        found = self._heads.get(resource)
        if found is None:
            found = self._heads[resource] = storage_codec.object_prefix(resource)
        return found

    def one(self, info: RequestInfo, found: Item | Object, status: int = 200) -> Response:
        """A stored item, or an object that is not stored (a dry run, a Status, a Scale)."""
        form, resource = info.accepted, info.resource
        if info.request.unread:
            return response(status, b"", codec.JSON, info.warnings)
        if form.kind == negotiation.OBJECT and form.media == codec.JSON:
            body = (
                encode(found) + b"\n"
                if isinstance(found, dict)
                else storage_codec.object_bytes(
                    resource, self.head(resource), found, b"\n", managed=not info.request.unmanaged
                )
            )
            return response(status, body, codec.JSON, info.warnings)
        obj = found if isinstance(found, dict) else storage_codec.load(resource, found)
        if obj.get("kind") != "Status":
            obj = self._formed(info, obj)
        return self._written(info, obj, status)

    def _formed(self, info: RequestInfo, obj: Object) -> Object:
        form = info.accepted
        if form.kind == negotiation.TABLE:
            include = options.one(info.query, "includeObject")
            meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return table.of_objects(info.resource, [obj], meta=meta, include=include, version=form.version)
        if form.kind == negotiation.PARTIAL:
            return table.partial(obj, form.version)
        return obj

    def _written(self, info: RequestInfo, obj: Object, status: int) -> Response:
        if info.accepted.media == codec.YAML:
            return response(status, codec.to_yaml(obj), codec.YAML, info.warnings)
        return response(status, encode(obj) + b"\n", codec.JSON, info.warnings)

    def page(self, info: RequestInfo, page: ListPage) -> Response:
        resource, form, meta = info.resource, info.accepted, get.list_meta(page)
        if list_stream.long(page.items):
            envelope, name = _envelope(info, meta)
            chunks = list_stream.stream(info, envelope, name, page.items, self.head(resource), self._slices)
            found = response(200, b"", form.media, info.warnings)
            found.body = chunks
            return found
        if form.kind == negotiation.OBJECT and form.media == codec.JSON:
            start = encode({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": meta})[:-1]
            return response(200, b"".join((start, b',"items":[', self._items(resource, page.items), b"]}\n")))
        loaded = (storage_codec.load(resource, item) for item in page.items)
        body, name = _envelope(info, meta)
        if form.kind == negotiation.TABLE:
            row = table.row_printer(resource, options.one(info.query, "includeObject"), form.version)
            body[name] = [row(obj) for obj in loaded]
        elif form.kind in (negotiation.PARTIAL, negotiation.PARTIAL_LIST):
            body[name] = [table.partial(obj, form.version) for obj in loaded]
        else:
            body[name] = list(loaded)
        return self._written(info, body, 200)

    def _items(self, resource: Resource, items: list[Item]) -> bytes:
        if not resource.native:
            head = self.head(resource)
            return b",".join([storage_codec.object_bytes(resource, head, item) for item in items])
        if resource.converts:
            return b",".join([storage_codec.list_item_bytes(resource, item) for item in items])
        return b",".join([item.value for item in items])


def _envelope(info: RequestInfo, meta: dict[str, Any]) -> tuple[Object, str]:
    """A list without its items, and the name of the member that they are."""
    resource, form = info.resource, info.accepted
    version = f"meta.k8s.io/{form.version}"
    if form.kind == negotiation.TABLE:
        return table.table(resource, meta=meta, version=form.version), "rows"
    if form.kind in (negotiation.PARTIAL, negotiation.PARTIAL_LIST):
        return {"kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": meta}, "items"
    return {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": meta}, "items"
