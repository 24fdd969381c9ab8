"""watch: a stream of changes from a revision on, that never loses or repeats one.

A watcher is a place in the log of its resource. When something is committed it reads on from there and sends everything
that is new as one chunk, so a burst costs little more than a single event.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from kohort.api.errors import forbidden, required
from kohort.kube import timeslice
from kohort.server import negotiation, options, status, storage_codec
from kohort.server.codec import encode
from kohort.server.handlers.get import SelectionPredicate, check_versions, matches, selection_predicate, version_number
from kohort.server.printers import table
from kohort.server.store import ADDED, DELETED, MODIFIED, Change, CompactedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

    from kohort.api.kind import Object
    from kohort.server.core import Core
    from kohort.server.metrics import Metrics
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.store import Event, Item

BOOKMARKS: Final = 60.0  # seconds between them
_INITIAL_END: Final = "k8s.io/initial-events-end"
_CHUNK: Final = 1 << 20
_FEW: Final = 8  # changes that are sent as they are
_PATIENCE: Final = 3.0  # seconds for a revision that is still to come


class Watch:
    """One watcher. `lines` is the stream."""

    def __init__(self, core: Core, info: RequestInfo, stop: asyncio.Event, metrics: Metrics) -> None:
        self.core, self.info, self.resource = core, info, info.resource
        self.predicate: SelectionPredicate = selection_predicate(info)
        self._stop, self._metrics = stop, metrics
        self._began = 0.0
        self._head = storage_codec.object_prefix(info.resource)
        self._starts = {
            event_type: b'{"type":"' + event_type.encode() + b'","object":' for event_type in (ADDED, MODIFIED, DELETED)
        }
        converts = info.resource.converts or info.resource.conversion is not None
        self._plain = info.accepted.kind == negotiation.OBJECT and not converts
        self._unmanaged = info.request.unmanaged
        self._carried: dict[Item, Item] = {}  # by a webhook, into the version that is watched
        self.bookmarks = options.flag(info.query, "allowWatchBookmarks")
        self.seconds = self._seconds()
        self._read_start()

    def _read_start(self) -> None:
        query, store = self.info.query, self.core.store
        version, match = options.one(query, "resourceVersion"), options.one(query, "resourceVersionMatch")
        self.initial_end = False
        if "sendInitialEvents" in query:
            _check_initial(match, options.flag(query, "sendInitialEvents"))
            if version:
                version_number(version)
            self.initial_end = options.flag(query, "sendInitialEvents")
            self.first = self.initial_end or version == "0"
        else:
            check_versions(version, match, "")
            self.first = version in ("", "0")
        asked = version_number(version) if version else 0
        self.wait_for = asked if self.first else 0
        self.at = store.revision if self.first else asked
        if not self.first:
            try:
                store.check(asked)
            except CompactedError as error:
                raise status.expired(str(error)) from None

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The same for a socket."""
        async with aclosing(self.lines()) as batches:
            async for batch in batches:
                chunk = b"".join(batch)
                del batch  # it may be long until there is another
                yield chunk
                del chunk

    async def lines(self) -> AsyncGenerator[list[bytes]]:
        """All that are there at once together, but no more than a socket likes."""
        self._metrics.watchers += 1
        try:
            async for batch in self._first():
                yield batch
                del batch  # it may be long until there is another
            loop = asyncio.get_running_loop()
            marked, end = loop.time(), self._began + self.seconds
            target = self.core.store.table(self.resource.table)
            while not self._stop.is_set():
                events = self.core.store.following(self.resource.table, self.at)
                seen = self.core.store.revision
                if events:
                    await self._carry(events)
                    if len(events) <= _FEW and sum(len(one.item.value) for one in events) <= _CHUNK:
                        if found := list(self._shown(events)):
                            yield found
                        del found
                    else:
                        async for batch in self._batches(self._shown(events)):
                            yield batch
                            del batch
                    self.at = max(self.at, events[-1].revision)
                    continue
                now = loop.time()
                if now >= end:
                    break
                self.at = max(self.at, seen) if self.at <= seen else self.at
                if self.bookmarks and now - marked >= BOOKMARKS:
                    marked = now
                    yield [self._bookmark(self.at)]
                    continue  # something may have come while that was sent
                await target.changed(max(min(end, marked + BOOKMARKS if self.bookmarks else end) - now, 0.001))
            if self.bookmarks:
                yield [self._bookmark(self.at)]
        except CompactedError as error:
            yield [_line("ERROR", status.expired(str(error)).status)]
        except status.ApiError as error:
            yield [_line("ERROR", error.status)]
        finally:
            self._metrics.watchers -= 1

    async def _first(self) -> AsyncGenerator[list[bytes]]:
        """What is there when it begins, if that was asked for."""
        if self.wait_for > self.core.store.revision and not await self._caught_up():
            raise status.version_too_large(self.wait_for, self.core.store.revision)
        self._began = asyncio.get_running_loop().time()
        if not self.first:
            return
        self.at = self.core.store.revision
        first = self.core.store.table(self.resource.table).items(self.predicate.namespace)
        await self._carry_items(first)
        async for batch in self._batches(self._initial(first)):
            yield batch
        if self.initial_end and self.bookmarks:
            yield [self._bookmark(self.at, {_INITIAL_END: "true"})]

    async def _caught_up(self) -> bool:
        end = asyncio.get_running_loop().time() + _PATIENCE
        while self.core.store.revision < self.wait_for:
            if asyncio.get_running_loop().time() >= end:
                return False
            await asyncio.sleep(0.05)
        return True

    async def _batches(self, lines: Iterator[bytes]) -> AsyncGenerator[list[bytes]]:
        """In pieces that a socket likes; many of them take several turns of the loop."""
        waiting: list[bytes] = []
        size = 0
        slices = self.core.slices
        end = time.perf_counter() + timeslice.SECONDS
        for line in lines:
            waiting.append(line)
            size += len(line)
            if size >= _CHUNK:
                yield waiting
                waiting, size = [], 0
            if time.perf_counter() >= end:
                end = await slices.turn()
        if waiting:
            yield waiting

    def _seconds(self) -> float:
        given = options.whole(self.info.query, "timeoutSeconds")
        least = self.core.min_request_timeout
        return float(given) if given is not None and given > 0 else random.uniform(least, 2 * least)

    # ---- what is sent

    async def _carry(self, events: Sequence[Event]) -> None:
        """What is about to be sent, in the version that is watched; ApiError if that fails."""
        if self.resource.conversion is not None:
            changed = (item for event in events for item in (event.item, event.before) if item is not None)
            await self._carry_items(changed)

    async def _carry_items(self, items: Iterable[Item]) -> None:
        converter = self.core.converter
        if self.resource.conversion is not None and converter is not None:
            wanted = [item for item in items if self.predicate.namespace in (None, item.namespace)]
            self._carried = dict(zip(wanted, await converter.items(self.resource, wanted), strict=True))

    def _load(self, item: Item) -> Object:
        return storage_codec.load(self.resource, self._carried.get(item, item))

    def _initial(self, items: Sequence[Item]) -> Iterator[bytes]:
        for item in items:
            if self.predicate.everything or matches(self.resource, self.predicate, storage_codec.decode(item.value)):
                yield self._event(ADDED, item, None)

    def _shown(self, events: Any) -> Iterator[bytes]:
        namespace, everything = self.predicate.namespace, self.predicate.everything
        for event in events:
            if namespace is not None and event.item.namespace != namespace:
                continue
            if everything:
                yield self._event(event.change.event_type, event.item, None)
                continue
            event_type = self._transition(event)
            if event_type:
                yield self._event(event_type, event.item, event if event_type == DELETED else None)

    def _transition(self, event: Event) -> str:
        """An object that begins to match is new to this watcher, one that no longer does is gone for it."""
        noted = storage_codec.decoded(event)
        before = noted.before is not None and matches(self.resource, self.predicate, noted.before)
        after = event.change is not Change.DELETE and matches(self.resource, self.predicate, noted.obj)
        if after:
            return MODIFIED if before else ADDED
        return DELETED if before else ""

    def _event(self, event_type: str, item: Item, gone: Event | None) -> bytes:
        if gone is not None and gone.before is not None and gone.change is not Change.DELETE:
            # It left the selection: what is sent is its state before, at the revision of the change.
            obj = self._load(gone.before)
            obj["metadata"]["resourceVersion"] = str(item.revision)
            return _line(event_type, self._represented(obj))
        if self._plain:
            value = storage_codec.unmanaged(item).value if self._unmanaged else item.value
            return self._starts[event_type] + self._head + value[1:] + b"}\n"
        return _line(event_type, self._represented(self._load(item)))

    def _represented(self, obj: Object) -> Object:
        form = self.info.accepted
        if form.kind == negotiation.TABLE:
            include = options.one(self.info.query, "includeObject")
            meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return table.of_objects(self.resource, [obj], meta=meta, include=include, version=form.version)
        if form.kind in (negotiation.PARTIAL, negotiation.PARTIAL_LIST):
            return table.partial(obj, form.version)
        return obj

    def _bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        meta: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        obj: Object = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": meta}
        if self.info.accepted.kind == negotiation.TABLE:
            obj = {
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": str(revision)},
                "columnDefinitions": None,
                "rows": [{"cells": [], "object": table.partial(obj)}],
            }
        elif self.info.accepted.kind in (negotiation.PARTIAL, negotiation.PARTIAL_LIST):
            obj = table.partial(obj, self.info.accepted.version)
        return _line("BOOKMARK", obj)


def _check_initial(match: str, wanted: bool) -> None:
    found = []
    if match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        found.append(forbidden("resourceVersionMatch", text) if match else required("resourceVersionMatch", text))
    if found and wanted is not None:
        raise status.invalid("meta.k8s.io", "ListOptions", "", found)


def _line(event_type: str, obj: Object) -> bytes:
    return encode({"type": event_type, "object": obj}) + b"\n"
