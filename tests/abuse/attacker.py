"""The hostile tenant, in a process of its own that comes last on this machine: `python -m tests.abuse.attacker`.

Elsewhere a tenant has a machine of its own. Here it shares the cores with the victim and with whoever measures; what it
computes itself (bodies of megabytes, TLS, compression) must not be taken for what the victim makes others wait. So it
runs at the lowest niceness, and sends what the victim leaves it time for.

It reads an `Order` as a line of JSON, and writes a line about everything that it finds.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import ssl
import sys
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import aiohttp
from tests.abuse import fuzz
from tests.abuse.attack import Attack, Sort, Source
from tests.abuse.cluster import REQUEST_SECONDS, session
from tests.abuse.report import Row
from tests.abuse.sorts import SORTS
from yarl import URL

MODULE: Final = "tests.abuse.attacker"
_NICENESS: Final = 19
_NOT_OURS: Final = {501, 504}  # of fuzzed requests: what is not served, and revisions that do not exist yet
_SERVED_LOOKS, _LOOK_SECONDS = 30, 0.1  # at a kind that was defined a moment ago
_KEPT: Final = 100  # connections that nobody reads, at a time
_AFTER_SECONDS: Final = 0.2  # what a controller does about the last of a sort
_COUNTED: Final = (
    ("apis/jobset.x-k8s.io/v1alpha2", "jobsets"),
    ("apis/trainer.kubeflow.org/v1alpha1", "trainjobs"),
    ("apis/grove.io/v1alpha1", "podcliquesets"),
    ("apis/leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
    ("apis/batch/v1", "cronjobs"),
    ("apis/batch/v1", "jobs"),
    ("apis/apps/v1", "deployments"),
    ("apis/apps/v1", "statefulsets"),
    ("apis/apps/v1", "daemonsets"),
    ("apis/apps/v1", "replicasets"),
    ("api/v1", "pods"),
    ("apis/scheduling.k8s.io/v1alpha3", "podgroups"),
)


@dataclass(frozen=True, slots=True)
class Order:
    """Whom to attack, as whom, with how much. After `seconds` no more is sent, except of each sort once.

    `fuzzer`, `fuzzed`: token and namespace for fuzzed requests, some of which delete whatever there is.
    """

    url: str
    authority: str
    token: str
    namespace: str
    fuzzer: str
    fuzzed: str
    sorts: list[str]
    objects: int
    requests: int
    senders: int
    seconds: float
    seed: int

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


def tell(what: str, *about: Any) -> None:
    sys.stdout.write(json.dumps([what, *about]) + "\n")
    sys.stdout.flush()


class Attacker:
    def __init__(self, order: Order, client: aiohttp.ClientSession) -> None:
        self._order, self._client = order, client
        self._end = time.monotonic() + order.seconds

    async def run(self) -> None:
        async with hole() as address:
            await asyncio.gather(self._sorts(address), self._fuzz())

    async def _sorts(self, address: str) -> None:
        """One sort after the other; nothing is taken away between them."""
        order = self._order
        chosen = [sort for sort in SORTS if sort.name in order.sorts]
        each = -(-order.objects // max(len(chosen), 1))
        for sort in chosen:
            tell("sort", sort.name)
            row = Row(sort)
            batches = sort.batches(Source(order.namespace, sort.name, order.seed, address), each)
            async with contextlib.AsyncExitStack() as unread:
                await asyncio.gather(*(self._send(row, batches, unread) for _ in range(order.senders)))
                await asyncio.sleep(_AFTER_SECONDS)
            tell("sent", sort.name, dict(row.codes), row.stored)
            await self._make_room()

    async def _make_room(self) -> None:
        """What the quota counts goes, workloads before what they made; else the next sort would only be refused."""
        for group, plural in _COUNTED:
            path = f"{self._order.url}/{group}/namespaces/{self._order.namespace}/{plural}?propagationPolicy=Background"
            with contextlib.suppress(TimeoutError, aiohttp.ClientError):
                async with self._client.delete(path) as answer:
                    await answer.read()

    async def _fuzz(self) -> None:
        order, row = self._order, Row(Sort("fuzz", lambda _: (), stored=False))
        headers = {"Authorization": f"Bearer {order.fuzzer}"}
        for one in fuzz.requests(order.fuzzed, order.requests, order.seed):
            if time.monotonic() > self._end:
                break
            await self._answered(row, replace(one, headers=one.headers | headers))
        tell("fuzzed", dict(row.codes))

    async def _send(self, row: Row, batches: Iterable[list[Attack]], unread: contextlib.AsyncExitStack) -> None:
        """Several take from the same iterator, a batch each. Of a kind that was refused there are no objects."""
        kept = 0
        for number, batch in enumerate(batches):
            if number and time.monotonic() > self._end:
                break
            for one in batch:
                if one.unread:
                    kept += 1
                    if kept <= _KEPT:
                        await self._left(row, one, unread)
                elif await self._answered(row, one) != 201 and one.defines:
                    break
            await asyncio.sleep(0)

    async def _answered(self, row: Row, one: Attack) -> int:
        """0: none."""
        for _ in range(_SERVED_LOOKS):
            try:
                data = io.BytesIO(one.body) if one.body else None
                async with self._client.request(one.method, self._url(one), data=data, headers=one.headers) as answer:
                    text = await answer.read()
            except TimeoutError:
                tell("hang", f"{one.sort}: {one.method} {one.path[:200]}: no answer in {REQUEST_SECONDS:g} s")
                return 0
            except aiohttp.ClientError:
                row.codes["cut"] += 1  # answered before the body had been sent, or refused as HTTP
                return 0
            if answer.status != 404 or ".example/" not in one.path:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        row.count(one, answer.status)
        if answer.status >= 500 and (answer.status not in _NOT_OURS or one.sort != "fuzz"):
            tell("fault", f"{one.sort}: {one.method} {one.path[:200]}: {answer.status} {text[:300]!r}")
        return answer.status

    def _url(self, one: Attack) -> URL:
        """As it is written: a client that made `..` of `%2e%2e` would delete the tenant's own namespace."""
        return URL(f"{self._order.url}{one.path}", encoded=True)

    async def _left(self, row: Row, one: Attack, unread: contextlib.AsyncExitStack) -> None:
        try:
            asked = self._client.request(one.method, self._url(one), headers=one.headers)
            row.count(one, (await unread.enter_async_context(asked)).status)
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


async def main() -> None:
    os.nice(_NICENESS)
    order = Order(**json.loads(sys.stdin.readline()))
    context = ssl.create_default_context(cadata=order.authority)
    async with session(None, context, order.token) as client:
        await Attacker(order, client).run()


if __name__ == "__main__":
    asyncio.run(main())
