"""Which requests go to a worker process, whose turn it is, and how long they may take.

A worker is started by the first request that needs one, and ends when it has been idle for a while or has grown. At
most half of them work for one user; of those who wait, whoever has the fewest is next. A request that takes longer than
it may is answered with 504, and its worker is replaced.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from kohort.api.bundle import registered
from kohort.childprocess import ChildEndedError, ChildProcess
from kohort.server import codec, negotiation, status
from kohort.server.flowcontrol import Seats
from kohort.server.service_allocator import RANGE
from kohort.server.store import StoreError
from kohort.server.workers import CEL_COST, LOOP_COST, TooExpensiveError, UnknownResourceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from prometheus_client.core import Metric

    from kohort.kube.wire import Response
    from kohort.server.admission.chain import Admission
    from kohort.server.core import Core
    from kohort.server.limits import Limits
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.store import Item

log = logging.getLogger(__name__)
_VERBS: Final = frozenset({"create", "update", "patch", "delete", "get"})
_LARGE: Final = 32 << 10  # bytes of JSON: up to 20 ms
_LARGE_OTHERWISE: Final = 8 << 10  # of YAML and protobuf
_TEMPLATES: Final = 24  # of pods; a server fills in what they leave out, half a millisecond each
_COPIES: Final = 2  # of a JSON patch; each may double what is there
_IDLE_SECONDS: Final = 30.0
_GROWN: Final = 256 << 20  # bytes of memory after a request
# A definition is served just before its status says so, which is where workers read it.
_TRIES, _PAUSE = 20, 0.05


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of the server's settings a worker has to know, beside its release and gates."""

    authorize: bool = True
    service_accounts: bool = False
    own_kinds: bool = True
    service_range: str = RANGE


class WorkerPool:
    """`everything`: whatever a worker could do is given to one (tests compare both ways)."""

    def __init__(
        self, core: Core, admission: Admission, limits: Limits, chosen: Chosen, *, everything: bool = False
    ) -> None:
        self._core, self._admission, self._limits = core, admission, limits
        self._chosen, self._everything = chosen, everything
        self._seats = Seats(limits.workers, limits)
        self._idle: list[ChildProcess] = []
        self._all: set[ChildProcess] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._timers: dict[ChildProcess, asyncio.TimerHandle] = {}
        self._usable = not registered()  # a worker would not know kinds that were added to this process
        self.requests = 0
        self.timeouts = 0
        self.started = 0

    async def answer(self, info: RequestInfo, here: Callable[[RequestInfo], Awaitable[Response]]) -> Response:
        """By a worker if it takes long; by `here`, on the loop, if not."""
        if not self._usable or info.verb not in _VERBS:
            return await here(info)
        if not self.takes_long(info):
            token = LOOP_COST.set(CEL_COST)
            try:
                return await here(info)
            except TooExpensiveError:
                info.warnings.clear()
            finally:
                LOOP_COST.reset(token)
        for _ in range(_TRIES):
            try:
                return await self._elsewhere(info)
            except UnknownResourceError:
                await asyncio.sleep(_PAUSE)
        return await here(info)

    def takes_long(self, info: RequestInfo) -> bool:
        body = info.request.body
        if self._everything:
            return True
        if info.verb == "get":
            plain = info.accepted.kind == negotiation.OBJECT and info.accepted.media == codec.JSON
            return not plain and self._is_stored_large(info)
        if info.verb == "delete":
            return bool(info.name) and self._is_stored_large(info)
        media = codec.media_type(info.content_type)
        cheap = not media or media.endswith("json")
        if len(body) > (_LARGE if cheap else _LARGE_OTHERWISE) or body.count(b'"containers"') > _TEMPLATES:
            return True
        if media == "application/json-patch+json" and body.count(b'"copy"') > _COPIES:
            return True
        return bool(info.name) and self._is_stored_large(info)

    def _is_stored_large(self, info: RequestInfo) -> bool:
        head = self._core.head(info.resource, info.namespace, info.name)
        return head is not None and self.is_large(head)

    def is_large(self, item: Item) -> bool:
        """Whether reading it, and writing it again, takes long."""
        return len(item.value) > _LARGE or self._everything

    async def _elsewhere(self, info: RequestInfo) -> Response:
        from kohort.server.workers.session import Session

        name = info.user.name if info.user is not None else ""
        await self._seats.take(name)
        worker: ChildProcess | None = None
        whole = False  # whether the worker has said its last word about the request, and can take another
        self.requests += 1
        try:
            worker = await self._take()
            async with asyncio.timeout(self._limits.worker_seconds):
                found = await Session(worker, self._core, self._admission, info).run()
            whole = True
            return found
        except (status.ApiError, StoreError, UnknownResourceError):
            whole = True
            raise
        except TimeoutError:
            raise self._timed_out(info) from None
        except ChildEndedError:
            log.warning("%r %r: the worker process ended", info.request.method, info.request.path)
            raise status.unavailable("the process that worked on the request has ended; try again", seconds=1) from None
        finally:
            if worker is None:
                self._seats.leave(name)
            else:
                self._later(self._tidied(worker, name) if whole else self._ended(worker, name))

    def _timed_out(self, info: RequestInfo) -> status.ApiError:
        self.timeouts += 1
        seconds = self._limits.worker_seconds
        log.warning("%r %r took longer than %g s and was ended", info.request.method, info.request.path, seconds)
        text = f"Timeout: request did not complete within the allotted timeout ({seconds:g} s)"
        return status.ApiError(status.failure(504, "Timeout", text))

    # ---- processes

    async def _take(self) -> ChildProcess:
        while self._idle:
            worker = self._idle.pop()
            self._timers.pop(worker).cancel()
            if worker.alive:
                return worker
            await self._end(worker)
        ctx = self._core.ctx
        self.started += 1
        made = await ChildProcess.run("kohort.server.workers.process")
        self._all.add(made)
        await made.send(
            {
                "minor": ctx.release.minor,
                "gates": sorted(ctx.gates),
                "options": sorted(ctx.options),
                "chosen": asdict(self._chosen),
            }
        )
        return made

    async def _tidied(self, worker: ChildProcess, name: str) -> None:
        """After its answer a worker gives memory back; the next request that it could take waits for that."""
        try:
            async with asyncio.timeout(self._limits.worker_seconds):
                _, resident = await worker.read()
            if resident > _GROWN:
                await self._end(worker)
                return
            self._idle.append(worker)
            self._timers[worker] = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._retire, worker)
        except (TimeoutError, ChildEndedError):
            await self._end(worker)
        finally:
            self._seats.leave(name)

    async def _ended(self, worker: ChildProcess, name: str) -> None:
        try:
            await self._end(worker)
        finally:
            self._seats.leave(name)

    def _retire(self, worker: ChildProcess) -> None:
        self._timers.pop(worker, None)
        if worker in self._idle:
            self._idle.remove(worker)
            self._later(self._end(worker))

    async def _end(self, worker: ChildProcess) -> None:
        """Another one is started when it is needed."""
        self._all.discard(worker)
        worker.kill()
        await worker.end()

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._idle.clear()
        for worker in list(self._all):
            await self._end(worker)
        while self._ending:
            await asyncio.wait(list(self._ending))

    # ---- for Prometheus

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, text, value in (
            ("kohort_worker_requests", "Requests that were given to a worker process.", self.requests),
            ("kohort_worker_timeouts", "Of those, requests that took too long.", self.timeouts),
            ("kohort_worker_starts", "Worker processes that were started.", self.started),
        ):
            yield CounterMetricFamily(name, text, value)
        yield GaugeMetricFamily("kohort_worker_processes", "Worker processes now.", len(self._all))
        yield GaugeMetricFamily("kohort_worker_waiting", "Requests that wait for one.", self._seats.waiting)
