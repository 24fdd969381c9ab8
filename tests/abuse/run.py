"""One run: quiet gangs, then the same under attack, idle connections, kills; and the tables of what was found."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

import aiohttp
from tests.abuse.attack import Sort
from tests.abuse.attacker import MODULE, Order
from tests.abuse.cluster import QUOTA, REQUEST_SECONDS, Cluster, Stall, Tenant, cluster, emptied
from tests.abuse.gangs import series, start
from tests.abuse.report import Report, Row
from tests.abuse.sorts import SORTS

_GONE_SECONDS = 300.0
_LONGEST_LINE = 1 << 20  # bytes of what the attacker says


@dataclass(frozen=True, slots=True)
class Options:
    """`senders`: requests of the hostile tenant under way at a time. `idle`: connections that say nothing.

    `objects`, `requests`, `kills`: 0 leaves that part out.

    `seconds`: after so many no more is sent, except of each sort once.
    """

    target: str = "up"
    only: str = ""  # sorts, with commas; all of them
    objects: int = 2000
    requests: int = 20_000
    kills: int = 20
    gangs: int = 100
    nodes: int = 20
    senders: int = 8
    idle: int = 1005
    seconds: int = 3600
    settle: int = 1  # 0: memory is not looked at, which may take minutes to go back
    seed: int = 1

    @property
    def sorts(self) -> tuple[Sort, ...]:
        wanted = [name for name in self.only.split(",") if name]
        unknown = set(wanted) - {sort.name for sort in SORTS}
        assert not unknown, f"--only {', '.join(unknown)}: accepted are {', '.join(sort.name for sort in SORTS)}"
        return tuple(sort for sort in SORTS if not wanted or sort.name in wanted)


async def run(options: Options) -> Report:
    report = Report(options.target)
    if options.objects or options.requests:
        await _hosted(report, options)
    if options.kills:
        report.kills, report.lost = await asyncio.to_thread(_kill, options)
    return report


async def _hosted(report: Report, options: Options) -> None:
    async with cluster(options.target, options.nodes) as victim:
        alice = await victim.tenant("alice")
        mallory, trudy = await victim.tenant("mallory", QUOTA), await victim.tenant("trudy", QUOTA)
        async with alice.session, mallory.session, trudy.session:
            await series(alice, "warm", 2)
            begun = len(victim.stalls())  # not those of its start, when it loads modules
            report.quiet = await series(alice, "quiet", options.gangs)
            before, held = victim.memory(), await victim.transitions()
            await _attacked(report, options, victim, alice, mallory, trudy)
            if options.idle and options.target == "up":
                report.idle = await _idle(options.idle, victim, alice)
            report.emptied = all(
                [await emptied(victim.admin, one.namespace, _GONE_SECONDS) for one in (mallory, trudy)]
            )
            peak = victim.memory()
            # The other tenant's events would be gone in an hour, which is not waited for.
            await alice.send("DELETE", f"/apis/events.k8s.io/v1/namespaces/{alice.namespace}/events")
            if options.settle:
                report.memory = (before, peak, await victim.settled_memory(before))
            report.alive = victim.process.poll() is None
            report.transitions = await victim.transitions() - held
            await victim.watched()
            report.stalls = victim.stalls()[begun:]


async def _attacked(
    report: Report, options: Options, victim: Cluster, alice: Tenant, mallory: Tenant, trudy: Tenant
) -> None:
    """The gangs of one tenant, measured as when it was quiet, while the process of the other sends."""
    sending = asyncio.create_task(_send(report, options, victim, mallory, trudy))
    number = 0
    while not sending.done() or number < options.gangs:
        seconds, row = await start(alice, f"loud-{number}"), report.current
        report.attacked.append(seconds)
        if row is not None:
            row.gangs.append(seconds)
        number += 1
    await sending


async def _send(report: Report, options: Options, victim: Cluster, mallory: Tenant, trudy: Tenant) -> None:
    order = Order(
        victim.url,
        victim.authority,
        mallory.token,
        mallory.namespace,
        trudy.token,
        trudy.namespace,
        [sort.name for sort in options.sorts] if options.objects else [],
        options.objects,
        options.requests,
        options.senders,
        options.seconds,
        options.seed,
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", MODULE, stdin=pipe, stdout=pipe, limit=_LONGEST_LINE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(order.line())
        await process.stdin.drain()
        async for line in process.stdout:
            _heard(report, victim, *json.loads(line))
        assert await process.wait() == 0, "the attacker has failed"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _heard(report: Report, victim: Cluster, what: str, *about: Any) -> None:
    """A stall is of the sort that it names, or else of the one that was being sent."""
    match what:
        case "sort":
            (name,) = about
            report.current = report.sorts[name] = Row(next(sort for sort in SORTS if sort.name == name))
            report.known = len(victim.stalls())
        case "sent":
            name, codes, stored = about
            row = report.sorts[name]
            row.codes.update(codes)
            row.stored = stored
            for stall in victim.stalls()[report.known :]:
                _row_of(report, stall, row).stalled(stall)
        case "fuzzed":
            report.fuzz.codes.update(about[0])
        case "fault":
            report.faults.append(about[0])
        case "hang":
            report.hangs.append(about[0])


def _row_of(report: Report, stall: Stall, current: Row) -> Row:
    named = [row for name, row in report.sorts.items() if f"/{name}-" in stall.what]
    return named[0] if named else current


async def _idle(count: int, victim: Cluster, alice: Tenant) -> tuple[int, int]:
    """Connections that say nothing, more than the soft limit of files: how many were opened; what another one gets."""
    host, port = victim.url.removeprefix("https://").split(":")
    writers = []
    try:
        for _ in range(count):
            try:
                _, writer = await asyncio.open_connection(host, int(port))
            except OSError:
                break
            writers.append(writer)
        path = f"/api/v1/namespaces/{alice.namespace}/configmaps"
        async with aiohttp.ClientSession(
            victim.url,
            headers=alice.session.headers,
            connector=aiohttp.TCPConnector(ssl=victim.context),
            timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
        ) as fresh:
            return len(writers), (await Tenant(alice.namespace, fresh).send("GET", path))[0]
    finally:
        for writer in writers:
            writer.transport.abort()


def _kill(options: Options) -> tuple[str, bool]:
    """What a driver says that kills a writer so many times; whether anything was lost."""
    with tempfile.TemporaryDirectory(prefix="kohort-kills-") as folder:
        command = [sys.executable, "-m", "tests.server.crash_driver", folder, str(options.kills), str(options.seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    tail = (done.stdout or done.stderr).strip().splitlines()
    return f"{options.kills}: {tail[-1] if tail else 'no word'}", done.returncode != 0
