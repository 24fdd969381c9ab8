"""The process: carries out a plan until it is told to stop, and leaves nothing half done.

One lease for all of it: whoever holds it runs the controllers and the scheduler; the others wait, and show that they
are alive. On a stop, looks under way end, bindings under way end, then the lease is let go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kohort import tuning
from kohort.api import registry
from kohort.api.bundle import Listener, ReportEndpoint
from kohort.api.kind import Context
from kohort.api.releases import NEWEST
from kohort.controllers.runtime import Runtime
from kohort.gang.compile import CompileContext
from kohort.kinds.controllers import Setup, groups, make
from kohort.kube.client import Client
from kohort.kube.config import SERVICE_ACCOUNT
from kohort.kube.errors import ApiError, ConfigError, KubeError, TransportError
from kohort.kube.lease import Leadership
from kohort.kube.limits import Backoff
from kohort.kube.watchdog import Watchdog
from kohort.place.profile import Profile
from kohort.run.options import Options, host_and_port
from kohort.run.plan import Plan, grouping_of, plan
from kohort.run.survey import Managed, Survey, survey
from kohort.scheduler.endpoints import listening
from kohort.scheduler.loop import Scheduler
from kohort.scheduler.pages import JSON, METRICS, Answer, Headers, guarded, shown
from kohort.scheduler.settings import SchedulerSettings, read_profile_file

log = logging.getLogger(__name__)

_LOOK_AGAIN: Final = 60.0  # seconds between two looks for kinds that are not served
_REFUSED: Final = 60.0  # seconds of refusals alone, of a process that has never read the cluster


def managed() -> tuple[Managed, ...]:
    """The kinds that our controllers manage."""
    found = []
    for one in groups().values():
        group, kind = one.manages
        known = next(known for known in registry.kinds(group) if known.kind == kind and known.storage)
        found.append(Managed(one.name, group, known.version, kind, known.plural, one.leases))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Found:
    """A cluster, and what is to be done there."""

    survey: Survey
    plan: Plan


async def look(client: Client, chosen: Options) -> Found:
    kinds = managed()
    seen = await survey(client, kinds, client.clock.now())
    return Found(seen, plan(seen, chosen, kinds))


class Process:
    """`run` ends when it is cancelled; then everything has been put down."""

    def __init__(self, client: Client, chosen: Options, found: Plan, settings: SchedulerSettings | None = None) -> None:
        self.client, self.chosen, self.plan = client, chosen, found
        names, spaces = frozenset(chosen.scheduler_names), frozenset(chosen.namespaces)
        profile = read_profile_file(chosen.profile) if chosen.profile else Profile()
        self._settings = settings or SchedulerSettings(
            names=names, namespaces=spaces, profile=profile, grouping=grouping_of(chosen, found)
        )
        self.listeners = _listeners(chosen, found)
        self.report_ports: dict[str, int] = {}  # where reports are taken, by the name of the controllers that want them
        self.registry = CollectorRegistry()
        self.ready = asyncio.Event()  # it works
        self.warm = asyncio.Event()  # it knows the cluster, and may work or stand by
        self._knows_roles = False  # it has read the cluster once, so it has them
        self._refused_at: float | None = None  # since when it is only refused
        self.lease: Leadership | None = None
        if chosen.election.enabled:
            space = chosen.election.namespace or own_namespace() or found.home
            self.lease = Leadership(
                client,
                chosen.election.name,
                namespace=space,
                duration=chosen.election.lease,
                deadline=chosen.election.renew,
                retry=chosen.election.retry,
                clock=client.clock,
            )
        self.scheduler: Scheduler | None = None
        self.watchdog: Watchdog | None = None  # of the event loop, where one runs

    @property
    def leads(self) -> bool:
        return self.lease is None or self.lease.is_leader

    async def run(self) -> None:
        """A server that is away or busy when the work begins is waited for, as it is later."""
        pause = Backoff(first=1.0, most=15.0, jitter=self.client.jitter)
        while True:
            try:
                if self.lease is not None:
                    await self.lease.run_prepared(self._work)
                else:
                    begin = asyncio.Event()
                    begin.set()
                    await self._work(begin)
                return
            except KubeError as error:
                if not self._passes(error):
                    raise
                log.warning("beginning again: %s", error)
            await self.client.clock.sleep(pause.next())

    def _passes(self, error: KubeError) -> bool:
        """An API server that has just started refuses us until it has read the roles, which takes a busy machine some
        while. Whoever has read the cluster has its roles; whoever never has is told after a minute that it has none.
        """
        if isinstance(error, ApiError) and error.code in {401, 403}:
            now = self.client.clock.monotonic()
            self._refused_at = now if self._refused_at is None else self._refused_at
            return self._knows_roles or now - self._refused_at < _REFUSED
        self._refused_at = None
        if isinstance(error, ApiError):
            return error.code >= 500 or error.code == 429
        return isinstance(error, TransportError)

    async def _work(self, begin: asyncio.Event) -> None:
        """Again with more controllers when kinds come that were not served: definitions made just now, or later."""
        while await self._until_more(begin):
            log.warning("more kinds are served now: controllers %s", ", ".join(self.plan.controllers))

    async def _until_more(self, begin: asyncio.Event) -> bool:
        """Until `begin` everything is watched, so that whoever takes over need not list a cluster first."""
        tuning.start_afresh()
        self.registry = CollectorRegistry()
        try:
            async with AsyncExitStack() as stack:
                tasks = [await self._start(stack, begin)] if self.plan.scheduler else []
                if self.plan.controllers:
                    runtime = await stack.enter_async_context(self._controllers(begin))
                    await runtime.ready()
                if self.scheduler is not None:
                    await _first(tasks, self.scheduler.listed)
                self.warm.set()
                self._knows_roles = True
                await _first(tasks, begin)
                if self.scheduler is not None:
                    await _first(tasks, self.scheduler.started)
                self.ready.set()
                more = asyncio.create_task(self._more())
                stack.callback(more.cancel)
                await asyncio.wait({*tasks, more}, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    if task.done():
                        task.result()
                        return False
                more.result()
                return True
        finally:
            self.ready.clear()
            self.warm.clear()
            self.scheduler = None

    async def _more(self) -> None:
        """Ends when a kind whose controller is wanted is served; never, if none is missing."""
        pause = Backoff(first=1.0, most=_LOOK_AGAIN, jitter=self.client.jitter)
        while any(one.verdict == "missing" and one.what.startswith("controller ") for one in self.plan.lines):
            await self.client.clock.sleep(pause.next())
            try:
                await self.client.discovery.refresh()
                found = (await look(self.client, self.chosen)).plan
            except KubeError as error:
                log.info("not looked for more kinds: %s", error)
                continue
            if set(found.controllers) > set(self.plan.controllers):
                self.plan = found
                return
        await asyncio.Event().wait()

    async def _start(self, stack: AsyncExitStack, begin: asyncio.Event) -> asyncio.Task[None]:
        self.scheduler = Scheduler(
            self.client, self._settings, clock=self.client.clock, is_leader=lambda: self.leads, begin=begin
        )
        task = asyncio.create_task(self.scheduler.run())

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        stack.push_async_callback(stop)
        return task

    def _controllers(self, begin: asyncio.Event) -> Runtime:
        """Without the Workload API the controllers do their work, only nothing is grouped."""
        ctx = self.plan.ctx or Context.of(NEWEST)
        made = CompileContext(ctx.release, ctx.gates, ctx.options, settings=self.chosen.settings)
        setup = Setup(made, grouping=self.plan.ctx is not None, listeners=self.listeners)
        return Runtime(
            self.client,
            make(setup, [part for name in self.plan.controllers for part in groups()[name].controllers]),
            clock=self.client.clock,
            registry=self.registry,
            namespaces=self.chosen.namespaces,
            is_leader=lambda: self.leads,
            begin=begin,
        )

    # ---- what it shows

    def metrics(self) -> bytes:
        text = generate_latest(self.registry) + generate_latest(_only(_Leads(self)))
        if self.watchdog is not None:
            text += generate_latest(_only(self.watchdog))
        return text + (self.scheduler.metrics.text() if self.scheduler is not None else b"")


class _Leads(Collector):
    def __init__(self, process: Process) -> None:
        self._process = process

    def collect(self) -> Iterable[Metric]:
        text = "1: this process works; 0: it stands by"
        yield GaugeMetricFamily("kohort_leader", text, int(self._process.leads))


def _only(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


async def _first(tasks: Sequence[asyncio.Task[None]], event: asyncio.Event) -> None:
    """Wait for the event, unless a task fails first."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({*tasks, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    for task in tasks:
        if task.done():
            task.result()


def own_namespace(service_account: Path = SERVICE_ACCOUNT) -> str:
    """Of the pod that this process runs in; empty outside."""
    with contextlib.suppress(OSError):
        return (service_account / "namespace").read_text().strip()
    return ""


@asynccontextmanager
async def page(process: Process) -> AsyncIterator[int]:
    """/healthz, /readyz, /metrics and /debug/state for the time of the block; gives the port."""

    async def healthy(_: Headers) -> Answer:
        return Answer("ok")

    async def ready(_: Headers) -> Answer:
        if process.ready.is_set():
            return Answer("ok")
        holder = process.lease.holder if process.lease is not None else ""
        if holder and not process.leads and process.warm.is_set():  # it does what it is there for: a roll-out goes on
            return Answer(f"ok: standing by, {holder} leads")
        return Answer("listing", 503)

    async def metrics(_: Headers) -> Answer:
        return Answer(process.metrics(), kind=METRICS)

    async def state(_: Headers) -> Answer:
        if process.scheduler is None or not process.ready.is_set():
            return Answer("no scheduler runs here now", 503)
        return Answer(msgspec.json.encode(process.scheduler.state()), kind=JSON)

    debug = guarded(state, process.chosen.debug_token_file)
    pages = {"/healthz": healthy, "/readyz": ready, "/metrics": metrics, "/debug/state": debug}
    async with AsyncExitStack() as stack:
        for name in process.listeners:
            process.report_ports[name] = await stack.enter_async_context(_reports(groups()[name].reports, process))
        yield await stack.enter_async_context(shown(pages, *process.chosen.address))


def _listeners(chosen: Options, found: Plan) -> dict[str, Listener]:
    """Whom pods report to, where this process takes reports at all."""
    made = {}
    for name, one in ((name, groups()[name].reports) for name in found.controllers):
        wanted = chosen.reports.get(one.option) if one is not None and chosen.gates.get(one.gate) else None
        if one is None or wanted is None:
            continue
        try:
            made[name] = Listener(wanted.url, Path(wanted.ca).read_text())
        except OSError as error:
            raise ConfigError(f"{one.option}.ca: {wanted.ca}: {error.strerror}") from None
    return made


@asynccontextmanager
async def _reports(endpoint: ReportEndpoint | None, process: Process) -> AsyncIterator[int]:
    """Taken by all processes, whoever leads: pods ask a Service, which knows nothing of that."""
    assert endpoint is not None
    wanted = process.chosen.reports[endpoint.option]
    context = server_context(endpoint.option, wanted.certificate, wanted.key)
    application = import_module(endpoint.application).application(process.client)
    async with listening(application, *host_and_port(wanted.listen), context) as port:
        yield port


def server_context(path: str, certificate: str, key: str) -> ssl.SSLContext:
    """Of files that the configuration names at `path`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{path}: {certificate}, {key}: {error}") from None
    return context
