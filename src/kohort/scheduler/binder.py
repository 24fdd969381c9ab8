"""Carrying decisions out: bindings and evictions, many at a time but not too many, repeated where no answer came.

What the API server says goes back to the core, which repairs: a refused member is placed again within its gang's
constraints, after a pause that grows. A gang whose decision no longer holds is not started at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from kohort.kube.errors import ApiError, KubeError, TransportError
from kohort.kube.limits import Backoff
from kohort.scheduler.status import Eviction, SchedulerEvent, Target, Writes, written
from kohort.scheduler.volumebinder import VolumeBinder, VolumeBindingError

if TYPE_CHECKING:
    from kohort.kube.client import Client
    from kohort.kube.clock import Clock
    from kohort.scheduler.core import SchedulerCore
    from kohort.scheduler.decision import Decision
    from kohort.scheduler.settings import SchedulerSettings
    from kohort.scheduler.volumes import VolumeBinding

log = logging.getLogger(__name__)

_BUSY: Final = frozenset({429, 500, 502, 503, 504})
_FAREWELL: Final = 5.0  # seconds for what is under way when we are told to stop
_LOOK: Final = 0.5  # seconds between two looks whether we still may


class Binder:
    """`report` gets what is to be written; `is_leader` is asked before every call that only a leader may make."""

    def __init__(
        self,
        core: SchedulerCore,
        client: Client,
        settings: SchedulerSettings,
        clock: Clock,
        *,
        report: Callable[[Writes], None],
        wake: Callable[[], None],
        is_leader: Callable[[], bool] = lambda: True,
        quiet: asyncio.Event | None = None,
    ) -> None:
        """`quiet`: cleared while bindings are under way."""
        self._core = core
        self._pods = client.resource("pods")
        self._jitter = client.jitter
        self._settings = settings
        self._clock = clock
        self._report = report
        self._wake = wake
        self._is_leader = is_leader
        self._volume_binder = VolumeBinder(client, core.cache.storage, clock, self._insist, settings.volume_seconds)
        self._slots = asyncio.Semaphore(settings.bind_concurrency)
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._workers: set[asyncio.Task[None]] = set()  # of the tasks, those that bind
        self._due: deque[tuple[str, str]] = deque()  # uid and node, for the workers
        self._binding: dict[str, asyncio.Future[None]] = {}  # uid -> when its binding ends; also of those due
        self._quiet = quiet or asyncio.Event()
        self._quiet.set()

    @property
    def busy(self) -> int:
        return len(self._tasks) - len(self._workers) + len(self._binding)

    def bind(self, decision: Decision) -> None:
        """Start the bindings of a decision, as far as it still holds; before them, what its volumes need."""
        now = self._clock.monotonic()
        assignments = self._core.confirm(decision)
        bindings = self._core.volumes(assignments, now)
        if bindings:
            self._start(self._bind_volumes(decision, assignments, bindings))
        elif bindings is not None:
            self._bind_all(assignments)

    async def _bind_volumes(
        self, decision: Decision, assignments: dict[str, str], bindings: list[VolumeBinding]
    ) -> None:
        storage = self._core.cache.storage
        try:
            await self._volume_binder.bind(bindings)
        except (KubeError, VolumeBindingError) as error:
            log.warning("volumes for %s: %s", decision.root, error)
            storage.forget(bindings)
            self._report(self._core.volumes_not_bound(assignments, f"volumes: {error}", self._clock.monotonic()))
        else:
            storage.forget(bindings)
            self._bind_all(self._core.volumes_bound(decision, self._clock.monotonic()))

    def _bind_all(self, assignments: dict[str, str]) -> None:
        """By workers: a task for each pod of a gang of thousands would hold the event loop for tens of milliseconds."""
        if not assignments:
            return
        self._quiet.clear()
        self._due.extend(assignments.items())
        future = asyncio.get_running_loop().create_future
        self._binding.update((uid, future()) for uid in assignments)
        for _ in range(min(len(self._due), self._settings.bind_concurrency - len(self._workers))):
            worker = self._start(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)  # one that was cancelled before it began

    async def _work(self) -> None:
        while self._due:
            uid, node = self._due.popleft()
            try:
                await self._bind(uid, node)
            except Exception:
                log.exception("a binding ended in an error that was not expected")
            finally:
                self._answered(uid)
        # Now, and not when the task is seen to be done: whoever the last answer has woken comes before that, and would
        # count on this worker for what it brings.
        worker = asyncio.current_task()
        assert worker is not None
        self._workers.discard(worker)

    def _answered(self, uid: str) -> None:
        ended = self._binding.pop(uid, None)
        if ended is not None and not ended.done():
            ended.set_result(None)
        if not self._binding:
            self._quiet.set()
        self._wake()

    def evict(self, evictions: list[Eviction]) -> None:
        for one in evictions:
            self._start(self._evict(one))

    async def close(self) -> None:
        """Bindings that were begun are ended, so that no gang is left half-bound, unless we may not any more or it
        takes too long; everything else ends here. What came of it is for the next scheduler to see."""
        for task in self._tasks.keys() - self._workers:
            task.cancel()
        end = self._clock.monotonic() + _FAREWELL
        while self._binding and self._is_leader() and (left := end - self._clock.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with self._clock.timeout(min(left, _LOOK)):
                    await asyncio.wait(set(self._binding.values()))
        self._due.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def idle(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            log.error("a call ended in an error that was not expected", exc_info=task.exception())
        self._wake()

    # ---- bindings

    async def _bind(self, uid: str, node: str) -> None:
        member = self._core.cache.members.get(uid)
        if member is None:
            return
        meta = member.pod.metadata
        try:
            async with self._slots:
                await self._insist(lambda: self._pods.bind(meta.name, node, meta.namespace, uid=uid))
        except ApiError as error:
            await self._refused(uid, meta.namespace, meta.name, node, error)
        except KubeError as error:
            self._again(uid, node, str(error), answered=False)
        else:
            self._bound(uid, node)

    async def _refused(self, uid: str, namespace: str, name: str, node: str, error: ApiError) -> None:
        if error.not_found:
            self._core.lost(uid)
            return
        if error.conflict:
            # An earlier call of ours may have been heard although its answer was lost; or somebody else was faster.
            where = await self._where(uid, namespace, name)
            if where == node:
                self._bound(uid, node)
                return
            if where is None:
                self._core.lost(uid)
                return
        self._again(uid, node, error.message or str(error))

    async def _where(self, uid: str, namespace: str, name: str) -> str | None:
        """The node that a pod has; None if it is gone."""
        try:
            pod = await self._pods.get(name, namespace)
        except ApiError as error:
            return None if error.not_found else ""
        except KubeError:
            return ""
        return str(pod["spec"].get("nodeName") or "") if pod["metadata"]["uid"] == uid else None

    def _bound(self, uid: str, node: str) -> None:
        events: list[SchedulerEvent] = self._core.bound(uid, node)
        self._report(Writes(events=events))

    def _again(self, uid: str, node: str, text: str, *, answered: bool = True) -> None:
        log.warning("binding of %s to %s: %s", uid, node, text)
        self._report(self._core.refused(uid, node, text, self._clock.monotonic(), answered=answered))

    # ---- evictions

    async def _evict(self, eviction: Eviction) -> None:
        """Say why, then delete, until the server has answered: a victim whose going is not certain is neither given up
        nor replaced. One whose own binding is under way is bound first: that cannot be called back."""
        pod, pause = eviction.pod, Backoff(first=1.0, most=30.0, jitter=self._jitter)
        under_way = self._binding.get(pod.uid)
        if under_way is not None:
            await asyncio.wait({under_way})
        sent = False
        while True:
            if not self._core.still_wanted(pod.uid, self._clock.monotonic()):
                if not sent or await self._goes(pod) is False:
                    self._core.not_sent(pod.uid)
                    return
            elif await self._evicted(eviction):
                return
            sent = True
            if await self._goes(pod) or not self._is_leader():
                return  # the watch shows it, or it is for the next leader to see
            await self._clock.sleep(pause.next())

    async def _evicted(self, eviction: Eviction) -> bool:
        """Whether the server has answered, in one way or the other."""
        pod = eviction.pod
        status: dict[str, Any] = {"conditions": [written(eviction.condition)]}
        if eviction.failed:
            status |= {"phase": "Failed", "reason": "GangFailed", "message": eviction.condition.message}
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            async with self._slots:
                await self._insist(
                    lambda: self._pods.patch_unread(
                        pod.name, patch, pod.namespace, kind="strategic", subresource="status"
                    )
                )
                if eviction.asked:
                    await self._pods.evict(pod.name, pod.namespace, uid=pod.uid)
                elif not eviction.failed:
                    await self._insist(lambda: self._pods.delete_unread(pod.name, pod.namespace, uid=pod.uid))
        except ApiError as error:
            if error.not_found or (error.conflict and await self._goes(pod)):
                return True
            if eviction.asked or error.code not in _BUSY:
                self._not_evicted(eviction, error)
                return True
            log.warning("eviction of %s/%s: %s", pod.namespace, pod.name, error)
            return False
        except KubeError as error:
            log.warning("eviction of %s/%s: %s", pod.namespace, pod.name, error)
            return False
        return True

    async def _goes(self, target: Target) -> bool | None:
        """Whether a pod is gone or going; None if nobody answers."""
        try:
            pod = await self._pods.get(target.name, target.namespace)
        except ApiError as error:
            return True if error.not_found else None
        except KubeError:
            return None
        return bool(pod["metadata"]["uid"] != target.uid or pod["metadata"].get("deletionTimestamp"))

    def _not_evicted(self, eviction: Eviction, error: ApiError) -> None:
        log.warning("%s/%s is not evicted: %s", eviction.pod.namespace, eviction.pod.name, error)
        text = error.message or str(error)
        self._report(self._core.not_evicted(eviction.pod.uid, text, self._clock.monotonic()))

    async def _insist(self, call: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Again where the server did not answer or was busy: it may or may not have acted, and both are fine."""
        pause = Backoff(first=0.2, most=5.0, jitter=self._jitter)
        for attempt in range(1, self._settings.bind_attempts + 1):
            if not self._is_leader():
                raise TransportError("no longer the leader")
            try:
                await call()
                return
            except KubeError as error:
                final = isinstance(error, ApiError) and error.code not in _BUSY
                if final or attempt == self._settings.bind_attempts:
                    raise
            await self._clock.sleep(pause.next())
