"""What runs reconciles: informers, one work queue per controller, writes, events, metrics, a graceful stop.

    runtime = Runtime(client, [job_controller(ctx), cronjob_controller()])
    async with runtime:
        await runtime.ready()
        ...

All decisions are in the reconciles. What stands here is how a write is sent, what a refusal is, and when to come back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any, Final

from prometheus_client import CollectorRegistry

from kohort import tuning
from kohort.api.kind import Object
from kohort.controllers import faults
from kohort.controllers.aside import Aside, advance, end
from kohort.controllers.controller import (
    Controller,
    Indexer,
    Key,
    Reader,
    Watch,
    enqueue_nothing,
    key_of,
)
from kohort.controllers.metrics import Metrics
from kohort.controllers.overlay import WriteOverlay
from kohort.controllers.parts import reading
from kohort.controllers.reconcile import Answer, Event, ReconcileError, Refusal, Result, Write
from kohort.controllers.sorts import WatchedSorts, predicate
from kohort.kube import dismantle, shares
from kohort.kube.client import Client
from kohort.kube.clock import REAL, Clock
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError, KubeError
from kohort.kube.events import Recorder
from kohort.kube.informer import Informer, without_managed_fields
from kohort.kube.queue import ClosedError, WorkQueue
from kohort.kube.resource import Resource

log = logging.getLogger(__name__)

AT_ONCE: Final = 50  # writes of one controller to one namespace that are under way at the same time
_NAMESPACES: Final = 1000  # whose writes are counted, before those without any are dropped
_STOP: Final = 10.0  # seconds that a reconcile under way gets to end
_NOT_LEADER: Final = Refusal(0, "NotLeader", "the lease is lost: nothing is written any more")


def _seen_to_go(overlay: WriteOverlay, old: Object) -> None:
    overlay.seen(old, None)


class Observed:
    """What the informers know, with our own writes put over it. Each kind is watched once for all controllers."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._indexers: dict[tuple[str, str], dict[str, Any]] = {}
        self._sorts: dict[tuple[str, str], WatchedSorts] = {}
        self._watches: dict[tuple[str, str], list[Watch]] = {}
        self.informers: dict[tuple[str, str], Informer[Object]] = {}
        self._names: dict[tuple[str, str], str] = {}  # what readers call a kind
        self._overlays: dict[str, WriteOverlay] = {}
        self._by_name: dict[str, Informer[Object]] = {}
        self._forgetting: asyncio.Task[None] | None = None

    def want(self, watch: Watch, owner: str) -> None:
        """Before `start`: indexes belong to the controller that asked for them."""
        self._names[watch.api_version, watch.kind] = watch.named
        indexers = self._indexers.setdefault((watch.api_version, watch.kind), {})
        indexers |= {f"{owner}/{name}": _safe(indexer, f"{owner}/{name}") for name, indexer in watch.indexers.items()}
        sorts = self._sorts.setdefault((watch.api_version, watch.kind), WatchedSorts())
        sorts.want(watch, (f"{owner}/{name}" for name in watch.indexers))
        self._watches.setdefault((watch.api_version, watch.kind), []).append(watch)

    def start(self) -> None:
        for (api_version, kind), indexers in self._indexers.items():
            resource = self._client.kind(api_version, kind).without_managers()
            watches = self._watches[api_version, kind]
            if (parts := reading(api_version, kind, [one.contents_of for one in watches])) is not None:
                resource = resource.reading(parts)
            informer: Informer[Object] = Informer(
                resource,
                indexers=indexers,
                transform=without_managed_fields,
                sorts=self._sorts[api_version, kind].unless_all_alike(),
                clock=self._clock,
                jitter=self._client.jitter,
            )
            name = self._names[api_version, kind]
            overlay = self._overlays[name] = WriteOverlay()
            gone = partial(_seen_to_go, overlay)
            informer.handle(
                added=lambda new, overlay=overlay: overlay.seen(None, new),  # type: ignore[misc]
                updated=overlay.seen,
                deleted=gone,
            )
            informer.unseen = gone  # of what comes and goes while a watch is behind, nothing is told
            self.informers[api_version, kind] = self._by_name[name] = informer

    def forget(self) -> None:
        """What was written and never seen, when it is too old to be believed; a few at a time: they may be large."""
        if self._forgetting is None or self._forgetting.done():
            self._forgetting = asyncio.create_task(self._forget())

    async def _forget(self) -> None:
        for overlay in self._overlays.values():
            while found := overlay.forget(self._clock.monotonic()):
                for obj in found:
                    dismantle.of_loop().add(obj)
                await asyncio.sleep(0)

    def get(self, kind: str, key: Key) -> Object | None:
        informer = self._by_name.get(kind)
        if informer is None:
            return None
        return self._overlays[kind].get(key, informer.cache.get(key), self._clock.monotonic())

    def indexed(self, owner: str, kind: str, index: str, value: Hashable) -> list[Object]:
        name = f"{owner}/{index}"
        informer = self._by_name.get(kind)
        indexer = self._indexer(kind, name)
        if informer is None or indexer is None:  # not watched, or by others only
            return []
        found = informer.cache.indexed(name, value)
        return self._overlays[kind].over(found, indexer, value, self._clock.monotonic())

    def _indexer(self, kind: str, name: str) -> Any:
        for key, found in self._indexers.items():
            if self._names[key] == kind:
                return found.get(name)
        return None

    def wrote(self, write: Write, answer: Object | None) -> None:
        name = self._names.get((write.api_version, write.kind), "")
        overlay, informer = self._overlays.get(name), self._by_name.get(name)
        if overlay is None or informer is None or write.subresource == "scale":
            return
        reached, now = informer.cache.version, self._clock.monotonic()
        if write.verb == "delete":
            overlay.deleted(Key(write.namespace, write.name), write.uid, answer, reached, now)
        elif answer is not None and (answer.get("metadata") or {}).get("name"):
            overlay.wrote(without_managed_fields(answer), reached, now)


def _namespace(key: Key) -> Hashable:
    return key.namespace


def _safe(indexer: Indexer, name: str) -> Indexer:
    """An object that cannot be indexed is not found by that index: it must not end the watch of its kind."""

    def indexed(obj: Object) -> Iterable[Hashable]:
        try:
            return list(indexer(obj))
        except Exception:
            log.exception("index %s: %s %s cannot be read", name, obj.get("kind"), key_of(obj))
            return ()

    return indexed


class _ControllerReader:
    """The state, with the indexes of one controller."""

    def __init__(self, observed: Observed, controller: str) -> None:
        self._observed = observed
        self._controller = controller

    def get(self, kind: str, key: Key) -> Object | None:
        return self._observed.get(kind, key)

    def indexed(self, kind: str, index: str, value: Hashable) -> list[Object]:
        return self._observed.indexed(self._controller, kind, index, value)


class _Workers:
    """One controller with its queue and its workers."""

    def __init__(self, controller: Controller, runtime: Runtime) -> None:
        self.controller = controller
        self._runtime = runtime
        self.queue: WorkQueue[Key] = WorkQueue(
            clock=runtime.clock,
            first=controller.base_delay,
            most=controller.max_delay,
            group_of=_namespace,
            share=controller.workers,
            rests=shares.rests if runtime.clock is REAL else None,
        )
        self._reader: Reader = _ControllerReader(runtime.observed, controller.name)
        self._slots: dict[str, asyncio.Semaphore] = {}  # by namespace
        self._seconds = runtime.metrics.seconds.labels(controller.name)
        self._counters: dict[tuple[str, str, int], Any] = {}
        self._results: dict[str, Any] = {}  # how reconciles ended -> counter
        runtime.metrics.waiting.labels(controller.name).set_function(lambda: len(self.queue))

    async def listen(self, watch: Watch, informer: Informer[Object]) -> None:
        if watch.handler is enqueue_nothing:
            return
        await informer.tell(
            added=lambda new: self._changed(watch, None, new),
            updated=lambda old, new: self._changed(watch, old, new),
            deleted=lambda old: self._changed(watch, old, None),
            name=predicate(watch),
        )

    def _changed(self, watch: Watch, old: Object | None, new: Object | None) -> None:
        """What cannot be read is marked; nothing is enqueued for it until it changes."""
        spaces = self._runtime.namespaces
        try:
            for key, after in watch.handler(old, new):
                if not spaces or not key.namespace or key.namespace in spaces:
                    self.queue.add_after(key, after)
        except Exception as error:
            log.exception("%s: handler of %s failed", self.controller.name, watch.named)
            self._runtime.metrics.errors.labels(self.controller.name).inc()
            if new is not None:
                self._emit(faults.event(new, self.controller.name, error))

    async def work(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.controller.workers + 1):  # one that is never held by a single namespace
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except ClosedError:
                return
            began = time.perf_counter()
            try:
                result = await self._reconcile(key)
            finally:
                self.queue.done(key)
            self._seconds.observe(time.perf_counter() - began)
            counter = self._results.get(result)
            if counter is None:
                reconciles = self._runtime.metrics.reconciles
                counter = self._results[result] = reconciles.labels(self.controller.name, result)
            counter.inc()

    async def _reconcile(self, key: Key) -> str:
        """How it ended, for the metrics. Nothing that a reconcile does may end a worker, or stop other keys."""
        try:
            result = await self._run(key)
            for name in result.counted:
                self._runtime.metrics.count(name, key.name, key.namespace)
        except ReconcileError as error:
            wait = self.queue.retry(key)
            self._runtime.metrics.errors.labels(self.controller.name).inc()
            log.info("%s %s: %s; again in %.1f s", self.controller.name, key, error, wait)
            return "again"
        except Exception as error:
            wait = self.queue.retry(key)
            self._runtime.metrics.errors.labels(self.controller.name).inc()
            log.exception("%s %s: failed; again in %.1f s", self.controller.name, key, wait)
            await self._mark(key, error)
            return "error"
        self.queue.forget(key)
        if result.requeue_after is not None:
            self.queue.add_after(key, result.requeue_after)
        await self._mark(key, None)
        return "done"

    async def _mark(self, key: Key, error: Exception | None) -> None:
        """Says on the object that a fault was met (`error`), or that it is over. That this fails ends nothing."""
        if error is None and not self.controller.conditions:
            return
        try:
            obj = self.controller.object_of(key, self._reader)
            if obj is None:
                return
            if error is not None:
                self._emit(faults.event(obj, self.controller.name, error))
            if self.controller.conditions:
                now = self._runtime.clock.now()
                write = faults.mark(obj, error, now) if error is not None else faults.clear(obj, now)
                if write is not None:
                    await self._write(write)
        except Exception:
            log.exception("%s %s: could not be marked", self.controller.name, key)

    def _emit(self, event: Event) -> None:
        self._runtime.recorder.event(event.regarding, event.type, event.reason, event.note, action=event.action)

    async def _run(self, key: Key) -> Result:
        steps = self.controller.reconcile(key, self._reader, self._runtime.clock.now())
        answers: Sequence[Answer] | None = None
        aside, of_all, tenant = self._runtime.aside, shares.of_loop(), shares.tenant(key.namespace)

        def spent(seconds: float) -> None:
            of_all.spent(tenant, seconds)

        try:
            while True:
                if aside is None:
                    step = advance(steps, answers)
                else:
                    of_this = (self.controller.name, key)
                    step = await aside.step(of_this, lambda: self._subject(key), steps, answers, spent)
                if isinstance(step, Result):
                    return step
                for event in step.events:
                    self._emit(event)
                if len(step.writes) == 1:
                    answers = (await self._write(step.writes[0]),)
                else:
                    answers = await asyncio.gather(*(self._write(write) for write in step.writes))
        finally:
            end(steps)

    def _subject(self, key: Key) -> Object | None:
        try:
            return self.controller.object_of(key, self._reader)
        except Exception:  # the reconcile meets the same, and says so
            return None

    async def _write(self, write: Write) -> Answer:
        slots = self._slots.get(write.namespace)
        if slots is None:
            if len(self._slots) > _NAMESPACES:
                self._slots = {name: one for name, one in self._slots.items() if one.locked()}
            slots = self._slots[write.namespace] = asyncio.Semaphore(AT_ONCE)
        async with slots:
            is_leader = self._runtime.is_leader()
            answer = await self._runtime.sender.send(write) if is_leader else Answer(refusal=_NOT_LEADER)
        code = 200 if answer.refusal is None else answer.refusal.code
        self._counted(write, code).inc()
        if answer.refusal is None:
            self._runtime.observed.wrote(write, answer.object)
        return answer

    def _counted(self, write: Write, code: int) -> Any:
        """The counter of such writes; to look it up by its labels takes longer than all the rest of counting."""
        sort = (write.verb, write.kind, code)
        found = self._counters.get(sort)
        if found is None:
            writes = self._runtime.metrics.writes
            found = self._counters[sort] = writes.labels(self.controller.name, write.verb, write.kind, str(code))
        return found


class Sender:
    """Writes as requests; whatever goes wrong is a refusal."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Resource[Object]] = {}

    async def send(self, write: Write) -> Answer:
        try:
            return Answer(await self._request(self._resource(write), write))
        except ApiError as error:
            causes = frozenset(one.reason for one in error.causes)
            return Answer(refusal=Refusal(error.code, error.reason, error.message, causes))
        except KubeError as error:
            return Answer(refusal=Refusal(0, type(error).__name__, str(error)))

    def _resource(self, write: Write) -> Resource[Object]:
        kind = (write.api_version, write.kind)
        if kind not in self._known:
            self._known[kind] = self._client.kind(*kind).without_managers()
        return self._known[kind]

    async def _request(self, resource: Resource[Object], write: Write) -> Object:
        match write.verb:
            case "get":
                return await resource.get(write.name, write.namespace, subresource=write.subresource)
            case "create":
                return await resource.create(write.body, write.namespace)
            case "update":
                return await resource.update(write.body, write.namespace, subresource=write.subresource)
            case "patch":
                return await resource.patch(
                    write.name, write.body, write.namespace, kind=write.patch, subresource=write.subresource
                )
            case "apply":
                return await resource.apply(write.body, write.namespace, force=True)
            case "delete":
                return await resource.delete(
                    write.name, write.namespace, propagation=write.propagation, uid=write.uid, version=write.version
                )


class Runtime:
    """Several controllers on one server. Use it in an `async with` block; leaving it lets reconciles under way end."""

    def __init__(
        self,
        client: Client,
        controllers: Iterable[Controller],
        *,
        component: str = "kohort-controllers",
        clock: Clock = REAL,
        registry: CollectorRegistry | None = None,
        namespaces: Iterable[str] = (),
        is_leader: Callable[[], bool] = lambda: True,
        begin: asyncio.Event | None = None,
    ) -> None:
        """`namespaces`: whose objects are worked on; empty: all. `is_leader` is asked before each write. `begin`: until
        it is set, everything is watched and nothing is done."""
        self.is_leader = is_leader
        self._at = begin
        self.namespaces = frozenset(namespaces)
        self.client = client
        self.clock = clock
        self.metrics = Metrics(registry) if registry is not None else Metrics(CollectorRegistry())
        self.sender = Sender(client)
        self.recorder = Recorder(client, component, clock=clock)
        self.observed = Observed(client, clock)
        if clock is REAL:
            tuning.when_calm(self.observed.forget)
        self.aside = Aside() if clock is REAL else None
        if self.aside is not None:
            tuning.when_calm(self.aside.forget)
        self._controllers = tuple(controllers)
        for one in self._controllers:
            self.metrics.add_counters(one.watches[0].kind, one.counters)
        self._workers: list[_Workers] = []
        self._working: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Runtime:
        await self._stack.enter_async_context(self.recorder)
        served = [(one, [watch for watch in one.watches if await self._has(watch)]) for one in self._controllers]
        for controller, watches in served:
            for watch in watches:
                self.observed.want(watch, controller.name)
        self.observed.start()
        self._workers = [_Workers(controller, self) for controller, _ in served]
        for informer in self.observed.informers.values():
            await self._stack.enter_async_context(informer)
        for workers, (_, watches) in zip(self._workers, served, strict=True):
            self._working.append(asyncio.create_task(self._begin(workers, watches)))
        return self

    async def _has(self, watch: Watch) -> bool:
        """What a controller needs is waited for; what it can do without is left out where it is not served."""
        if not watch.optional:
            return True
        try:
            await self.client.discovery.kind(watch.api_version, watch.kind)
        except NotServedError:
            return False
        return True

    async def _begin(self, workers: _Workers, watches: Sequence[Watch]) -> None:
        """No reconcile before the whole state is known: what is not there yet would be made again."""
        informers = [self.observed.informers[watch.api_version, watch.kind] for watch in watches]
        for informer in informers:
            await informer.ready()
        if self._at is not None:
            await self._at.wait()
        for watch, informer in zip(watches, informers, strict=True):
            await workers.listen(watch, informer)
        await workers.work()

    async def ready(self) -> None:
        for informer in self.observed.informers.values():
            await informer.ready()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for workers in self._workers:
            workers.queue.close(drop=True)  # all truth is on the server: whoever comes next reconciles everything
        if self._working:
            _, late = await asyncio.wait(self._working, timeout=_STOP)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._working, return_exceptions=True)
        if self.aside is not None:
            self.aside.close()
        await self._stack.aclose()

    async def run(self) -> None:
        """Until cancelled."""
        async with self:
            await asyncio.gather(*self._working)
