"""The live scheduler: informers tell the core what is there, the core decides, binder and writer carry it out.

All truth is in the API server. Whatever dies, the next start lists everything once, and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack
from time import thread_time
from typing import TYPE_CHECKING, Any, Final

from kohort import tuning
from kohort.apimachinery.times import seconds
from kohort.grouping.api import GROUP, VERSION
from kohort.kube import dismantle
from kohort.kube.clock import REAL
from kohort.kube.codec import identify
from kohort.kube.errors import ApiError, KubeError
from kohort.kube.events import Recorder
from kohort.kube.informer import Informer, without_managed_fields
from kohort.kube.lease import Leadership
from kohort.kube.resource import LARGE_PAGE, PAGE
from kohort.kube.shares import of_loop, rests, tenant
from kohort.kube.timeslice import give_turns
from kohort.kube.transport import InProcess
from kohort.scheduler import snapshot
from kohort.scheduler.binder import Binder
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.defragmentation import KeptFree
from kohort.scheduler.hardquestions import HardQuestion
from kohort.scheduler.jsonlog import FACTS
from kohort.scheduler.metrics import Metrics
from kohort.scheduler.model import shown
from kohort.scheduler.published import publish
from kohort.scheduler.release import ServedRelease, discover
from kohort.scheduler.schedulingcycle import Step
from kohort.scheduler.settings import SchedulerSettings, told_grouping
from kohort.scheduler.solverprocesses import SolverProcesses
from kohort.scheduler.sources import RULES, Source, read_kinds, resting, served
from kohort.scheduler.sparekeeper import SpareKeeper
from kohort.scheduler.status import Patch, Target, Writes
from kohort.scheduler.writer import StatusWriter

if TYPE_CHECKING:
    from kohort.kube.client import Client
    from kohort.kube.clock import Clock
    from kohort.kube.discovery import ResourceType
    from kohort.place.solving import Verdict

log = logging.getLogger(__name__)

_NOTICES: Final = 5.0  # seconds between two looks at roots that are not ready
_RULE: Final = 5 << 12  # bytes of the pages that what is counted for a rule between pods may hold
_LOOK: Final = 2.0  # seconds between two looks for kinds that pods rest on
_LOOK_AGAIN: Final = 15  # looks until those that were not there are looked for again
_JOIN: Final = 30.0  # seconds for the list of a kind that comes later
_PAUSE: Final = 1.0  # seconds after a fault of ours
_AT_ONCE: Final = 16  # decisions between two turns of the event loop
_SLICE: Final = 0.008  # seconds after which there is a turn, however few they were


class Scheduler:
    """Schedules on one server until cancelled."""

    def __init__(
        self,
        client: Client,
        settings: SchedulerSettings | None = None,
        *,
        clock: Clock = REAL,
        lease: Leadership | None = None,
        is_leader: Callable[[], bool] = lambda: True,
        begin: asyncio.Event | None = None,
    ) -> None:
        """`is_leader`: asked before each write, for a leadership that is somebody else's to keep. `begin`: until it is
        set, everything is watched and nothing is done, so that the first decision need not wait for lists."""
        self.client = client
        self.settings = settings or SchedulerSettings()
        self.clock = clock
        self.lease = lease
        self._is_leader = is_leader
        self._begin = begin
        self.listed = asyncio.Event()  # the cluster is known
        self.started = asyncio.Event()  # decisions are made
        self._changed = asyncio.Event()
        self._fresh(ServedRelease("", {}))
        if self.clock is REAL:
            tuning.when_calm(self._forget)

    def _fresh(self, release: ServedRelease) -> None:
        """Nothing is known yet."""
        self.release = release
        # In virtual time nothing goes on beside a decision: it is the same each time.
        aside = self.clock is REAL and self.settings.profile.search_processes > 0
        self.core = SchedulerCore(self.settings, lambda: seconds(self.clock.now()), release.condition, aside=aside)
        self._informers: list[Informer[Any]] = []
        self._rules_followed = False  # GroupingRules
        names = ",".join(sorted(self.settings.names))
        self.metrics = Metrics(self.core, names, self.clock.monotonic, self._failing_since)
        self.objects = snapshot.ObjectStore()

    def _forget(self) -> None:
        for one in self.core.cache.forget_specs():
            dismantle.of_loop().add(one)

    async def run(self) -> None:
        """As the leader if there is a lease, else at once."""
        if self.lease is None:
            await self._lead()
        else:
            await self.lease.run(self._lead)

    def _leads(self) -> bool:
        return self._is_leader() and (self.lease is None or self.lease.is_leader)

    def state(self) -> dict[str, Any]:
        """For /debug/state."""
        leader = self.lease is None or self.lease.is_leader
        now = seconds(self.clock.now())
        state = snapshot.dump(self.core, self.objects)
        return {"release": self.release.minor, "time": now, "leader": leader, **state}

    # ---- one term

    async def _lead(self) -> None:
        import numpy.ma  # noqa: F401 - numpy loads it when something is first made unique: not within a decision

        self.started.clear()
        self.listed.clear()
        self._fresh(await discover(self.client.discovery))
        log.info("Workload API of %s: %s", self.release.minor or "none", self.release.versions)
        quiet = asyncio.Event()
        async with AsyncExitStack() as stack:
            followed = await self._follow(stack)
            self.listed.set()
            if self._begin is not None:
                await self._begin.wait()
            recorder = await stack.enter_async_context(Recorder(self.client, "kohort-scheduler", clock=self.clock))
            writer = await stack.enter_async_context(
                StatusWriter(
                    self.client,
                    recorder,
                    self.clock,
                    {**self.release.versions, RULES.kind: f"{GROUP}/{VERSION}"},
                    self.settings.write_concurrency,
                    quiet,
                )
            )
            binder = Binder(
                self.core,
                self.client,
                self.settings,
                self.clock,
                report=writer.take,
                wake=self._changed.set,
                is_leader=self._leads,
                quiet=quiet,
            )
            stack.push_async_callback(binder.close)
            stack.callback(self.core.close)
            profile = self.settings.profile
            solvers = SolverProcesses(profile.search_processes, profile.search_seconds, self._answered)
            stack.push_async_callback(solvers.close)
            telling = asyncio.create_task(publish(self.client, told_grouping(self.settings)))
            stack.push_async_callback(_ended, telling)
            for source, informer in followed:
                await self._tell(source, informer)
            self.started.set()
            looking = asyncio.create_task(self._look_for_more(stack, writer))
            stack.push_async_callback(_ended, looking)
            keeper = SpareKeeper(self.core.cache, self.client, self.clock, self.release, writer.take, self._leads)
            stack.push_async_callback(_ended, asyncio.create_task(keeper.run()))
            self._keep_free(stack, writer, binder)
            await self._decide(writer, binder, solvers)

    def _keep_free(self, stack: AsyncExitStack, writer: StatusWriter, binder: Binder) -> None:
        """Where defragmentation is switched on."""
        settings = self.settings.profile.defragmentation
        if settings is None:
            return

        def carry_out(step: Step) -> None:
            binder.evict(step.evictions)
            writer.take(step.writes)

        kept = KeptFree(self.core, settings, self.clock, carry_out, self._leads)
        stack.push_async_callback(_ended, asyncio.create_task(kept.run()))

    def _failing_since(self) -> list[float]:
        return [one.failing_since for one in self._informers if one.failing_since is not None]

    def _answered(self, question: HardQuestion, verdict: Verdict) -> None:
        self.core.answered(question, verdict, self.clock.monotonic())
        self._changed.set()

    async def _decide(self, writer: StatusWriter, binder: Binder, solvers: SolverProcesses) -> None:
        """Decisions, one after the other; between them, whoever waits for the event loop gets it."""
        if self.clock is REAL:
            self.core.queue.rests = rests
        made, noticed = 0, self.clock.monotonic()
        turn = noticed
        while True:
            self._changed.clear()
            began, worked = self.clock.monotonic(), thread_time()
            step = self.core.step(began)
            if step is not None:
                self._charge(step, thread_time() - worked + step.spent, began)
                self._carry_out(step, writer, binder, began)
                if self.core.questions is not None:
                    solvers.ask(self.core.questions.take())
                made += 1
                worked_for = self.clock.monotonic() - turn
                if made % _AT_ONCE == 0 or worked_for > _SLICE:
                    await give_turns(self.clock, worked_for)
                    turn = self.clock.monotonic()
                continue
            if began - noticed >= _NOTICES:
                noticed = began
                writer.take(self.core.notices(began))
                self._give_back()
            await self._wait(began)
            turn = self.clock.monotonic()

    def _give_back(self) -> None:
        """What was forgotten by the clock goes back to the system in the next calm moment. Nobody would know of it."""
        tuning.freed(self.core.rules_forgotten * _RULE)
        self.core.rules_forgotten = 0

    def _charge(self, step: Step, seconds: float, now: float) -> None:
        """In virtual time nothing costs anything: it goes the same way each time."""
        decision = step.decision
        if decision is None or self.clock is not REAL:
            return
        of_loop().spent(tenant(decision.namespace), seconds)
        if not decision.assignments:
            self.core.queue.charge(decision.root, seconds, now)

    def _tell_faults(self) -> None:
        """The whole story once; what fails in the same way again gets a line."""
        faults, self.core.faults = self.core.faults, []
        for fault in faults:
            self.metrics.faulted()
            trace = fault.error if fault.first else None
            log.error("the scheduler failed on %s: %r", shown(fault.root), fault.error, exc_info=trace)

    def _carry_out(self, step: Step, writer: StatusWriter, binder: Binder, began: float) -> None:
        self._tell_faults()
        if step.decision is not None:
            self.metrics.decided(step.decision, max(self.clock.monotonic() - began, step.spent))
            facts = step.decision.facts()
            text = ", ".join(f"{name} {value}" for name, value in facts.items() if name not in {"root", "result"})
            log.info("%s: %s, %s", facts["root"], facts["result"], text, extra={FACTS: facts})
            if step.decision.assignments:
                try:
                    binder.bind(step.decision)
                except Exception as error:  # before anything was sent
                    failed = self.core.not_carried_out(step.decision, error, began)
                    self._tell_faults()
                    writer.take(failed.writes)
        binder.evict(step.evictions)
        writer.take(step.writes)

    async def _wait(self, now: float) -> None:
        """Until the cache changes, or the queue's next timer."""
        timer = self.core.next_timer()
        pause = _NOTICES if timer is None else min(max(timer - now, 0.001), _NOTICES)
        with contextlib.suppress(TimeoutError):
            async with self.clock.timeout(pause):
                await self._changed.wait()

    # ---- what is followed

    async def _follow(self, stack: AsyncExitStack) -> list[tuple[Source, Informer[Any]]]:
        """All are listed at once. In the order in which they are to be told, pods after everything else: a pod finds
        its group, and a nomination its node."""
        default_spread = bool(self.settings.profile.default_spread)
        grouping = self.settings.grouping
        found = await served(self.client.discovery, self.release, default_spread=default_spread, grouping=grouping)
        begun = [(source, self._informer(source, version)) for source, version in found]
        self._informers = [informer for _, informer in begun]
        for informer in self._informers:
            await stack.enter_async_context(informer)
        allowed = await asyncio.gather(*(_readable(*one) for one in begun))
        followed = [one for one, may in zip(begun, allowed, strict=True) if may]
        refused = read_kinds((one for (one, _), may in zip(begun, allowed, strict=True) if not may), grouping)
        self.core.cache.companion.readable(read_kinds((one for one, _ in followed), grouping), refused)
        self._rules_followed = any(one is RULES for one, _ in followed)
        self._informers = [informer for _, informer in followed]
        return followed

    async def _follow_more(self, stack: AsyncExitStack, *, again: bool) -> None:
        """Kinds that pods rest on, and that the server did not have when the term began. `again`: also those that it
        did not have when somebody looked before."""
        companion = self.core.cache.companion
        wanted = companion.objects.wanted | (companion.objects.missed if again else set())
        rules = again and not self._rules_followed
        if not wanted and not rules:
            return
        await self.client.discovery.refresh()
        types = await self.client.discovery.all()
        if rules and (version := _version(types, RULES.group, RULES.kind)):
            self._rules_followed = await self._join(stack, RULES, version)
        for kind in wanted:
            version = _version(types, kind.group, kind.name)
            if not version or not await self._join(stack, resting(kind, version), version):
                if kind not in companion.objects.missed:
                    log.warning("%s.%s cannot be read: its pods are not grouped by it", kind.name, kind.group)
                    companion.refuse(kind)
                continue
            companion.readable({kind}, companion.objects.refused)
        self._changed.set()

    async def _join(self, stack: AsyncExitStack, source: Source, version: str) -> bool:
        """One more kind is followed until the end of the term, if we may read it."""
        informer = self._informer(source, version)
        async with AsyncExitStack() as begun:
            await begun.enter_async_context(informer)
            try:
                async with self.clock.timeout(_JOIN):
                    readable = await _readable(source, informer)
            except TimeoutError:
                readable = False
            if not readable:
                return False
            await stack.enter_async_context(begun.pop_all())
        await self._tell(source, informer)
        return True

    async def _look_for_more(self, stack: AsyncExitStack, writer: StatusWriter) -> None:
        """An operator may be installed after us: its kinds are followed from the first pod on that needs them."""
        for look in itertools.count(1):
            cache = self.core.cache
            told = cache.grouping_rules.conditions(cache.companion.objects, seconds(self.clock.now()))
            writer.take(Writes([Patch(Target(RULES.kind, "", name, uid), condition) for name, uid, condition in told]))
            await self.clock.sleep(_LOOK)
            try:
                await self._follow_more(stack, again=look % _LOOK_AGAIN == 0)
            except KubeError as error:
                log.warning("kinds that pods rest on: %s", error)

    def _informer(self, source: Source, version: str) -> Informer[Any]:
        """Over the network in pages, which cost the server half of what a stream does; large ones where decisions wait
        for them. Within the process as a stream, which leaves others turns, however large objects are."""
        return Informer(
            self.client.kind(version, source.kind, source.decode),
            transform=without_managed_fields if source.whole else source.keep,
            streaming=isinstance(self.client.calls.transport, InProcess),
            page=LARGE_PAGE if source.needed else PAGE,
            optional=source.optional,
            clock=self.clock,
            jitter=self.client.jitter,
        )

    async def _tell(self, source: Source, informer: Informer[Any]) -> None:
        """What is known of a kind, and from now on each change."""
        core, objects = self.core, self.objects

        def added(one: Any) -> None:
            objects.put(source.name, str(identify(one).key), one)
            source.put(core, one)
            self._changed.set()

        def deleted(one: Any) -> None:
            objects.drop(source.name, str(identify(one).key))
            source.drop(core, one)
            self._changed.set()

        await informer.tell(added=added, updated=lambda _, new: added(new), deleted=deleted)


async def _readable(source: Source, informer: Informer[Any]) -> bool:
    """When it is listed. Spreading by what selects pods, and naming quotas, are niceties: without the right to read,
    there is none."""
    try:
        await informer.ready()
    except ApiError as error:
        log.warning("%s are not looked at: %s", source.name, error)
        return False
    return True


def _version(types: Iterable[ResourceType], group: str, kind: str) -> str:
    return next((one.api_version for one in types if (one.group, one.kind) == (group, kind)), "")


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def running(scheduler: Scheduler) -> AsyncIterator[Scheduler]:
    """Runs it for the time of the block, from the moment it decides.

    A fault of ours does not leave a cluster without a scheduler: it is logged, everything is listed anew, and work goes
    on. The first such fault is raised at the end of the block.
    """
    faults: list[Exception] = []
    task = asyncio.create_task(_kept(scheduler, faults))
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
    if faults:
        raise faults[0]


async def _kept(scheduler: Scheduler, faults: list[Exception]) -> None:
    while True:
        try:
            await scheduler.run()
        except Exception as fault:
            if not scheduler.started.is_set():
                raise  # it never worked: whoever started it should know at once
            log.exception("the scheduler failed; it begins anew")
            faults.append(fault)
            await scheduler.clock.sleep(_PAUSE)
        else:
            return
