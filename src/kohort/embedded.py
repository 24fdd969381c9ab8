"""A whole cluster in one process: controllers, the scheduler and virtual nodes around the embedded API server.

All of them speak to the server through the same client that they use on a real cluster, only without a socket.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import Final

from kohort.api.bundle import Listener, ReportEndpoint
from kohort.controllermanager import registry as manager
from kohort.controllers.runtime import Runtime
from kohort.gang.compile import CompileContext
from kohort.gang.settings import DEFAULTS, SettingsByKind
from kohort.grouping.settings import Grouping
from kohort.kinds.controllers import groups, install, make, needs, probe, selected
from kohort.kube.client import Client
from kohort.kube.transport import ADMIN
from kohort.kube.wire import User
from kohort.place.profile import Profile
from kohort.scheduler.endpoints import listening
from kohort.scheduler.loop import Scheduler, running
from kohort.scheduler.settings import KOHORT, SchedulerSettings
from kohort.server.server import Server
from kohort.sim.behaviour import FOR_EVER
from kohort.sim.cluster import Pool
from kohort.sim.kubelet import KubeletSimulator

# Here nobody else schedules, so pods that name nobody are ours as well.
SCHEDULER_NAMES: Final = frozenset({"default-scheduler", KOHORT})
_LOOK_SECONDS: Final = 0.02


@asynccontextmanager
async def whole(
    server: Server,
    pools: Sequence[Pool],
    controllers: Iterable[str] | None = None,
    user: User = ADMIN,
    profile: Profile | None = None,
    settings: SettingsByKind = DEFAULTS,
    copied: bool = False,
) -> AsyncIterator[Client]:
    """While inside, workloads run: they become groups, groups are placed, virtual nodes play their pods.

    `controllers`: all, if nothing is said. `user`: as whom controllers and scheduler work. `profile`: what placement
    weighs. `settings`: what is chosen about workload kinds. `copied`: the nodes are those of another cluster and
    stay as they are, and what runs on them runs on. The client that is given back is an administrator's.
    """
    clock = server.clock
    ctx = CompileContext(server.ctx.release, server.ctx.gates, server.ctx.options, settings=settings.embedded())
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.within(server.api, manager="kohort", clock=clock))
        usual = FOR_EVER if copied else None
        simulator = KubeletSimulator(client, pools, every=True, usual=usual, lifecycle=not copied, clock=clock)
        kubelets = await stack.enter_async_context(simulator)
        every = selected(None) if controllers is None else tuple(controllers)
        wanted = [name for name in every if name not in manager.names()]
        await _served(client, wanted)
        await install(client, wanted)
        await manager.install(client, every)
        listeners = {
            name: await stack.enter_async_context(_reports(one.reports, server, client))
            for name, one in groups().items()
            if one.reports is not None
            and one.reports.gate in ctx.options
            and server.pki is not None
            and not set(wanted).isdisjoint(one.controllers)
        }
        worker = await stack.enter_async_context(Client.within(server.api, user, manager="kohort", clock=clock))
        setup = replace(await probe(client, ctx), listeners=listeners)
        ours, builtin = make(setup, wanted), manager.make(name for name in every if name in manager.names())
        # The controllers of kube-controller-manager are the cluster's own: the roles of Kohort say nothing of them.
        runtimes = (
            [Runtime(worker, [*ours, *builtin], clock=clock)]
            if user == ADMIN
            else [Runtime(worker, ours, clock=clock), Runtime(client, builtin, clock=clock)]
        )
        for runtime in runtimes:
            await stack.enter_async_context(runtime)
        grouping = Grouping(schedulers=frozenset({KOHORT})).without(wanted if setup.grouping else ())
        chosen = SchedulerSettings(names=SCHEDULER_NAMES, profile=profile or Profile(), grouping=grouping)
        scheduler = await stack.enter_async_context(running(Scheduler(worker, chosen, clock=clock)))
        await kubelets.ready()
        for runtime in runtimes:
            await runtime.ready()
        await scheduler.started.wait()
        yield client


@asynccontextmanager
async def _reports(endpoint: ReportEndpoint, server: Server, client: Client) -> AsyncIterator[Listener]:
    """Where pods report: beside the API, with its certificate."""
    assert server.pki is not None
    host, context = server.settings.host, server.pki.server_context()
    async with listening(import_module(endpoint.application).application(client), host, 0, context) as port:
        yield Listener(f"https://{host}:{port}", server.pki.ca_pem.decode())


async def _served(client: Client, controllers: Iterable[str]) -> None:
    """The server defines the kinds of the operators just after it is ready; their controllers need them."""
    for kind in needs(controllers):
        while not await client.discovery.versions(*kind):
            await client.clock.sleep(_LOOK_SECONDS)
            await client.discovery.refresh()
