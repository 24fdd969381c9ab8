"""One case with one scheduler: when each pod got its node, what it cost, and whether gangs were kept whole."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from bench.e2e import objects
from bench.e2e.apiserver import Pod, fresh, listed, peak, send, writes
from bench.e2e.binding_watch import BindingWatch
from bench.e2e.cases import Case
from bench.e2e.schedulers import RunningScheduler, started
from bench.server import Connection, Target, cpu
from kohort.apimachinery.quantity import parse
from kohort.testing.environment import Environment

_SETTLE = 2.0  # seconds after the last pod of a steady arrival


@dataclass
class Row:
    """What was measured. Seconds count from the start of the scheduler, or of creating where it runs before."""

    case: Case
    scheduler: str
    wanted: int = 0
    times: dict[str, float] = field(default_factory=dict)  # pod -> when it was seen to have a node
    restarted: float = 0.0  # when it was started for the second time
    created: dict[str, float] = field(default_factory=dict)  # pod -> when its creation was answered; steady arrival
    creating: float = 0.0  # seconds that creating took, where the scheduler ran meanwhile
    seconds: float = 0.0  # processor time of the scheduler
    memory: float = 0.0  # MiB at its peak
    server_seconds: float = 0.0
    server_memory: float = 0.0
    writes: Counter[str] = field(default_factory=Counter)  # that the API server took meanwhile
    broken: list[str] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return len(self.times) >= self.wanted

    @property
    def first(self) -> float:
        return min(self.times.values(), default=0.0)

    @property
    def last(self) -> float:
        return max(self.times.values(), default=0.0)

    @property
    def rate(self) -> float:
        """Bindings a second from the first to the last."""
        return (len(self.times) - 1) / max(self.last - self.first, 1e-3) if len(self.times) > 1 else 0.0

    @property
    def all_rate(self) -> float:
        """The same of all writes: statuses and events compete for the same API server."""
        return sum(self.writes.values()) / max(self.last - self.first, 1e-3) if self.done else 0.0

    def percentile(self, share: float) -> float:
        """Of the time from creation to binding."""
        waits = sorted(self.times[name] - self.created[name] for name in self.times if name in self.created)
        return waits[min(int(len(waits) * share), len(waits) - 1)] if waits else 0.0


def measure(case: Case, scheduler: str, kubernetes: str, limit: float) -> Row:
    """`limit`: pods a second that the API server can create and bind."""
    with fresh(kubernetes) as (env, target):
        return asyncio.run(_Measurement(case, scheduler, env, target).run(limit))


class _Measurement:
    def __init__(self, case: Case, scheduler: str, env: Environment, target: Target) -> None:
        self._case, self._env, self._target = case, env, target
        self._row = Row(case, scheduler, case.pods)
        self._began = 0.0

    async def run(self, limit: float) -> Row:
        case, target, row = self._case, self._target, self._row
        await send(target, objects.ground())
        await send(target, objects.nodes(case))
        calls = list(objects.before(case))
        await send(target, (call for call in calls if call[1] == objects.GROUPS))
        await send(target, (call for call in calls if call[1] != objects.GROUPS))
        if not case.running:
            await self._create()
        since = (await listed(target)).metadata.resource_version
        before = await writes(target)
        self._began, used = time.perf_counter(), cpu(target.pids)
        async with self._started() as running, self._watched(since) as watch:
            if case.running:
                self._began = time.perf_counter()
                await (self._arrive(limit) if case.per_second else self._create())
                row.creating = time.perf_counter() - self._began
            if case.restart:
                await self._bound(watch, int(case.restart * row.wanted), case.seconds)
                row.seconds = cpu(running.pids())
                await asyncio.to_thread(running.restart)
                row.restarted = time.perf_counter() - self._began
            left = _SETTLE if case.per_second else self._began + case.seconds - time.perf_counter()
            await self._bound(watch, row.wanted, max(left, _SETTLE))
            row.seconds, row.memory = row.seconds + cpu(running.pids()), peak(running.pids())
            row.writes = await writes(target) - before
        row.server_seconds, row.server_memory = cpu(target.pids) - used, peak(target.pids)
        row.broken = broken(case, (await listed(target)).items)
        return row

    async def _create(self) -> None:
        await send(self._target, objects.measured_groups(self._case))
        await send(self._target, objects.measured_pods(self._case))

    async def _arrive(self, limit: float) -> None:
        """Gangs at an even pace, however long the scheduler takes."""
        case, row = self._case, self._row
        pace = limit * case.per_second / case.size
        count = int(pace * case.seconds)
        row.wanted = count * case.size
        free: asyncio.Queue[Connection] = asyncio.Queue()
        for one in await asyncio.gather(*(Connection(self._target).open() for _ in range(32))):
            free.put_nowait(one)

        async def make(number: int) -> None:
            connection = await free.get()
            await connection.ask(*objects.gang(case, number))
            for place, call in enumerate(objects.members(case, number)):
                await connection.ask(*call)
                row.created[f"g{number}-{place}"] = time.perf_counter() - self._began
            free.put_nowait(connection)

        async with asyncio.TaskGroup() as group:
            for number in range(count):
                late = self._began + number / pace - time.perf_counter()
                if late > 0:
                    await asyncio.sleep(late)
                group.create_task(make(number))

    async def _bound(self, watch: BindingWatch, count: int, seconds: float) -> None:
        """Until so many pods have nodes, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await watch.until(count)

    @asynccontextmanager
    async def _started(self) -> AsyncIterator[RunningScheduler]:
        """In a thread: whoever watches must not wait for it."""
        making = started(self._row.scheduler, self._env, ready=self._case.running)
        running = await asyncio.to_thread(making.__enter__)
        try:
            yield running
        finally:
            await asyncio.to_thread(making.__exit__, None, None, None)

    @asynccontextmanager
    async def _watched(self, since: str) -> AsyncIterator[BindingWatch]:
        async with BindingWatch(self._target, since, "g") as watch:
            yield watch
        self._row.times = {name: moment - self._began for name, moment in watch.times.items()}


def broken(case: Case, pods: list[Pod]) -> list[str]:
    """Gangs with some of their pods bound, gangs in more than one rack, nodes with more than they have."""
    found: list[str] = []
    placed = [pod for pod in pods if pod.spec.node_name]
    gangs: dict[str, list[str]] = {}
    for pod in placed:
        if pod.metadata.name.startswith("g") and pod.spec.scheduling_group is not None:
            gangs.setdefault(pod.spec.scheduling_group.pod_group_name, []).append(pod.spec.node_name)
    for name, there in gangs.items():
        if case.gang and len(there) < case.size:
            found.append(f"{name}: {len(there)} of {case.size} pods are bound")
        racks = {int(node.removeprefix("node-")) * case.racks // case.nodes for node in there} if case.racks else set()
        if len(racks) > 1:
            found.append(f"{name}: in {len(racks)} racks")
    for node, milli in _used(case, placed).items():
        if milli > 4000:
            found.append(f"{node}: {milli}m of 4 cpu")
    return found


def _used(case: Case, placed: list[Pod]) -> Counter[str]:
    """Thousandths of a cpu by node."""
    amounts = {"g": case.cpu, "old": case.before.cpu if case.before else "0", "anchor": "10m", "never": "64"}
    milli = {prefix: parse(text).ceil(-3) for prefix, text in amounts.items()}
    used: Counter[str] = Counter()
    for pod in placed:
        prefix = pod.metadata.name.partition("-")[0].rstrip("0123456789")
        used[pod.spec.node_name] += milli[prefix]
    return used
