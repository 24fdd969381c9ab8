"""The live scheduler: informers tell the core what is there, the core decides, binder and writer carry it out.

All truth is in the API server. Whatever dies, the next start lists everything once, and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from kohort.kube.clock import REAL
from kohort.kube.codec import identify
from kohort.kube.events import Recorder
from kohort.kube.informer import Informer
from kohort.kube.lease import Leadership
from kohort.kube.times import seconds
from kohort.scheduler import snapshot
from kohort.scheduler.binder import Binder
from kohort.scheduler.conditions import Writes
from kohort.scheduler.core import Core, Step
from kohort.scheduler.generation import Generation, discover
from kohort.scheduler.metrics import Metrics
from kohort.scheduler.model import (
    DisruptionBudget,
    GroupObject,
    Namespace,
    Node,
    Pod,
    Workload,
    composite_key,
)
from kohort.scheduler.settings import Settings
from kohort.scheduler.writer import Writer

if TYPE_CHECKING:
    from kohort.kube.client import Client
    from kohort.kube.clock import Clock

log = logging.getLogger(__name__)

_NOTICES: Final = 5.0  # seconds between two looks at roots that are not ready
_AT_ONCE: Final = 16  # decisions between two turns of the event loop
_OTHERS: Final = {
    "namespaces": Namespace,
    "poddisruptionbudgets.policy": DisruptionBudget,
    "persistentvolumeclaims": dict[str, Any],
    "persistentvolumes": dict[str, Any],
    "storageclasses.storage.k8s.io": dict[str, Any],
}


class Scheduler:
    """Schedules on one server until cancelled."""

    def __init__(
        self, client: Client, settings: Settings | None = None, *, clock: Clock = REAL, lease: Leadership | None = None
    ) -> None:
        self.client = client
        self.settings = settings or Settings()
        self.clock = clock
        self.lease = lease
        self.started = asyncio.Event()  # everything is listed: decisions are made
        self._changed = asyncio.Event()
        self._fresh(Generation("", {}))

    def _fresh(self, generation: Generation) -> None:
        """Nothing is known yet."""
        self.generation = generation
        self.core = Core(self.settings, lambda: seconds(self.clock.now()), generation.condition)
        self.metrics = Metrics(self.core, ",".join(sorted(self.settings.names)))
        self.keep = snapshot.Keep()

    async def run(self) -> None:
        """As the leader if there is a lease, else at once."""
        if self.lease is None:
            await self._lead()
        else:
            await self.lease.run(self._lead)

    def state(self) -> dict[str, Any]:
        """For /debug/state."""
        leader = self.lease is None or self.lease.is_leader
        return {"generation": self.generation.minor, "leader": leader, **snapshot.take(self.core, self.keep)}

    # ---- one term

    async def _lead(self) -> None:
        self.started.clear()
        self._fresh(await discover(self.client.discovery))
        log.info("Workload API of %s: %s", self.generation.minor or "none", self.generation.versions)
        async with AsyncExitStack() as stack:
            recorder = await stack.enter_async_context(Recorder(self.client, "kohort-scheduler", clock=self.clock))
            writer = await stack.enter_async_context(
                Writer(self.client, recorder, self.clock, self.generation.versions, self.settings.write_concurrency)
            )
            binder = Binder(
                self.core,
                self.client,
                self.settings,
                self.clock,
                report=writer.take,
                wake=self._changed.set,
                may=lambda: self.lease is None or self.lease.is_leader,
            )
            stack.push_async_callback(binder.close)
            await self._follow(stack)
            self.started.set()
            await self._decide(writer, binder)

    async def _decide(self, writer: Writer, binder: Binder) -> None:
        """Decisions, one after the other; between them, whoever waits for the event loop gets it."""
        made, noticed = 0, self.clock.monotonic()
        while True:
            self._changed.clear()
            began = self.clock.monotonic()
            step = self.core.step(began)
            if step is not None:
                self._carry_out(step, writer, binder, began)
                made += 1
                if made % _AT_ONCE == 0:
                    await asyncio.sleep(0)
                continue
            if began - noticed >= _NOTICES:
                noticed = began
                writer.take(Writes(notes=self.core.notices(began)))
            await self._wait(began)

    def _carry_out(self, step: Step, writer: Writer, binder: Binder, began: float) -> None:
        if step.verdict is not None:
            self.metrics.decided(step.verdict, self.clock.monotonic() - began)
            log.info(
                "%s: %s, %d placed, %d left%s",
                step.verdict.root,
                step.verdict.kind.value,
                len(step.verdict.seats),
                len(step.verdict.leftovers),
                f", {step.verdict.reason.value}" if step.verdict.reason else "",
            )
            if step.verdict.seats:
                binder.bind(step.verdict)
        binder.evict(step.evictions)
        writer.take(step.writes)

    async def _wait(self, now: float) -> None:
        """Until the world changes, or the queue's next timer."""
        timer = self.core.queue.next_timer()
        pause = _NOTICES if timer is None else min(max(timer - now, 0.001), _NOTICES)
        with contextlib.suppress(TimeoutError):
            async with self.clock.timeout(pause):
                await self._changed.wait()

    # ---- what is followed

    async def _follow(self, stack: AsyncExitStack) -> None:
        """Groups and nodes before pods: a pod finds its group, and a nomination its node."""
        core, world = self.core, self.core.world
        first = [self._informer("nodes", Node, world.set_node, lambda one: world.drop_node(one.metadata.name))]
        for kind, version in self.generation.versions.items():
            first.append(self._groups(kind, version))
        first += [self._other(name, kind) for name, kind in _OTHERS.items()]
        for informer in first:
            await stack.enter_async_context(informer)
        await asyncio.gather(*(informer.ready() for informer in first))
        pods = self._informer("pods", Pod, world.set_pod, core.drop_pod)
        await stack.enter_async_context(pods)
        await pods.ready()

    def _groups(self, kind: str, version: str) -> Informer[Any]:
        core, world = self.core, self.core.world
        if kind == "Workload":
            return self._informer(
                kind, Workload, world.set_workload, lambda one: world.drop_workload(_key(one)), version=version
            )
        if kind == "CompositePodGroup":
            return self._informer(
                kind,
                GroupObject,
                lambda one: world.set_group(one, composite=True),
                lambda one: core.drop_group(composite_key(one.metadata.namespace, one.metadata.name)),
                version=version,
            )
        return self._informer(
            kind, GroupObject, world.set_group, lambda one: core.drop_group(_key(one)), version=version
        )

    def _other(self, name: str, kind: Any) -> Informer[Any]:
        """Budgets, namespaces, claims and what they rest on."""
        world = self.core.world
        if kind is Namespace:
            return self._informer(
                name,
                kind,
                lambda one: world.set_namespace(one.metadata.name, one.metadata.labels or {}),
                lambda one: world.set_namespace(one.metadata.name, None),
            )
        if kind is DisruptionBudget:
            return self._informer(name, kind, world.set_budget, lambda one: world.drop_budget(_key(one)))
        put: Callable[[str, dict[str, Any] | None], None] = {
            "persistentvolumeclaims": world.set_claim,
            "persistentvolumes": world.set_volume,
        }.get(name, world.set_storage_class)
        return self._informer(name, kind, lambda one: put(_key(one), one), lambda one: put(_key(one), None))

    def _informer(
        self, name: str, kind: Any, put: Callable[[Any], None], drop: Callable[[Any], None], *, version: str = ""
    ) -> Informer[Any]:
        resource = self.client.kind(version, name, kind) if version else self.client.resource(name, kind)
        informer: Informer[Any] = Informer(resource, clock=self.clock)
        plural = f"{name.lower()}s" if version else name.split(".", maxsplit=1)[0]

        def added(one: Any) -> None:
            self.keep.put(plural, _key(one), one)
            put(one)
            self._changed.set()

        def deleted(one: Any) -> None:
            self.keep.drop(plural, _key(one))
            drop(one)
            self._changed.set()

        informer.handle(added=added, updated=lambda _, new: added(new), deleted=deleted)
        return informer


def _key(one: Any) -> str:
    return str(identify(one).key)


@contextlib.asynccontextmanager
async def running(scheduler: Scheduler) -> AsyncIterator[Scheduler]:
    """Runs it for the time of the block, from the moment it decides."""
    task = asyncio.create_task(scheduler.run())
    try:
        started = asyncio.create_task(scheduler.started.wait())
        await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if task.done():
            task.result()
        yield scheduler
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
