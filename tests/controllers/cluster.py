"""The embedded API in this process with controllers on it, in virtual time: how the shell is tested."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from kohort.api.kind import Context, Object
from kohort.controllers.controller import Controller
from kohort.controllers.runtime import Runtime
from kohort.gang.compile import CompileContext
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.settings import JobSettings
from kohort.kinds.controllers import Setup, make
from kohort.kube.client import Client
from kohort.kube.clock import VirtualClock
from kohort.kube.wire import Request, Response
from kohort.server.api import Api
from kohort.server.store import Store

NS = "lab"


class Faulty:
    """An API that does not always answer: `fault` says for a request what happens instead, if anything."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.fault: Callable[[Request], Response | BaseException | None] = lambda request: None
        self.requests: list[tuple[str, str]] = []

    async def handle(self, request: Request) -> Response:
        self.requests.append((request.method, request.path))
        found = self.fault(request)
        if isinstance(found, BaseException):
            raise found
        return found if found is not None else await self.api.handle(request)


class Cluster:
    def __init__(self, api: Faulty, ctx: CompileContext, clock: VirtualClock) -> None:
        self.api, self.ctx, self.clock = api, ctx, clock
        self.client = Client.within(api, clock=clock, namespace=NS)  # the user's
        self.controllers: list[Controller] = make(Setup(ctx))

    def runtime(self, controllers: Iterable[Controller] | None = None, **options: Any) -> Runtime:
        """A process of its own."""
        client = Client.within(self.api, clock=self.clock)
        return Runtime(
            client, make(Setup(self.ctx)) if controllers is None else controllers, clock=self.clock, **options
        )

    async def until(self, holds: Callable[[], Any], seconds: float = 60.0, step: float = 0.25) -> None:
        """Let virtual time pass until an awaitable condition holds."""
        end = self.clock.monotonic() + seconds
        while not await holds():
            assert self.clock.monotonic() < end, "it did not happen"
            await self.clock.advance(step)
            await asyncio.sleep(0.001)  # what threads of the store do takes real time

    async def every(self, kind: str, api_version: str = "v1") -> list[Object]:
        return (await self.client.kind(api_version, kind).list(NS)).items

    async def job(self, name: str) -> Object:
        return await self.client.kind("batch/v1", "Job").get(name, NS)

    async def pods(self) -> list[Object]:
        return await self.every("Pod")


@asynccontextmanager
async def cluster(minor: str = "1.37", **settings: Any) -> AsyncIterator[Cluster]:
    base = Context.of(minor)
    ctx = CompileContext(base.release, base.gates, base.options, settings=SettingsByKind(JobSettings(**settings)))
    store = Store()
    await store.open()
    api = Api(store, base)
    found = Cluster(Faulty(api), ctx, VirtualClock(datetime.now(UTC)))  # the server has the real one
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}
    try:
        await found.client.kind("v1", "Namespace").create(space)
        yield found
    finally:
        api.stop()
        await found.client.close()
        await store.close()


def job_of(name: str, **spec: Any) -> Object:
    containers = [{"name": "main", "image": "lab.example/img:1"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NS},
        "spec": {"template": template, **spec},
    }
