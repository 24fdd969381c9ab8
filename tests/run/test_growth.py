"""What a process holds does not grow with the gangs that came and went: everything that it can reach is counted."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import types
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.run.test_process import JOBSET, jobset, started

from kohort import tuning
from kohort.apimachinery.times import micros
from kohort.controllers import aside, overlay
from kohort.kube import series
from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.kube.transport import InProcess
from kohort.run.options import Election, Options
from kohort.scheduler.loop import Scheduler
from kohort.scheduler.settings import SchedulerSettings
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import plain
from kohort.sim.kubelet import KubeletSimulator
from kohort.testing.cluster import Cluster

AT_ONCE = 5
ROUNDS = 6
_LOOKS = 30
_ELSEWHERE = (
    types.ModuleType,
    type,
    types.CodeType,
    types.BuiltinFunctionType,
    InProcess,
    Client,
    asyncio.AbstractEventLoop,
    asyncio.Handle,
)


def held(root: object) -> Counter[str]:
    """How many objects of each type can be reached from one, without the server and without the code itself."""
    seen, ahead = {id(root)}, [root]
    found: Counter[str] = Counter()
    while ahead:
        one = ahead.pop()
        if not isinstance(one, float | int):  # whatever holds more of them is counted itself
            found[type(one).__qualname__] += 1
        for other in _parts(one):
            if id(other) not in seen and not isinstance(other, _ELSEWHERE) and not _of_the_server(other):
                seen.add(id(other))
                ahead.append(other)
    return found


def _of_the_server(one: object) -> bool:
    """Watches lead there: it is in this process."""
    return type(one).__module__.startswith(("kohort.server", "kohort.sim"))


def _parts(one: object) -> list[Any]:
    if isinstance(one, types.FunctionType):  # its module knows everybody
        return [part for cell in one.__closure__ or () for part in gc.get_referents(cell)]
    if isinstance(one, types.FrameType):
        return list(one.f_locals.values())
    return gc.get_referents(one)


async def come_and_go(cluster: Cluster, number: int) -> None:
    names = [f"g{number}-{one}" for one in range(AT_ONCE)]
    await cluster.create(*(jobset(name) for name in names))
    await cluster.running(4 * AT_ONCE)
    for name in names:
        await cluster.client.kind(JOBSET, "JobSet").delete(name, cluster.namespace, propagation="Background")

    async def gone() -> bool:
        return not await cluster.pods() and not await cluster.every("scheduling.k8s.io/v1beta1", "PodGroup")

    await cluster.until(gone, what="the end of the gangs")


@pytest.mark.timeout(300)
async def test_gangs_that_are_gone_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is bounded by a number or by time has a small bound here, so that it is full at the first look."""
    for name in ("NORMAL", "WARNINGS", "OBJECTS"):
        monkeypatch.setattr(series, name, 10)
    monkeypatch.setattr(overlay, "FORGET", 0.5)
    monkeypatch.setattr(aside, "_REMEMBERED", 10)
    settings = SchedulerSettings(retry_after=0.5)
    async with (
        Server(Settings(tmp_path, in_memory=True, listen=False)) as server,
        Client.within(server.api) as client,
        KubeletSimulator(client, plain(8), every=True),
    ):
        while not await client.discovery.versions("leaderworkerset.x-k8s.io", "LeaderWorkerSet"):
            await asyncio.sleep(0.01)
        cluster = Cluster(client, "default", patience=90)
        chosen = Options(controllers=("job", "jobset"), listen="127.0.0.1:0")
        async with started(client, chosen, settings) as process:
            await asyncio.wait_for(process.ready.wait(), 90)
            sizes = []
            for number in range(ROUNDS):
                await come_and_go(cluster, number)
                await asyncio.sleep(0.6)  # the bounds by time
                gc.collect()
                sizes.append(held(process))
            half = ROUNDS // 2
            # A gang has four pods, two Jobs, a group; some are always under way.
            many = 3 * AT_ONCE * (ROUNDS - half - 1)
            for _ in range(_LOOKS):  # on a busy machine more is under way, and goes; what is held stays
                grown = {name: count - sizes[half][name] for name, count in sizes[-1].items()}
                if max(grown.values()) < many:
                    break
                await asyncio.sleep(0.6)
                gc.collect()
                sizes.append(held(process))
            assert {name: more for name, more in grown.items() if more >= many} == {}, sizes[-1].most_common(20)


async def stolen(client: Client, name: str) -> None:
    """Somebody else has the lease, for a second."""
    leases = client.kind("coordination.k8s.io/v1", "Lease")
    while True:
        lease = await leases.get(name, "default")
        lease["spec"] |= {"holderIdentity": "thief", "renewTime": micros(datetime.now(UTC)), "leaseDurationSeconds": 1}
        with contextlib.suppress(ApiError):  # it was just renewed
            await leases.update(lease, "default")
            return


async def test_what_worked_before_a_lost_lease_can_go_before_the_next_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sets of informers at a time are memory that never goes back whole."""
    found: list[int] = []

    def start_afresh() -> None:
        gc.collect()
        found.append(sum(isinstance(one, Scheduler) for one in gc.get_objects()))

    gc.collect()
    before = sum(isinstance(one, Scheduler) for one in gc.get_objects())  # of other tests
    monkeypatch.setattr(tuning, "start_afresh", start_afresh)
    election = Election(name="k", namespace="default", lease=3, renew=2, retry=1)
    async with (
        Server(Settings(tmp_path, in_memory=True, listen=False)) as server,
        Client.within(server.api) as client,
        started(client, Options(controllers=("job",), election=election)) as process,
    ):
        for number in range(3):
            async with asyncio.timeout(60):
                await process.ready.wait()
                assert len(found) == number + 1
                await stolen(client, "k")
                while process.ready.is_set():
                    await asyncio.sleep(0.02)
    assert max(found) <= before
