"""The verbs of the API on one resource. Objects are what the handle's type says; what is sent may be anything JSON."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import msgspec

from kohort.kube.codec import Codec, Page, decode_large, encode, identifier, identify, reads_managers
from kohort.kube.errors import KubeError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from kohort.kube.calls import Calls
    from kohort.kube.codec import Event, Identity, Object
    from kohort.kube.discovery import ResourceType
    from kohort.kube.reading import Reading

T = TypeVar("T")
PatchKind = Literal["json", "merge", "strategic"]
Propagation = Literal["Background", "Foreground", "Orphan"]
Batch = list[bytes]

PAGE: Final = 500
LARGE_PAGE: Final = 1000  # where somebody waits for all of them
_PATCHES: Final = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_APPLY: Final = "application/apply-patch+yaml"
_WATCH_SECONDS: Final = 300
# A watch that the server should have ended by itself and has not is dead.
_GRACE: Final = 30.0


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a list or watch is about; no namespace means all of them."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        found = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in found.items() if value}


class Resource(Generic[T]):
    """A handle; making one costs nothing, its first use may ask the server what it serves.

    Calls that name an object default to the namespace of the object, then of the client. Lists and watches default to
    all namespaces.
    """

    def __init__(
        self,
        calls: Calls,
        name: str,
        resolve: Callable[[], Awaitable[ResourceType]],
        decode: type[T],
        *,
        namespace: str,
        manager: str,
    ) -> None:
        self.name = name
        self.identify: Callable[[T], Identity] = identifier(decode)
        self._calls = calls
        self._resolve = resolve
        self._decode = decode
        self._namespace = namespace
        self._manager = manager
        self._known: tuple[ResourceType, Codec[T]] | None = None
        self._unmanaged = not reads_managers(decode)
        self._reading: Reading | None = None

    def without_managers(self) -> Resource[T]:
        """The same, for whoever does not read managedFields: a server in this process may leave them out."""
        self._unmanaged = True
        return self

    def reading(self, parts: Reading) -> Resource[T]:
        """The same; of what is listed and watched no more is read than that."""
        self._reading = parts
        return self

    async def type(self) -> ResourceType:
        return (await self._both())[0]

    async def codec(self) -> Codec[T]:
        return (await self._both())[1]

    # ---- reading

    async def get(self, name: str, namespace: str = "", *, subresource: str = "", version: str = "") -> T:
        """`version`: not older than this resource version ("0": whatever the server has at hand)."""
        query = {"resourceVersion": version} if version else None
        body = await self._calls.call("GET", await self._path(name, namespace, subresource), query=query)
        return (await self.codec()).one(body)

    async def list(
        self, namespace: str = "", *, labels: str = "", fields: str = "", version: str = "", page: int = PAGE
    ) -> Page[T]:
        """All of them, as one state of the server, however many pages that takes."""
        items: list[T] = []
        found: Page[T] = Page([], "")
        async for found in self.pages(namespace, labels=labels, fields=fields, version=version, page=page):
            items += found.items
        return Page(items, found.version)

    async def pages(
        self,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        version: str = "",
        page: int = PAGE,
        rest: str = "",
        unreadable: Callable[[str], object] | None = None,
    ) -> AsyncIterator[Page[T]]:
        """Page by page; the state is that of the first page. `page=0` asks for everything at once."""
        kind, codec = await self._both()
        query = Selection(labels=labels, fields=fields).query()
        if page:
            query["limit"] = str(page)
        if version and not rest:
            query["resourceVersion"] = version
        while True:
            asked = {**query, "continue": rest} if rest else query
            found = codec.page(await self._calls.call("GET", kind.path(namespace), query=asked), unreadable)
            yield found
            rest = found.rest
            if not rest:
                return
            query.pop("resourceVersion", None)  # the token says which state is meant

    async def watch(
        self,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        version: str = "",
        bookmarks: bool = False,
        seconds: int = _WATCH_SECONDS,
    ) -> AsyncGenerator[Event[T]]:
        """Changes after `version` until the server ends the watch; ApiError when it says it cannot go on.

        Leave it early only inside `contextlib.aclosing`, which ends the request, too. A low-level tool: an Informer is
        what keeps a state up to date.
        """
        codec = await self.codec()
        query = {"resourceVersion": version} if version else {}
        if bookmarks:
            query["allowWatchBookmarks"] = "true"
        selection = Selection(namespace, labels, fields)
        async with self.watching(selection, query, seconds=seconds) as batches:
            async for batch in batches:
                for event in codec.events(batch):
                    yield event

    @asynccontextmanager
    async def watching(
        self,
        selection: Selection,
        query: dict[str, str],
        *,
        seconds: int = _WATCH_SECONDS,
        silence: float | None = None,
    ) -> AsyncGenerator[AsyncIterator[Batch]]:
        """The lines of a watch, all that arrived at once together."""
        asked = {**selection.query(), **query, "watch": "true", "timeoutSeconds": str(seconds)}
        path = (await self.type()).path(selection.namespace)
        async with self._calls.lines(
            path, query=asked, silence=silence or seconds + _GRACE, unmanaged=self._unmanaged
        ) as batches:
            yield batches

    # ---- writing

    async def create(
        self, body: object, namespace: str = "", *, name: str = "", subresource: str = "", dry_run: bool = False
    ) -> T:
        """`name` and `subresource` for the few things that are created under an object (binding, eviction, token)."""
        kind, codec = await self._both()
        place = namespace or self._own_namespace(body)
        path = kind.path(place, name, subresource)
        query = self._write_query(dry_run)
        # A refusal of an eviction says "not now, it would hurt": that is an answer, not something to insist on.
        again, composed = subresource != "eviction", isinstance(body, dict)
        answer = await self._calls.call(
            "POST", path, query=query, body=encode(body), again=again, composed=composed, unmanaged=self._unmanaged
        )
        return codec.one(answer)

    async def create_unread(self, body: object, namespace: str = "") -> None:
        """For whoever does not care what the server has made of it."""
        path, query = (await self.type()).path(namespace or self._own_namespace(body)), self._write_query(False)
        composed = isinstance(body, dict)
        await self._calls.call("POST", path, query=query, body=encode(body), composed=composed, unread=True)

    async def update(self, body: object, namespace: str = "", *, subresource: str = "", dry_run: bool = False) -> T:
        """The whole object. With a resourceVersion in it, a write by somebody else in between is a conflict."""
        path = await self._path(_name_of(body), namespace or self._own_namespace(body), subresource)
        query, composed = self._write_query(dry_run), isinstance(body, dict)
        answer = await self._calls.call(
            "PUT", path, query=query, body=encode(body), composed=composed, unmanaged=self._unmanaged
        )
        return (await self.codec()).one(answer)

    async def patch(
        self,
        name: str,
        patch: object,
        namespace: str = "",
        *,
        kind: PatchKind = "merge",
        subresource: str = "",
        dry_run: bool = False,
    ) -> T:
        path, query = await self._path(name, namespace, subresource), self._write_query(dry_run)
        answer = await self._calls.call("PATCH", path, query=query, body=encode(patch), content_type=_PATCHES[kind])
        return (await self.codec()).one(answer)

    async def patch_unread(
        self,
        name: str,
        patch: object,
        namespace: str = "",
        *,
        kind: PatchKind = "merge",
        subresource: str = "",
    ) -> None:
        """For whoever watches the object anyway: the answer, which may be megabytes, is not decoded."""
        path, query = await self._path(name, namespace, subresource), self._write_query(False)
        media, composed = _PATCHES[kind], isinstance(patch, dict)
        await self._calls.call(
            "PATCH", path, query=query, body=encode(patch), content_type=media, composed=composed, unread=True
        )

    async def apply(
        self,
        body: object,
        namespace: str = "",
        *,
        manager: str = "",
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
    ) -> T:
        """Server-side apply: create or change what is in `body`, own it, and leave the rest to others.

        A conflict is an ApiError whose causes name the fields and who owns them; `force` takes them over.
        """
        path = await self._path(_name_of(body), namespace or self._own_namespace(body), subresource)
        query = {**self._write_query(dry_run, manager), "force": "true" if force else "false"}
        answer = await self._calls.call("PATCH", path, query=query, body=encode(body), content_type=_APPLY)
        return (await self.codec()).one(answer)

    async def delete(
        self,
        name: str,
        namespace: str = "",
        *,
        propagation: Propagation | None = None,
        grace: int | None = None,
        uid: str = "",
        version: str = "",
        dry_run: bool = False,
    ) -> Object:
        """The object as it goes (finalizers, grace), or a Status. `uid`, `version`: only if it is still that one."""
        options = _delete_options(propagation, grace, uid, version, dry_run)
        return _dictionary(await self._delete(name, namespace, options))

    async def delete_unread(self, name: str, namespace: str = "", *, grace: int | None = None, uid: str = "") -> None:
        """For whoever watches the object anyway: the answer, which may be megabytes, is not decoded."""
        await self._delete(name, namespace, _delete_options(None, grace, uid, "", False))

    async def _delete(self, name: str, namespace: str, options: dict[str, Any]) -> bytes:
        return await self._calls.call("DELETE", await self._path(name, namespace, ""), body=encode(options))

    async def delete_all(
        self,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        propagation: Propagation | None = None,
        grace: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Of one namespace: never of all of them."""
        options = _delete_options(propagation, grace, "", "", dry_run)
        path = (await self.type()).path(namespace or self._namespace)
        query = Selection(labels=labels, fields=fields).query()
        return _dictionary(await self._calls.call("DELETE", path, query=query, body=encode(options)))

    # ---- what people do with subresources

    async def bind(self, name: str, node: str, namespace: str = "", *, uid: str = "") -> None:
        """Say on which node a pod runs; with `uid`, only if it is still that pod."""
        meta = {"name": name, **({"uid": uid} if uid else {})}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        path = await self._path(name, namespace, "binding")
        query = self._write_query(False)
        await self._calls.call("POST", path, query=query, body=encode(body), composed=True, unread=True)

    async def evict(self, name: str, namespace: str = "", *, grace: int | None = None, uid: str = "") -> None:
        """Ask a pod to go, if no budget forbids it: ApiError 429 then, with the budget among its causes."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name},
            "deleteOptions": _delete_options(None, grace, uid, "", dry_run=False),
        }
        path = await self._path(name, namespace, "eviction")
        await self._calls.call("POST", path, body=encode(body), again=False)

    async def scale(self, name: str, replicas: int | None = None, namespace: str = "") -> Object:
        """The Scale of an object; with `replicas`, changed to that."""
        path = await self._path(name, namespace, "scale")
        if replicas is None:
            return _dictionary(await self._calls.call("GET", path))
        body = encode({"spec": {"replicas": replicas}})
        query = self._write_query(False)
        return _dictionary(
            await self._calls.call("PATCH", path, query=query, body=body, content_type=_PATCHES["merge"])
        )

    # ---- inside

    async def _both(self) -> tuple[ResourceType, Codec[T]]:
        if self._known is None:
            kind = await self._resolve()
            codec = Codec(self._decode, kind=kind.kind, api_version=kind.api_version, reading=self._reading)
            self._known = (kind, codec)
        return self._known

    async def _path(self, name: str, namespace: str, subresource: str) -> str:
        if not name:
            raise KubeError("metadata.name: missing; this call needs the name of an object")
        return (await self.type()).path(namespace or self._namespace, name, subresource)

    def _own_namespace(self, body: object) -> str:
        return (identify(body).key.namespace if _has_meta(body) else "") or self._namespace

    def _write_query(self, dry_run: bool, manager: str = "") -> dict[str, str]:
        query = {"fieldManager": manager or self._manager}
        if dry_run:
            query["dryRun"] = "All"
        return query


def _has_meta(body: object) -> bool:
    return isinstance(body, dict | bytes | msgspec.Raw) or hasattr(body, "metadata")


def _name_of(body: object) -> str:
    return identify(body).key.name


_any_dictionary = msgspec.json.Decoder(dict[str, Any])


def _dictionary(body: bytes) -> dict[str, Any]:
    return decode_large(_any_dictionary.decode, body)


def _delete_options(
    propagation: Propagation | None, grace: int | None, uid: str, version: str, dry_run: bool
) -> dict[str, Any]:
    preconditions = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
    found: dict[str, Any] = {
        "propagationPolicy": propagation,
        "gracePeriodSeconds": grace,
        "preconditions": preconditions or None,
        "dryRun": ["All"] if dry_run else None,
    }
    chosen = {name: value for name, value in found.items() if value is not None}
    return {"apiVersion": "v1", "kind": "DeleteOptions", **chosen}
