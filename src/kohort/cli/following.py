"""`-w` of `kohort explain` and `kohort tree`: the answer, and again whenever it has become another one.

Watches only say that something has changed; then the question is asked anew, at most once a second, and less often
where asking takes long.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

from kohort.cli.common import out, write
from kohort.cli.targets import Question, Reply, answer, connected, finish
from kohort.grouping.settings import Grouping
from kohort.kube.client import Client
from kohort.kube.errors import ApiError, KubeError
from kohort.kube.resource import Resource
from kohort.scheduler.published import published
from kohort.scheduler.release import discover
from kohort.scheduler.sources import served

_PAUSE: Final = 1.0  # seconds between two answers, at least
_SHARE: Final = 4.0  # of the time that asking took: pauses are so much longer


@dataclass(frozen=True, slots=True)
class Answer:
    """`data`: what it depends on, without ages; `show` prints it."""

    data: Any
    show: Callable[[], object]


def follow_cluster(
    question: Question, kubeconfig: str, context: str, manager: str, look: Callable[[Reply], Answer], output: str
) -> int:
    """Until Ctrl-C."""

    async def work(client: Client) -> int:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        return await follow(client, question, look, output, stop)

    return connected(kubeconfig, context, manager, work)


async def follow(
    client: Client, question: Question, look: Callable[[Reply], Answer], output: str, stop: asyncio.Event
) -> int:
    """1 if nothing of what was named is there at the beginning; what goes away later may come back."""
    async with _changes(client) as changed:
        before: Any = None
        while not stop.is_set():
            changed.clear()
            began = client.clock.monotonic()
            reply = await answer(client, question)
            found = look(reply)
            now = (found.data, reply.missing)
            if now != before:
                if before is not None:
                    _separate(output, client)
                found.show()
                code = finish(reply, "not looked at, the answer may be wrong")
                sys.stdout.flush()
                if before is None and code and not reply.found:
                    return code
            before = now
            pause = max(_PAUSE, _SHARE * (client.clock.monotonic() - began))
            await _first(stop.wait(), _later(changed, client, pause))
    return 0


def _separate(output: str, client: Client) -> None:
    """As kubectl does between documents; people see when it was."""
    if output == "text":
        out.print(f"\n[dim]--- {client.clock.now().astimezone():%H:%M:%S}[/]")
    elif output == "yaml":
        write("---\n")


async def _later(changed: asyncio.Event, client: Client, pause: float) -> None:
    await client.clock.sleep(pause)
    await changed.wait()


async def _first(*waits: Any) -> None:
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def _changes(client: Client) -> AsyncIterator[asyncio.Event]:
    """Set when anything changes that the scheduler reads."""
    changed = asyncio.Event()
    grouping = await published(client) or Grouping()
    release = await discover(client.discovery)
    sources = await served(client.discovery, release, default_spread=False, grouping=grouping)
    tasks = [
        asyncio.create_task(_tell(client, client.kind(version, source.kind), changed)) for source, version in sources
    ]
    try:
        yield changed
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _tell(client: Client, resource: Resource[Any], changed: asyncio.Event) -> None:
    while True:
        try:
            version = (await anext(resource.pages(page=1))).version
            changed.set()  # between the last answer and this version anything may have happened
            async with contextlib.aclosing(resource.watch(version=version)) as events:
                async for _ in events:
                    changed.set()
        except ApiError as error:
            if error.code in {401, 403, 404}:
                return  # what may not be read cannot be followed; the answer says so
        except KubeError:
            pass
        await client.clock.sleep(_PAUSE)
