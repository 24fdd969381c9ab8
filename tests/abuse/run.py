"""One run: quiet gangs, then the same under attack, fuzzed requests, kills; and the table of what was found."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import aiohttp
from tests.abuse import fuzz
from tests.abuse.cluster import QUOTA, REQUEST_SECONDS, Cluster, Tenant, cluster
from tests.abuse.gangs import quantile, series, start
from tests.abuse.hostile import Attack, Maker

_GONE_SECONDS = 120.0
_MOST = 20  # times as many gangs as when it was quiet, however long the attack lasts
_NOT_OURS = {501, 504}  # what is not served, and revisions that do not exist yet


@dataclass(frozen=True, slots=True)
class Options:
    """`senders`: requests of the hostile tenant under way at a time."""

    objects: int = 2000
    requests: int = 20_000
    kills: int = 20
    gangs: int = 50
    nodes: int = 20
    senders: int = 8
    seed: int = 1


@dataclass
class Report:
    options: Options
    quiet: list[float] = field(default_factory=list)
    attacked: list[float] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    stored: Counter[str] = field(default_factory=Counter)  # hostile objects that were accepted, by their sort
    faults: list[str] = field(default_factory=list)  # 5xx
    hangs: list[str] = field(default_factory=list)
    memory: tuple[float, float] = (0.0, 0.0)  # MiB before and after
    stall: float = 0.0
    stalls: list[str] = field(default_factory=list)
    alive: bool = False
    emptied: bool = False
    kills: str = ""
    lost: bool = False

    def rows(self) -> list[tuple[str, str, str, bool]]:
        """What, found, limit, whether it was reached."""
        before, after = self.memory
        quiet, attacked = quantile(self.quiet, 0.99), quantile(self.attacked, 0.99)
        answers = ", ".join(f"{number} {code}" for code, number in sorted(self.codes.items()))
        gangs = f"{attacked:.2f} s of {len(self.attacked)}, quiet {quiet:.2f} s"
        faults = f"{len(self.faults)} 5xx, {len(self.hangs)} hangs ({answers})"
        sorts = ", ".join(f"{number} {sort}" for sort, number in sorted(self.stored.items()))
        objects = f"{self.options.objects} sent, {self.stored.total()} stored ({sorts})"
        return [
            ("hostile objects", objects, "some of them stored", bool(self.stored)),
            ("the other tenant's gangs, p99", gangs, "2 x quiet", attacked <= 2 * quiet),
            ("restarts", "none" if self.alive else "it has ended", "none", self.alive),
            ("hostile namespace emptied", "yes" if self.emptied else "no", "yes", self.emptied),
            ("memory", f"{before:.0f} MiB, then {after:.0f} MiB", "back to 20 %", after <= 1.2 * before),
            ("longest standstill of the loop", f"{self.stall * 1000:.0f} ms", "100 ms", self.stall <= 0.1),
            ("fuzzed requests", faults, "no 5xx, no hang", not self.faults and not self.hangs),
            ("kill -9 rounds with writers", self.kills or "none asked for", "nothing lost", not self.lost),
        ]


async def run(options: Options) -> Report:
    report = Report(options)
    async with cluster(options.nodes) as victim:
        alice = await victim.tenant("alice")
        mallory = await victim.tenant("mallory", QUOTA)
        async with alice.session, mallory.session:
            await series(alice, "warm", 2)
            report.quiet = await series(alice, "quiet", options.gangs)
            before = victim.memory()
            await _attacked(report, alice, mallory)
            report.emptied = await _emptied(victim)
            report.memory = (before, victim.memory())
            report.alive = victim.process.poll() is None
            report.stall, report.stalls = await victim.longest_stall(), victim.stalls()
    _kill(report)
    return report


async def _attacked(report: Report, alice: Tenant, mallory: Tenant) -> None:
    options = report.options
    attacks = Maker(mallory.namespace, options.seed).attacks(options.objects)
    nonsense = fuzz.requests(mallory.namespace, options.requests, options.seed)
    sending = asyncio.gather(*(_send(report, mallory, one) for one in [*[attacks] * options.senders, nonsense]))
    number = 0
    while (not sending.done() or number < options.gangs) and number < options.gangs * _MOST:
        report.attacked.append(await start(alice, f"loud-{number}"))
        number += 1
    await sending


async def _send(report: Report, tenant: Tenant, attacks: Iterator[Attack]) -> None:
    """Several take from the same iterator."""
    for one in attacks:
        began = time.perf_counter()
        try:
            data = io.BytesIO(one.body) if one.body else None
            async with tenant.session.request(one.method, one.path, data=data, headers=one.headers) as answer:
                text = await answer.read()
        except TimeoutError:
            report.hangs.append(f"{one.sort}: {one.method} {one.path[:200]}: no answer in {REQUEST_SECONDS:g} s")
            continue
        except aiohttp.ClientError:
            report.codes["cut"] += 1  # answered before the body had been sent, or refused as HTTP
            continue
        report.codes[str(answer.status)] += 1
        if answer.status == 201 and one.sort != "fuzz":
            report.stored[one.sort] += 1
        if answer.status >= 500 and answer.status not in _NOT_OURS:
            report.faults.append(f"{one.sort}: {one.method} {one.path[:200]}: {answer.status} {text[:300]!r}")
        if time.perf_counter() - began < 0.001:
            await asyncio.sleep(0)


async def _emptied(victim: Cluster) -> bool:
    """The hostile tenant is thrown out: whether everything of it goes."""
    await victim.admin.send("DELETE", "/api/v1/namespaces/mallory")
    end = time.monotonic() + _GONE_SECONDS
    while time.monotonic() < end:
        code, _ = await victim.admin.send("GET", "/api/v1/namespaces/mallory")
        if code == 404:
            return True
        await asyncio.sleep(0.2)
    return False


def _kill(report: Report) -> None:
    if not report.options.kills:
        return
    with tempfile.TemporaryDirectory(prefix="kohort-kills-") as folder:
        command = [sys.executable, "-m", "tests.server.crash_driver", folder]
        command += [str(report.options.kills), str(report.options.seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    report.lost = done.returncode != 0
    tail = (done.stdout or done.stderr).strip().splitlines()
    report.kills = f"{report.options.kills}: {tail[-1] if tail else 'no word'}"
