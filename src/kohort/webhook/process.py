"""`kohort webhook`: listens, keeps its certificate, and knows which kinds are Kohort's to judge on this cluster."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kohort.api import registry
from kohort.api.kind import Context
from kohort.api.releases import NEWEST
from kohort.kube.client import Client
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError, KubeError
from kohort.run.options import Options, host_and_port
from kohort.run.plan import Plan, grouping_of
from kohort.run.process import look, own_namespace
from kohort.run.survey import HOME
from kohort.scheduler.endpoints import listening
from kohort.webhook.grouping import GroupWriter
from kohort.webhook.review import Answer, Question
from kohort.webhook.rules import ClusterRules
from kohort.webhook.serve import Reviewer, application
from kohort.webhook.upkeep import Upkeep
from kohort.webhook.validating import checked

log = logging.getLogger(__name__)
_AGAIN: Final = 300.0  # seconds between two looks at who manages which kinds


def judged(found: Plan) -> tuple[str, ...]:
    """Controllers whose kinds are ours: somebody else's operator has a webhook of its own. Kinds that are not served
    yet are ours, too."""
    said = {one.what.removeprefix("controller "): one.verdict for one in found.lines}
    return tuple(name for name in checked() if said.get(name) in {"does", "missing"})


class WebhookProcess:
    """`run` ends when it is cancelled."""

    def __init__(self, client: Client, chosen: Options, found: Plan) -> None:
        self.client, self.chosen = client, chosen
        space = chosen.webhook.namespace or own_namespace() or HOME
        self.upkeep = Upkeep(client, replace(chosen.webhook, namespace=space))
        self.reviewer = Reviewer(self._look, lambda: self._about, self._group)
        self._writer = GroupWriter(client, chosen.scheduler_names)
        self._rules = ClusterRules(client, self._regroup)
        self._use(found)
        self.port = 0

    async def run(self) -> None:
        await asyncio.gather(self.upkeep.run(), self._follow(), self._rules.run())

    def _use(self, found: Plan) -> None:
        self.plan, self._about = found, _about(found)
        self._regroup()

    def _regroup(self) -> None:
        self._grouping = self._rules.extend(grouping_of(self.chosen, self.plan))

    async def _follow(self) -> None:
        """Operators come and go."""
        while True:
            await self.client.clock.sleep(_AGAIN)
            try:
                await self.client.discovery.refresh()
                self._use((await look(self.client, self.chosen)).plan)
            except KubeError as error:
                log.warning("not looked whose kinds are whose: %s", error)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Before there is a certificate, connections are refused by TLS."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.reviewer.close)
            await self.reviewer.warm()
            address = host_and_port(self.upkeep.chosen.listen)
            served = listening(application(self.reviewer), *address, self.upkeep.context)
            self.port = await stack.enter_async_context(served)
            yield self.port

    async def _look(self, kind: str, name: str | None, namespace: str | None) -> list[dict[str, Any]]:
        """Nothing, if it is not there. If it cannot be known, an error: nobody is refused for that."""
        resource = self.client.kind(_api_version(kind), kind)
        try:
            if name is not None:
                return [await resource.get(name, namespace or "")]
            return (await resource.list(namespace or "")).items
        except NotServedError:
            return []
        except ApiError as error:
            if error.not_found:
                return []
            raise

    async def _group(self, asked: Question) -> Answer:
        return await self._writer.answer(asked, self._grouping, self.plan.ctx)

    # ---- what it shows

    def metrics(self) -> bytes:
        own = CollectorRegistry()
        own.register(_Certificate(self.upkeep))
        return generate_latest(self.reviewer.registry) + generate_latest(own)

    @asynccontextmanager
    async def page(self) -> AsyncIterator[int]:
        """/healthz, /readyz and /metrics for the time of the block; gives the port."""

        async def healthy(_: web.Request) -> web.Response:
            return web.Response(text="ok")

        async def ready(_: web.Request) -> web.Response:
            if self.upkeep.ready.is_set() and self.port:
                return web.Response(text="ok: answering")
            return web.Response(text="no certificate yet", status=503)

        async def metrics(_: web.Request) -> web.Response:
            return web.Response(body=self.metrics(), headers={"Content-Type": "text/plain; version=0.0.4"})

        app = web.Application()
        app.add_routes([web.get("/healthz", healthy), web.get("/readyz", ready), web.get("/metrics", metrics)])
        async with listening(app, *self.chosen.address) as port:
            yield port


def _about(found: Plan) -> dict[str, Any]:
    ctx = found.ctx or Context.of(NEWEST)
    return {
        "minor": ctx.release.minor,
        "gates": sorted(map(str, ctx.gates)),
        "options": sorted(ctx.options),
        "controllers": list(judged(found)),
    }


def _api_version(kind: str) -> str:
    """Of the kinds that rules look up, those that are nobody's workload are of the core."""
    return next((one.api_version for one in registry.every_kind() if one.kind == kind and one.storage), "v1")


class _Certificate(Collector):
    def __init__(self, upkeep: Upkeep) -> None:
        self._upkeep = upkeep

    def collect(self) -> Iterable[Metric]:
        if self._upkeep.expires is not None:
            text = "When the certificate that is shown to API servers ends, in seconds since 1970"
            end = self._upkeep.expires.timestamp()
            yield GaugeMetricFamily("kohort_webhook_certificate_expiry_timestamp_seconds", text, end)
        text = "Certificates that were put into use since the start"
        yield CounterMetricFamily("kohort_webhook_certificate_rotations", text, self._upkeep.rotations)


async def until(process: WebhookProcess, stop: asyncio.Event) -> None:
    """Works until it is told to stop; an error that does not pass ends it."""
    work, ended = asyncio.create_task(process.run()), asyncio.create_task(stop.wait())
    await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
    for task in (work, ended):
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work
