"""Where `kohort run` runs in a random run: behind a proxy of its own, started, stopped, killed, and started again.

Most machines hold the process object itself, which is quick; some the command, which can be killed for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml
from aiohttp import web

from kohort.kube.client import Client
from kohort.run.options import API_VERSION, KIND, Options
from kohort.run.plan import Plan
from kohort.run.process import Process
from kohort.scheduler.settings import SchedulerSettings
from kohort.testing.proxy import Proxy


@dataclass(frozen=True, slots=True)
class Job:
    """What a machine is for."""

    chosen: Options
    plan: Plan
    settings: SchedulerSettings
    folder: Path
    token: str


class Machine(Protocol):
    number: int
    proxy: Proxy
    trap: Trap

    @property
    def leads(self) -> bool: ...

    @property
    def identity(self) -> str:
        """As a holder of the lease, if that is known."""

    @property
    def ended(self) -> str:
        """Why, if it ended by itself: it should not."""

    async def start(self) -> None: ...

    async def stop(self) -> None:
        """Told to, with time."""

    async def kill(self) -> None:
        """From now on nothing that it does is heard."""


class Trap:
    """Death at a binding: before it is sent, or after, with the answer lost."""

    def __init__(self, proxy: Proxy, chance: random.Random, dies: Callable[[], None] = lambda: None) -> None:
        self._proxy, self._chance, self._dies = proxy, chance, dies
        self._left = 0
        self.sprung = asyncio.Event()

    def arm(self, bindings: int) -> None:
        self._left = bindings
        self.sprung.clear()

    def disarm(self) -> None:
        self._left = 0

    def sees(self, request: web.BaseRequest) -> None:
        if not self._left or not request.path.endswith("/binding"):
            return
        self._left -= 1
        if not self._left:
            self._proxy.die()
            self._dies()
            self.sprung.set()
            if self._chance.random() < 0.5:
                raise ConnectionResetError


class Within:
    """The process object in this process."""

    def __init__(self, number: int, proxy: Proxy, job: Job, chance: random.Random) -> None:
        self.number, self.proxy, self._job, self._chance = number, proxy, job, chance
        self.trap = Trap(proxy, chance)
        self.process: Process | None = None
        self._client: Client | None = None
        self._task: asyncio.Task[Any] | None = None
        self._config = job.folder / f"machine-{number}.kubeconfig"
        self._config.write_text(proxy.kubeconfig("kohort", job.token))

    @property
    def leads(self) -> bool:
        return self.process is not None and self.process.leads

    @property
    def identity(self) -> str:
        return self.process.lease.identity if self.process is not None and self.process.lease is not None else "nobody"

    @property
    def ended(self) -> str:
        return str(self._task.exception() or "done") if self._task is not None and self._task.done() else ""

    async def start(self) -> None:
        assert self._task is None
        self.proxy.revive()
        self._client = Client.connect(self._config)
        self._client.jitter = random.Random(self._chance.random())
        self.process = Process(self._client, self._job.chosen, self._job.plan, self._job.settings)
        self._task = asyncio.create_task(self.process.run())

    async def stop(self) -> None:
        task, client = self._task, self._client
        if task is not None and client is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.process = self._client = self._task = None
            await client.close()

    async def kill(self) -> None:
        self.proxy.die()
        await self.stop()


class Command:
    """`kohort run` as it is typed. If it ends by itself it is started again, as a kubelet would."""

    def __init__(self, number: int, proxy: Proxy, job: Job, chance: random.Random) -> None:
        self.number, self.proxy = number, proxy
        self.trap = Trap(proxy, chance, self._shot)
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.log = job.folder / f"machine-{number}.log"
        kubeconfig, config = (job.folder / f"machine-{number}.{end}" for end in ("kubeconfig", "yaml"))
        kubeconfig.write_text(proxy.kubeconfig("kohort", job.token))
        election = job.chosen.election
        chosen = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "controllers": ["none"],
            "namespaces": list(job.chosen.namespaces),
            "listen": "127.0.0.1:0",
            "leaderElection": {
                "namespace": election.namespace,
                "name": election.name,
                "leaseSeconds": election.lease,
                "renewSeconds": election.renew,
                "retrySeconds": election.retry,
            },
        }
        config.write_text(yaml.safe_dump(chosen))
        self._argv = [sys.executable, "-m", "kohort.cli.main", "run", "-v", "--kubeconfig", str(kubeconfig)]
        self._argv += ["--config", str(config)]

    leads, identity, ended = False, "nobody", ""  # nobody can look into it

    async def start(self) -> None:
        assert self._keeper is None
        self.proxy.revive()
        await self._spawn()
        self._keeper = asyncio.create_task(self._keep())

    async def _spawn(self) -> None:
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(*self._argv, stdout=log, stderr=log)

    async def _keep(self) -> None:
        while self._process is not None:
            await self._process.wait()
            await asyncio.sleep(0.5)
            await asyncio.shield(self._spawn())

    def _shot(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def stop(self) -> None:
        await self._end(gently=True)

    async def kill(self) -> None:
        self.proxy.die()
        await self._end(gently=False)

    async def _end(self, *, gently: bool) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate() if gently else process.kill()
        async with asyncio.timeout(60):
            await process.wait()
