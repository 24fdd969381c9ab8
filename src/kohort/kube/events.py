"""Telling people what happened to their objects, as Events. Never waits, never fails, never floods the server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from kohort import tuning
from kohort.apimachinery.times import micros, seconds
from kohort.kube.clock import REAL
from kohort.kube.codec import identify
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError, KubeError
from kohort.kube.limits import Backoff
from kohort.kube.series import INTERVAL, Correlator, EventKey, Reference, Series

if TYPE_CHECKING:
    from types import TracebackType

    from kohort.kube.client import Client
    from kohort.kube.clock import Clock
    from kohort.kube.codec import Object
    from kohort.kube.resource import Resource

log = logging.getLogger(__name__)

_NOTE: Final = 1024  # what the API takes
_WORD: Final = 128
_TRIES: Final = 4
_LAST_SECONDS: Final = 2.0


@dataclass(slots=True)
class EventCounts:
    """For metrics and tests."""

    heard: int = 0
    written: int = 0
    dropped: int = 0


class Recorder:
    """Events of one component. `event` only notes; a task of its own writes."""

    def __init__(
        self, client: Client, component: str, *, instance: str = "", room: int = 1000, clock: Clock = REAL
    ) -> None:
        self._client = client
        self._component = component
        self._instance = (instance or f"{component}-{socket.gethostname()}")[:_WORD]
        self._room = room
        self._clock = clock
        self._known = Correlator()
        self._pending: deque[Series] = deque()
        self._repeated: dict[Series, None] = {}
        self._wake = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._resource: Resource[Object] | None = None
        self._modern = True
        self.counts = EventCounts()
        if clock is REAL:
            tuning.when_calm(self.forget)

    def event(
        self,
        regarding: Object | Reference,
        type: Literal["Normal", "Warning"],  # noqa: A002 - the API's word
        reason: str,
        note: str,
        *,
        action: str = "",
        related: Object | Reference | None = None,
    ) -> None:
        """`reason`: a word for machines; `note`: a sentence for people; `action`: what we did or tried."""
        self.counts.heard += 1
        what = EventKey(
            _reference(regarding),
            type,
            reason[:_WORD],
            (action or reason)[:_WORD],
            _short(note),
            _reference(related) if related is not None else None,
        )
        series = self._known.hear(what, self._clock.now(), self._clock.monotonic())
        if series is None or (series.count == 1 and len(self._pending) >= self._room):
            self.counts.dropped += 1
            if series is not None:
                self._known.forget(what)
            return
        if series.count == 1:
            self._pending.append(series)
        else:
            self._repeated[series] = None
        self._wake.set()

    async def __aenter__(self) -> Recorder:
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """What is noted is still written, if that is quickly done."""
        assert self._task is not None
        self._stopping = True
        self._wake.set()
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(_LAST_SECONDS):
                await self._task
                await self._flush(everything=True)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def run(self) -> None:
        """Until stopped or cancelled."""
        while not self._stopping:
            self._wake.clear()
            wait = await self._flush(everything=False)
            if not self._wake.is_set() and not self._stopping:
                with contextlib.suppress(TimeoutError):
                    async with self._clock.timeout(wait):
                        await self._wake.wait()

    # ---- inside

    async def _flush(self, *, everything: bool) -> float:
        """Write what is due; the seconds until more will be."""
        while self._pending:
            await self._write(self._pending[0])
            self._rest(self._pending.popleft())
        soonest = 3600.0
        for series in list(self._repeated):
            wait = series.written + INTERVAL - self._clock.monotonic()
            if wait > 0 and not everything:
                soonest = min(soonest, wait)
                continue
            if series.count > series.told:
                await self._write(series)
            # Only after the write: who is stopped in the middle of it still has to know what to write at the end, and
            # what was heard meanwhile is for the next time.
            if series.count <= series.told:
                self._repeated.pop(series, None)
                self._rest(series)
        return soonest

    def _rest(self, series: Series) -> None:
        if series not in self._repeated:
            self._known.rest(series)

    def forget(self) -> None:
        """What will not be said again; the rest takes little room until there is something to say."""
        self._known.tidy(self._clock.monotonic())
        self._known.pack()

    async def _write(self, series: Series) -> None:
        backoff = Backoff(first=0.2, most=5.0, jitter=self._client.jitter)
        for attempt in range(1, _TRIES + 1):
            count = series.count
            try:
                await self._send(series)
            except KubeError as error:
                final = isinstance(error, ApiError) and error.code < 500 and error.code != 429
                if final or attempt == _TRIES:
                    self.counts.dropped += 1
                    log.debug("event about %s not written: %s", series.what.regarding, error)
                    series.told, series.written = count, self._clock.monotonic()
                    return
                await self._clock.sleep(backoff.next())
            else:
                self.counts.written += 1
                series.created, series.told, series.written = True, count, self._clock.monotonic()
                return

    async def _send(self, series: Series) -> None:
        resource = await self._events()
        namespace = series.what.regarding.namespace or "default"
        if series.created:
            try:
                await resource.patch(series.name, self._repetition(series), namespace)
                return
            except ApiError as error:
                if not error.not_found:
                    raise  # else it has expired, and is made again
        try:
            await resource.create_unread(self._body(series, namespace), namespace)
        except ApiError as error:
            if not error.already_exists:
                raise

    async def _events(self) -> Resource[Object]:
        if self._resource is None:
            resource = self._client.kind("events.k8s.io/v1", "Event")
            try:
                await resource.type()
            except NotServedError:
                resource, self._modern = self._client.kind("v1", "Event"), False
            self._resource = resource
        return self._resource

    def _repetition(self, series: Series) -> dict[str, Any]:
        if self._modern:
            return {"series": {"count": series.count, "lastObservedTime": micros(series.last)}}
        return {"count": series.count, "lastTimestamp": seconds(series.last)}

    def _body(self, series: Series, namespace: str) -> dict[str, Any]:
        what = series.what
        body: dict[str, Any] = {
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": namespace},
            "type": what.type,
            "reason": what.reason,
            "action": what.action,
            "reportingInstance": self._instance,
        }
        if what.related is not None:
            body["related"] = _written(what.related)
        if self._modern:
            body |= {
                "apiVersion": "events.k8s.io/v1",
                "eventTime": micros(series.first),
                "reportingController": self._component,
                "regarding": _written(what.regarding),
                "note": what.note,
            }
            return body | self._repetition(series) if series.count > 1 else body
        return body | {
            "apiVersion": "v1",
            "firstTimestamp": seconds(series.first),
            "reportingComponent": self._component,
            "source": {"component": self._component, "host": socket.gethostname()},
            "involvedObject": _written(what.regarding),
            "message": what.note,
            **self._repetition(series),
        }


def _reference(found: Object | Reference) -> Reference:
    if isinstance(found, Reference):
        return found
    key, uid, _ = identify(found)
    return Reference(found["apiVersion"], found["kind"], key.namespace, key.name, uid)


def _written(reference: Reference) -> dict[str, str]:
    found = {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
        "uid": reference.uid,
    }
    return {name: value for name, value in found.items() if value}


def _short(note: str) -> str:
    """The API counts bytes."""
    raw = note.encode()
    return note if len(raw) <= _NOTE else raw[: _NOTE - 3].decode(errors="ignore") + "..."
