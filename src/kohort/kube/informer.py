"""A collection kept up to date: list, then watch, for as long as it runs, through cuts, restarts and expiries.

    informer = Informer(client.resource("pods", Pod), labels="app=web")
    informer.handle(added=queue_it, updated=lambda old, new: queue_it(new), deleted=forget_it)
    async with informer:
        await informer.ready()
        informer.cache.get(("default", "web-0"))

Handlers are plain functions; they are called in order, each right after the cache has moved to that state, and must
not wait: put a key into a work queue.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kohort.kube import dismantle
from kohort.kube.cache import Cache, Change, not_after
from kohort.kube.clock import REAL
from kohort.kube.errors import ApiError, KubeError, TransportError
from kohort.kube.latelines import LateLines
from kohort.kube.limits import Backoff
from kohort.kube.perloop import PerLoop
from kohort.kube.resource import PAGE, Selection
from kohort.kube.timeslice import TimeSlices

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping
    from types import TracebackType

    from kohort.kube.cache import Sorts
    from kohort.kube.clock import Clock
    from kohort.kube.codec import Codec, Event, Key, Object
    from kohort.kube.resource import Resource

T = TypeVar("T")

log = logging.getLogger(__name__)

_WATCH_SECONDS: Final = 300
# A server that does not know streaming lists may take one for a plain watch and then be silent for ever.
_INITIAL_SILENCE: Final = 15.0
_AT_ONCE: Final = 500  # changes told between two turns of the event loop
_AT_ONCE_BYTES: Final = 1 << 16  # of lines read between two of them


@dataclass(slots=True, eq=False)
class Handler(Generic[T]):
    """Whom to tell."""

    added: Callable[[T], object] | None = None
    updated: Callable[[T, T], object] | None = None
    deleted: Callable[[T], object] | None = None
    untold: set[Key] = field(default_factory=set)  # that are there, and that it has yet to hear of
    name: str = ""  # by which its informer's sorts know whether an object concerns it

    def hear(self, change: Change[T]) -> None:
        """Whom it has not heard of cannot change: it is new, or was never there."""
        if self.untold and change.key in self.untold:
            self.untold.discard(change.key)
            change = change._replace(old=None, last=None)
        self.tell(change)

    def tell(self, change: Change[T]) -> None:
        try:
            if change.new is None:
                if self.deleted is not None and change.last is not None:
                    self.deleted(change.last)
            elif change.old is None:
                if self.added is not None:
                    self.added(change.new)
            elif self.updated is not None:
                self.updated(change.old, change.new)
        except Exception:
            # The others still have to hear of it, and the next change must not be lost.
            log.exception("a handler failed on %s", change.key)


@dataclass(slots=True)
class InformerCounts:
    """What an informer has done; for metrics and tests."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    unreadable: int = 0
    failures: int = 0


class _NoStreamingError(KubeError):
    """The server does not do streaming lists."""


class Informer(Generic[T]):
    """Objects of one resource, of one namespace or all, that match the selectors."""

    def __init__(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        indexers: Mapping[str, Callable[[T], Iterable[Hashable]]] | None = None,
        transform: Callable[[T], T] | None = None,
        sorts: Sorts[T] | None = None,
        streaming: bool = True,
        page: int = PAGE,
        optional: bool = False,
        clock: Clock = REAL,
        jitter: random.Random | None = None,
    ) -> None:
        """`transform`: what is kept of an object, before anybody sees it. `sorts`: whom an object does not concern.
        `streaming`: ask for a watch that begins with everything, which spares the server a large answer and costs it
        twice as much time as pages do. `optional`: who may not read it at the beginning gets the refusal as an error,
        instead of waiting until it may."""
        self._resource = resource
        self._transform = transform or _as_it_is
        self._selection = Selection(namespace, labels, fields)
        self._streaming = streaming
        self._page = page
        self._optional = optional
        self._clock = clock
        self._jitter = jitter or random.Random()
        self._backoff = Backoff(jitter=self._jitter)
        self._handlers: list[Handler[T]] = []
        self._sorts = sorts
        self._of_sort: dict[Hashable, tuple[Handler[T], ...]] = {}
        self._listed = False
        self._progress = False
        self._task: asyncio.Task[None] | None = None
        self._late: LateLines[Event[T]] | None = None  # since the last list
        self.cache: Cache[T] = Cache(resource.identify, indexers, sorts)
        self.unseen: Callable[[T], object] | None = None  # told of what is gone, and of which no handler has heard
        self.synced = asyncio.Event()
        self.counts = InformerCounts()
        self.last_error: KubeError | None = None
        self.failing_since: float | None = None  # what the cache knows is as old as this

    def handle(
        self,
        *,
        added: Callable[[T], object] | None = None,
        updated: Callable[[T, T], object] | None = None,
        deleted: Callable[[T], object] | None = None,
    ) -> Callable[[], None]:
        """Tell of every change from now on, what is there already as added. Call the result to stop."""
        handler = Handler(added, updated, deleted)
        self._add(handler)
        if added is not None:
            for item in list(self.cache.values()):
                added(item)
        return lambda: self._remove(handler)

    async def tell(
        self,
        *,
        added: Callable[[T], object] | None = None,
        updated: Callable[[T, T], object] | None = None,
        deleted: Callable[[T], object] | None = None,
        name: str = "",
    ) -> None:
        """As `handle`, but what is there already is told in turns with whoever else needs the event loop. `name`: by
        which the informer's sorts know it."""
        handler = Handler(added, updated, deleted, set(self.cache.keys()), name)
        self._add(handler)
        for number, key in enumerate(list(self.cache.keys()), 1):
            found = self.cache.get(key)
            if found is not None and key in handler.untold and handler in self._concerned(found):
                handler.hear(Change(key, None, found))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        handler.untold.clear()  # the rest is gone, or concerns it not

    async def __aenter__(self) -> Informer[T]:
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def ready(self) -> None:
        """Wait for the first whole state. Errors of the server are waited out; `last_error` says what they are."""
        waiting = asyncio.create_task(self.synced.wait())
        try:
            await asyncio.wait({waiting, *((self._task,) if self._task else ())}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done() and self._task is not None:
                self._task.result()
        finally:
            waiting.cancel()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await self._run()
        finally:
            self._drop_late()

    async def _run(self) -> None:
        while True:
            self._progress = False
            began = self._clock.monotonic()
            told = 0.0
            try:
                at_once = await self._follow() or self._progress or self._clock.monotonic() - began > 1
            except _NoStreamingError:
                self._streaming = False
                continue
            except KubeError as error:
                if self._optional and not self.synced.is_set() and isinstance(error, ApiError) and error.code == 403:
                    raise
                at_once = self._failed(error)
                told = (isinstance(error, ApiError) and error.retry_after) or 0.0
            if self._progress:
                self._backoff.reset()
            if not at_once:
                await self._clock.sleep(max(told, self._backoff.next()))

    # ---- inside

    async def _follow(self) -> bool:
        """One connection's worth: to the server's state if we are not there, and along with it. True: go on at once."""
        codec = await self._resource.codec()
        if self._listed:
            self.counts.watches += 1
            query = {"resourceVersion": self._seen(), "allowWatchBookmarks": "true"}
            async with self._resource.watching(self._selection, query, seconds=self._seconds()) as batches:
                await self._watch(codec, [], batches)
            return False
        self._drop_late()  # what comes is newer
        if self._streaming:
            await self._stream(codec)
            return False
        await self._list()
        return True

    def _failed(self, error: KubeError) -> bool:
        """True if it is worth going on without a pause."""
        expired = isinstance(error, ApiError) and (error.expired or error.version_too_large)
        if expired:
            self._listed = False
        else:
            self.counts.failures += 1
        if not expired and str(error) != str(self.last_error):
            log.warning("%s: %s; trying again", self._resource.name, error)
        self.last_error = error
        if self.failing_since is None:
            self.failing_since = self._clock.monotonic()
        return expired and self._progress

    async def _list(self) -> None:
        self.counts.lists += 1
        items: list[T] = []
        version = ""
        chosen = self._selection
        async for page in self._resource.pages(
            chosen.namespace,
            labels=chosen.labels,
            fields=chosen.fields,
            page=self._page,
            unreadable=self._unreadable,
        ):
            items += map(self._transform, page.items)
            version = page.version
        await self._replace(items, version)

    async def _stream(self, codec: Codec[T]) -> None:
        """A watch that begins with the whole state, ended by a bookmark that says so, and then simply goes on."""
        self.counts.lists += 1
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        try:
            async with self._resource.watching(self._selection, query, seconds=self._seconds()) as batches:
                await self._watch(codec, await self._initial(codec, batches), batches)
        except ApiError as error:
            if error.code in {400, 405, 422} and not self._listed:
                raise _NoStreamingError from error
            raise

    async def _initial(self, codec: Codec[T], batches: AsyncIterator[list[bytes]]) -> list[bytes]:
        """Everything up to the bookmark; the lines that came with it and belong after it are given back."""
        items: dict[tuple[str, str], T] = {}
        while True:
            try:
                async with self._clock.timeout(_INITIAL_SILENCE):
                    batch = await anext(batches)
            except TimeoutError as error:
                raise _NoStreamingError from error
            except StopAsyncIteration:
                raise TransportError("the list ended before it was complete") from None
            read = 0
            for number, line in enumerate(batch, 1):
                read += len(line)
                if read > _AT_ONCE_BYTES:
                    await _turn()
                    read = len(line)
                event = codec.event(line, self._unreadable)
                if event.type == "BOOKMARK" and event.initial_end:
                    await self._replace(items.values(), event.version)
                    return batch[number:]
                if event.object is not None:
                    key = codec.identify(event.object).key
                    if event.type == "DELETED":
                        items.pop(key, None)
                    else:
                        items[key] = self._transform(event.object)
            await asyncio.sleep(0)

    async def _replace(self, items: Iterable[T], version: str) -> None:
        """The cache moves to the state of a list, change by change, so that handlers see it move."""
        for number, change in enumerate(self.cache.differences(items)):
            self._move(change)
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
        self.cache.replaced(version)
        self._listed = True
        self.last_error = self.failing_since = None
        self.synced.set()

    async def _watch(self, codec: Codec[T], first: list[bytes], batches: AsyncIterator[list[bytes]]) -> None:
        """`first`: lines that have come already. Large ones that are still to be read outlive the watch: what follows
        does not wait for them, and the next watch begins after them."""
        if self._late is None:
            self._late = LateLines(
                lambda line: codec.event_in_pieces(line, self._unreadable),
                lambda event: self._take(event, late=True),
                self._clock,
            )
        await self._read(codec, first, self._late)
        del first
        async for batch in batches:
            await self._read(codec, batch, self._late)
            del batch  # it may be long until there is another
            self._progress = True
            self.last_error = self.failing_since = None
            # With data waiting, reading does not yield; others want to run, too.
            await asyncio.sleep(0)

    def _seen(self) -> str:
        """Up to where everything has come, be it still to be read."""
        late = self._late.version if self._late is not None else ""
        return late if late and not not_after(late, self.cache.version) else self.cache.version

    def _drop_late(self) -> None:
        if self._late is not None:
            self._late.drop()
            self._late = None

    async def _read(self, codec: Codec[T], batch: list[bytes], late: LateLines[Event[T]]) -> None:
        late.check()
        read = 0
        for line in batch:
            if late.keeps(line):
                continue
            read += len(line)
            if read > _AT_ONCE_BYTES:
                await _turn()
                read = len(line)
            self._take(codec.event(line, self._unreadable))

    def _take(self, event: Event[T], *, late: bool = False) -> None:
        """One event into the cache and on to the handlers."""
        self.counts.events += 1
        item = event.object
        if item is None:
            changes = self.cache.lost(event.key) if event.key is not None else ()
            self.cache.reached(event.version)
        elif event.type == "DELETED":
            changes = self.cache.deleted(item)
            if not changes and self.unseen is not None:
                self.unseen(item)
        else:
            kept = self._transform(item)
            changes = self.cache.written(kept, late=late)
            if late and kept is not item and self._clock is REAL:
                dismantle.of_loop().add(item)
        for change in changes:
            self._move(change)
            if late and self._clock is REAL:
                dismantle.of_loop().add(change.old)
                if change.last is not change.old:
                    dismantle.of_loop().add(change.last)

    def _move(self, change: Change[T]) -> None:
        self.cache.commit(change)
        for handler in self._hearing(change):
            if handler.untold:
                handler.hear(change)
            else:
                handler.tell(change)

    def _hearing(self, change: Change[T]) -> Iterable[Handler[T]]:
        """Whom one of the states of a change concerns."""
        if self._sorts is None:
            return tuple(self._handlers)
        states = [one for one in (change.new, change.old, change.last) if one is not None]
        found = [self._concerned(one) for one in states]
        if all(one is found[0] for one in found):
            return found[0]
        return [one for one in self._handlers if any(one in some for some in found)]

    def _concerned(self, item: T) -> tuple[Handler[T], ...]:
        if self._sorts is None:
            return tuple(self._handlers)
        sort = self._sorts.of(item)
        found = self._of_sort.get(sort)
        if found is None:
            chosen = (one for one in self._handlers if not one.name or self._sorts.concerns(one.name, sort))
            found = self._of_sort[sort] = tuple(chosen)
        return found

    def _add(self, handler: Handler[T]) -> None:
        self._handlers.append(handler)
        self._of_sort.clear()

    def _remove(self, handler: Handler[T]) -> None:
        self._handlers.remove(handler)
        self._of_sort.clear()

    def _unreadable(self, problem: str) -> None:
        self.counts.unreadable += 1
        log.error("%s: left out: %s", self._resource.name, problem)

    def _seconds(self) -> int:
        """Of a watch: different for each, so that after a restart of the server they do not all end together."""
        return int(_WATCH_SECONDS * (1 + self._jitter.random()))


def _as_it_is(item: T) -> T:
    return item


def without_managed_fields(obj: Object) -> Object:
    """Who wrote what is often more than what was written, and no controller reads it; an update without it keeps it."""
    meta = obj.get("metadata")
    if isinstance(meta, dict):
        meta.pop("managedFields", None)
    return obj


# Several informers may read the same large object: one of them in each turn of the loop.
_large: Final = PerLoop(TimeSlices)


async def _turn() -> None:
    """Much is not read in one turn of the loop."""
    await _large().turn()
