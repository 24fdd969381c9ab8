"""Long lists: the same answer as short ones, written in slices that leave the loop to others.

What holds the loop is measured in processor time of its thread, so that a busy machine does not decide the test.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.server.talk import joined

from kohort.kube.transport import ADMIN
from kohort.kube.wire import Request, Response
from kohort.server import list_stream
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.server.store.records import Change, Event, Item

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
POD = {"metadata": {"name": "p", "labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    settings = Settings(tmp_path, in_memory=True, listen=False, secure=False, custom_kinds=False)
    async with Server(settings) as made:
        yield made


async def ask(server: Server, query: dict[str, str], accept: str = "", method: str = "GET") -> Response:
    listed = {name: [value] for name, value in query.items()}
    return await server.api.handle(Request(method, PODS, listed, {"accept": accept}, b"", ADMIN))


async def text(response: Response) -> bytes:
    assert response.status == 200, response.body
    return response.body if isinstance(response.body, bytes) else await joined(response.body)


async def fill(server: Server, count: int) -> None:
    """Copies of one admitted pod, put into the table."""
    headers = {"content-type": "application/json"}
    made = await server.api.handle(Request("POST", PODS, {}, headers, json.dumps(POD).encode(), ADMIN))
    assert made.status == 201, made.body
    table = next(table for name, table in server.store.tables.items() if "pods" in name)
    first = table.get("default", "p")
    assert first is not None
    for number in range(count):
        value = first.value.replace(b'"name":"p"', b'"name":"p-%06d"' % number, 1)
        table.restore(Event(Change.CREATE, Item("default", f"p-{number:06d}", first.revision, value), None))


@asynccontextmanager
async def held() -> AsyncIterator[list[float]]:
    """Processor seconds between two turns of the loop, the largest as the only element afterwards.

    What other tests have left behind is nothing for the garbage collector, as in a process that serves only.
    """
    found = [0.0]
    gc.collect()
    gc.freeze()

    async def look() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            found[0] = max(found[0], now - before)
            before = now

    task = asyncio.create_task(look())
    await asyncio.sleep(0)
    try:
        yield found
    finally:
        task.cancel()
        gc.unfreeze()


@pytest.mark.parametrize("accept", ["", TABLE, PARTIAL, "application/yaml"], ids=["json", "table", "partial", "yaml"])
async def test_a_long_list_says_what_a_short_one_says(
    server: Server, accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(server, 40)
    short = await ask(server, {}, accept)
    assert isinstance(short.body, bytes)
    monkeypatch.setattr(list_stream, "LONG", 10)
    long = await ask(server, {}, accept)
    assert not isinstance(long.body, bytes)
    read: Any = yaml.safe_load if "yaml" in accept else json.loads
    assert read(await text(long)) == read(short.body)
    assert long.headers == short.headers
    head = await ask(server, {}, accept, "HEAD")
    assert head.body == b""


@pytest.mark.parametrize(
    ("query", "accept", "count"),
    [
        ({}, "", 20_000),
        ({}, TABLE, 3000),
        ({}, PARTIAL, 6000),
        ({}, "application/yaml", 600),
        ({"labelSelector": "app=y"}, "", 20_000),
        ({"watch": "1", "timeoutSeconds": "1"}, TABLE, 3000),
    ],
    ids=["json", "table", "partial", "yaml", "selector", "watch"],
)
async def test_no_list_holds_the_loop(server: Server, query: dict[str, str], accept: str, count: int) -> None:
    await fill(server, count)
    async with held() as longest:
        await text(await ask(server, query, accept))
    assert longest[0] < 0.1, longest


async def test_many_long_lists_at_once_hold_it_no_longer_than_one(server: Server) -> None:
    await fill(server, 600)
    answers = await asyncio.gather(*(ask(server, {}, TABLE) for _ in range(20)))
    async with held() as longest:
        bodies = await asyncio.gather(*map(text, answers))
    assert {len(json.loads(body)["rows"]) for body in bodies} == {601}
    assert longest[0] < 0.1, longest
