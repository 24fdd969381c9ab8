"""One run: quiet gangs, then the same under attack, idle connections, kills; and the tables of what was found."""

from __future__ import annotations

import asyncio
import contextlib
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

import aiohttp
from tests.abuse import fuzz
from tests.abuse.attack import Attack, Sort, Source
from tests.abuse.cluster import QUOTA, REQUEST_SECONDS, Cluster, Stall, Tenant, cluster, emptied
from tests.abuse.gangs import series, start
from tests.abuse.report import Report, Row
from tests.abuse.sorts import SORTS

_GONE_SECONDS = 300.0
_MOST = 20  # times as many gangs as when it was quiet, however long the attack lasts
_NOT_OURS = {501, 504}  # of fuzzed requests: what is not served, and revisions that do not exist yet
_SERVED_LOOKS, _LOOK_SECONDS = 30, 0.1  # at a kind that was defined a moment ago
_KEPT = 100  # connections that nobody reads, at a time


@dataclass(frozen=True, slots=True)
class Options:
    """`senders`: requests of the hostile tenant under way at a time. `idle`: connections that say nothing.

    `seconds`: after so many no more is sent, except of each sort once.
    """

    target: str = "up"
    only: str = ""  # sorts, with commas; all of them
    objects: int = 2000
    requests: int = 20_000
    kills: int = 20
    gangs: int = 50
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
    report = Report(options.target, options.objects, time.monotonic() + options.seconds)
    async with cluster(options.target, options.nodes) as victim:
        alice = await victim.tenant("alice")
        mallory = await victim.tenant("mallory", QUOTA)
        async with alice.session, mallory.session, hole() as address:
            await series(alice, "warm", 2)
            report.quiet = await series(alice, "quiet", options.gangs)
            before, held = victim.memory(), await victim.transitions()
            await _attacked(report, options, victim, alice, mallory, address)
            if options.idle and options.target == "up":
                report.idle = await _idle(options.idle, victim, alice)
            report.emptied = await emptied(victim.admin, mallory.namespace, _GONE_SECONDS)
            peak = victim.memory()
            if options.settle:
                report.memory = (before, peak, await victim.settled_memory(before))
            report.alive = victim.process.poll() is None
            report.transitions = await victim.transitions() - held
            report.stall, report.stalls = await victim.longest_stall(), victim.stalls()
    if options.kills:
        report.kills, report.lost = await asyncio.to_thread(_kill, options)
    return report


async def _attacked(
    report: Report, options: Options, victim: Cluster, alice: Tenant, mallory: Tenant, address: str
) -> None:
    sending = asyncio.gather(_sorts(report, options, victim, mallory, address), _fuzz(report, options, mallory))
    number = 0
    while (not sending.done() or number < options.gangs) and number < options.gangs * _MOST:
        report.attacked.append(await start(alice, f"loud-{number}"))
        number += 1
    await sending


async def _sorts(report: Report, options: Options, victim: Cluster, mallory: Tenant, address: str) -> None:
    """One sort after the other; nothing is taken away between them. A stall is of the sort that it names, or else of
    the one that was being sent."""
    each = -(-options.objects // len(options.sorts))
    for sort in options.sorts:
        row = report.sorts[sort.name] = Row(sort)
        known = len(victim.stalls())
        batches = sort.batches(Source(mallory.namespace, sort.name, options.seed, address), each)
        async with contextlib.AsyncExitStack() as unread:
            await asyncio.gather(*(_send(report, row, mallory, batches, unread) for _ in range(options.senders)))
            await asyncio.sleep(0.2)  # what a controller does about the last of them
        for stall in victim.stalls()[known:]:
            _row_of(report, stall, row).stalled(stall)


def _row_of(report: Report, stall: Stall, current: Row) -> Row:
    named = [row for name, row in report.sorts.items() if f"/{name}-" in stall.what]
    return named[0] if named else current


async def _fuzz(report: Report, options: Options, tenant: Tenant) -> None:
    await _send(
        report, report.fuzz, tenant, ([one] for one in fuzz.requests("mallory", options.requests, options.seed))
    )


async def _send(
    report: Report,
    row: Row,
    tenant: Tenant,
    batches: Iterable[list[Attack]],
    unread: contextlib.AsyncExitStack | None = None,
) -> None:
    """Several take from the same iterator, a batch each. Of a kind that was refused there are no objects."""
    kept = 0
    for number, batch in enumerate(batches):
        if number and time.monotonic() > report.deadline:
            break
        for one in batch:
            if one.unread and unread is not None:
                kept += 1
                if kept <= _KEPT:
                    await _left(row, tenant, one, unread)
            elif await _answered(report, row, tenant, one) != 201 and one.defines:
                break
        await asyncio.sleep(0)


async def _answered(report: Report, row: Row, tenant: Tenant, one: Attack) -> int:
    """0: none."""
    for _ in range(_SERVED_LOOKS):
        try:
            data = io.BytesIO(one.body) if one.body else None
            async with tenant.session.request(one.method, one.path, data=data, headers=one.headers) as answer:
                text = await answer.read()
        except TimeoutError:
            report.hangs.append(f"{one.sort}: {one.method} {one.path[:200]}: no answer in {REQUEST_SECONDS:g} s")
            return 0
        except aiohttp.ClientError:
            row.codes["cut"] += 1  # answered before the body had been sent, or refused as HTTP
            return 0
        if answer.status != 404 or ".example/" not in one.path:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    row.count(one, answer.status)
    if answer.status >= 500 and (answer.status not in _NOT_OURS or one.sort != "fuzz"):
        report.faults.append(f"{one.sort}: {one.method} {one.path[:200]}: {answer.status} {text[:300]!r}")
    return answer.status


async def _left(row: Row, tenant: Tenant, one: Attack, unread: contextlib.AsyncExitStack) -> None:
    try:
        answer = await unread.enter_async_context(tenant.session.request(one.method, one.path, headers=one.headers))
        row.count(one, answer.status)
    except (TimeoutError, aiohttp.ClientError):
        row.codes["cut"] += 1


@contextlib.asynccontextmanager
async def hole() -> AsyncIterator[str]:
    """An address that takes connections and never answers."""
    server = await asyncio.start_server(_silent, "127.0.0.1", 0)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(4096):
            pass
    writer.close()


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
