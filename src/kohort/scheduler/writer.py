"""Status writes, beside the decisions: noted at once, written when the server has time, only the last word of each.

Nothing here blocks. Two notes about one object that come before the first is written are one write.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kohort.kube.errors import ApiError, KubeError
from kohort.kube.limits import Backoff
from kohort.kube.series import Reference
from kohort.scheduler.status import Patch, SchedulerEvent, Target, Writes, written

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from kohort.kube.client import Client
    from kohort.kube.clock import Clock
    from kohort.kube.codec import Object
    from kohort.kube.events import Recorder
    from kohort.kube.resource import Resource
    from kohort.scheduler.model import Condition

log = logging.getLogger(__name__)

_TRIES: Final = 6
_UNSUPPORTED: Final = 415
# An API server that has just started refuses everybody until it has read the roles: that passes soon, or not at all.
_ROLES: Final = frozenset({401, 403})
_ROLES_TRIES: Final = 4
_WHILE_BINDING: Final = 2  # writes at a time beside bindings: the server has only so much time, and they come first
_AT_ONCE: Final = 200  # notes between two turns of the event loop
_AT_FIRST: Final = 1.0  # seconds for which a note waits for them to end: most backlogs are bound by then


@dataclass(slots=True)
class _Wanted:
    """What an object's status should say. `since`: when that was first noted."""

    since: float = 0.0
    conditions: dict[str, Condition] = field(default_factory=dict)
    nominated: str | None = None

    def take(self, patch: Patch) -> None:
        if patch.condition is not None:
            self.conditions[patch.condition.type] = patch.condition
        if patch.nominated is not None:
            self.nominated = patch.nominated

    def renew(self, newer: _Wanted | None) -> None:
        """What was said later counts."""
        if newer is not None:
            self.conditions |= newer.conditions
            self.nominated = self.nominated if newer.nominated is None else newer.nominated

    def body(self, uid: str) -> dict[str, Any]:
        status: dict[str, Any] = {}
        if self.conditions:
            status["conditions"] = [written(one) for one in self.conditions.values()]
        if self.nominated is not None:
            status["nominatedNodeName"] = self.nominated or None
        return {"metadata": {"uid": uid}, "status": status}


class StatusWriter:
    """`versions`: kind -> apiVersion of the groups that the server serves."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        clock: Clock,
        versions: Mapping[str, str],
        concurrency: int = 16,
        quiet: asyncio.Event | None = None,
    ) -> None:
        """`quiet`: set while no binding is under way; None: always."""
        self._recorder = recorder
        self._jitter = client.jitter
        self._clock = clock
        self._versions = {"Pod": "v1", **versions}
        self._resources: dict[str, Resource[Object]] = {
            kind: client.kind(version, kind) for kind, version in self._versions.items()
        }
        self._wanted: dict[Target, _Wanted] = {}
        self._ready: deque[Target] = deque()
        self._more = asyncio.Event()
        self._many: deque[Writes] = deque()  # still to be noted
        self._noting: asyncio.Task[None] | None = None
        self._plain: set[str] = set()  # kinds whose server takes no strategic merge patch: custom resources
        self._busy: set[Target] = set()  # being written: an older word must not come after a newer one
        self._concurrency = concurrency
        self._quiet = quiet
        self._tasks: list[asyncio.Task[None]] = []
        self.writes = 0

    def take(self, writes: Writes) -> None:
        """In the order in which they come; many, and what comes after them, in turns with others."""
        if not self._many and len(writes.patches) + len(writes.events) <= _AT_ONCE:
            self._note(writes.patches, writes.events)
            return
        self._many.append(writes)
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._note_many())

    async def _note_many(self) -> None:
        while self._many:
            writes = self._many[0]
            for start in range(0, len(writes.patches), _AT_ONCE):
                self._note(writes.patches[start : start + _AT_ONCE], ())
                await asyncio.sleep(0)
            for start in range(0, len(writes.events), _AT_ONCE):
                self._note((), writes.events[start : start + _AT_ONCE])
                await asyncio.sleep(0)
            self._many.popleft()

    def _note(self, patches: Sequence[Patch], events: Sequence[SchedulerEvent]) -> None:
        now = self._clock.monotonic()
        for patch in patches:
            known = self._wanted.get(patch.target)
            if known is None:
                known = self._wanted[patch.target] = _Wanted(now)
                if patch.target not in self._busy:
                    self._due(patch.target)
            known.take(patch)
        for event in events:
            self._record(event)

    @property
    def waiting(self) -> int:
        return len(self._wanted) + sum(len(writes.patches) for writes in self._many)

    def _record(self, event: SchedulerEvent) -> None:
        related = self._reference(event.related) if event.related is not None else None
        self._recorder.event(
            self._reference(event.regarding), event.type, event.reason, event.text, action=event.action, related=related
        )

    def _reference(self, target: Target) -> Reference:
        version = target.api_version or self._versions.get(target.kind, "v1")
        return Reference(version, target.kind, target.namespace, target.name, target.uid)

    async def __aenter__(self) -> StatusWriter:
        self._tasks = [asyncio.create_task(self._work(number)) for number in range(self._concurrency)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        tasks = [*self._tasks, *([self._noting] if self._noting is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, number: int) -> None:
        while True:
            target = await self._next(number)
            self._busy.add(target)
            wanted = self._wanted.pop(target)
            try:
                await self._write(target, wanted)
            except KubeError as error:
                log.warning("status of %s %s/%s: %s", target.kind, target.namespace, target.name, error)
                if _passes(error):  # after the others: what nobody says again must not be lost
                    wanted.renew(self._wanted.pop(target, None))
                    self._wanted[target] = wanted
            finally:
                self._busy.discard(target)
            if target in self._wanted:
                self._due(target)

    def _due(self, target: Target) -> None:
        self._ready.append(target)
        self._more.set()

    async def _next(self, number: int) -> Target:
        """Bindings come first: for a while alone, and then with few writes beside them."""
        while True:
            if not self._ready:
                self._more.clear()
                await self._more.wait()
            elif self._quiet is None or self._quiet.is_set():
                return self._ready.popleft()
            elif number >= _WHILE_BINDING:
                await self._quiet.wait()
            elif (left := self._wanted[self._ready[0]].since + _AT_FIRST - self._clock.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    async with self._clock.timeout(left):
                        await self._quiet.wait()
            else:
                return self._ready.popleft()

    async def _patch(self, resource: Resource[Object], target: Target, wanted: _Wanted) -> None:
        body = wanted.body(target.uid)
        if target.kind not in self._plain:
            await resource.patch_unread(target.name, body, target.namespace, kind="strategic", subresource="status")
            return
        # A merge patch takes lists as a whole: conditions of others are sent along, as they were a moment ago.
        now = await resource.get(target.name, target.namespace)
        if now["metadata"]["uid"] != target.uid:
            return
        kept = [
            one for one in (now.get("status") or {}).get("conditions") or () if one["type"] not in wanted.conditions
        ]
        if wanted.conditions:
            body["status"]["conditions"] = kept + body["status"]["conditions"]
        body["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"]
        await resource.patch_unread(target.name, body, target.namespace, kind="merge", subresource="status")

    async def _there(self, resource: Resource[Object], target: Target) -> bool:
        """False if it is gone, or another of the same name is in its place."""
        try:
            found = await resource.get(target.name, target.namespace)
        except ApiError as error:
            return not error.not_found
        except KubeError:
            return True
        return bool(found["metadata"]["uid"] == target.uid)

    async def _write(self, target: Target, wanted: _Wanted) -> None:
        """Until it is written or cannot be. What is said meanwhile goes along with the next try."""
        resource, pause = self._resources[target.kind], Backoff(first=0.5, most=10.0, jitter=self._jitter)
        for attempt in range(1, _TRIES + 1):
            try:
                await self._patch(resource, target, wanted)
                self.writes += 1
                return
            except ApiError as error:
                if error.code == _UNSUPPORTED and target.kind not in self._plain:
                    self._plain.add(target.kind)
                    continue
                if error.not_found or (error.conflict and not await self._there(resource, target)):
                    return
                soon = error.code in _ROLES and attempt < _ROLES_TRIES
                if not (_passes(error) or soon) or attempt == _TRIES:
                    raise
            except KubeError:
                if attempt == _TRIES:
                    raise
            await self._clock.sleep(pause.next())
            wanted.renew(self._wanted.pop(target, None))


def _passes(error: KubeError) -> bool:
    """Whether the same write may be taken another time."""
    return not isinstance(error, ApiError) or error.code >= 500 or error.code in {409, 429}
