"""Bad weather for `kohort run`: what networks, API servers and machines do to a process, by the throw of a die.

Each process has a line of its own to the embedded server. While the weather is bad the line refuses, loses requests,
loses answers, is late, cuts watches; and what was bound over it is written down.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.kube.client import Client
from kohort.kube.clock import LoopClock
from kohort.kube.errors import TransportError
from kohort.kube.transport import Api, InProcess
from kohort.kube.wire import Request, Response
from kohort.run.options import Options
from kohort.run.plan import Plan
from kohort.run.process import Process
from kohort.scheduler.settings import SchedulerSettings

_REASONS: Final = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


@dataclass(frozen=True, slots=True)
class Binding:
    """The server took it."""

    uid: str
    pod: str
    node: str
    by: int
    leaders: tuple[int, ...]  # who thought to lead when it was sent


# A binding that is longer under way than a lease has in reserve (15 s for others, 10 s for its holder) may arrive when
# somebody else leads. No client can prevent that, and no test here asks for it.
LATEST = 4.5


@dataclass(slots=True)
class Weather:
    """What all processes share."""

    api: Api
    clock: LoopClock
    chance: random.Random
    bad: bool = True
    rate: float = 0.12  # of requests that something happens to
    bindings: list[Binding] = field(default_factory=list)
    machines: list[Machine] = field(default_factory=list)
    met: dict[str, int] = field(default_factory=dict)  # what happened, how often
    asked: list[str] = field(default_factory=list)  # every request, and when

    def happens(self, what: str) -> None:
        self.met[what] = self.met.get(what, 0) + 1

    def leaders(self) -> tuple[int, ...]:
        return tuple(one.number for one in self.machines if one.process is not None and one.process.leads)


class Line:
    """A transport: to the server and back, if all goes well."""

    def __init__(self, weather: Weather, number: int) -> None:
        self.weather, self.number = weather, number
        self._inner = InProcess(weather.api, clock=weather.clock)
        self.dead = asyncio.Event()
        self.fatal = 0  # the machine dies at the binding of this number from now
        self.silent_until = 0.0  # nothing gets through before

    async def request(self, request: Request, *, timeout: float, again: bool = True) -> Response:
        try:
            async with self.weather.clock.timeout(timeout):
                return await self._request(request, timeout)
        except TimeoutError:
            raise TransportError("no answer in time") from None

    async def _request(self, request: Request, timeout: float) -> Response:
        weather, chance = self.weather, self.weather.chance
        began, leaders = weather.clock.monotonic(), weather.leaders()
        weather.asked.append(f"{began:.6f} {self.number} {request.method} {request.path}")
        await self._way()
        fault = self._fault(request.method != "GET")
        if isinstance(fault, int):
            return _refusal(fault)
        if fault == "late":
            await weather.clock.sleep(chance.uniform(0.5, 14))
        if fault == "unsent":
            raise TransportError("the connection was refused")
        dies = self._dies(request)
        if dies and chance.random() < 0.5:
            self.dead.set()
        if self.dead.is_set():
            raise TransportError("this machine is dead")
        if request.path.endswith("/binding") and weather.clock.monotonic() - began > LATEST:
            raise TransportError("the network gave up")
        response = await self._sent(request, timeout, leaders)
        if dies:
            self.dead.set()
        if fault == "lost" or self.dead.is_set():
            raise TransportError("the connection was cut before the answer came")
        if fault == "slow":
            await weather.clock.sleep(chance.uniform(0.5, 14))
        await self._way()
        return response

    async def _sent(self, request: Request, timeout: float, leaders: tuple[int, ...]) -> Response:
        response = await self._inner.request(request, timeout=timeout)
        if request.path.endswith("/binding") and response.status == 201:
            body = json.loads(request.body)
            name = request.path.split("/")[-2]
            taken = Binding(body["metadata"]["uid"], name, body["target"]["name"], self.number, leaders)
            self.weather.bindings.append(taken)
        return response

    def _dies(self, request: Request) -> bool:
        if not self.fatal or not request.path.endswith("/binding"):
            return False
        self.fatal -= 1
        return self.fatal == 0

    async def _way(self) -> None:
        """It takes a moment, or as long as the network is away."""
        if self.dead.is_set():
            raise TransportError("this machine is dead")
        await self.weather.clock.sleep(self.weather.chance.uniform(0.001, 0.03))
        left = self.silent_until - self.weather.clock.monotonic()
        if left > 0:
            await self.weather.clock.sleep(left)

    def _fault(self, write: bool) -> int | str | None:
        weather = self.weather
        if not weather.bad or weather.chance.random() > weather.rate:
            return None
        refusals = (409, 429, 500, 503) if write else (429, 500, 503)
        found = weather.chance.choice((*refusals, "unsent", "lost", "lost", "late", "slow"))
        weather.happens(str(found))
        return found

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float) -> AsyncGenerator[Response]:
        await self._way()
        fault = self._fault(False)
        if isinstance(fault, int):
            yield Response(fault, _refusal(fault).headers, _once(b""))
            return
        if fault in {"unsent", "lost"}:
            raise TransportError("the connection was refused")
        async with self._inner.stream(request, timeout=timeout) as response:
            assert not isinstance(response.body, bytes)
            response.body = self._chunks(response.body)
            yield response

    async def _chunks(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """Late by turns, and cut after a while, perhaps with something in it."""
        weather, chance = self.weather, self.weather.chance
        end = weather.clock.monotonic() + (chance.uniform(2, 40) if weather.bad else 1e6)
        iterator = aiter(chunks)
        try:
            while True:
                # Not around `yield`: it would end whatever the reader waits for then.
                async with weather.clock.timeout(end - weather.clock.monotonic()):
                    chunk = await anext(iterator)
                    if weather.bad and chance.random() < 0.15:
                        await weather.clock.sleep(chance.choice((0.1, 0.5, 3.0)))
                if self.dead.is_set() or self.silent_until > weather.clock.monotonic():
                    break
                yield chunk
        except TimeoutError:
            weather.happens("cut")
        except StopAsyncIteration:
            pass
        raise TransportError("the watch was cut")

    async def close(self) -> None:
        await self._inner.close()


def _refusal(code: int) -> Response:
    headers = {"content-type": "application/json"}
    if code == 429:
        headers["retry-after"] = "1"
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": _REASONS[code], "message": "bad weather"}
    return Response(code, headers, json.dumps(status).encode())


async def _once(body: bytes) -> AsyncGenerator[bytes]:
    yield body


class Machine:
    """Where `kohort run` runs: it is started, stopped, killed, and started again."""

    def __init__(
        self, weather: Weather, number: int, chosen: Options, found: Plan, settings: SchedulerSettings
    ) -> None:
        self.weather, self.number = weather, number
        self._chosen, self._plan, self._settings = chosen, found, settings
        self.process: Process | None = None
        self.line: Line | None = None
        self._task: asyncio.Task[Any] | None = None
        weather.machines.append(self)

    def start(self) -> None:
        assert self._task is None
        self.line = Line(self.weather, self.number)
        pauses = random.Random(self.weather.chance.random())
        client = Client(self.line, clock=self.weather.clock, namespace="kube-system", jitter=pauses)
        self.process = Process(client, self._chosen, self._plan, self._settings)
        self._task = asyncio.create_task(self.process.run())

    @property
    def ended(self) -> str:
        """Why, if it ended by itself: it should not."""
        return str(self._task.exception() or "done") if self._task is not None and self._task.done() else ""

    async def stop(self) -> None:
        """Told to, with time."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._task = self.process = self.line = None

    async def kill(self) -> None:
        """From now on nothing that it does is heard."""
        if self.line is not None:
            self.line.dead.set()
        await self.stop()
