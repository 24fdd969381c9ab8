"""One of many is the leader: a Lease that its holder renews and that others may take when it has not for long enough.

The holder counts from the moment it *sent* its last renewal, and only `deadline` seconds; others count from the moment
they *saw* it, and `duration` seconds, which is more. So `is_leader` is false before anybody else can become leader,
also when the process was asleep, whatever the clocks of the machines show.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import uuid
from typing import TYPE_CHECKING, Final

from kohort.apimachinery.times import micros
from kohort.kube.clock import REAL
from kohort.kube.discovery import ResourceType
from kohort.kube.errors import ApiError, KubeError
from kohort.kube.limits import Backoff

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kohort.kube.client import Client
    from kohort.kube.clock import Clock
    from kohort.kube.codec import Object

log = logging.getLogger(__name__)

LEASES: Final = ResourceType("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
SPREAD: Final = 1.2  # candidates that wait for the same lease come at different moments
_FAREWELL: Final = 5.0  # seconds for letting go of it when we are told to stop


class Leadership:
    """A candidate for one lease."""

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        namespace: str = "",
        identity: str = "",
        duration: int = 15,
        deadline: float = 10.0,
        retry: float = 2.0,
        clock: Clock = REAL,
        jitter: random.Random | None = None,
    ) -> None:
        if not retry * SPREAD < deadline < duration:
            raise ValueError(
                f"retry {retry}, deadline {deadline}, duration {duration}: "
                f"accepted is {SPREAD} x retry < deadline < duration"
            )
        self.identity = identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        self._leases = client.resource(LEASES)
        self._name = name
        self._namespace = namespace or client.namespace
        self._duration = duration
        self._deadline = deadline
        self._retry = retry
        self._clock = clock
        self._jitter = jitter or client.jitter
        self._until = float("-inf")
        self._mine: Object | None = None
        self._under_way: asyncio.Task[Object] | None = None
        self._unsure = False  # whether a write of ours, of which we heard nothing good, was done all the same
        self._seen: tuple[str, float] = ("", 0.0)
        self._ends = float("-inf")  # of the lease that somebody else holds, as far as was seen
        self.holder = ""

    @property
    def is_leader(self) -> bool:
        """Ask right before an act that only a leader may do."""
        return self._clock.monotonic() < self._until

    @property
    def epoch(self) -> int:
        """How often the lease has changed hands: a number that a later leader has higher."""
        return int((self._mine or {}).get("spec", {}).get("leaseTransitions") or 0)

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait to be leader, then run `lead`; cancel it if the lease is lost, and wait again. Ends when `lead` does."""

        async def wait_and_lead(begin: asyncio.Event) -> None:
            await begin.wait()
            await lead()

        await self.run_prepared(wait_and_lead)

    async def run_prepared(self, work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
        """As `run`, but `work` is called at once, to prepare whatever standing by can prepare; it leads from the moment
        its event is set. What it raises before that is raised here, too."""
        try:
            while not await self._term(work):
                log.warning("%s/%s: %s leads no more", self._namespace, self._name, self.identity)
        finally:
            await self._release()

    # ---- inside

    async def _term(self, work: Callable[[asyncio.Event], Awaitable[None]]) -> bool:
        """True if `work` ended by itself, False if the lease was lost. `work` has ended when this does."""
        begin = asyncio.Event()
        task = asyncio.ensure_future(work(begin))
        try:
            if await self._acquire(task):
                log.info("%s/%s: %s leads", self._namespace, self._name, self.identity)
                begin.set()
                await self._hold(task)
            if task.done():
                task.result()
            return task.done()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _acquire(self, work: asyncio.Future[None]) -> bool:
        """False if the work ended before."""
        while not work.done():
            if await self._attempt(self._deadline):
                return True
            await self._pause(self._until_next_look(), work)
        return False

    async def _hold(self, work: asyncio.Future[None]) -> None:
        while self.is_leader:
            await self._pause(min(self._retry, self._until - self._clock.monotonic()), work)
            left = self._until - self._clock.monotonic()
            if work.done():
                return
            if left > 0:
                await self._attempt(left)

    async def _pause(self, seconds: float, work: asyncio.Future[None]) -> None:
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(seconds):
                await asyncio.wait({work})

    def _until_next_look(self) -> float:
        """Candidates look often, to know when the lease was last renewed, and once more right after it ends."""
        spread = self._retry * self._jitter.random()
        left = self._ends - self._clock.monotonic()
        soon = (self._retry + spread) / 2
        return left + spread / 10 if 0 < left < soon else soon

    async def _attempt(self, seconds: float) -> bool:
        """Take or renew the lease if that is possible; within `seconds`."""
        try:
            async with self._clock.timeout(seconds):
                return await self._take()
        except TimeoutError:
            if self._under_way is not None:
                self._under_way.cancel()
            log.warning("%s/%s: no answer within %.1f s", self._namespace, self._name, seconds)
        except KubeError as error:
            log.warning("%s/%s: %s", self._namespace, self._name, error)
        return False

    async def _take(self) -> bool:
        if self._mine is not None:
            try:
                return await self._write(self._mine)
            except ApiError as error:
                if not error.conflict and not error.not_found:
                    raise
                self._mine = None  # somebody wrote: look before saying anything
        try:
            found = await self._leases.get(self._name, self._namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            found = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._name}}
        self._unsure = self._ours(found)
        if not self._free(found):
            self._until = float("-inf")
            return False
        try:
            return await self._write(found)
        except ApiError as error:
            if error.conflict or error.already_exists:
                return False  # another candidate was faster
            raise

    def _free(self, lease: Object) -> bool:
        """Ours already, nobody's, or not renewed for as long as its holder said."""
        spec = lease.get("spec") or {}
        version = lease["metadata"].get("resourceVersion", "")
        now = self._clock.monotonic()
        if version != self._seen[0]:
            self._seen = (version, now)
        self.holder = spec.get("holderIdentity") or ""
        if self.holder in {"", self.identity}:
            return True
        self._ends = self._seen[1] + (spec.get("leaseDurationSeconds") or self._duration)
        return now > self._ends

    async def _write(self, lease: Object) -> bool:
        spec = dict(lease.get("spec") or {})
        moment = micros(self._clock.now())
        if spec.get("holderIdentity") != self.identity:
            first = not lease["metadata"].get("resourceVersion")
            spec["leaseTransitions"] = 0 if first else int(spec.get("leaseTransitions") or 0) + 1
            spec["acquireTime"] = moment
        spec |= {"holderIdentity": self.identity, "leaseDurationSeconds": self._duration, "renewTime": moment}
        began = self._clock.monotonic()
        self._unsure = True
        self._mine = await self._send({**lease, "spec": spec})
        self._unsure = False
        self._until = began + self._deadline
        self.holder = self.identity
        return True

    async def _send(self, lease: Object) -> Object:
        """Whoever is stopped in the middle of this has to know what came of it: it may be the holder now."""
        if lease["metadata"].get("resourceVersion"):
            call = self._leases.update(lease, self._namespace)
        else:
            call = self._leases.create(lease, self._namespace)
        self._under_way = asyncio.create_task(call)
        return await asyncio.shield(self._under_way)

    async def _release(self) -> None:
        """Give it up if it is ours, so that the next one need not wait. Nobody leads here any more at this point."""
        self._until = float("-inf")
        try:
            async with self._clock.timeout(_FAREWELL):
                await self._arrived()
                if self._mine is not None or self._unsure:
                    await self._insist()
        except TimeoutError:
            log.info("%s/%s: not released, it will expire: no answer in %g s", self._namespace, self._name, _FAREWELL)
        finally:
            self._mine = None
            if self._under_way is not None:
                self._under_way.cancel()

    async def _arrived(self) -> None:
        """A write that was under way when we were stopped ends first."""
        if self._under_way is not None and not self._under_way.done():
            with contextlib.suppress(KubeError):
                self._mine = await asyncio.shield(self._under_way)

    async def _insist(self) -> None:
        """A busy server, a connection that was cut, or a server that is just being started anew is no reason to keep
        everybody waiting: it is tried for as long as there is time."""
        pause = Backoff(first=0.2, most=0.5, jitter=self._jitter)
        while True:
            try:
                await self._let_go()
                return
            except KubeError as error:
                if isinstance(error, ApiError) and error.not_found:
                    return
                log.debug("%s/%s: not released yet: %s", self._namespace, self._name, error)
                await self._clock.sleep(pause.next())

    async def _let_go(self) -> None:
        """A write that was cut off under way may have been done all the same: then look, and let go of that."""
        mine, self._mine = self._mine, None
        if mine is not None:
            try:
                await self._clear(mine)
                return
            except ApiError as error:
                if not error.conflict:
                    raise
        found = await self._leases.get(self._name, self._namespace)
        if self._ours(found):
            await self._clear(found)

    def _ours(self, lease: Object) -> bool:
        return (lease.get("spec") or {}).get("holderIdentity") == self.identity

    async def _clear(self, lease: Object) -> None:
        spec = {**lease["spec"], "leaseDurationSeconds": 1, "renewTime": micros(self._clock.now())}
        del spec["holderIdentity"]
        await self._leases.update({**lease, "spec": spec}, self._namespace)
